# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse kernel logs for Xids, SXids and driver failures, and judge them.

Only the body of a line is matched, so that every prefix works: none, dmesg with seconds or dates in any language,
journal, syslog, raw /dev/kmsg. Events of one number on one GPU become one finding, each number its own: a follow-up
does not hide the first. `kernel: sunrpc: xid …` and the like are not Xids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._findings import Finding
from ._findings_catalog import XID_REMEDY_SOURCE, Entry, build_finding
from ._health_policy import Policy
from ._pci import normal_bus_id
from ._xid_catalog import APP, BY_ACTION, BY_WORD, CRITICAL, INFO, REMEDIES, SXID_FATAL, SXID_HOST, WARNING, XIDS
from ._xid_repeats import NEVER_ESCALATED, acknowledged_until, count_bursts

RefOf = Callable[[Optional[str]], Mapping[str, Any]]

_MARKS = ("Xid", "NVRM", "SXid", "RmInit", "rm_init")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:,\s*(.*))?$")
_PLUGIN = re.compile(r"XidCriticalError: Xid=(\d+) on Device=(GPU-[0-9a-f-]+)")
_SXID = re.compile(r"nvidia-nvswitch(\d+): SXid \(PCI:([0-9a-fA-F:.]+)\): (\d+),\s*(.*)$")
_LINK = re.compile(r"\bLink (\d+)\b")
_PID = re.compile(r"\bpid='?(\d+)'?")
_FELL = re.compile(r"NVRM:.*GPU (?:at PCI:)?([0-9a-fA-F:.]+): GPU has fallen off the bus")
_INIT = re.compile(r"NVRM: GPU ([0-9a-fA-F:.]+): (?:RmInitAdapter failed|rm_init_adapter failed)")
_UNSUPPORTED = re.compile(
    r"NVRM:.*(?:is not supported by open nvidia\.ko|requires use of the NVIDIA open kernel modules|"
    r"is not supported by the .* NVIDIA driver release)"
)
_EPOCH = re.compile(r"^(\d{9,11}(?:\.\d+)?)\s")
_ACTION = re.compile(r"\bto 0x[0-9a-fA-F]+ \(([^)]*)\)")


@dataclass(frozen=True)
class KernelEvent:
    """`kind`: xid, sxid, fell_off_bus, init_failed or unsupported; `time` in seconds since 1970, where known."""

    kind: str
    number: int
    bus_id: Optional[str]
    text: str
    time: Optional[float] = None
    uuid: Optional[str] = None
    link: Optional[int] = None


@dataclass(frozen=True)
class KernelLog:
    events: Tuple[KernelEvent, ...] = ()
    lines: int = 0


def parse_kernel_log(text: str) -> KernelLog:
    events: List[KernelEvent] = []
    lines = text.splitlines()
    for line in lines:
        if any(mark in line for mark in _MARKS):
            event = _event_of(line)
            if event is not None:
                events.append(event)
    return KernelLog(tuple(events), sum(1 for line in lines if line.strip()))


def _event_of(line: str) -> Optional[KernelEvent]:
    line = line.rstrip()[:2000]
    epoch = _EPOCH.match(line)
    time = float(epoch.group(1)) if epoch else None
    match = _XID.search(line)
    if match:
        text = match.group(3) or ""
        link = _LINK.search(text)
        number = int(link.group(1)) if link else None
        return KernelEvent("xid", int(match.group(2)), _bus(match.group(1)), text, time, link=number)
    match = _SXID.search(line)
    if match:
        link = _LINK.search(match.group(4))
        number = int(link.group(1)) if link else None
        return KernelEvent("sxid", int(match.group(3)), _bus(match.group(2)), match.group(4), time, link=number)
    match = _PLUGIN.search(line)
    if match:
        return KernelEvent("xid", int(match.group(1)), None, "reported by the device plugin", time, match.group(2))
    for kind, pattern in (("fell_off_bus", _FELL), ("init_failed", _INIT)):
        match = pattern.search(line)
        if match:
            return KernelEvent(kind, 0, _bus(match.group(1)), line[match.start() :], time)
    match = _UNSUPPORTED.search(line)
    if match:
        bus = re.search(r"\(PCI:([0-9a-fA-F:.]+)\)|GPU ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)", line)
        where = (bus.group(1) or bus.group(2)) if bus else None
        return KernelEvent("unsupported", 0, _bus(where), line[match.start() :], time)
    return None


