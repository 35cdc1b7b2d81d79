# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs `-i` means."""

from . import answer
from .answer import Failure


def select(machine, ids: list) -> list:
    """Return the GPUs that `ids` (index, bus id, UUID, serial) name, all of them when it is empty.

    One lost GPU spoils every call that looks at all GPUs. By index the others can still be reached, by bus id and UUID
    they cannot (captured from the real tool).
    """
    if not machine.gpus:
        raise Failure(answer.NO_DEVICES_TEXT, answer.NOT_FOUND)
    chosen = [_find(machine, text.strip()) for text in ids] if ids else list(machine.gpus)
    for one in chosen:
        if one.lost:
            raise Failure(answer.lost_text("GPU" + one.short_bus_id), answer.LOST)
    return chosen


def _find(machine, text: str):
    if text.isdigit() and len(text) < 5:
        if int(text) < len(machine.gpus):
            return machine.gpus[int(text)]
        raise Failure(answer.NO_DEVICES_TEXT, answer.NOT_FOUND)
    lost = [one for one in machine.gpus if one.lost]
    if lost and text.upper().startswith("GPU-"):
        words = f"Problem with GPU {lost[0].index}: GPU is lost.  Reboot the system to recover this GPU\n"
        raise Failure(words, answer.OTHER)
    for one in machine.gpus:
        if not lost and text.lower() in _names(one):
            return one
    raise Failure(answer.NO_DEVICES_TEXT, answer.NOT_FOUND)


def _names(one) -> tuple:
    bus = one.bus_id.lower()[4:]
    return (one.uuid.lower(), one.serial, one.bus_id.lower(), bus, bus.split(":", 1)[1])
