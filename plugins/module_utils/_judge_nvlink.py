# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge NVLinks: how many are up, how fast, what their counters say; by the model's table and by the peers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ._findings import Finding
from ._findings_catalog import build_finding
from ._gpu_models import LINKS_BOARD, LINKS_BRIDGE, LINKS_NONE, GpuModel, model_of_name
from ._health_policy import Policy
from ._nvlink import ACTIVE, INACTIVE, NOTE_ALL_INACTIVE, NOTE_MIG, NOTE_NO_NVLINK, NvlinkGpu, NvlinkReading

SATURATED = 65535
"""The 16-bit replay and CRC counters of NVLink 2 to 4 stick here."""

_CLASSIC = ("replay errors", "recovery errors", "crc errors")
_CLASSIC_MARK = frozenset(_CLASSIC)
_NVLINK5_MARK = frozenset(("effective errors", "effective ber", "symbol errors", "link recovery failed events"))
# NVLink 5 counters of which a count above zero means lost or damaged packets. Source: dcgm.
_NVLINK5_ERRORS = (
    "malformed packet errors",
    "buffer overrun errors",
    "rx errors",
    "rx remote errors",
    "rx general errors",
    "local link integrity errors",
)


@dataclass(frozen=True)
class LinkContext:
    """What is known of the GPUs from elsewhere: how to name them, what they are, which are lost or in MIG mode."""

    refs: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    lost: FrozenSet[int] = frozenset()
    mig: FrozenSet[int] = frozenset()
    hint: Optional[GpuModel] = None
    complete: bool = False
    """True where `names` lists every GPU of the machine."""

    def ref(self, gpu: NvlinkGpu) -> Dict[str, Any]:
        known = self.refs.get(gpu.index) or {}
        return {
            "index": gpu.index,
            "uuid": known.get("uuid") or gpu.uuid,
            "pci_bus_id": known.get("pci_bus_id"),
        }

    def model(self, gpu: NvlinkGpu) -> Optional[GpuModel]:
        return model_of_name(gpu.name or self.names.get(gpu.index)) or self.hint


def judge_nvlink_status(reading: NvlinkReading, context: LinkContext, policy: Policy) -> List[Finding]:
    """Findings of `nvlink -s` (and of -R, which lists only live links)."""
    found = _unreadable(reading, context)
    for gpu in reading.gpus:
        if gpu.index in context.lost:
            continue
        if gpu.note == NOTE_MIG or gpu.index in context.mig:
            found.append(build_finding("nvlink_mig", None, None, context.ref(gpu)))
            continue
        found.extend(_judge_gpu(gpu, reading, context, policy))
    found.extend(_absent(reading, context))
    return found


def _unreadable(reading: NvlinkReading, context: LinkContext) -> List[Finding]:
    found = []
    if reading.unknown:
        text = "%d line(s), the first: %s" % (len(reading.unknown), reading.unknown[0])
        found.append(build_finding("nvlink_unreadable", text, "known lines", detail=text))
    indexes = [gpu.index for gpu in reading.gpus]
    if len(set(indexes)) != len(indexes):
        found.append(build_finding("nvlink_unreadable", indexes, "each GPU once", detail="a GPU is listed twice"))
    if not context.complete and len(indexes) > 1 and not reading.elided:
        gaps = sorted(set(range(min(indexes), max(indexes))) - set(indexes))
        if gaps:
            text = "GPU %s not listed" % ", ".join(map(str, gaps))
            found.append(build_finding("nvlink_unreadable", text, "every GPU", detail=text))
    return found


def _absent(reading: NvlinkReading, context: LinkContext) -> List[Finding]:
    """GPUs that should be listed and are not: the tool leaves out a GPU without links, header and all."""
    found = []
    listed = {gpu.index for gpu in reading.gpus}
    if context.complete:
        for index, name in sorted(context.names.items()):
            model = model_of_name(name)
            if index in listed or index in context.lost or index in context.mig or not _is_board(model):
                continue
            ref = context.refs.get(index) or {"index": index, "uuid": None, "pci_bus_id": None}
            text = "it is not listed at all"
            found.append(build_finding("nvlink_all_down", 0, _full(model), ref, detail=text))
    elif not reading.gpus and not reading.failures:
        if context.hint is None:
            found.append(build_finding("nvlink_unreadable", "nothing", "links", detail="the output is empty"))
        elif _is_board(context.hint):
            text = "the output is empty"
            found.append(build_finding("nvlink_all_down", 0, _full(context.hint), detail=text))
    return found


