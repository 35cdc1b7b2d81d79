# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fabric Manager: what its log and its systemd unit say. On A100 nothing in NVML shows a dead one, so these do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from ._findings import Finding
from ._findings_catalog import build_finding
from ._health_policy import Policy
from ._pci import PciInventory, normal_bus_id

UNIT = "nvidia-fabricmanager.service"
NVLSM = "/opt/nvidia/nvlsm/sbin/nvlsm"
NVLINK5_BOARDS = ("2901", "3182")
"""PCI ids of B200 and B300 SXM: their switches are no PCI functions of class 0680 (open-gpu-kernel-modules)."""
_BOARD_GPUS = 8

_SWITCH_ERROR = re.compile(
    r"detected NVSwitch (fatal|non-fatal) error (\d+).*?pci bus id ([0-9A-Fa-f:.]+)(?:.*?\bport (\d+))?", re.IGNORECASE
)
_TOPOLOGY = re.compile(r"number of NVSwitches don't match", re.IGNORECASE)
_VERSION = re.compile(r"driver interface version (\S+) don't match with driver version (\S+?)\.?\s", re.IGNORECASE)
_NOTHING = "NV_WARN_NOTHING_TO_DO"
_ERROR = re.compile(r"\[ERROR\]\s*(?:\[tid \d+\]\s*)?(.*)$")
_STARTED = re.compile(
    r"Successfully configured all the available NVSwitches|Started .*abric ?[Mm]anager|multicast (?:group|team)", re.I
)
_ACTIVE = re.compile(r"^\s*Active:\s+(\S+)\s*(\([^)]*\))?", re.MULTILINE)
_LSPCI = re.compile(r"\[(03\d\d|0680)\]:.*\[10de:([0-9a-f]{4})\]")


@dataclass(frozen=True)
class FabricLog:
    """`errors`: (finding id, text, link) in order, each once. `alive`: the log shows it working."""

    errors: Tuple[Tuple[str, str, Optional[int]], ...] = ()
    nothing_to_do: bool = False
    alive: bool = False
    lines: int = 0


@dataclass(frozen=True)
class FabricUnit:
    """The systemd unit: `load` and `active` as systemd names them, `restarts` since it was loaded; the version of
    nv-fabricmanager itself, None where it could not be had. `readable` False: systemd did not answer. `reason`: the
    last error that it logged. `subnet_manager`: nvlsm `running`, `stopped` or `missing`; None where it is not needed or
    could not be seen."""

    load: str = ""
    active: str = ""
    sub: str = ""
    restarts: int = 0
    result: str = ""
    version: Optional[str] = None
    readable: bool = True
    reason: str = ""
    subnet_manager: Optional[str] = None


def parse_fabric_log(text: str) -> FabricLog:
    """A Fabric Manager log or the journal of its unit."""
    errors: List[Tuple[str, str, Optional[int]]] = []
    nothing = alive = False
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        alive = alive or bool(_STARTED.search(line))
        if _NOTHING in line:
            nothing = True
            continue
        found = _fabric_error(line)
        if found is not None and found not in errors:
            errors.append(found)
    return FabricLog(tuple(errors), nothing, alive, len(lines))


def _fabric_error(line: str) -> Optional[Tuple[str, str, Optional[int]]]:
    match = _SWITCH_ERROR.search(line)
    if match:
        severity, number, bus, port = match.groups()
        finding_id = "sxid_fatal" if severity.lower() == "fatal" else "sxid_nonfatal"
        text = "SXid %s on NVSwitch %s port %s" % (number, normal_bus_id(bus) or bus, port)
        return finding_id, text, int(port) if port else None
    if _TOPOLOGY.search(line):
        return "fabric_manager_topology", "the number of NVSwitches matches no supported topology", None
    match = _VERSION.search(line + " ")
    if match:
        return "fabric_manager_version", "Fabric Manager %s, driver %s" % match.groups(), None
    match = _ERROR.search(line)
    return ("fabric_manager_error", match.group(1)[:200], None) if match else None


def judge_fabric_log(log: FabricLog, needed: Optional[bool]) -> List[Finding]:
    """`needed` None where nothing tells whether the machine has NVSwitches."""
    found = [
        build_finding(finding_id, text, "no error", link=link, detail=text) for finding_id, text, link in log.errors
    ]
    if log.nothing_to_do:
        finding_id = "fabric_manager_topology" if needed else "fabric_manager_not_needed"
        found.append(build_finding(finding_id, _NOTHING, "NVSwitches" if needed else "no unit", detail=_NOTHING))
    return found


