# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse `nvidia-smi nvlink -s` and `nvlink -e` (also -c and -R): links, rates, error counters.

The two counter sets have nothing in common: NVLink 2 to 4 count replays, recoveries and CRC errors; NVLink 5 counts
packets, effective and symbol errors with bit error rates, and FEC bins. `15e-255` is that tool's zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from ._smi_failure import SmiFailure, failures_in
from ._smi_fields import problem_of

ACTIVE, INACTIVE, SLEEP = "active", "inactive", "sleep"

NOTE_ALL_INACTIVE = "all_inactive"
NOTE_MIG = "mig"
NOTE_NO_NVLINK = "no_nvlink"

ZERO_EXPONENT = -200
"""A bit error rate with a smaller exponent is how the counter writes zero (15e-255 per link, e-238 aggregated)."""


@dataclass(frozen=True)
class Link:
    number: int
    state: str
    gb_s: Optional[float] = None


@dataclass(frozen=True)
class NvlinkGpu:
    """What one GPU's block says. `counters` is {link: {counter name, lower case: value}}."""

    index: int
    name: Optional[str]
    uuid: Optional[str]
    links: Tuple[Link, ...] = ()
    note: Optional[str] = None
    counters: Mapping[int, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class NvlinkReading:
    """`what`: status, errors, capabilities or remote. `unknown`: lines that could not be understood."""

    what: str
    gpus: Tuple[NvlinkGpu, ...] = ()
    failures: Tuple[SmiFailure, ...] = ()
    unknown: Tuple[str, ...] = ()
    elided: bool = False
    empty: bool = False

    def by_index(self, index: int) -> Optional[NvlinkGpu]:
        return next((gpu for gpu in self.gpus if gpu.index == index), None)


_GPU = re.compile(r"^GPU (\d+): (.+?)(?: \(UUID: (\S+?)\))?\s*$")
_LINK = re.compile(r"^\s*Link (\d+): (.+?)\s*$")
_RATE = re.compile(r"^(\d+(?:\.\d+)?) GB/s$")
_COUNTER = re.compile(r"^(.+?): (\S+)(?: (?:KiB|MiB|GiB|bytes))?$")
_CAPABILITY = re.compile(r"^\s*Link (\d+), .+: (?:true|false)\s*$")
_REMOTE = re.compile(r"^Remote Device [0-9A-Fa-f:.]+: Link \d+$")
_RATIO = re.compile(r"^(\d+(?:\.\d+)?)e([+-]?\d+)$", re.IGNORECASE)
_NOTES = (
    (re.compile(r"all links are inactive", re.IGNORECASE), NOTE_ALL_INACTIVE),
    (re.compile(r"nvlink queries are not supported for devices in mig mode", re.IGNORECASE), NOTE_MIG),
    (re.compile(r"does not (?:have or )?support nvlink", re.IGNORECASE), NOTE_NO_NVLINK),
)
_ELISION = re.compile(r"^\s*\[?\.\.\.\]?\s*$")


class _Block:
    def __init__(self, index: int, name: Optional[str], uuid: Optional[str]) -> None:
        self.index, self.name, self.uuid = index, name, uuid
        self.links: Dict[int, Link] = {}
        self.counters: Dict[int, Dict[str, float]] = {}
        self.note: Optional[str] = None
        self.kinds: set = set()

    def freeze(self) -> NvlinkGpu:
        links = tuple(self.links[number] for number in sorted(self.links))
        return NvlinkGpu(self.index, self.name, self.uuid, links, self.note, self.counters)


def parse_nvlink(text: str) -> NvlinkReading:
    """Any of the four outputs, told apart by their lines."""
    blocks: List[_Block] = []
    unknown: List[str] = []
    failures = failures_in(text)
    elided = False
    for line in text.splitlines():
        if not line.strip():
            continue
        header = _GPU.match(line)
        if header:
            blocks.append(_Block(int(header.group(1)), header.group(2), header.group(3)))
        elif _ELISION.match(line):
            elided = True
        elif not _note(line, blocks) and not any(failure.text == line.strip() for failure in failures):
            unknown.append(line.strip()[:120])
    kinds = {kind for block in blocks for kind in block.kinds}
    what = next((kind for kind in ("errors", "remote", "capabilities") if kind in kinds), "status")
    return NvlinkReading(
        what=what,
        gpus=tuple(block.freeze() for block in blocks),
        failures=tuple(failures),
        unknown=tuple(unknown),
        elided=elided,
        empty=not text.strip(),
    )


def _note(line: str, blocks: List[_Block]) -> bool:
    """Put a line into the block it belongs to; False where it means nothing."""
    block = blocks[-1] if blocks else None
    match = _LINK.match(line)
    if match:
        return block is not None and _link_line(block, int(match.group(1)), match.group(2))
    if _CAPABILITY.match(line):
        if block is not None:
            block.kinds.add("capabilities")
        return block is not None
    for pattern, note in _NOTES:
        if pattern.search(line):
            if block is None:
                return False
            block.note = note
            return True
    return False


def _link_line(block: _Block, number: int, body: str) -> bool:
    if _REMOTE.match(body):
        block.kinds.add("remote")
        block.links[number] = Link(number, ACTIVE)
        return True
    return _status(block, number, body) or _counter(block, number, body)


def _status(block: _Block, number: int, body: str) -> bool:
    rate = _RATE.match(body)
    word = body.strip("<>").lower()
    if rate:
        link = Link(number, ACTIVE, float(rate.group(1)))
    elif word == "inactive":
        link = Link(number, INACTIVE)
    elif word in ("sleep", "low power", "low-power"):
        link = Link(number, SLEEP)
    else:
        return False
    block.kinds.add("status")
    if number in block.links:
        # The header of the next GPU is missing: these are another one's links.
        return False
    block.links[number] = link
    return True


def _counter(block: _Block, number: int, body: str) -> bool:
    match = _COUNTER.match(body)
    if not match:
        return False
    name, text = " ".join(match.group(1).lower().split()), match.group(2)
    if problem_of(text):
        block.kinds.add("errors")
        block.counters.setdefault(number, {})
        return True
    value = parse_count(text)
    if value is None:
        return False
    block.kinds.add("errors")
    counters = block.counters.setdefault(number, {})
    if name in counters:
        return False
    counters[name] = value
    return True


def parse_count(text: str) -> Optional[float]:
    """A counter or a bit error rate; `15e-255` is 0, `15e-10` is 1.5e-9."""
    if text.isdigit():
        return int(text)
    match = _RATIO.match(text)
    if not match:
        return None
    exponent = int(match.group(2))
    if exponent <= ZERO_EXPONENT:
        return 0.0
    return float(match.group(1)) * 10.0 ** min(exponent, 300)
