"""The report on the controller: right, whole, restored when it was changed, and all that can fail a run."""

from __future__ import annotations

import json
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
REPORTS = REPOSITORY / "build" / "reports" / "molecule-report"
CONVERGE = "molecule/report/converge.yml"


def test_host_report_has_verdict_and_finding():
    report = json.loads((REPORTS / "gpu01.json").read_text())
    assert report["verdict"] == "degraded"
    assert report["findings"][0]["id"] == "pcie_width_low"
    assert report["findings"][0]["gpu"]["pci_bus_id"] == "00000000:52:00.0"
    assert report["unproven"] == ["nothing"]


def test_page_says_what_to_do():
    page = (REPORTS / "fleet.md").read_text()
    assert "| degraded | gpu01 |" in page
    assert "what to do: reseat the GPU" in page


def test_nothing_is_written_on_the_host(host):
    assert not host.file("/root/reports").exists
    assert not host.file("/var/lib/gpufleet").exists


def test_a_report_that_was_changed_or_lost_is_written_again(converge):
    (REPORTS / "gpu01.json").write_text('{"verdict": "healthy"}')
    (REPORTS / "fleet.md").unlink()
    converge()
    assert json.loads((REPORTS / "gpu01.json").read_text())["verdict"] == "degraded"
    assert (REPORTS / "fleet.md").exists()


def test_check_mode_writes_nothing(converge, tmp_path):
    run = converge("--check", "-e", "report_dir=%s" % (tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    assert "gpu01  degraded" in run.output


def test_only_report_fail_on_fails_the_run(play, tmp_path):
    aside = ("-e", "report_dir=%s" % tmp_path)
    assert play(CONVERGE, *aside).rc == 0
    assert play(CONVERGE, *aside, "-e", '{"report_fail_on": ["degraded"]}').rc != 0
    assert play(CONVERGE, *aside, "-e", "verdict=failed").rc != 0
    assert play(CONVERGE, *aside, "-e", "verdict=failed", "--check").rc == 0
    assert play(CONVERGE, *aside, "-e", "verdict=failed", "-e", '{"report_fail_on": []}').rc == 0


def test_a_folder_that_cannot_be_written_is_named(play):
    run = play(CONVERGE, "-e", "report_dir=/proc/reports")
    assert run.rc != 0
    assert "report_dir: cannot write to /proc/reports" in " ".join(run.output.split())