def parse_unit(text: str, version: Optional[str] = None) -> FabricUnit:
    """`systemctl show` of the unit, property by property."""
    values: Dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            values[name.strip()] = value.strip()
    restarts = values.get("NRestarts", "0")
    return FabricUnit(
        load=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        sub=values.get("SubState", ""),
        restarts=int(restarts) if restarts.isdigit() else 0,
        result=values.get("Result", ""),
        version=version,
        readable="LoadState" in values and "ActiveState" in values,
    )


def last_error(text: str) -> str:
    """The last line of a Fabric Manager log that says what is wrong; empty where none does."""
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if _fabric_error(line) is not None or _NOTHING in line or "ib_umad" in line]
    return telling[-1][:200] if telling else ""


def parse_status(text: str) -> Optional[FabricUnit]:
    """`systemctl status` as a person pastes it."""
    match = _ACTIVE.search(text)
    if not match:
        return None
    return FabricUnit(load="loaded", active=match.group(1), sub=(match.group(2) or "").strip("()"))


def version_of(text: str) -> Optional[str]:
    """The version in `nv-fabricmanager --version` or a package version (580.178.04-1ubuntu1)."""
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)", text)
    return match.group(1) if match else None


def fabric_needed(pci: Optional[PciInventory], product_names: Tuple[str, ...] = ()) -> Optional[bool]:
    """Does this machine need Fabric Manager? NVSwitches on the bus, or an NVLink 5 baseboard (not a GB200 tray).

    None where neither the bus nor a model tells.
    """
    if pci is not None and pci.readable and (pci.gpus or pci.nvswitches):
        return pci.has_nvswitch or bool(pci.nvlink_management) or is_nvlink5_board(pci)
    return None if not product_names else False


def is_nvlink5_board(pci: PciInventory) -> bool:
    """A whole B200 or B300 baseboard; a virtual machine that was given some of its GPUs is none."""
    return sum(1 for gpu in pci.gpus if gpu.device in NVLINK5_BOARDS) >= _BOARD_GPUS


def subnet_manager_needed(pci: PciInventory) -> bool:
    """NVLink 5 switches are managed by nvlsm; earlier ones are not."""
    return bool(pci.nvlink_management) or is_nvlink5_board(pci)


def judge_management(pci: PciInventory, completed: bool) -> List[Finding]:
    """Without mlx5_ib the switches of an NVLink 5 board cannot be managed, and the fabric never completes."""
    if completed or pci.nvlink_management or not is_nvlink5_board(pci):
        return []
    return [build_finding("nvlink_management_missing", 0, "management functions")]


def judge_unit(unit: FabricUnit, needed: bool, driver_version: Optional[str], policy: Policy) -> List[Finding]:
    state = "%s%s" % (unit.active or "unknown", " (%s)" % unit.sub if unit.sub else "")
    if not needed:
        if unit.active == "failed":
            return [build_finding("fabric_manager_not_needed", state, "not installed", detail=state)]
        return []
    if not unit.readable:
        return [build_finding("fabric_manager_unreadable", "no answer", "active")]
    if unit.load in ("not-found", "masked"):
        return [build_finding("fabric_manager_missing", unit.load, "loaded", detail="unit %s" % unit.load)]
    found = []
    if unit.active != "active":
        text = "%s; it says: %s" % (state, unit.reason) if unit.reason else state
        found.append(build_finding("fabric_manager_not_running", state, "active", detail=text))
    if unit.subnet_manager == "missing":
        found.append(build_finding("nvlsm_missing", "missing", "installed"))
    elif unit.subnet_manager == "stopped" and unit.active == "active":
        # Fabric Manager starts it: while that is down, that is what to look at.
        found.append(build_finding("nvlsm_not_running", "stopped", "running"))
    limit = policy.get("fabric_manager_restarts_max")
    if limit is not None and unit.restarts >= limit:
        text = "%d restarts" % unit.restarts
        found.append(build_finding("fabric_manager_flapping", unit.restarts, "below %d" % limit, detail=text))
    if unit.version and driver_version and unit.version != driver_version:
        text = "Fabric Manager %s, driver %s" % (unit.version, driver_version)
        found.append(build_finding("fabric_manager_version", unit.version, driver_version, detail=text))
    return found


def parse_lspci(text: str) -> Optional[Tuple[int, int]]:
    """(GPUs, NVSwitches) of NVIDIA in `lspci -nn`; None where it is no such listing."""
    classes = [match.group(1) for match in _LSPCI.finditer(text)]
    if not classes:
        return None
    return sum(1 for code in classes if code != "0680"), classes.count("0680")
