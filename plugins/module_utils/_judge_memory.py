# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a GPU's memory: ECC, row remapping (Ampere and later), page retirement (older)."""

from __future__ import annotations

from typing import List, Optional

from ._findings import Finding
from ._findings_catalog import build_finding
from ._health_policy import Policy
from ._smi_reading import GpuReading

_UNCORRECTABLE = ("sram_uncorrectable", "sram_parity", "sram_secded", "dram_uncorrectable", "double_bit")


def judge_memory(gpu: GpuReading, policy: Policy) -> List[Finding]:
    """Lifetime counters are information: the hardware has dealt with what they count."""
    if gpu.lost:
        return []
    volatile = uncorrectable(gpu, "volatile")
    return [*_ecc(gpu, policy, volatile), *_remap(gpu, policy, volatile), *_retired(gpu, policy)]


def uncorrectable(gpu: GpuReading, span: str) -> int:
    """Uncorrectable errors of ``volatile`` (since the driver was loaded) or ``aggregate`` (ever), by any layout."""
    parts = sum(gpu.get("%s_%s" % (span, name)) or 0 for name in _UNCORRECTABLE)
    total = max(parts, gpu.get("%s_uncorrected_total" % span) or 0)
    return total + (gpu.mig_uncorrectable if span == "volatile" else 0)


def _ecc(gpu: GpuReading, policy: Policy, volatile: int) -> List[Finding]:
    found: List[Finding] = []
    if volatile:
        found.append(build_finding("ecc_uncorrectable", volatile, 0, gpu.ref, detail="%d" % volatile))
    if gpu.get("sram_threshold_exceeded"):
        found.append(build_finding("sram_threshold_exceeded", "Yes", "No", gpu.ref))
    if gpu.get("unrepairable_memory"):
        found.append(build_finding("memory_unrepairable", "Yes", "No", gpu.ref))
    for name in ("channel_repair_pending", "tpc_repair_pending"):
        if gpu.get(name):
            detail = name.split("_", maxsplit=1)[0]
            found.append(build_finding("memory_repair_pending", name, "No", gpu.ref, detail=detail))
    for kind in ("sram", "dram"):
        count, limit = gpu.get("volatile_%s_correctable" % kind), policy.get("%s_correctable_max" % kind, gpu.name)
        if count is not None and limit is not None and count > limit:
            text = "%d in %s" % (count, kind.upper())
            found.append(build_finding("ecc_correctable_high", count, limit, gpu.ref, detail=text))
    aggregate = uncorrectable(gpu, "aggregate")
    if aggregate and not volatile:
        found.append(build_finding("ecc_aggregate", aggregate, 0, gpu.ref, detail="%d" % aggregate))
    return found


def _remap(gpu: GpuReading, policy: Policy, volatile: int) -> List[Finding]:
    found: List[Finding] = []
    rows = gpu.get("remapped_uncorrectable") or 0
    if gpu.get("remapped_pending"):
        # Whether the waiting row is one of an uncorrectable error is not said; that one was ever seen is.
        finding_id = "remap_pending_uncorrectable" if rows or volatile else "remap_pending"
        found.append(build_finding(finding_id, "Yes", "No", gpu.ref))
    if gpu.get("remapped_failure"):
        found.append(build_finding("remap_failure", "Yes", "No", gpu.ref))
    if gpu.get("banks_none"):
        text = "%d bank(s)" % gpu.get("banks_none")
        found.append(build_finding("remap_bank_exhausted", gpu.get("banks_none"), 0, gpu.ref, detail=text))
    limit: Optional[int] = policy.get("remapped_rows_max", gpu.name)
    if limit is not None and rows >= limit:
        found.append(build_finding("remap_rows_many", rows, "below %d" % limit, gpu.ref, detail="%d" % rows))
    if gpu.get("mig_current") and gpu.has("remapped_pending") and gpu.get("remapped_pending") is None:
        found.append(build_finding("mig_memory_unjudged", None, None, gpu.ref))
    return found


def _retired(gpu: GpuReading, policy: Policy) -> List[Finding]:
    found: List[Finding] = []
    single, double = gpu.get("retired_single_bit") or 0, gpu.get("retired_double_bit") or 0
    if gpu.get("retired_pending"):
        finding_id = "retired_pages_pending_uncorrectable" if double else "retired_pages_pending"
        found.append(build_finding(finding_id, "Yes", "No", gpu.ref))
    limit = policy.get("retired_pages_max", gpu.name)
    if limit is not None and single + double >= limit:
        text = "%d" % (single + double)
        found.append(build_finding("retired_pages_many", single + double, "below %d" % limit, gpu.ref, detail=text))
    return found