def _is_board(model: Optional[GpuModel]) -> bool:
    return model is not None and model.links == LINKS_BOARD


def _full(model: Optional[GpuModel]) -> Optional[int]:
    return model.nvlink_count if model else None


def _judge_gpu(gpu: NvlinkGpu, reading: NvlinkReading, context: LinkContext, policy: Policy) -> List[Finding]:
    model, ref = context.model(gpu), context.ref(gpu)
    wanted = policy.get("expected_nvlinks", gpu.name)
    if wanted is None and _is_board(model):
        wanted = model.nvlink_count
    up = [link for link in gpu.links if link.state != INACTIVE]
    if gpu.note == NOTE_NO_NVLINK:
        return [build_finding("nvlink_all_down", 0, wanted, ref)] if wanted else []
    if gpu.note == NOTE_ALL_INACTIVE or (gpu.links and not up):
        if wanted or (model is None and _peers_have_links(gpu, reading)):
            return [build_finding("nvlink_all_down", 0, wanted, ref, detail="all links are inactive")]
        return []
    if not gpu.links:
        # The name alone does not do: of a line that is cut off, an A100 is an A10.
        if model is not None and model.links == LINKS_NONE and gpu.uuid:
            return []
        return [build_finding("nvlink_unreadable", "no link line", "links", ref, detail="no link line")]
    found = _down(gpu, reading, model, ref, wanted)
    found.extend(_slow(gpu, reading, model, ref, policy))
    return found


def _peers_have_links(gpu: NvlinkGpu, reading: NvlinkReading) -> bool:
    others = [other for other in reading.gpus if other.name == gpu.name and other.index != gpu.index]
    return len(others) > 1 and all(any(link.state != INACTIVE for link in other.links) for other in others)


def _down(gpu: NvlinkGpu, reading: NvlinkReading, model, ref, wanted: Optional[int]) -> List[Finding]:
    inactive = [link.number for link in gpu.links if link.state == INACTIVE]
    up = len(gpu.links) - len(inactive)
    if reading.what == "remote":
        inactive = []
    if wanted:
        if up >= wanted:
            return []
        found = [build_finding("nvlink_inactive", INACTIVE, ACTIVE, ref, link=number) for number in inactive]
        known = {link.number for link in gpu.links}
        absent = [number for number in range(wanted) if number not in known][: wanted - len(gpu.links)]
        if reading.unknown:
            # Among lines that cannot be read, a link that is not there may be one of them.
            absent = []
        found += [build_finding("nvlink_missing", "absent", ACTIVE, ref, link=number) for number in absent]
        return found
    usual = _usual_inactive(gpu, reading)
    if model is not None and model.links == LINKS_BRIDGE:
        # The slots that no bridge uses are the same on both cards of a bridge.
        odd = [number for number in inactive if number not in usual]
        if len(reading.gpus) == 1 and _is_whole_bridge(up, model):
            odd = []
        hole = [build_finding("nvlink_bridge_hole", INACTIVE, ACTIVE, ref, link=number) for number in odd]
        if not hole and not _is_whole_bridge(up, model):
            text = "%d links up" % up
            hole = [build_finding("nvlink_bridge_hole", up, "whole bridges", ref, detail=text)]
        return hole
    odd = [number for number in inactive if number not in usual]
    return [build_finding("nvlink_inactive", INACTIVE, ACTIVE, ref, link=number) for number in odd]


def _is_whole_bridge(up: int, model: GpuModel) -> bool:
    """One bridge of a data-centre or workstation card carries four links; Turing desktop bridges carry one or two."""
    return up % (1 if model.nvlink_count < 4 else 4) == 0 or up == model.nvlink_count


def _usual_inactive(gpu: NvlinkGpu, reading: NvlinkReading) -> FrozenSet[int]:
    peers = [other for other in reading.gpus if other.name == gpu.name and other.index != gpu.index and other.links]
    counts: Counter = Counter(link.number for other in peers for link in other.links if link.state == INACTIVE)
    return frozenset(number for number, count in counts.items() if count * 2 >= len(peers))


