# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated machine as a real host: mounts over the kernel's own trees, real lspci, apt, systemd and journal.

One story is played once (install, reboot, upgrade without a reboot, reboot); the tests look at what was seen.
"""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from gpulab.cache import SANDBOX, cache_dir

pytestmark = [pytest.mark.sandbox, pytest.mark.controller]

INVENTORY = str(SANDBOX / "inventory-simulator.yml")
OLD, NEW = "580.159.03", "580.178.04"
REPOSITORY = "http://repo.lab/compute/cuda/repos/ubuntu2204/x86_64"
SOURCE = f"deb [trusted=yes] {REPOSITORY}/ /"


def lab(*arguments: str) -> str:
    command = [str(SANDBOX / "lab"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Host:
    """A host over ssh."""

    def __init__(self, name: str):
        self.name = name
        self.config = str(cache_dir() / "ssh" / "config-simulator")

    def run(self, command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["ssh", "-F", self.config, self.name, command], capture_output=True, text=True, timeout=300, check=False
        )

    def out(self, command: str) -> str:
        done = self.run(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(self, version: str) -> None:
        """Pin first, in a transaction of its own, then the driver: what the role does, without the role."""
        apt = "DEBIAN_FRONTEND=noninteractive apt-get install -y --allow-downgrades "
        self.out(apt + f"nvidia-driver-pinning-{version}")
        self.out(apt + "linux-headers-generic nvidia-open-580 nvidia-fabricmanager")

    def reboot(self) -> None:
        lab("reboot", self.name, "--lab", "simulator")

    def fault(self, *arguments: str) -> None:
        lab("fault", self.name, "--lab", "simulator", *arguments)

    def clear(self) -> None:
        lab("clear", self.name, "--lab", "simulator")

    def smi(self, *arguments: str) -> tuple:
        done = self.run("nvidia-smi " + " ".join(arguments))
        return done.returncode, done.stdout

    def unit(self, name: str) -> str:
        return self.run(f"systemctl is-active {name}").stdout.strip()

    def state(self) -> dict:
        return json.loads(self.out("python3 /usr/lib/gpulab/bin/gpusim state"))

    def eventually(self, command: str, expected: str) -> str:
        """Ask until the answer comes, at most 20 seconds; return the last answer."""
        for _ in range(20):
            answer = self.run(command).stdout.strip()
            if answer == expected:
                return answer
            time.sleep(1)
        return answer


@pytest.fixture(scope="module")
def hosts():
    lab("up", INVENTORY, "--fresh")
    yield {name: Host(name) for name in ("h100", "a100")}
    lab("down", INVENTORY)


@pytest.fixture(scope="module")
def a100(hosts):
    return hosts["a100"]


@pytest.fixture(scope="module")
def seen(hosts):
    """What nvidia-smi and the units said at each step of the story."""
    host, steps = hosts["h100"], {}

    def look(step):
        steps[step] = {
            "smi": host.smi("-L"),
            "module": host.run("cat /sys/module/nvidia/version").stdout.strip(),
            "fabric_manager": host.unit("nvidia-fabricmanager"),
            "persistenced": host.unit("nvidia-persistenced"),
        }

    host.out(f"echo '{SOURCE}' >/etc/apt/sources.list.d/cuda.list && apt-get -q update")
    host.install(OLD)
    host.out("systemctl enable nvidia-fabricmanager nvidia-persistenced")
    look("installed")
    host.reboot()
    look("rebooted")
    host.install(NEW)
    look("upgraded")
    host.reboot()
    look("rebooted again")
    return steps


@pytest.fixture(scope="module")
def h100(hosts, seen):
    """The machine after the story: everything at the new version."""
    assert seen["rebooted again"]["smi"][0] == 0
    return hosts["h100"]


@pytest.mark.parametrize(
    "name, gpus, switches", [("h100", (8, "10de:2330"), (4, "10de:22a3")), ("a100", (8, "10de:20b2"), (6, "10de:1af1"))]
)
def test_real_lspci_lists_the_hardware(hosts, name, gpus, switches):
    lines = hosts[name].out("lspci -Dn -d 10de::0302").splitlines()
    assert len(lines) == gpus[0] and all(gpus[1] in line for line in lines)
    lines = hosts[name].out("lspci -Dn -d 10de::0680").splitlines()
    assert len(lines) == switches[0] and all(switches[1] in line for line in lines)


def test_tools_of_the_system_bear_the_pretended_trees(hosts):
    assert "NUMA node(s):" in hosts["a100"].out("lscpu")
    assert hosts["a100"].out("systemctl is-system-running || true").strip() in ("running", "degraded")


def test_without_a_driver_there_is_no_trace_of_one(a100):
    assert a100.run("test -e /sys/module/nvidia -o -e /proc/driver/nvidia -o -e /dev/nvidia0").returncode == 1


def test_installed_is_not_loaded(seen):
    assert seen["installed"]["smi"][0] == 9
    assert seen["installed"]["module"] == ""


def test_a_reboot_loads_what_is_installed(seen):
    step = seen["rebooted"]
    assert step["smi"][0] == 0 and step["smi"][1].count("NVIDIA H100 80GB HBM3") == 8
    assert (step["module"], step["fabric_manager"], step["persistenced"]) == (OLD, "active", "active")


def test_an_upgrade_without_a_reboot_breaks_nvidia_smi_and_the_fabric_manager(seen):
    step = seen["upgraded"]
    assert step["smi"] == (
        18,
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178\n",
    )
    assert step["module"] == OLD
    assert step["fabric_manager"] == "failed"


def test_another_reboot_mends_it(seen):
    step = seen["rebooted again"]
    assert (step["smi"][0], step["module"], step["fabric_manager"]) == (0, NEW, "active")


def test_the_fabric_completes_and_persistence_mode_is_on(h100):
    question = "nvidia-smi --query-gpu=fabric.state,persistence_mode --format=csv,noheader | sort -u"
    assert h100.eventually(question, "Completed, Enabled") == "Completed, Enabled"


def test_the_kernels_own_modules_stay_visible_beside_ours(h100, a100):
    ours = set(h100.out("ls /sys/module").split())
    assert {"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"} <= ours
    assert set(a100.out("ls /sys/module").split()) <= ours


def test_device_files_are_nvidias(h100):
    assert h100.out("stat -c '%F %t %T' /dev/nvidia3 /dev/nvidiactl").splitlines() == [
        "character special file c3 3",
        "character special file c3 ff",
    ]


def test_an_ordinary_user_can_look_but_not_set(h100):
    h100.out("id tester >/dev/null 2>&1 || useradd tester")
    done = h100.run("runuser -u tester -- nvidia-smi -L")
    assert done.returncode == 0 and done.stdout.count("UUID") == 8
    assert h100.run("runuser -u tester -- nvidia-smi -pl 500").returncode == 4


def test_a_lost_gpu_shows_in_nvidia_smi_lspci_and_journal_until_the_reboot(h100):
    h100.fault("--gpu", "3", "lost")
    rc, text = h100.smi("-q", "-x")
    assert rc == 15 and "GPU0000:61:00.0: GPU is lost." in text
    assert "00: ff ff ff ff" in h100.out("lspci -xs 61:00.0")
    assert h100.out("lspci -Dn -d 10de::0302").count("10de:2330") == 8
    journal = h100.out("journalctl -k -b -o cat --no-pager")
    assert "NVRM: Xid (PCI:0000:61:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus." in journal
    h100.reboot()
    assert h100.smi("-q", "-x")[0] == 0
    assert "00: de 10 30 23" in h100.out("lspci -xs 61:00.0")
    assert "Xid" not in h100.out("journalctl -k -b -o cat --no-pager")


def test_the_kernel_log_is_the_hosts_own(h100, a100):
    # from within, as a task of a playbook would
    h100.out("python3 /usr/lib/gpulab/bin/gpusim fault --gpu 1 xid=63")
    assert "Xid (PCI:0000:43:00): 63" in h100.out("journalctl -k -b -o cat --no-pager")
    assert "Xid" not in a100.out("journalctl -k -b -o cat --no-pager")


def test_a_hanging_nvidia_smi_dies_by_its_time_limit(h100):
    h100.fault("hang")
    assert h100.run("timeout 2 nvidia-smi -L").returncode == 124
    h100.clear()
    assert h100.smi("-L")[0] == 0


def test_a_dead_fabric_manager_fails_its_unit_and_stays_dead(h100):
    h100.fault("fm_dead")
    assert h100.eventually("systemctl is-active nvidia-fabricmanager", "failed") == "failed"
    assert h100.run("systemctl restart nvidia-fabricmanager").returncode != 0
    h100.clear()
    h100.out("systemctl reset-failed nvidia-fabricmanager; systemctl start nvidia-fabricmanager")
    assert h100.unit("nvidia-fabricmanager") == "active"


def test_a_governor_is_written_on_every_cpu_and_reset_by_a_reboot(a100):
    files = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    assert set(a100.out(f"cat {files}").split()) == {"schedutil"}
    a100.out(f"for file in {files}; do echo performance > $file; done")
    assert set(a100.out(f"cat {files}").split()) == {"performance"}
    a100.reboot()
    assert set(a100.out(f"cat {files}").split()) == {"schedutil"}


def test_a_power_limit_is_recorded_and_gone_after_the_reboot(h100):
    assert h100.smi("-i", "2", "-pl", "450")[0] == 0
    question = "nvidia-smi -i 2 --query-gpu=power.limit --format=csv,noheader,nounits"
    assert h100.out(question).strip() == "450.00"
    record = h100.state()["calls"][-1]
    assert (record["set"], record["to"], record["argv"]) == ("power_limit_w", 450.0, ["-i", "2", "-pl", "450"])
    h100.reboot()
    assert h100.out(question).strip() == "700.00"
