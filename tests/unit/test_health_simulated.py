# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated machines, healthy and with each fault: the exact findings, the GPU and link they name, and no others."""

from __future__ import annotations

import sys

import pytest
from support_health import ONE_KERNEL_LINE

from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._observe import Questions, observe

pytestmark = pytest.mark.skipif(sys.version_info < (3, 9), reason="the GPU simulator needs Python 3.9")

PROFILES = ("dgx-h100-8", "hgx-a100-8")

# fault arguments: {verdict, [(finding, GPU index or None, link or None)]}; a GPU or link of None is not looked at
FAULTS = {
    "lost --gpu 3": ("failed", [("gpu_lost", 3, None)]),
    "nvlink_down --gpu 2 --link 5": ("failed", [("nvlink_inactive", 2, 5)]),
    "nvlink_down --gpu 2": ("failed", [("nvlink_all_down", 2, None)]),
    "hang": ("unknown", [("smi_timeout", None, None)]),
}

KERNEL = {
    79: ("failed", "xid_79"),
    48: ("failed", "xid_48"),
    63: ("degraded", "xid_63"),
    94: ("degraded", "xid_94"),
    13: ("healthy", "xid_13"),
}


@pytest.fixture
def simulated(tmp_path):
    """look(profile, *fault, **host options) -> Judgement of a machine that expects its own number of GPUs."""
    from support_simulated import SimulatedHost, booted, smi_program

    def look(profile, fault="", timeout_s=20.0, **options):
        machine = booted(tmp_path / "machine", profile)
        if fault:
            machine.gpusim("fault", *fault.split())
        seen = observe(SimulatedHost(machine.root, **options), Questions(smi_program(machine), timeout_s))
        return judge(seen, expected_gpus=8)

    return look


def named(found):
    return [
        (item["id"], (item["gpu"] or {}).get("index"), item["link"])
        for item in found.findings
        if item["severity"] != "info"
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_healthy_machine_has_no_finding_and_every_source_was_read(simulated, profile):
    found = simulated(profile)
    assert (found.verdict, found.findings) == ("healthy", ())
    assert set(found.covered) == {
        "pci", "nvidia_smi", "nvlink_status", "nvlink_errors", "topology",
        "p2p", "kernel_log", "fabric_manager",
    }
    assert len(found.gpus) == 8 and all(gpu["pci_bus_id"] and gpu["numa_node"] is not None for gpu in found.gpus)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_gives_its_finding_and_nothing_else(simulated, profile, fault):
    verdict, expected = FAULTS[fault]
    found = simulated(profile, fault, timeout_s=2.0 if fault == "hang" else 20.0)
    assert (found.verdict, named(found)) == (verdict, expected)
    if expected[0][1] is not None:
        assert all(item["gpu"]["pci_bus_id"] for item in found.findings)


@pytest.mark.parametrize("profile", PROFILES)
def test_lost_gpu_leaves_the_others_judged(simulated, profile):
    found = simulated(profile, "lost --gpu 3")
    assert sorted(gpu["index"] for gpu in found.gpus) == [0, 1, 2, 4, 5, 6, 7]
    assert {link["gpu"]["index"] for link in found.links} == {0, 1, 2, 4, 5, 6, 7}


@pytest.mark.parametrize("profile", PROFILES)
def test_garbled_answer_is_unknown_and_blames_no_gpu(simulated, profile):
    found = simulated(profile, "garbage")
    assert found.verdict == "unknown"
    assert not [item for item in found.findings if item["severity"] == "critical"]


@pytest.mark.parametrize("xid", KERNEL)
def test_xid_of_this_boot_names_its_gpu(simulated, xid):
    verdict, finding_id = KERNEL[xid]
    line = "1732000100.5 node kernel: NVRM: Xid (PCI:0000:61:00): %d, pid=4242, name=python3, text\n" % xid
    found = simulated("dgx-h100-8", kernel=ONE_KERNEL_LINE + line)
    assert found.verdict == verdict
    assert [(item["id"], item["gpu"]["index"], item["gpu"]["pci_bus_id"]) for item in found.findings] == [
        (finding_id, 3, "00000000:61:00.0")
    ]


UNITS = {
    "fabric_manager_not_running": "LoadState=loaded\nActiveState=failed\nSubState=failed\nNRestarts=0\n",
    "fabric_manager_missing": "LoadState=not-found\nActiveState=inactive\nSubState=dead\nNRestarts=0\n",
    "fabric_manager_flapping": "LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=7\n",
    "fabric_manager_unreadable": "",
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("finding_id", UNITS)
def test_fabric_manager_is_judged_where_nvml_shows_nothing(simulated, profile, finding_id):
    found = simulated(profile, unit=UNITS[finding_id])
    assert [item["id"] for item in found.findings] == [finding_id]


def test_fabric_manager_of_another_version_is_failed(simulated):
    found = simulated("hgx-a100-8", manager="580.159.03")
    assert (found.verdict, [item["id"] for item in found.findings]) == ("failed", ["fabric_manager_version"])


def test_machine_without_gpu_is_healthy_unless_one_is_expected(tmp_path):
    from simulated_machine import Machine
    from support_simulated import SimulatedHost

    machine = Machine(tmp_path / "machine", "none").boot()
    seen = observe(SimulatedHost(machine.root), Questions("/nonexistent/nvidia-smi", 5.0))
    nothing, one = judge(seen), judge(seen, expected_gpus=1)
    assert (nothing.verdict, [item["id"] for item in nothing.findings]) == ("healthy", ["no_gpu"])
    assert (one.verdict, [item["id"] for item in one.findings]) == ("failed", ["gpu_count_low"])


def test_gpus_without_a_loaded_driver_are_failed(tmp_path):
    from simulated_machine import Machine
    from support_simulated import SimulatedHost

    machine = Machine(tmp_path / "machine", "dgx-h100-8").boot()
    seen = observe(SimulatedHost(machine.root), Questions("/nonexistent/nvidia-smi", 5.0))
    found = judge(seen)
    assert found.verdict == "failed"
    assert {item["id"] for item in found.findings} >= {"driver_not_loaded", "smi_missing"}


def test_library_of_another_version_than_the_module_is_failed(tmp_path):
    from support_simulated import SimulatedHost, booted, smi_program

    machine = booted(tmp_path / "machine", "dgx-h100-8")
    machine.install_library("580.159.03")
    found = judge(observe(SimulatedHost(machine.root), Questions(smi_program(machine), 20.0)))
    assert (found.verdict, named(found)) == ("failed", [("driver_library_mismatch", None, None)])
