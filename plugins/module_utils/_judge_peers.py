# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge GPUs against each other: one that is unlike its peers is the one to look at."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, List, Sequence, Tuple

from ._findings import Finding
from ._findings_catalog import build_finding
from ._health_policy import Policy
from ._judge_replays import judge_replay_totals
from ._smi_reading import GpuReading

# (field, words for a person). Compared among GPUs of one product name, except the product name itself.
_COMPARED: Tuple[Tuple[str, str], ...] = (
    ("vbios_version", "VBIOS"),
    ("inforom_image", "InfoROM image"),
    ("gsp_firmware", "GSP firmware"),
    ("ecc_current", "ECC mode"),
    ("mig_current", "MIG mode"),
    ("pcie_gen_max", "maximum PCIe generation"),
    ("pcie_width_max", "maximum PCIe width"),
    ("power_limit", "power limit"),
)


def judge_peers(gpus: Sequence[GpuReading], policy: Policy) -> List[Finding]:
    """Findings for the odd ones out; nothing for a machine with one GPU. Lost GPUs are not compared."""
    present = [gpu for gpu in gpus if not gpu.lost]
    found = _odd(present, "model", lambda gpu: gpu.name)
    for name in sorted({gpu.name or "" for gpu in present}):
        peers = [gpu for gpu in present if (gpu.name or "") == name]
        for field, words in _COMPARED:
            found.extend(_odd(peers, words, lambda gpu, field=field: gpu.get(field)))
        found.extend(_power_readings(peers))
        found.extend(judge_replay_totals(peers, policy))
    return found


def _odd(gpus: Sequence[GpuReading], words: str, value_of: Callable[[GpuReading], Any]) -> List[Finding]:
    """GPUs whose value is not that of the majority. Where there is none, nobody is the odd one: information."""
    counts = Counter(value_of(gpu) for gpu in gpus if value_of(gpu) is not None)
    if len(counts) < 2:
        return []
    usual, count = counts.most_common(1)[0]
    severity = None if count * 2 > sum(counts.values()) else "info"
    return [
        build_finding(
            "gpu_unlike_peers",
            value_of(gpu),
            usual,
            gpu.ref,
            severity=severity,
            detail="%s %s, the others %s" % (words, _word(value_of(gpu)), _word(usual)),
        )
        for gpu in gpus
        if value_of(gpu) not in (None, usual)
    ]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _power_readings(gpus: Sequence[GpuReading]) -> List[Finding]:
    """`N/A` for power is normal on some cards, and a defect on one card among equals that have it."""
    asked = [gpu for gpu in gpus if gpu.has("power_draw") and "power_draw" not in gpu.problems]
    without = [gpu for gpu in asked if gpu.get("power_draw") is None and gpu.get("power_limit") is None]
    if not without or len(without) * 2 >= len(asked):
        return []
    return [build_finding("power_unreadable", "N/A", "readable", gpu.ref) for gpu in without]