def _slow(gpu: NvlinkGpu, reading: NvlinkReading, model, ref, policy: Policy) -> List[Finding]:
    """Rates more than the tolerance below the lowest that is listed; without a table, below the peers' usual one."""
    floor = model.nvlink_gb_s if model else None
    if floor is None:
        rates = Counter(link.gb_s for other in reading.gpus for link in other.links if link.gb_s)
        floor = rates.most_common(1)[0][0] if rates else None
    if floor is None:
        return []
    least = floor * (1 - policy.get("nvlink_rate_tolerance_percent", gpu.name) / 100.0)
    rated = [link for link in gpu.links if link.gb_s is not None]
    slow = [link for link in rated if link.gb_s < least]
    if slow and len(slow) == len(rated):
        text = "all at %g GB/s, expected %g" % (slow[0].gb_s, floor)
        return [build_finding("nvlink_slow", slow[0].gb_s, floor, ref, detail=text)]
    return [
        build_finding("nvlink_slow", link.gb_s, floor, ref, link=link.number, detail="%g GB/s" % link.gb_s)
        for link in slow
    ]


# -- error counters --------------------------------------------------------------------------------------------------


def judge_nvlink_errors(
    reading: NvlinkReading,
    context: LinkContext,
    policy: Policy,
    earlier: Optional[NvlinkReading] = None,
    status: Optional[NvlinkReading] = None,
) -> List[Finding]:
    """Findings of `nvlink -e`. With an `earlier` reading, what grew since counts, except for saturated counters.
    `status` is `nvlink -s` of the same machine: links that are up there have counters here."""
    found = _unreadable(reading, context) + _uncounted(reading, context, status)
    status_known = status is not None
    if not reading.gpus and not reading.failures and not context.complete and context.hint is None:
        found.append(build_finding("nvlink_unreadable", "nothing", "counters", detail="the output is empty"))
    for gpu in reading.gpus:
        if gpu.index in context.lost or gpu.index in context.mig or gpu.note in (NOTE_MIG, NOTE_NO_NVLINK):
            continue
        if gpu.note == NOTE_ALL_INACTIVE:
            if not status_known and _is_board(context.model(gpu)):
                found.append(build_finding("nvlink_all_down", 0, _full(context.model(gpu)), context.ref(gpu)))
            continue
        before = _earlier(earlier, gpu)
        for number in sorted(gpu.counters):
            counters = gpu.counters[number]
            grown = _delta(counters, before.get(number) or {})
            found.extend(_judge_link(counters, grown, context.ref(gpu), number, gpu.name, policy))
        found.extend(_uneven(gpu, reading, context, status_known))
    return found


def _uncounted(reading: NvlinkReading, context: LinkContext, status: Optional[NvlinkReading]) -> List[Finding]:
    found = []
    for gpu in status.gpus if status is not None else ():
        up = {link.number for link in gpu.links if link.state == ACTIVE}
        counted = reading.by_index(gpu.index)
        lacking = up - set(counted.counters if counted else ())
        if lacking and gpu.index not in context.lost and gpu.index not in context.mig:
            text = "no counters of %d links that are up" % len(lacking)
            found.append(build_finding("nvlink_unreadable", text, "counters", context.ref(gpu), detail=text))
    return found


def _earlier(earlier: Optional[NvlinkReading], gpu: NvlinkGpu) -> Mapping[int, Mapping[str, float]]:
    if earlier is None:
        return {}
    same = [other for other in earlier.gpus if other.uuid == gpu.uuid and other.uuid]
    return same[0].counters if same else {}


def _delta(now: Mapping[str, float], before: Mapping[str, float]) -> Dict[str, float]:
    """What grew. A counter that fell was reset, so that all of it is new; rates are taken as they are."""
    grown = {}
    for name, value in now.items():
        old = before.get(name, 0)
        grown[name] = value if name.endswith(" ber") or value < old else value - old
    return grown


def _judge_link(counters, grown, ref, number: int, name: Optional[str], policy: Policy) -> List[Finding]:
    if _NVLINK5_MARK & set(counters):
        return _judge_nvlink5(grown, ref, number, name, policy)
    if _CLASSIC_MARK & set(counters):
        return _judge_classic(counters, grown, ref, number, name, policy)
    text = "unknown counters: %s" % (", ".join(sorted(counters)[:3]) or "none")
    return [build_finding("nvlink_unreadable", text, "known counters", ref, link=number, detail=text)]


