# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that was seen of one machine, before it is judged. Filled by `_observe` (live) or `_recording`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Sequence, Tuple

from ._fabric import FabricLog, FabricUnit
from ._findings import Finding
from ._judge_replays import EarlierReplays
from ._nvlink import NvlinkReading
from ._observe_pci import DriverState
from ._pci import PciInventory
from ._smi_reading import SmiFailure, SmiReading
from ._topology import Topology
from ._xid import KernelLog


@dataclass(frozen=True)
class Observation:
    """Each source is None where it was not asked or not recorded; `covered` names those that were read.

    `listing` is `nvidia-smi -L`; `extra` are further readings of nvidia-smi (CSV, table) of the same machine;
    `failures` are failure texts of any command. `throttle_samples` is {bus id: reason masks} of further live samples.
    `findings` are those that only the gathering could make (a time-out, a missing command).
    """

    live: bool = False
    smi: Optional[SmiReading] = None
    listing: Optional[SmiReading] = None
    extra: Tuple[SmiReading, ...] = ()
    failures: Tuple[SmiFailure, ...] = ()
    nvlink_status: Optional[NvlinkReading] = None
    nvlink_errors: Optional[NvlinkReading] = None
    nvlink_earlier: Optional[NvlinkReading] = None
    replays_earlier: Optional[EarlierReplays] = None
    topologies: Tuple[Topology, ...] = ()
    kernel: Optional[KernelLog] = None
    xid_boots: Mapping[Tuple[str, int], int] = field(default_factory=dict)
    acknowledged: Mapping[str, float] = field(default_factory=dict)
    fabric_log: Optional[FabricLog] = None
    fabric_unit: Optional[FabricUnit] = None
    fabric_version: Optional[str] = None
    pci: Optional[PciInventory] = None
    driver: Optional[DriverState] = None
    throttle_samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    findings: Tuple[Finding, ...] = ()
    covered: Tuple[str, ...] = ()
