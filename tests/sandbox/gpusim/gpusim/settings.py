# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was set on a GPU, where it is kept, and for how long.

=================  ==========================  =====================================================================
setting            kept by                     lost
=================  ==========================  =====================================================================
power limit        the driver, while held      with the last holder (persistence mode off), by a GPU reset, a reboot
clock locks        the driver, while held      the same
application clocks the driver, while held      the same
compute mode       the driver                  by a GPU reset, a reboot
persistence mode   the driver                  by a reboot; a reset of the GPU puts it back
ECC mode           the GPU's InfoROM           never; a change waits (pending) for a GPU reset or a reboot
MIG mode, Ampere   the GPU's InfoROM           never; a change resets the GPU at once, or waits while it is in use
MIG mode, Hopper   the loaded driver           by a reboot
MIG instances      the driver                  by a GPU reset, a reboot
=================  ==========================  =====================================================================

Sources: nvidia-smi(1) of 550.163.01, NVIDIA's MIG user guide, nvml.h.
"""

from . import state

WHILE_HELD = ("power_limit_w", "gpu_clocks", "memory_clocks", "application_clocks")
"""Settings that the driver forgets with its last client: nvidia-smi warns of it when it sets them."""

CURED_BY_RESET = {
    "reset_required": (True,), "recovery": ("reset", "drain_and_reset"), "ecc": ("sram", "dram"),
    "remap": ("pending", "uncorrectable"), "pages": ("single", "double"),
}  # fmt: skip
"""Fault → values that a reset of the GPU ends: what waited for one is done then."""

COMPUTE_MODES = {"DEFAULT": "Default", "PROHIBITED": "Prohibited", "EXCLUSIVE_PROCESS": "Exclusive_Process"}
"""The word of `-c` → the word of the readers."""


def driver_setting(one, name: str):
    """Return what is set under `name` (one of :data:`WHILE_HELD`) and still in force, else None."""
    setting = one.machine.state.get(name, {}).get(one.uuid)
    held = one.machine.state.get("persistence", {}).get(one.uuid)
    if setting and one.persistence and setting["held_by"] == held["by"]:
        return setting["value"]
    return None


def set_driver_setting(one, name: str, value) -> None:
    """Set it, or with None reset it. Without persistence mode the driver forgets it when this very process ends."""
    if not one.persistence:
        return
    with state.changing() as content:
        holder = content["persistence"][one.uuid]["by"]
        settings = content.setdefault(name, {})
        if value is None:
            settings.pop(one.uuid, None)
        else:
            settings[one.uuid] = {"value": value, "held_by": holder}


def compute_mode(one) -> str:
    """`DEFAULT`, `PROHIBITED` or `EXCLUSIVE_PROCESS`."""
    return one.machine.state.get("compute_mode", {}).get(one.uuid, "DEFAULT")


def set_compute_mode(one, word: str) -> None:
    """Set one of :data:`COMPUTE_MODES`."""
    with state.changing() as content:
        content.setdefault("compute_mode", {})[one.uuid] = word


def ecc(one):
    """Return `(current, pending)` as booleans; None when the model has no ECC."""
    if not one.model["ecc"]:
        return None
    pending = _inforom(one).get("ecc", True)
    return one.machine.state.get("ecc", {}).get(one.uuid, True), pending


def mig(one):
    """Return `(current, pending)` as booleans; None when the model has no MIG."""
    if not one.model["mig"]:
        return None
    current = one.machine.state.get("mig_mode", {}).get(one.uuid, False)
    if stores_mig(one):
        return current, _inforom(one).get("mig", False)
    return current, one.machine.state.get("mig_pending", {}).get(one.uuid, current)


def in_mig(one) -> bool:
    """True while the GPU is partitioned: utilisation, volatile errors and remapped rows are then N/A."""
    return (mig(one) or (False,))[0]


def words(modes) -> tuple:
    """`(current, pending)` in the tool's words; N/A where the model has no such mode."""
    return ("N/A", "N/A") if modes is None else tuple("Enabled" if mode else "Disabled" for mode in modes)


def stores_mig(one) -> bool:
    """True for Ampere, whose InfoROM keeps the MIG mode; from Hopper on it lasts as long as the driver is loaded."""
    return one.model["architecture"] == "Ampere"


def clear_ecc_errors(one, kind: str) -> None:
    """Forget the ECC errors of that kind (`volatile`, `aggregate`)."""
    path = state.VOLATILE if kind == "volatile" else state.PERSISTENT
    with state.changing(path) as content:
        content.get("ecc_errors", {}).pop(one.uuid, None)


def set_pending_ecc(one, wanted: bool) -> None:
    """Store the ECC mode that the GPU will have after its next reset."""
    _store(one, "ecc", wanted)


def set_mig(one, wanted: bool, at_once: bool) -> None:
    """Store the MIG mode; `at_once` also makes it the current one, and forgets instances."""
    if stores_mig(one):
        _store(one, "mig", wanted)
    with state.changing() as content:
        if not stores_mig(one):
            content.setdefault("mig_pending", {})[one.uuid] = wanted
        if at_once:
            content.setdefault("mig_mode", {})[one.uuid] = wanted
            content.get("mig_instances", {}).pop(one.uuid, None)


def latch(content: dict, uuids) -> None:
    """Make what the InfoROM of each GPU says the current mode, in `content` (the state of a fresh boot)."""
    stored = state.load(state.PERSISTENT).get("inforom", {})
    for uuid in uuids:
        for name, current in (("ecc", "ecc"), ("mig", "mig_mode")):
            if name in stored.get(uuid, {}):
                content.setdefault(current, {})[uuid] = stored[uuid][name]


def reset(one) -> None:
    """What a reset of the GPU does: pending modes and repairs are done, what the driver kept is forgotten."""
    with state.changing() as content:
        for name in (*WHILE_HELD, "compute_mode", "mig_instances", "ecc_errors"):
            content.get(name, {}).pop(one.uuid, None)
        faults = content.get("faults", {}).get(one.sysfs_bus_id, {})
        for name, values in CURED_BY_RESET.items():
            if faults.get(name) in values:
                del faults[name]
        if one.uuid in content.get("mig_pending", {}):
            content.setdefault("mig_mode", {})[one.uuid] = content["mig_pending"][one.uuid]
        latch(content, [one.uuid])


def _inforom(one) -> dict:
    return one.machine.kept.get("inforom", {}).get(one.uuid, {})


def _store(one, name: str, value) -> None:
    with state.changing(state.PERSISTENT) as content:
        content.setdefault("inforom", {}).setdefault(one.uuid, {})[name] = value
