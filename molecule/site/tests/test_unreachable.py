"""A host that does not answer does not stop the others, and is reported as unknown."""

from __future__ import annotations

import json
from pathlib import Path

SCENARIO = Path(__file__).resolve().parents[1]


def test_unreachable_host_is_unknown_and_the_others_are_healthy(play, tmp_path):
    run = play("site.yml", "-i", str(SCENARIO / "unreachable"), "-e", "report_dir=%s" % tmp_path)
    verdicts = {path.stem: json.loads(path.read_text())["verdict"] for path in tmp_path.glob("*.json")}
    assert verdicts == {"gpu01": "healthy", "gpu02": "healthy", "cpu01": "healthy", "gpu99": "unknown"}
    assert run.rc != 0
    assert "gpu99" in run.output.split("Not every host is in order")[1]


def test_report_fail_on_alone_decides_the_exit_status(play, tmp_path):
    run = play(
        "playbooks/health.yml",
        "-i",
        str(SCENARIO / "unreachable"),
        "-e",
        "report_dir=%s" % tmp_path,
        "-e",
        '{"report_fail_on": ["failed"]}',
    )
    assert run.rc == 0, run.output
    assert json.loads((tmp_path / "gpu99.json").read_text())["verdict"] == "unknown"


def test_health_names_the_gpu_that_fell_off_the_bus(play, lab, tmp_path):
    lab("fault", "gpu02", "--lab", "molecule-site", "--gpu", "5", "lost")
    try:
        run = play("playbooks/health.yml", "-e", "report_dir=%s" % tmp_path)
    finally:
        lab("clear", "gpu02", "--lab", "molecule-site")
    assert run.rc != 0
    report = json.loads((tmp_path / "gpu02.json").read_text())
    assert report["verdict"] == "failed"
    lost = [item for item in report["findings"] if item["severity"] == "critical" and item["gpu"]]
    # index 5 of the A100 server; the kernel log knows a GPU by its bus id alone
    assert {item["gpu"]["pci_bus_id"] for item in lost} == {"00000000:90:00.0"}, report["findings"]
    assert {"gpu_lost", "xid_79"} <= {item["id"] for item in lost}
    assert json.loads((tmp_path / "gpu01.json").read_text())["verdict"] == "healthy"
    assert sum(counts["changed"] for counts in run.recap.values()) == 0
