# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`-pm`, `-c`, `-e`, `-p` and `-mig`: modes, and the counters of ECC errors."""

from .. import gpu, kmsg, paths, settings, state
from . import answer, options
from .answer import Failure, Warned

VOLATILE_ONLY = ("Volta", "Turing")
"""Architectures that let the aggregate counters be cleared; Ampere and later do not (nvidia-smi(1))."""

IN_USE = (
    "Warning: MIG mode is in pending {0} state for GPU {1}:In use by another client\n"
    "{1} is currently being used by one or more other processes (e.g. CUDA application or a monitoring "
    "application such as another instance of nvidia-smi). Please first kill all processes using the device and retry "
    "the command or reboot the system to make MIG mode effective.\n"
)


def _word(call, name: str, refusal: str):
    """The value of the option in one of its words; numbers that mean nothing are refused, and say so."""
    value = call.wanted.value
    if value not in options.WORDS[name]:
        raise Failure(f"{refusal}: {value}\n", answer.BAD_ARGUMENT)
    return options.WORDS[name][value]


def _persistence(call, one) -> str:
    wanted = _word(call, "persistence-mode", "Invalid persistence mode")
    word = "Enabled" if wanted else "Disabled"
    if one.persistence == wanted:
        return f"Persistence mode is already {word} for GPU {one.bus_id}.\n"
    call.need_root(f"Unable to set persistence mode for GPU {one.bus_id}: Insufficient Permissions")
    daemon = paths.read(paths.PERSISTENCED_PID)
    holder = int(daemon) if daemon.isdigit() and gpu.alive(int(daemon)) else None
    with state.changing() as content:
        content.setdefault("persistence", {})[one.uuid] = {"by": holder} if wanted else None
    call.record(one, "persistence", not wanted, wanted)
    if wanted and holder is None:
        kmsg.emit(
            "NVRM: Persistence mode is deprecated and will be removed in a future release. "
            "Please use nvidia-persistenced instead."
        )
    return f"{word} persistence mode for GPU {one.bus_id}.\n"


def _compute(call, one) -> str:
    word = _word(call, "compute-mode", "Invalid compute mode")
    if word == "EXCLUSIVE_THREAD":
        raise Warned("Exclusive_Thread was deprecated! Use value 3:Exclusive_Process instead.\n")
    before = settings.compute_mode(one)
    if word == before:
        return f"Compute mode is already set to {word} for GPU {one.bus_id}.\n"
    if settings.in_mig(one):
        words = f"Unable to set the compute mode for GPU {one.bus_id}: Not Supported\n"
        raise Warned(f"Setting compute mode to {word} is not supported on a MIG-enabled device.\n" + words)
    call.need_root(f"Unable to set the compute mode for GPU {one.bus_id}: Insufficient Permissions")
    settings.set_compute_mode(one, word)
    call.record(one, "compute_mode", before, word)
    return f"Set compute mode to {word} for GPU {one.bus_id}.\n"


def _ecc(call, one) -> str:
    wanted = _word(call, "ecc-config", "Invalid ECC configuration code")
    modes = settings.ecc(one)
    if modes is None:
        raise Warned(f"ECC features not supported for GPU {one.bus_id}.\n")
    word = "Enabled" if wanted else "Disabled"
    current, pending = modes
    if pending == wanted:
        return f"ECC support is already {word} for GPU {one.bus_id}.\n"
    call.need_root(f"Unable to set ECC config for GPU {one.bus_id}: Insufficient Permissions")
    settings.set_pending_ecc(one, wanted)
    call.record(one, "ecc", pending, wanted)
    call.reboot_needed = call.reboot_needed or wanted != current
    return f"{word} ECC support for GPU {one.bus_id}.\n"


def _clear_ecc(call, one) -> str:
    kind = _word(call, "reset-ecc-errors", "Invalid ECC type")
    unsupported = f"ECC features not supported for GPU {one.bus_id}.\n"
    if settings.in_mig(one):
        raise Warned("Clearing ECC errors is not supported on a MIG-enabled device.\n" + unsupported)
    if settings.ecc(one) is None or (kind == "aggregate" and one.model["architecture"] not in VOLATILE_ONLY):
        raise Warned(unsupported)
    call.need_root(f"Unable to clear ECC errors for GPU {one.bus_id}: Insufficient Permissions")
    settings.clear_ecc_errors(one, kind)
    call.record(one, "ecc_errors", None, kind)
    return f"Reset {kind} ECC errors to zero for GPU {one.bus_id}.\n"


def _mig(call, one) -> str:
    wanted = _word(call, "multi-instance-gpu", "Invalid MIG Mode")
    verb = "enable" if wanted else "disable"
    modes = settings.mig(one)
    if modes is None:
        raise Warned(f"Unable to {verb} MIG Mode for GPU {one.bus_id}: Not Supported\n")
    call.need_root(f"Unable to {verb} MIG Mode for GPU {one.bus_id}: Insufficient Permissions")
    in_use = modes[0] != wanted and (one.processes or one.mig_instances)
    settings.set_mig(one, wanted, at_once=modes[0] != wanted and not in_use)
    call.record(one, "mig", modes[1], wanted)
    if in_use:
        return IN_USE.format(verb, one.bus_id)
    return f"{verb.capitalize()}d MIG Mode for GPU {one.bus_id}\n"


CHANGES = {
    "persistence-mode": _persistence,
    "compute-mode": _compute,
    "ecc-config": _ecc,
    "reset-ecc-errors": _clear_ecc,
    "multi-instance-gpu": _mig,
}
