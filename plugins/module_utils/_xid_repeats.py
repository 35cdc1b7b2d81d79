# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the same Xid comes back: a reset or a reboot has not helped, so the remedy is no longer a reset.

Lines are counted in bursts, because one incident prints many. Two measures, each with its own public precedent:
bursts of one number on one GPU within a day (NVSentinel: 5 in 24 h, lines within 3 min are one burst, within 3 h for
numbers that stay until a reset), and boots in which it came (gpud: after two reboots the hardware is inspected).
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

DAY_S = 24 * 3600.0
BURST_S = 180.0
STICKY_BURST_S = 3 * 3600.0
STICKY = (74, 79, 95, 109, 119)
"""Numbers that go on being printed until the GPU is reset (nvsentinel)."""
NEVER_ESCALATED = (94,)
"""A contained ECC error ends one process and leaves the GPU usable (gpud's threshold for it is 1000 reboots)."""

KEPT_BOOTS = 10

Boot = Mapping[str, object]
"""{"boot_id": text, "xids": [[bus id, Xid, seconds since 1970], …]}, as it is stored."""


def count_bursts(number: int, times: Sequence[Optional[float]]) -> int:
    """Bursts of an Xid within the last day that the times (seconds since 1970) span; 0 where a time is not known."""
    known = sorted(time for time in times if time is not None)
    if len(known) != len(times) or not known:
        return 0
    gap = STICKY_BURST_S if number in STICKY else BURST_S
    starts = [known[0]]
    starts.extend(later for earlier, later in zip(known, known[1:]) if later - earlier > gap)
    return sum(1 for start in starts if start > known[-1] - DAY_S)


def acknowledged_until(acknowledged: Mapping[str, float], bus_id: str) -> float:
    """Up to when a person has seen the Xids of a GPU: by an entry for it or for all GPUs (`*`); 0.0 where never."""
    return max(acknowledged.get("*", 0.0), acknowledged.get(bus_id, 0.0))


def boots_with(
    history: Sequence[Boot], boot_id: str, acknowledged: Mapping[str, float]
) -> Dict[Tuple[str, int], int]:
    """{(bus id, Xid): earlier boots in which it came}. What a person has acknowledged since (`*` for all GPUs, or the
    bus id) counts no more."""
    counts: Dict[Tuple[str, int], int] = {}
    for boot in history:
        for (bus_id, number), time in _xids(boot).items() if boot.get("boot_id") != boot_id else ():
            if time > acknowledged_until(acknowledged, bus_id):
                counts[(bus_id, number)] = counts.get((bus_id, number), 0) + 1
    return counts


def remember(
    history: Sequence[Boot], boot_id: str, now: float, seen: Mapping[Tuple[str, int], Optional[float]]
) -> List[Boot]:
    """The history with what this boot has shown so far, {(bus id, Xid): time of the last}; an Xid whose log line has no
    time gets that of its first sight. Only the last boots are kept, and only those with an Xid."""
    earlier: Dict[Tuple[str, int], float] = {}
    for boot in history:
        if boot.get("boot_id") == boot_id:
            earlier = _xids(boot)
    others = [boot for boot in history if boot.get("boot_id") != boot_id]
    xids = [
        [bus_id, number, earlier.get((bus_id, number), now) if time is None else time]
        for (bus_id, number), time in sorted(seen.items(), key=lambda item: item[0])
    ]
    return (others + ([{"boot_id": boot_id, "xids": xids}] if xids else []))[-KEPT_BOOTS:]


def _xids(boot: Boot) -> Dict[Tuple[str, int], float]:
    rows = boot.get("xids")
    return {
        (str(row[0]), row[1]): float(row[2])
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, list)
        and len(row) == 3
        and isinstance(row[1], int)
        and isinstance(row[2], (int, float))
    }
