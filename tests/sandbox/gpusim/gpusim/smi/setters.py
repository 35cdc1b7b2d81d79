# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of devices: one GPU after the other, what the tool says, and the record that a test can read.

Words and exit codes are those of 550.163.01, run against a library that answers what is asked of it. A card that lacks
a feature is a warning (exit code 0); a wrong value or a missing right ends the call.
"""

import os

from .. import settings, state
from . import answer, options, setters_clocks, setters_modes
from .answer import Failure, Warned

FORGETFUL = ("power-limit", "lock-gpu-clocks", "lock-memory-clocks", "applications-clocks", "multi-instance-gpu")
"""Setters after which the tool warns that persistence mode is off."""

UNHELD = (
    "\nWarning: persistence mode is disabled on device {}. See the Known Issues section of the nvidia-smi(1) man page "
    "for more information. Run with [--help | -h] switch to get more information on how to enable persistence mode.\n"
)


class Call:
    """What a setter needs besides its GPU: the machine, the options and the arguments as they were given."""

    def __init__(self, machine, wanted, argv: list):
        self.machine, self.wanted, self.argv = machine, wanted, argv
        self.reboot_needed = False

    def need_root(self, words: str) -> None:
        """Refuse everybody else, in these words."""
        if os.geteuid() != 0:
            raise Failure(words + "\n", answer.NO_PERMISSION)

    def record(self, one, name: str, before, after) -> None:
        """Note a change for the tests."""
        effect = {"set": name, "gpu": one.bus_id, "from": before, "to": after}
        state.record_call("nvidia-smi", self.argv, effect)


def apply(machine, gpus: list, wanted, argv: list) -> str:
    """Do it for each GPU in turn; the first that refuses ends the call, what was done before stays."""
    call = Call(machine, wanted, argv)
    change = CHANGES[wanted.command]
    text = ""
    for one in gpus:
        try:
            text += change(call, one)
            if wanted.command in FORGETFUL and not one.persistence:
                text += UNHELD.format(one.bus_id)
        except Warned as warning:
            text += warning.text
            if wanted.strict:
                raise Failure(text + answer.STOPPED_TEXT, answer.NOT_SUPPORTED) from warning
            text += answer.WARNED_TEXT
        except Failure as failure:
            raise Failure(text + failure.text + answer.STOPPED_TEXT, failure.code) from failure
    return text + answer.ALL_DONE_TEXT + ("Reboot required.\n" if call.reboot_needed else "")


def _power_limit(call, one) -> str:
    watts = float(call.wanted.value)
    lowest, highest = one.model["power_w"]["min"], one.model["power_w"]["max"]
    if not lowest <= watts <= highest:
        words = (
            f"Provided power limit {watts:.2f} W is not a valid power limit which should be between "
            f"{lowest:.2f} W and {highest:.2f} W for GPU {one.bus_id}\n"
        )
        raise Failure(words, answer.BAD_ARGUMENT)
    call.need_root(f"Failed to set power management limit for GPU {one.bus_id}: Insufficient Permissions")
    before = one.power_limit_w
    settings.set_driver_setting(one, "power_limit_w", watts)
    call.record(one, "power_limit_w", before, watts)
    return f"Power limit for GPU {one.bus_id} was set to {watts:.2f} W from {before:.2f} W.\n"


CHANGES = {"power-limit": _power_limit, **setters_clocks.CHANGES, **setters_modes.CHANGES}
assert set(CHANGES) == {*options.SETTERS.values(), *options.RESETS.values()} - {"gpu-reset"}
