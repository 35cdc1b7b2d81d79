# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi says when it cannot answer. It writes these texts to stdout, sometimes between good lines, and its
exit status is no proof: it exits 0 in many bad states.

Sources: RETURN VALUE of NVIDIA's nvidia-smi manual, the return codes of nvml.h (exit status = NVML code), and texts
seen in public reports; 18 is the driver/library mismatch.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ._pci import normal_bus_id
from ._smi_reading import SmiFailure

DRIVER_NOT_LOADED = "driver_not_loaded"
LIBRARY_MISMATCH = "driver_library_mismatch"
LIBRARY_MISSING = "driver_library_missing"
NO_DEVICES = "no_devices"
GPU_LOST = "gpu_lost"
GPU_UNREACHABLE = "gpu_unreachable"
NEEDS_RESET = "gpu_reset_required"
PERMISSION = "smi_permission"
BLOCKED = "smi_blocked"
POWER_CABLE = "power_cable"
USAGE = "smi_usage"
INFOROM = "inforom_corrupted"
NVML_UNKNOWN = "smi_failed"
TIMEOUT = "smi_timeout"
MISSING = "smi_missing"

_TEXTS: Tuple[Tuple[str, str], ...] = (
    (r"couldn't communicate with the NVIDIA driver", DRIVER_NOT_LOADED),
    (r"Failed to initialize NVML:\s*Driver Not Loaded", DRIVER_NOT_LOADED),
    (r"Driver/library version mismatch", LIBRARY_MISMATCH),
    (r"couldn't find libnvidia-ml\.so", LIBRARY_MISSING),
    (r"^No devices (?:were )?found\.?\s*$", NO_DEVICES),
    (r"Failed to initialize NVML:\s*Insufficient Permissions", PERMISSION),
    (r"GPU access blocked by the operating system", BLOCKED),
    (r"external power cables", POWER_CABLE),
    (r"is not a valid field to query|command line argument must be used|Invalid combination of input", USAGE),
    (
        r"^Failed to (?:initialize NVML|run topology matrix|query device index)|^Failed to (?:get|retrieve) ",
        NVML_UNKNOWN,
    ),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _TEXTS)

_HANDLE = re.compile(
    r"Unable to determine the (?:device handle|PCI bus id) for (?:the target device|gpu\s*([0-9A-Fa-f:.]+))\s*:\s*"
    r"(.*?)\s*(?:Reboot the system.*)?$",
    re.IGNORECASE,
)
_PROBLEM_WITH = re.compile(r"^Problem with GPU\s+([0-9A-Fa-f:.]+)\s*:\s*(.*)$", re.IGNORECASE)
_INFOROM = re.compile(r"infoROM is corrupted at gpu\s+([0-9A-Fa-f:.]+)", re.IGNORECASE)

_ANY = re.compile(
    r"Unable to determine|Problem with GPU|communicate with|Failed to |mismatch|find libnvidia|No devices|blocked by|"
    r"power cables|valid field|line argument|Invalid combination",
    re.IGNORECASE,
)
"""A part of every text above: most outputs hold none of them, and are not looked at line by line."""

EXIT_STATUS = {
    2: USAGE,
    4: PERMISSION,
    6: NO_DEVICES,
    8: POWER_CABLE,
    9: DRIVER_NOT_LOADED,
    12: LIBRARY_MISSING,
    13: LIBRARY_MISMATCH,
    14: INFOROM,
    15: GPU_LOST,
    16: NEEDS_RESET,
    17: BLOCKED,
    18: LIBRARY_MISMATCH,
    124: TIMEOUT,
    127: MISSING,
    137: TIMEOUT,
}
"""What an exit status alone says, used only where no text tells more. 124, 127 and 137 are those of `timeout` and
of a shell."""


def failures_in(text: str) -> List[SmiFailure]:
    """Every failure text of an output, in order, each once."""
    found: List[SmiFailure] = []
    if not _ANY.search(text):
        return found
    for line in text.splitlines():
        line = line.strip()
        if not line or len(line) > 500:
            continue
        failure = _failure_of(line)
        if failure is not None and failure not in found:
            found.append(failure)
    return found


def _failure_of(line: str) -> Optional[SmiFailure]:
    for pattern in (_HANDLE, _PROBLEM_WITH):
        match = pattern.search(line)
        if match:
            where, why = match.group(1) or "", match.group(2)
            return SmiFailure(
                _kind_of_handle(why),
                line,
                index=int(where) if where.isdigit() else None,
                bus_id=normal_bus_id(where.rstrip(".")),
            )
    for pattern, kind in _COMPILED:
        if pattern.search(line):
            return SmiFailure(kind, line)
    return None


def _kind_of_handle(why: str) -> str:
    """A handle that cannot be had: lost, in need of a reset, or out of reach for an unnamed reason."""
    lower = why.lower()
    if "lost" in lower or "fallen off" in lower:
        return GPU_LOST
    return NEEDS_RESET if "reset" in lower else GPU_UNREACHABLE


def inforom_corrupted_in(text: str) -> List[str]:
    """Bus ids of `WARNING: infoROM is corrupted at gpu …`, in nvidia-smi's own long form."""
    found = []
    for match in _INFOROM.finditer(text):
        bus_id = normal_bus_id(match.group(1)) or match.group(1)
        if bus_id not in found:
            found.append(bus_id)
    return found
