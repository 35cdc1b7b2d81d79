"""What site.yml leaves behind on the machines, read from the machines, and what it says of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
REPORTS = REPOSITORY / "build" / "reports" / "molecule-site"
GPUS = {"gpu01": 8, "gpu02": 8, "cpu01": 0}
MODEL = {"gpu01": "H100", "gpu02": "A100"}


def name_of(host) -> str:
    return host.check_output("hostname")


def report_of(host) -> dict:
    return json.loads((REPORTS / ("%s.json" % name_of(host))).read_text())


def test_every_gpu_answers(host):
    if not GPUS[name_of(host)]:
        assert not host.exists("nvidia-smi")
        return
    lines = host.check_output("nvidia-smi -L").splitlines()
    assert len(lines) == GPUS[name_of(host)]
    assert all(MODEL[name_of(host)] in line for line in lines)


def test_loaded_module_library_and_fabric_manager_are_one_version(host):
    if not GPUS[name_of(host)]:
        assert host.check_output("dpkg-query -W -f '${Package}\\n' '*nvidia*' 2>/dev/null || true") == ""
        return
    loaded = host.check_output("cat /sys/module/nvidia/version")
    assert host.check_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u") == loaded
    assert loaded in host.check_output("readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    assert loaded in host.check_output("nv-fabricmanager --version")
    assert host.service("nvidia-fabricmanager").is_running


def test_persistence_is_on(host):
    if GPUS[name_of(host)]:
        modes = host.check_output("nvidia-smi --query-gpu=persistence_mode --format=csv,noheader").splitlines()
        assert modes == ["Enabled"] * GPUS[name_of(host)]


def test_driver_packages_are_held(host):
    held = host.check_output("apt-mark showhold")
    assert ("nvidia" in held) is bool(GPUS[name_of(host)])


def test_report_says_healthy_and_what_was_proven(host):
    report = report_of(host)
    assert report["verdict"] == "healthy", report["findings"]
    assert set(report["roles"]) == {"base", "nvidia_driver", "gpu_health"}
    if GPUS[name_of(host)]:
        assert report["versions"]["nvidia_driver"]["loaded"] == host.check_output("cat /sys/module/nvidia/version")
    else:
        assert "no_gpu" in [item["id"] for item in report["findings"]]


def test_page_names_every_host():
    page = (REPORTS / "fleet.md").read_text()
    assert "| healthy | gpu01, gpu02, cpu01 |" in page


@pytest.mark.parametrize(
    "variable, words",
    [
        ("base_ntp_servers_typo=x", ["base_ntp_servers_typo", "no such variable of base"]),
        ("nvidia_driver_reboot_ok=perhaps", ["nvidia_driver_reboot_ok", "perhaps", "auto"]),
        ("report_fail_on=never", ["report_fail_on", "never", "failed, unknown, degraded, healthy"]),
    ],
)
def test_bad_variable_stops_the_run_before_any_host_is_touched(play, variable, words):
    run = play("site.yml", "-e", variable)
    assert run.rc != 0
    flat = " ".join(run.output.split())
    for word in words:
        assert word in flat
    assert "Ask every host" not in run.output
    assert sum(counts["changed"] for counts in run.recap.values()) == 0


def test_unsupported_system_stops_the_run_before_any_host_is_changed(host, play):
    if name_of(host) != "cpu01":
        pytest.skip("one host is enough")
    host.check_output("cp -a /usr/lib/os-release /root/os-release.kept")
    try:
        host.check_output("sed -i 's/VERSION_ID=.*/VERSION_ID=\"11\"/' /usr/lib/os-release")
        host.check_output("cp -a /etc/debian_version /root/debian_version.kept && echo 11.9 > /etc/debian_version")
        run = play("site.yml")
    finally:
        host.check_output("cp -a /root/os-release.kept /usr/lib/os-release")
        host.check_output("cp -a /root/debian_version.kept /etc/debian_version")
    flat = " ".join(run.output.split())
    assert run.rc != 0
    assert "cpu01: Debian 11" in flat
    assert "Supported: Ubuntu 20.04" in flat
    assert sum(counts["changed"] for counts in run.recap.values()) == 0


@pytest.mark.parametrize("text", ["gpus: {hosts: {gpu01: {}}}\n", "all: {}\n"], ids=["other-group", "empty"])
def test_inventory_without_gpu_hosts_is_refused(tmp_path, text):
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(text)
    done = subprocess.run(
        ["ansible-playbook", "-i", str(inventory), "site.yml"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "no host in group gpu_servers" in " ".join(done.stdout.split())
