"""What breaks is named by its bus id and link; what is repaired is healthy again; what is known is left out."""

from __future__ import annotations

import json

import pytest

testinfra_hosts = ["ubuntu2204"]


@pytest.fixture
def fault(lab):
    """fault("lost", "--gpu", "3") on the server; all faults are taken back afterwards."""

    def inject(name, *where):
        lab("fault", "ubuntu2204", "--lab", "molecule-health", *where, name)

    yield inject
    lab("clear", "ubuntu2204", "--lab", "molecule-health")


def check(host, *options):
    answer = host.run("gpu-health check --json --expected-gpus 8 %s" % " ".join(options))
    data = json.loads(answer.stdout)
    assert {"healthy": 0, "degraded": 1, "failed": 2, "unknown": 3}[data["verdict"]] == answer.rc
    return data


def loud(data):
    return [(item["id"], (item["gpu"] or {}).get("index"), item["link"]) for item in data["findings"]
            if item["severity"] != "info"]


def test_a_link_that_is_down_is_named(host, fault):
    fault("nvlink_down", "--gpu", "2", "--link", "5")
    data = check(host)
    assert (data["verdict"], loud(data)) == ("failed", [("nvlink_inactive", 2, 5)])


def test_a_hanging_tool_is_unknown_in_time(host, fault):
    fault("hang")
    data = check(host, "--timeout", "3")
    assert (data["verdict"], loud(data)) == ("unknown", [("smi_timeout", None, None)])


def test_garbage_is_unknown(host, fault):
    fault("garbage")
    assert check(host)["verdict"] == "unknown"


def test_a_lost_gpu_is_told_by_role_and_command_and_the_others_are_judged(host, fault, converge):
    fault("lost", "--gpu", "3")
    data = check(host)
    lost = [item for item in data["findings"] if item["id"] == "gpu_lost"]
    assert data["verdict"] == "failed" and len(data["gpus"]) == 7
    assert lost[0]["gpu"]["index"] == 3 and lost[0]["gpu"]["pci_bus_id"].startswith("00000000:")
    told = converge("--limit", "ubuntu2204", "--tags", "gpu_health_verify")
    assert "verdict: failed" in told.output and lost[0]["gpu"]["pci_bus_id"] in told.output
    assert told.changed("ubuntu2204") == 0


def test_an_xid_stays_until_it_is_acknowledged(host, fault, lab):
    fault("xid=63", "--gpu", "1")
    before = check(host)
    assert ("xid_63", 1, None) in loud(before)
    assert host.run("gpu-health ack --reason 'row remapped at the last drain'").rc == 0
    assert check(host)["verdict"] == "healthy"
    assert "row remapped" in host.file("/var/lib/gpufleet/health/acknowledged.json").content_string


def test_what_was_changed_behind_the_roles_back_is_restored(host, converge):
    host.check_output("systemctl disable --now gpufleet-gpu-health.timer")
    host.check_output("echo '#' >> /usr/local/bin/gpu-health")
    assert converge("--limit", "ubuntu2204").changed("ubuntu2204") > 0
    assert host.service("gpufleet-gpu-health.timer").is_enabled
    assert host.service("gpufleet-gpu-health.timer").is_running
    assert not host.file("/usr/local/bin/gpu-health").content.endswith(b"#\n")
    assert converge("--limit", "ubuntu2204").changed("ubuntu2204") == 0
