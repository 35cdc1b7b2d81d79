# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -r`: a reset of GPUs, and what forbids one.

A running nvidia-persistenced or fabric manager does not: the tool asks them to let go and to take hold again.
"""

import os

from .. import daemon, paths, settings, state
from . import answer
from .answer import Failure

IN_USE = (
    "\n{count} currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, graphics "
    "application such as an X server, or a monitoring application such as another instance of nvidia-smi). Please "
    "first kill all processes using {these} and all compute applications running in the system.\n"
)
INCOMPLETE = (  # the sentence is the tool's; how it lists the indexes is not confirmed
    "GPU Reset couldn't progress because the specified devices do not meet the reset criterion (e.g. NVLink connected "
    "GPUs must be reset together). Please append the following device indexes to the command line and retry.\n{}\n"
)
NOT_ROOT = "Unable to reset GPU {}: Insufficient Permissions\n"  # wording of this case not confirmed
SWITCHES_TOO = (
    "\nNote: The operation has successfully reset all GPUs and NVSwitches. If the services, such as "
    "nvidia-fabricmanager, which manage or monitor NVSwitches are running, they might have been affected by this "
    "operation. Please refer respective service status or logs for details.\n"
)
ALONE = ("Ampere", "Hopper", "Blackwell", "Ada Lovelace")
"""Architectures whose NVLink GPUs can be reset one by one; before Ampere they go together."""


def apply(machine, gpus: list, argv: list) -> str:
    """Reset the GPUs that nothing uses; :class:`Failure` when one is in use, or when others must be reset with them."""
    if os.geteuid() != 0:
        raise Failure(NOT_ROOT.format(gpus[0].bus_id) + answer.STOPPED_TEXT, answer.NO_PERMISSION)
    missing = [one for one in machine.gpus if one not in gpus]
    together = _together(machine, gpus)
    if together and missing:
        raise Failure(INCOMPLETE.format(",".join(str(one.index) for one in missing)), answer.OTHER)
    text = ""
    busy = [one for one in gpus if one.processes]
    for one in gpus:
        if one not in busy:
            settings.reset(one)
            state.record_call("nvidia-smi", argv, {"set": "reset", "gpu": one.bus_id, "from": None, "to": None})
            text += f"GPU {one.bus_id} was successfully reset.\n"
    if busy:
        text += "\nThe following GPUs could not be reset:\n"
        text += "".join(f"  GPU {one.bus_id}: In use by another client\n" for one in busy)
        many = len(busy) > 1
        count = f"{len(busy)} {'devices are' if many else 'device is'}"
        raise Failure(text + IN_USE.format(count=count, these="these devices" if many else "this device"), answer.OTHER)
    return text + (SWITCHES_TOO if together and machine.nvswitches else "") + answer.ALL_DONE_TEXT


def _together(machine, gpus: list) -> bool:
    """True when all GPUs of the machine must be reset in one command (nvidia-smi(1) on `-r`)."""
    if not any(one.model["nvlink"]["count"] for one in gpus):
        return False
    if any(one.model["architecture"] not in ALONE for one in gpus):
        return True
    ampere = any(one.model["architecture"] == "Ampere" for one in gpus)
    return bool(machine.nvswitches) and ampere and not daemon.running(paths.FABRIC_PID)
