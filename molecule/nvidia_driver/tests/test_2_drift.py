"""What is changed behind the role's back is reported and restored; what is broken is never called healthy.

The order matters: each test leaves the hosts as the role wants them.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import testinfra

H100, A100 = "ubuntu2204", "ubuntu2404"
VERSION, OLDER = "580.178.04", "580.159.03"
BROKEN = "http://repo.lab/broken"
"""Repositories in which one package has the right name, version and relations, and no content."""


@pytest.fixture(scope="module", autouse=True)
def json_results():
    """Results are read from the output, so they have to come whole, as JSON."""
    os.environ["ANSIBLE_CALLBACK_RESULT_FORMAT"] = "json"
    yield
    del os.environ["ANSIBLE_CALLBACK_RESULT_FORMAT"]


@pytest.fixture(scope="module")
def machines():
    cache = os.environ.get("GPUFLEET_CACHE") or str(Path.home() / ".cache/gpufleet")
    return {
        name: testinfra.get_host("ssh://%s?ssh_config=%s/ssh/config-molecule-driver" % (name, cache))
        for name in (H100, A100)
    }


def result_of(play, host):
    """The role's result, as the scenario's playbook shows it at its end."""
    found = re.search(r"ok: \[%s\] => (\{\n +\"gpufleet_results.nvidia_driver\".*?\n\})" % host, play.output, re.DOTALL)
    return json.loads(found.group(1))["gpufleet_results.nvidia_driver"]


def messages(result):
    return "\n".join(item["message"] for item in result["findings"])


def test_drift_is_reported_and_restored(machines, converge):
    h100, a100 = machines[H100], machines[A100]
    h100.run_expect([0], "apt-mark unhold libnvidia-compute-580")
    h100.run_expect([0], "apt-get install -yq --allow-change-held-packages nvidia-fabricmanager=595.91.07-1ubuntu1")
    h100.run_expect([0], "cp /usr/share/keyrings/ubuntu-archive-keyring.gpg /etc/apt/keyrings/gpufleet-nvidia.gpg")
    drop_in = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
    h100.run_expect([0], "sed -i s/--persistence-mode/--no-persistence-mode/ %s", drop_in)
    a100.run_expect([0], "apt-get remove -yq --allow-change-held-packages nvidia-fabricmanager-580")
    a100.run_expect([0], "systemctl mask --now nvidia-persistenced")
    a100.run_expect([0], "rm /etc/apt/preferences.d/90-gpufleet-nvidia")

    preview = converge("--check", "--diff")
    assert preview.changed(H100) and preview.changed(A100)
    assert result_of(preview, H100)["verdict"] == "unknown"
    assert h100.package("nvidia-fabricmanager").version.startswith("595.")
    assert not a100.package("nvidia-fabricmanager-580").is_installed

    restored = converge()
    told = result_of(restored, H100)
    assert told["verdict"] == "healthy" and told["changed"]
    for words in ("libnvidia-compute-580 was not on hold", "nvidia-fabricmanager was at 595.91.07", "key was another",
                  "file %s" % drop_in):
        assert words in messages(told)
    told = result_of(restored, A100)
    assert told["verdict"] == "healthy"
    for words in ("nvidia-fabricmanager-580 was missing", "nvidia-persistenced.service was not as it should be",
                  "file /etc/apt/preferences.d/90-gpufleet-nvidia"):
        assert words in messages(told)

    assert h100.package("nvidia-fabricmanager").version.startswith(VERSION)
    holds = h100.check_output("apt-mark showhold").split()
    assert "libnvidia-compute-580" in holds and "nvidia-fabricmanager" in holds
    assert "--no-persistence-mode" not in h100.file(drop_in).content_string
    assert h100.run("apt-get update").rc == 0
    for machine in machines.values():
        assert machine.service("nvidia-fabricmanager").is_running
        assert machine.service("nvidia-persistenced").is_running

    again = converge()
    assert (again.changed(H100), again.changed(A100)) == (0, 0)
    assert result_of(again, H100)["findings"] == []


def test_a_fabric_manager_package_that_installs_nothing_makes_the_host_failed(machines, converge):
    h100 = machines[H100]
    h100.run_expect([0], "apt-get purge -yq --allow-change-held-packages nvidia-fabricmanager")
    broken = converge("--limit", H100, "-e", "gpufleet_nvidia_repo_url=%s/fabricmanager/compute/cuda/repos" % BROKEN)
    result = result_of(broken, H100)
    assert h100.package("nvidia-fabricmanager").version.startswith(VERSION)  # for apt all is well
    assert result["verdict"] == "failed"
    assert "driver_unit_fabric_manager" in [item["id"] for item in result["findings"]]


def test_a_driver_package_without_modules_is_found_before_anybody_boots_into_it(machines, play):
    h100 = machines[H100]
    boot_id = h100.check_output("cat /proc/sys/kernel/random/boot_id")
    refused = play(
        "molecule/nvidia_driver/converge.yml", "--limit", H100, "-e", "nvidia_driver_version=" + OLDER,
        "-e", "gpufleet_nvidia_repo_url=%s/driver/compute/cuda/repos" % BROKEN,
    )
    assert refused.rc != 0
    assert re.search(r"there is no\s+open nvidia module %s for it on disk" % OLDER, refused.output)
    assert h100.check_output("cat /proc/sys/kernel/random/boot_id") == boot_id
    # what the package of the test before left out has come
    assert h100.file("/usr/bin/nv-fabricmanager").exists


def test_without_leave_there_is_no_reboot_and_the_host_says_so(machines, converge):
    h100 = machines[H100]
    boot_id = h100.check_output("cat /proc/sys/kernel/random/boot_id")
    waiting = converge("--limit", H100, "-e", "nvidia_driver_version=" + OLDER, "-e", "nvidia_driver_reboot_ok=false")
    result = result_of(waiting, H100)
    assert h100.check_output("cat /proc/sys/kernel/random/boot_id") == boot_id
    assert h100.run("nvidia-smi").rc == 18
    assert result["verdict"] == "failed"
    assert "driver_reboot_required" in [item["id"] for item in result["findings"]]

    back = converge("--limit", H100)
    assert result_of(back, H100)["verdict"] == "healthy"
    assert h100.check_output("cat /proc/sys/kernel/random/boot_id") == boot_id  # loaded is what is installed again
    assert h100.package("nvidia-driver-pinning-" + VERSION).is_installed
    assert not h100.package("nvidia-driver-pinning-" + OLDER).is_installed
