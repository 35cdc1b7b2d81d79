# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric manager and nvidia-persistenced of the simulated machine, as real processes that fork."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from simulated_machine import Machine

from gpusim.processes import alive

OLD, NEW = "580.159.03", "580.178.04"
FABRIC_PID = "run/nvidia-fabricmanager/nv-fabricmanager.pid"
NVLSM_PID = "run/nvidia-fabricmanager/nvlsm.pid"
PERSISTENCED_PID = "run/nvidia-persistenced/nvidia-persistenced.pid"


@pytest.fixture
def bare(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    for name in (FABRIC_PID, PERSISTENCED_PID):
        if (tmp_path / name).exists():
            os.kill(pid_of(machine, name), signal.SIGTERM)


@pytest.fixture
def machine(bare):
    return bare.install(NEW).boot()


def pid_of(machine, name: str) -> int:
    return int((machine.root / name).read_text())


def fabric_manager(machine, version=NEW):
    return machine.spawn("nv-fabricmanager", "--lab-version", version, "-c", "/usr/share/nvidia/nvswitch/none.cfg")


def persistenced(machine, *arguments):
    return machine.spawn("nvidia-persistenced", "--lab-version", NEW, *arguments)


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def fabric_states(machine):
    return {tuple(row) for row in machine.query("fabric.state,fabric.status")}


def test_fabric_completes_a_moment_after_the_fabric_manager_started(machine):
    assert fabric_states(machine) == {("In Progress", "[N/A]")}
    answer = fabric_manager(machine)
    assert answer.rc == 0, answer.stderr
    assert "Successfully configured all the available NVSwitches" in answer.text
    assert eventually(lambda: fabric_states(machine) == {("Completed", "Success")})
    assert "<clusterUuid>00000000-0000-0000-0000-000000000000<" in machine.smi("-q", "-x").text
    os.kill(pid_of(machine, FABRIC_PID), 0)
    assert "Connected to 1 node." in (machine.root / "var/log/fabricmanager.log").read_text()


def test_fabric_stays_complete_when_the_fabric_manager_stops_and_not_over_a_reboot(machine):
    fabric_manager(machine)
    os.kill(pid_of(machine, FABRIC_PID), signal.SIGTERM)
    assert eventually(lambda: not (machine.root / FABRIC_PID).exists())
    assert eventually(lambda: fabric_states(machine) == {("Completed", "Success")})
    machine.boot()
    assert fabric_states(machine) == {("In Progress", "[N/A]")}


def test_a100_has_no_fabric_state(tmp_path):
    machine = Machine(tmp_path, "hgx-a100-8").install(NEW).boot()
    assert fabric_states(machine) == {("[N/A]", "[N/A]")}


def test_fabric_manager_of_another_version_refuses(bare):
    bare.install(OLD).boot()
    answer = fabric_manager(bare, NEW)
    assert answer.rc == 1
    assert answer.stderr == (
        "fabric manager NVIDIA GPU driver interface version 580.178.04 don't match with driver version 580.159.03. "
        "Please update with matching NVIDIA driver package.\n"
    )
    assert not (bare.root / FABRIC_PID).exists()
    assert "[ERROR]" in (bare.root / "var/log/fabricmanager.log").read_text()


def test_fabric_manager_without_a_driver_refuses(bare):
    assert fabric_manager(bare.boot()).rc == 1


def test_fabric_manager_without_nvswitches_has_nothing_to_do(machine):
    state = machine.root / "run/gpulab/state.json"
    state.write_text(state.read_text().replace('"dgx-h100-8"', '"none"'))
    answer = fabric_manager(machine)
    assert answer.rc == 1
    assert "Nothing to do [NV_WARN_NOTHING_TO_DO]" in answer.stderr


def test_a_dead_fabric_manager_dies_at_once_and_does_not_start_again_until_cleared(machine):
    fabric_manager(machine)
    pid = pid_of(machine, FABRIC_PID)
    machine.fault("fm_dead")
    assert eventually(lambda: not (machine.root / FABRIC_PID).exists())
    assert eventually(lambda: not os.path.exists(f"/proc/{pid}") or " Z " in open(f"/proc/{pid}/stat").read())
    machine.boot()
    answer = fabric_manager(machine)
    assert answer.rc == 1 and "detected NVSwitch fatal error" in answer.stderr
    machine.gpusim("clear")
    assert fabric_manager(machine).rc == 0


def test_fabric_manager_says_its_version(machine):
    answer = machine.spawn("nv-fabricmanager", "--lab-version", NEW, "--version")
    assert (answer.rc, answer.text) == (0, "Fabric Manager version is : 580.178.04\n")


@pytest.mark.parametrize(
    "arguments, mode",
    [((), "Enabled"), (("--persistence-mode", "--verbose"), "Enabled"), (("--no-persistence-mode",), "Disabled")],
)
def test_persistenced_sets_the_mode_of_all_gpus(machine, arguments, mode):
    assert persistenced(machine, *arguments).rc == 0
    assert machine.query("persistence_mode") == [[mode]] * 8


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_persistence_and_power_limits_end_with_the_daemon(machine, number):
    persistenced(machine)
    machine.smi("-pl", "500")
    assert machine.query("power.limit") == [["500.00"]] * 8
    os.kill(pid_of(machine, PERSISTENCED_PID), number)
    assert eventually(lambda: machine.query("persistence_mode,power.limit") == [["Disabled", "700.00"]] * 8)
    (machine.root / PERSISTENCED_PID).unlink(missing_ok=True)
    persistenced(machine)
    assert machine.query("persistence_mode,power.limit") == [["Enabled", "700.00"]] * 8


def test_persistenced_without_a_driver_refuses(bare):
    answer = persistenced(bare.boot())
    assert answer.rc == 1
    assert "nvidia-persistenced failed to initialize. Check syslog for more details." in answer.stderr


def test_persistenced_needs_its_user(machine):
    answer = persistenced(machine, "--user", "nobody-of-that-name")
    assert answer.rc == 1
    assert "Failed to find user ID of user 'nobody-of-that-name'" in answer.stderr


def test_persistenced_refuses_an_option_it_does_not_know(machine):
    answer = persistenced(machine, "--persistance-mode")
    assert answer.rc == 1 and "unrecognized option: --persistance-mode" in answer.stderr


def test_nvlsm_lives_and_dies_with_the_fabric_manager_of_an_nvlink_5_board(bare):
    bare.profile = "hgx-b200-8"
    bare.install(NEW).boot()
    refused = fabric_manager(bare)
    assert refused.rc == 1 and "NV_WARN_NOTHING_TO_DO" in refused.stderr  # nvlsm is not installed
    bare.write("opt/nvidia/nvlsm/sbin/nvlsm", b"")
    assert fabric_manager(bare).rc == 0
    first = pid_of(bare, NVLSM_PID)
    assert eventually(lambda: (Path("/proc") / str(first) / "comm").read_text() == "nvlsm\n")
    assert eventually(lambda: fabric_states(bare) == {("Completed", "Success")})
    bare.fault("nvlsm_dead")
    assert eventually(lambda: not alive(first))
    assert fabric_states(bare) == {("Completed", "Success")}  # who has registered stays so


def test_a_b200_board_boots_without_a_fabric_while_nvlsm_is_dead(bare):
    bare.profile = "hgx-b200-8"
    bare.write("opt/nvidia/nvlsm/sbin/nvlsm", b"")
    bare.install(NEW).boot().fault("nvlsm_dead")
    bare.boot()
    assert fabric_manager(bare).rc == 0
    assert not (bare.root / NVLSM_PID).exists()
    time.sleep(1.5)
    assert fabric_states(bare) == {("In Progress", "[N/A]")}


def test_nvlsm_ends_when_the_fabric_manager_does(bare):
    bare.profile = "hgx-b200-8"
    bare.write("opt/nvidia/nvlsm/sbin/nvlsm", b"")
    bare.install(NEW).boot()
    assert fabric_manager(bare).rc == 0
    child = pid_of(bare, NVLSM_PID)
    os.kill(pid_of(bare, FABRIC_PID), signal.SIGTERM)
    assert eventually(lambda: not alive(child))
