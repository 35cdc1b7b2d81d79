# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand: what breaks, how it shows, and whether a reboot cures it, as it would on real hardware."""

import re

from . import boot, fault_effects, gpu, memory, profiles, state
from .fault_table import CONDITIONS, TABLE, BadFault


def set_fault(text: str, index=None, link=None) -> dict:
    """Inject `text` (`lost`, `xid=63`, …) into GPU `index` (default 0), return what was recorded."""
    name, equals, value = text.partition("=")
    fault = TABLE.get(name)
    if fault is None:
        raise BadFault(f"no fault {name!r}; there are: {', '.join(TABLE)}")
    value = _value(name, fault, value if equals else None)
    if link is not None and fault.of != "link":
        raise BadFault(f"--link goes with nvlink_down and nvlink_errors, not with {name}")
    machine = gpu.Machine()
    if fault.of == "machine":
        _check(name, fault, machine, None)
        return fault_effects.on_machine(name, value, machine)
    if fault.of == "gpus" and index is None:
        for one in machine.gpus:
            fault_effects.remember(name, one.sysfs_bus_id, True)
        return {"fault": name, "gpu": "all"}
    target = fault_effects.gpu_at(machine, index)
    _check(name, fault, machine, target)
    recorded = {"fault": name, "gpu": target.index, "bus_id": target.bus_id}
    return {**recorded, **fault_effects.of_gpu(name, target, value, link)}


def clear() -> None:
    """Remove every fault, as new parts would. What was logged stays logged, as in reality."""
    memory.forget()
    for path in (state.VOLATILE, state.PERSISTENT):
        with state.changing(path) as content:
            content.pop("faults", None)
    content = state.load()
    boot.show_bus(profiles.load(content.get("profile", "none")), bool(content.get("module")))


def _value(name: str, fault, value):
    """The value to go on with: one of the fault's words, a number, or None."""
    if value is None:
        return fault.values[0] if fault.values else None
    if fault.number and re.fullmatch(r"[0-9]{1,5}", value):
        return int(value)
    if value in fault.values:
        return value
    if fault.number:
        raise BadFault(f"{name}={value}: allowed: a number ({fault.number})")
    if fault.values:
        raise BadFault(f"{name}={value}: allowed: {', '.join(fault.values)}")
    raise BadFault(f"fault {name!r} takes no value")


def _check(name: str, fault, machine, target) -> None:
    possible, reason = CONDITIONS.get(fault.needs, (lambda *_: True, ""))
    if not possible(machine, target):
        raise BadFault(f"{name}: {reason}")
