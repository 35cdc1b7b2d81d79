# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge PCIe replays: their rate since an earlier reading, and totals that stand out among equal cards.

A replay is a packet sent again after an error on the wire. A few are within the specification's error rate; a steady
rate above it is a marginal slot, riser or cable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import List, Mapping, Optional, Sequence

from ._findings import Finding
from ._findings_catalog import build_finding
from ._health_policy import Policy
from ._smi_reading import GpuReading

REPLAYS_PER_LANE_MINUTE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
"""By PCIe generation (DCGM, DcgmHealthWatch.cpp)."""
LEAST_S = 60.0
"""A rate per minute of a shorter time says nothing."""


@dataclass(frozen=True)
class EarlierReplays:
    """Counters by PCI bus id, read `age_s` seconds ago in the same boot."""

    age_s: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)


def judge_replay_rate(gpu: GpuReading, earlier: Optional[EarlierReplays], policy: Policy) -> List[Finding]:
    count = gpu.get("pcie_replays")
    before = earlier.counts.get(gpu.bus_id or "") if earlier is not None else None
    limit = replays_per_minute_max(gpu, policy)
    if count is None or before is None or limit is None or earlier.age_s < LEAST_S or count < before:
        return []
    rate = (count - before) / (earlier.age_s / 60)
    if rate <= limit:
        return []
    text = "%d replays in %d min" % (count - before, round(earlier.age_s / 60))
    return [build_finding("pcie_replay_rate", round(rate, 1), "at most %g per minute" % limit, gpu.ref, detail=text)]


def replays_per_minute_max(gpu: GpuReading, policy: Policy) -> Optional[float]:
    """The declared limit, else that of the fastest link the card can have: it may have run at it in between."""
    declared = policy.get("pcie_replays_per_minute_max", gpu.name)
    if declared is not None:
        return float(declared)
    per_lane = REPLAYS_PER_LANE_MINUTE.get(gpu.get("pcie_gen_max"))
    lanes = gpu.get("pcie_width_current") or gpu.get("pcie_width_max")
    return float(math.ceil(per_lane * lanes)) if per_lane and lanes else None


def judge_replay_totals(gpus: Sequence[GpuReading], policy: Policy) -> List[Finding]:
    """Totals say nothing by themselves; one card far above its equals is worth a line."""
    counts = sorted(gpu.get("pcie_replays") or 0 for gpu in gpus)
    median = counts[(len(counts) - 1) // 2] if counts else 0
    found = []
    for gpu in gpus:
        count, limit = gpu.get("pcie_replays"), policy.get("pcie_replays_max", gpu.name)
        if count is not None and limit is not None and count > limit and count > 10 * median:
            found.append(build_finding("pcie_replays_high", count, median, gpu.ref, detail="%d" % count))
    return found
