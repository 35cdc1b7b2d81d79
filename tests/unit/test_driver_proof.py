# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the driver what it should be? A machine is healthy only where all of it was seen to be so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support_driver import OFFERED, UNITS_UP, bare, driven, pci, wishes

from ansible_collections.gpufleet.server.plugins.module_utils._driver_facts import (
    FABRIC_MANAGER,
    PERSISTENCED,
    DriverPlanError,
    SmiAnswer,
    Unit,
)
from ansible_collections.gpufleet.server.plugins.module_utils._driver_plan import Plan, plan_driver
from ansible_collections.gpufleet.server.plugins.module_utils._driver_proof import drift_findings, driver_result

ALL_GPUS = tuple(gpu.bus_id for gpu in driven().pci.gpus)


def result_of(machine, check_mode=False, notes=(), **wish):
    return driver_result(machine, plan_driver(machine, wishes(**wish), True), check_mode, None, notes)


def ids(result):
    return [item["id"] for item in result["findings"]]


def test_a_machine_with_everything_at_one_version_is_healthy_and_says_what_was_seen():
    result = result_of(driven())
    assert (result["verdict"], result["findings"], result["unproven"]) == ("healthy", [], [])
    assert len(result["proven"]) == 9
    assert result["versions"]["loaded"] == result["versions"]["fabric_manager"] == "580.178.04"


# what differs -> findings, verdict
FAULTS = [
    ("rebooted not yet", {"loaded_version": "580.159.03"}, ["driver_reboot_required"], "failed"),
    ("nothing loaded", {"loaded_version": None, "smi": None}, ["driver_reboot_required"], "failed"),
    ("nouveau", {"nouveau_loaded": True}, ["driver_reboot_required"], "failed"),
    ("library of another version", {"library_version": "580.159.03"}, ["driver_library_version"], "failed"),
    ("no library", {"library_version": None}, ["driver_library_version"], "failed"),
    ("module missing for the kernel that boots", {"module_version": None}, ["driver_module_missing"], "failed"),
    ("module of another flavour on disk", {"module_flavour": "proprietary"}, ["driver_module_missing"], "failed"),
    ("nvidia-smi: mismatch", {"smi": SmiAnswer(18, text="Driver/library version mismatch")}, ["driver_nvidia_smi"],
     "failed"),
    ("nvidia-smi hangs", {"smi": SmiAnswer(None, text="no answer within 60 s")}, ["driver_nvidia_smi"], "failed"),
    ("nvidia-smi missing", {"smi": None}, ["driver_nvidia_smi"], "failed"),
    ("nvidia-smi of another version", {"smi": SmiAnswer(0, ALL_GPUS, ("580.159.03",))}, ["driver_user_space"],
     "failed"),
    ("one GPU missing", {"smi": SmiAnswer(0, ALL_GPUS[1:], ("580.178.04",))}, ["driver_gpu_not_listed"], "failed"),
    ("no GPU at all", {"smi": SmiAnswer(0, (), ("580.178.04",))}, ["driver_gpu_not_listed"] * 8, "failed"),
    ("fabric manager dead",
     {"units": dict(UNITS_UP, **{FABRIC_MANAGER: Unit("loaded", "failed", "failed", "enabled")})},
     ["driver_unit_fabric_manager"], "failed"),
    ("fabric manager in a restart loop",
     {"units": dict(UNITS_UP, **{FABRIC_MANAGER: Unit("loaded", "activating", "auto-restart", "enabled")})},
     ["driver_unit_fabric_manager"], "failed"),
    ("fabric manager has no unit", {"units": {PERSISTENCED: UNITS_UP[PERSISTENCED]}}, ["driver_unit_fabric_manager"],
     "failed"),
    ("fabric manager not enabled",
     {"units": dict(UNITS_UP, **{FABRIC_MANAGER: Unit("loaded", "active", "running", "disabled")})},
     ["driver_unit_fabric_manager"], "failed"),
    ("persistence daemon dead",
     {"units": dict(UNITS_UP, **{PERSISTENCED: Unit("loaded", "failed", "failed", "enabled")})},
     ["driver_unit_persistenced"], "degraded"),
    ("persistence off",
     {"units": dict(UNITS_UP, **{PERSISTENCED: Unit("loaded", "active", "running", "enabled", "x", 0, False,
                                                    "x --no-persistence-mode")})},
     ["driver_persistence_off"], "degraded"),
    ("a hold is gone", {"held": False}, ["driver_hold_missing"], "degraded"),
    ("no kernel to be seen", {"boot_kernel": None}, ["driver_boot_kernel_unknown"], "degraded"),
    ("fabric manager missing", {"without": ("nvidia-fabricmanager",), "policies": OFFERED},
     ["driver_not_installed"], "failed"),
    ("fabric manager of another version",
     {"extra": {"nvidia-fabricmanager": "595.91.07-1ubuntu1"}, "policies": OFFERED}, ["driver_not_installed"],
     "failed"),
]


