# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One reading of nvidia-smi, whatever form it came in: GPUs with typed values, failures, and what is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from ._pci import normal_bus_id
from ._smi_fields import (
    BY_NAME,
    FIELDS,
    LOST,
    MALFORMED,
    NOT_AVAILABLE,
    RESET_REQUIRED,
    UNCORRECTABLE_LAYOUTS,
    problem_of,
    read_value,
)


@dataclass(frozen=True)
class SmiFailure:
    """A text with which nvidia-smi says that it cannot answer. `index` or `bus_id` where it names a GPU."""

    kind: str
    text: str
    index: Optional[int] = None
    bus_id: Optional[str] = None


@dataclass(frozen=True)
class GpuReading:
    """One GPU as nvidia-smi shows it.

    `values` holds every field that was read (None for N/A); `problems` why a field has no value; `strays` the same
    for leaves that no field stands for, by path. `missing` names fields that are due and absent. `processes` is the
    number of processes that hold the GPU, None where the reading does not tell.
    """

    index: Optional[int]
    bus_id: Optional[str]
    values: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    strays: Mapping[str, str] = field(default_factory=dict)
    missing: Tuple[str, ...] = ()
    processes: Optional[int] = None
    compute_processes: Optional[int] = None
    mig_devices: int = 0
    mig_uncorrectable: int = 0

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def has(self, name: str) -> bool:
        """True where the field was there, even if it says N/A."""
        return name in self.values

    @property
    def name(self) -> Optional[str]:
        return self.values.get("product_name")

    @property
    def uuid(self) -> Optional[str]:
        return self.values.get("uuid")

    @property
    def lost(self) -> bool:
        return LOST in self.problems.values() or LOST in self.strays.values()

    @property
    def needs_reset(self) -> bool:
        return RESET_REQUIRED in self.problems.values() or RESET_REQUIRED in self.strays.values()

    @property
    def ref(self) -> Dict[str, Any]:
        return {"index": self.index, "uuid": self.uuid, "pci_bus_id": self.bus_id}


@dataclass(frozen=True)
class SmiReading:
    """`form`: xml, q, table, csv or list. `attached`: the number of GPUs that the tool itself announces."""

    form: str
    gpus: Tuple[GpuReading, ...] = ()
    driver_version: Optional[str] = None
    cuda_version: Optional[str] = None
    attached: Optional[int] = None
    failures: Tuple[SmiFailure, ...] = ()
    inforom_corrupted: Tuple[str, ...] = ()
    incomplete: Tuple[str, ...] = ()


def branch_of(version: Optional[str]) -> Optional[int]:
    match = re.match(r"^(\d{3})\.", version or "")
    return int(match.group(1)) if match else None


def lookup_in(leaves: Mapping[str, str]) -> Callable[[str], Optional[str]]:
    """Find a path, or the leaf that stands for the whole block above it (`<remapped_rows>N/A</remapped_rows>`)."""

    def lookup(path: str) -> Optional[str]:
        while path:
            if path in leaves:
                return leaves[path]
            path = path.rpartition("/")[0]
        return None

    return lookup


def build_gpu(
    index: Optional[int],
    bus_id: Optional[str],
    leaves: Mapping[str, str],
    names: Callable[[Any], Iterable[str]],
    required_from: Optional[int] = None,
    **extra: Any,
) -> GpuReading:
    """A GPU of the leaves of its tree. `names(field)` gives the paths of a field in this form of output.

    `required_from` is the driver branch of a complete reading, None for an excerpt or a selection.
    """
    lookup = lookup_in(leaves)
    values: Dict[str, Any] = {}
    problems: Dict[str, str] = {}
    used = set()
    for item in FIELDS:
        value, problem, found = None, None, False
        for path in names(item):
            text = lookup(path)
            used.add(path)
            if text is None:
                continue
            found = True
            value, problem = read_value(item.kind, text)
            if value is not None or problem not in (None, NOT_AVAILABLE):
                break
        if found:
            values[item.name] = value
            if problem not in (None, NOT_AVAILABLE):
                problems[item.name] = problem
    strays = {path: problem_of(text) for path, text in leaves.items() if path not in used}
    strays = {path: problem for path, problem in strays.items() if problem not in (None, NOT_AVAILABLE)}
    missing = () if required_from is None else missing_fields(values, required_from)
    bus = normal_bus_id(bus_id) or normal_bus_id(values.get("pci_bus_id"))
    return GpuReading(index, bus, values, problems, strays, missing, **extra)


def missing_fields(values: Mapping[str, Any], branch: int) -> Tuple[str, ...]:
    """Fields that a complete reading of this driver branch has, and this one has not."""
    missing: List[str] = [
        item.name for item in FIELDS if item.since is not None and branch >= item.since and item.name not in values
    ]
    for span in ("volatile", "aggregate"):
        layouts = [["%s_%s" % (span, name) for name in layout] for layout in UNCORRECTABLE_LAYOUTS]
        if not any(all(name in values for name in layout) for layout in layouts):
            missing.append("%s_uncorrectable" % span)
    return tuple(missing)


def malformed_fields(gpu: GpuReading) -> List[str]:
    return sorted(name for name, problem in gpu.problems.items() if problem == MALFORMED and name in BY_NAME)


def with_index(reading: SmiReading, index: int) -> SmiReading:
    """The reading of `-i INDEX`, whose one GPU is numbered 0 by its position, renumbered."""
    return replace(reading, gpus=tuple(replace(gpu, index=index) for gpu in reading.gpus))