def _judge_classic(counters, grown, ref, number: int, name, policy: Policy) -> List[Finding]:
    stuck = [key for key in ("replay errors", "crc errors") if counters.get(key, 0) >= SATURATED]
    replay, recovery, crc = (grown.get(key, 0) for key in _CLASSIC)
    text = "replay %d, recovery %d, CRC %d" % (replay, recovery, crc)
    if stuck:
        return [build_finding("nvlink_counter_saturated", SATURATED, 0, ref, link=number, detail=stuck[0])]
    if recovery or crc >= policy.get("nvlink_crc_max", name):
        return [build_finding("nvlink_errors", text, "0", ref, link=number, detail=text)]
    if crc:
        return [build_finding("nvlink_crc_errors", text, "0", ref, link=number, detail=text)]
    if replay:
        return [build_finding("nvlink_replays", replay, 0, ref, link=number, detail="%d" % replay)]
    return []


def _judge_nvlink5(grown, ref, number: int, name, policy: Policy) -> List[Finding]:
    """An error counter without a real bit error rate beside it (15e-255 is zero) is left over from link training."""
    broken = ["%s %d" % (key, grown[key]) for key in _NVLINK5_ERRORS if grown.get(key)]
    if grown.get("link recovery failed events"):
        broken.append("%d failed recoveries" % grown["link recovery failed events"])
    if grown.get("effective ber", 0) > policy.get("nvlink_effective_ber_max", name):
        broken.append("effective BER %.3g" % grown["effective ber"])
    if grown.get("symbol errors") and grown.get("symbol ber", 0) > 0:
        broken.append("symbol BER %.3g" % grown["symbol ber"])
    if broken:
        text = ", ".join(broken)
        return [build_finding("nvlink_errors", text, "0", ref, link=number, detail=text)]
    found = []
    recovered = grown.get("link recovery successful events") or grown.get("total link recovery events")
    if recovered:
        found.append(build_finding("nvlink_recoveries", recovered, 0, ref, link=number, detail="%d" % recovered))
    ratio = _fec_ratio(grown)
    if ratio > policy.get("nvlink_fec_ratio_max", name):
        text = "%.1e of the codewords" % ratio
        found.append(build_finding("nvlink_fec_marginal", ratio, "below 1e-7", ref, link=number, detail=text))
    return found


def _fec_ratio(counters: Mapping[str, float]) -> float:
    """Corrected codewords (bins 1 to 15) to good ones (bin 0)."""
    good = counters.get("fec errors - 0", 0)
    corrected = sum(counters.get("fec errors - %d" % number, 0) for number in range(1, 16))
    return corrected / float(good) if good else 0.0


def _uneven(gpu: NvlinkGpu, reading: NvlinkReading, context: LinkContext, status_known: bool) -> List[Finding]:
    """Every link has the same counters; where one has fewer, or links are missing, the output was cut off."""
    sizes = {frozenset(counters) for other in reading.gpus for counters in other.counters.values() if counters}
    if len(sizes) > 1:
        most = max(len(size) for size in sizes)
        short = sorted(number for number, counters in gpu.counters.items() if len(counters) < most)
        return [
            build_finding(
                "nvlink_unreadable",
                "fewer counters",
                "the same on every link",
                context.ref(gpu),
                link=number,
                detail="counters are missing",
            )
            for number in short
        ]
    model = context.model(gpu)
    if status_known or reading.elided or not _is_board(model) or len(gpu.counters) >= model.nvlink_count:
        return []
    if reading.what != "errors":
        return []
    text = "%d of %d links" % (len(gpu.counters), model.nvlink_count)
    return [build_finding("nvlink_unreadable", text, "every link", context.ref(gpu), detail=text)]


def link_rows(reading: Optional[NvlinkReading], context: LinkContext) -> List[Dict[str, Any]]:
    """What the result shows under `links`: one row a link."""
    rows: List[Dict[str, Any]] = []
    for gpu in reading.gpus if reading else ():
        for link in gpu.links:
            rows.append({"gpu": context.ref(gpu), "link": link.number, "state": link.state, "gb_s": link.gb_s})
    return rows


def links_by_gpu(findings: Sequence[Finding]) -> FrozenSet[int]:
    """Indexes of the GPUs that NVLink findings already name."""
    named: Tuple[int, ...] = tuple(
        item["gpu"]["index"]
        for item in findings
        if item["gpu"]
        and item["gpu"].get("index") is not None
        and item["id"].startswith("nvlink_")
        and item["severity"] != "info"
    )
    return frozenset(named)