@pytest.mark.parametrize("changes, expected, verdict", [pytest.param(*row[1:], id=row[0]) for row in FAULTS])
def test_whatever_is_not_as_wanted_is_named(changes, expected, verdict):
    result = result_of(driven(**changes))
    assert ids(result) == expected
    assert result["verdict"] == verdict
    assert all(item["remedy"] and item["message"] for item in result["findings"])


def test_a_missing_gpu_is_named_by_its_bus_id():
    result = result_of(driven(smi=SmiAnswer(0, ALL_GPUS[1:], ("580.178.04",))))
    assert result["findings"][0]["gpu"]["pci_bus_id"] == ALL_GPUS[0]


def test_bus_ids_are_compared_whatever_their_spelling():
    short = tuple(bus_id.lower()[4:] for bus_id in ALL_GPUS)
    assert result_of(driven(smi=SmiAnswer(0, short, ("580.178.04",))))["verdict"] == "healthy"


def test_a_bare_machine_is_failed_and_never_healthy():
    result = result_of(bare())
    assert "driver_not_installed" in ids(result)
    assert result["verdict"] == "failed"


def test_no_gpu_is_healthy_with_a_note():
    result = result_of(bare(pci=pci(())))
    assert (result["verdict"], ids(result)) == ("healthy", ["no_gpu"])


def test_an_unreadable_bus_is_unknown():
    result = result_of(bare(pci=replace(pci(()), readable=False)))
    assert result["verdict"] == "unknown"


def test_installed_without_a_gpu_is_unproven_in_words():
    machine = driven(pci=pci(()), loaded_version=None, smi=None, without=("nvidia-fabricmanager", "libnvidia-nscq"))
    result = result_of(machine, install_without_gpu=True)
    assert result["verdict"] == "healthy"
    assert result["unproven"] == ["driver 580.178.04 is installed, not loaded: this machine has no GPU"]


def test_check_mode_judges_nothing_that_it_would_change():
    result = result_of(bare(), check_mode=True)
    assert result["verdict"] == "unknown"
    assert ids(result) == ["driver_would_change"]
    assert result_of(driven(), check_mode=True)["verdict"] == "healthy"


def test_a_refusal_is_a_critical_finding_with_its_way_out():
    refusal = DriverPlanError("run_installation", "a driver is there", "remove it", "/usr/bin/nvidia-uninstall")
    result = driver_result(bare(), Plan(), False, refusal)
    assert result["verdict"] == "failed"
    assert result["findings"][0]["id"] == "driver_run_installation"
    assert result["findings"][0]["remedy"] == "remove it"


def test_drift_is_told_and_does_not_spoil_a_healthy_verdict():
    notes = drift_findings(["package nvidia-utils-580 was not on hold"], ["/etc/modprobe.d/x.conf"])
    result = result_of(driven(), notes=notes)
    assert result["verdict"] == "healthy"
    assert ids(result) == ["driver_drift", "driver_drift"]
    assert any("/etc/modprobe.d/x.conf" in item["message"] for item in result["findings"])


def test_a_warning_about_the_branch_makes_the_host_degraded():
    result = result_of(driven("580.159.03"), version="580.159.03")
    assert (result["verdict"], ids(result)) == ("degraded", ["driver_below_security_floor"])
