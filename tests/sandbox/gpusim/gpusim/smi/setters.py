# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -pm` and `-pl`: what they change, what they say, and the record that a test can read."""

import os

from .. import gpu, kmsg, paths, state
from . import answer
from .answer import Failure

SWITCH = {"0": False, "DISABLED": False, "1": True, "ENABLED": True}


def apply(machine, gpus: list, wanted, argv: list) -> str:
    """Do it for each GPU in turn; the first that refuses ends the call, what was done before stays."""
    change = {"persistence-mode": _persistence, "power-limit": _power_limit}[wanted.command]
    text = ""
    for one in gpus:
        try:
            text += change(machine, one, wanted.value, argv)
        except Failure as failure:
            raise Failure(text + failure.text + answer.STOPPED_TEXT, failure.code) from failure
    return text + answer.ALL_DONE_TEXT


def _persistence(_machine, one, value: str, argv: list) -> str:
    wanted = SWITCH.get(value.upper())
    if wanted is None:
        raise Failure(f"Invalid persistence mode: {value}\n", answer.BAD_ARGUMENT)
    word = "Enabled" if wanted else "Disabled"
    if one.persistence == wanted:
        return f"Persistence mode is already {word} for GPU {one.bus_id}.\n"
    if os.geteuid() != 0:
        words = f"Unable to set persistence mode for GPU {one.bus_id}: Insufficient Permissions\n"
        raise Failure(words, answer.NO_PERMISSION)
    daemon = paths.read(paths.PERSISTENCED_PID)
    holder = int(daemon) if daemon.isdigit() and gpu.alive(int(daemon)) else None
    with state.changing() as content:
        content.setdefault("persistence", {})[one.uuid] = {"by": holder} if wanted else None
    state.record_call("nvidia-smi", argv, {"set": "persistence", "gpu": one.bus_id, "to": wanted})
    if wanted and holder is None:
        kmsg.emit(
            "NVRM: Persistence mode is deprecated and will be removed in a future release. "
            "Please use nvidia-persistenced instead."
        )
    return f"{word} persistence mode for GPU {one.bus_id}.\n"


def _power_limit(_machine, one, value: str, argv: list) -> str:
    try:
        watts = float(value)
    except ValueError:
        words = f"Invalid power limit value: {value}\n"
        raise Failure(words, answer.BAD_ARGUMENT) from None
    lowest, highest = one.model["power_w"]["min"], one.model["power_w"]["max"]
    if not lowest <= watts <= highest:
        words = (
            f"Provided power limit {watts:.2f} W is not a valid power limit which should be between "
            f"{lowest:.2f} W and {highest:.2f} W for GPU {one.bus_id}\n"
        )
        raise Failure(words, answer.BAD_ARGUMENT)
    if os.geteuid() != 0:
        words = f"Failed to set power management limit for GPU {one.bus_id}: Insufficient Permissions\n"
        raise Failure(words, answer.NO_PERMISSION)
    before = one.power_limit_w
    warning = ""
    if one.persistence:
        with state.changing() as content:
            holder = content["persistence"][one.uuid]["by"]
            content.setdefault("power_limit_w", {})[one.uuid] = {"value": watts, "held_by": holder}
    else:  # nothing holds the GPU: the driver forgets the limit when this very process ends
        warning = (
            f"Warning: persistence mode is disabled on device {one.bus_id}. See the Known Issues section of the "
            "nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get more information on "
            "how to enable persistence mode.\n"
        )
    state.record_call("nvidia-smi", argv, {"set": "power_limit_w", "gpu": one.bus_id, "from": before, "to": watts})
    return f"Power limit for GPU {one.bus_id} was set to {watts:.2f} W from {before:.2f} W.\n" + warning