def _bus(text: Optional[str]) -> Optional[str]:
    return normal_bus_id((text or "").rstrip(":."))


def xid_severity(number: int, text: str) -> str:
    """`critical`, `warning`, `info` or `app` of one Xid line. Numbers that are not listed are a warning."""
    known = XIDS.get(number)
    if known is None:
        return WARNING
    if known.severity == BY_WORD:
        # `Nonfatal`, `Non-fatal` and `Fatal`, also as `Link Fatal`.
        nonfatal = re.search(r"\bnon-?fatal\b", text, re.IGNORECASE)
        return WARNING if nonfatal or not re.search(r"\bfatal\b", text, re.IGNORECASE) else CRITICAL
    if known.severity == BY_ACTION:
        action = _ACTION.search(text)
        words = (action.group(1) if action else text).lower()
        if "none" in words and action:
            return INFO
        return WARNING if "drain p2p" in words else CRITICAL
    return known.severity


def judge_kernel_log(
    log: KernelLog,
    ref_of: RefOf,
    policy: Policy,
    acknowledged: Optional[Mapping[str, float]] = None,
    earlier_boots: Optional[Mapping[Tuple[str, int], int]] = None,
) -> List[Finding]:
    """Findings of a kernel log. `ref_of(bus id or uuid)` names a GPU; `acknowledged` is {"*" or bus id: time}: events
    up to that time are known to a person and are left out. An event without a time is never left out.
    `earlier_boots` is {(bus id, Xid): boots before this one that had it}."""
    events = [event for event in log.events if not _is_acknowledged(event, acknowledged or {})]
    found: List[Finding] = []
    found.extend(_judge_xids([event for event in events if event.kind == "xid"], ref_of, policy, earlier_boots or {}))
    found.extend(_judge_sxids([event for event in events if event.kind == "sxid"]))
    off_bus = {event.bus_id for event in events if event.kind == "xid" and event.number == 79}
    for kind, finding_id in (
        ("fell_off_bus", "gpu_fell_off_bus"),
        ("init_failed", "gpu_init_failed"),
        ("unsupported", "gpu_unsupported"),
    ):
        groups = _grouped([event for event in events if event.kind == kind], lambda event: event.bus_id)
        for bus_id, group in groups.items():
            if kind == "fell_off_bus" and bus_id in off_bus:
                continue
            found.append(build_finding(finding_id, _count(group), 0, ref_of(bus_id), detail=group[0].text[:200]))
    return found


def _is_acknowledged(event: KernelEvent, acknowledged: Mapping[str, float]) -> bool:
    if event.time is None:
        return False
    return event.time <= acknowledged_until(acknowledged, event.bus_id or "")


def _grouped(events: Sequence[KernelEvent], key) -> Dict[Any, List[KernelEvent]]:
    groups: Dict[Any, List[KernelEvent]] = {}
    for event in events:
        groups.setdefault(key(event), []).append(event)
    return groups


def _count(group: Sequence[KernelEvent]) -> str:
    return "%d time%s" % (len(group), "" if len(group) == 1 else "s")


def _judge_xids(
    events: Sequence[KernelEvent], ref_of: RefOf, policy: Policy, earlier_boots: Mapping[Tuple[str, int], int]
) -> List[Finding]:
    found: List[Finding] = []
    groups = _grouped(events, lambda event: (event.bus_id, event.uuid, event.number))
    for (bus_id, uuid, number), group in groups.items():
        ref = ref_of(bus_id or uuid)
        worst = _worst([xid_severity(number, event.text) for event in group])
        first = next(event for event in group if xid_severity(number, event.text) == worst)
        links = sorted({event.link for event in group if event.link is not None})
        known = XIDS.get(number)
        entry = Entry(
            INFO if worst == APP else worst,
            "Xid %d (%s)" % (number, known.meaning if known else "not in the catalogue"),
            REMEDIES[known.remedy if known else "support"],
            XID_REMEDY_SOURCE,
        )
        detail = "%s; NVIDIA: %s; %s" % (_count(group), known.nvidia_action if known else "-", first.text[:160])
        found.append(
            build_finding(
                "xid_%d" % number if known else "xid_unlisted",
                _count(group),
                0,
                ref,
                link=links[0] if len(links) == 1 else None,
                detail=detail.rstrip("; "),
                entry=entry,
            )
        )
        if worst == APP:
            found.extend(_repeated(number, group, ref, policy))
        elif worst != INFO and number not in NEVER_ESCALATED:
            boots = earlier_boots.get((bus_id or "", number), 0) if worst == CRITICAL else 0
            found.extend(_recurring(number, count_bursts(number, [event.time for event in group]), boots, ref, policy))
    return found


def _worst(severities: Sequence[str]) -> str:
    return next(severity for severity in (CRITICAL, WARNING, INFO, APP) if severity in severities)


def _repeated(number: int, group: Sequence[KernelEvent], ref, policy: Policy) -> List[Finding]:
    """One crash prints many lines; the same Xid from many processes on one GPU is the GPU's."""
    pids = {match.group(1) for match in (_PID.search(event.text) for event in group) if match}
    limit = policy.get("xid_repeat_max")
    if limit is None or len(pids) < limit:
        return []
    text = "Xid %d from %d processes" % (number, len(pids))
    return [build_finding("xid_repeated", len(pids), "below %d" % limit, ref, detail=text)]


def _recurring(number: int, bursts: int, boots: int, ref, policy: Policy) -> List[Finding]:
    limits = (policy.get("xid_bursts_max"), policy.get("xid_boots_max"))
    if limits[0] is not None and bursts >= limits[0]:
        observed, limit, text = bursts, limits[0], "Xid %d in %d bursts within a day" % (number, bursts)
    elif limits[1] is not None and boots >= limits[1]:
        observed, limit, text = boots, limits[1], "Xid %d also in %d earlier boots" % (number, boots)
    else:
        return []
    return [build_finding("xid_recurring", observed, "below %d" % limit, ref, detail=text)]


def critical_xids(log: KernelLog) -> Dict[Tuple[str, int], Optional[float]]:
    """{(bus id, Xid): time of the last line} of the critical Xids of a log; None where the line has no time."""
    return {
        (event.bus_id, event.number): event.time
        for event in log.events
        if event.kind == "xid" and event.bus_id and xid_severity(event.number, event.text) == CRITICAL
    }


def _judge_sxids(events: Sequence[KernelEvent]) -> List[Finding]:
    found: List[Finding] = []
    judged = [(event, _sxid_severity(event)) for event in events]
    groups: Dict[Tuple[Optional[str], int, str], List[KernelEvent]] = {}
    for event, severity in judged:
        if severity is not None:
            groups.setdefault((event.bus_id, event.number, severity), []).append(event)
    for (bus_id, number, severity), group in groups.items():
        links = sorted({event.link for event in group if event.link is not None})
        text = "SXid %d on NVSwitch %s, %s: %s" % (number, bus_id, _count(group), group[0].text[:120])
        found.append(
            build_finding(
                "sxid_fatal" if severity == CRITICAL else "sxid_nonfatal",
                "SXid %d on %s" % (number, bus_id),
                0,
                link=links[0] if len(links) == 1 else None,
                detail=text,
            )
        )
    return found


def _sxid_severity(event: KernelEvent) -> Optional[str]:
    """By the word of the line; `Severity …` and `Data …` lines continue one and count for nothing."""
    text = event.text.lower()
    if text.startswith("fatal"):
        return CRITICAL
    if text.startswith(("non-fatal", "nonfatal")):
        return WARNING
    if text.startswith(("severity", "data")) or "data[" in text:
        return None
    return CRITICAL if event.number in SXID_FATAL or event.number in SXID_HOST else WARNING
