# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse and judge `nvidia-smi topo -m` and `topo -p2p`: how every pair of GPUs is joined.

The header is wrapped in terminal escapes even in a file, columns of network cards follow those of GPUs, and rows can
be in any order: cells are found by label, never by position.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple

from ._findings import Finding
from ._findings_catalog import build_finding
from ._gpu_models import LINKS_BOARD, GpuModel, is_datacenter, model_of_name
from ._judge_nvlink import LinkContext
from ._smi_failure import SmiFailure, failures_in

_ESCAPE = re.compile("\x1b\\[[0-9;]*[A-Za-z]")
_GPU_LABEL = re.compile(r"^GPU(\d+)$")
_CELL = re.compile(r"^(X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB|SYS/NV\d+|Unknown|OK|NS|CNS|GNS|TNS|DR|U)$")
_P2P_CELLS = frozenset(("OK", "NS", "CNS", "GNS", "TNS", "DR", "U"))
MESHES = ("volta", "pascal")
"""A hybrid mesh: the links of one GPU go to some of the others only."""
KNOWN_LINK_NUMBERS = frozenset((1, 2, 4, 6, 8, 12, 18))
"""Links between two GPUs that some healthy machine has: whole boards, 4-GPU meshes, bridges."""


@dataclass(frozen=True)
class Topology:
    """`cells` is {(row GPU, column GPU): text}. `gaps` says what of the matrix is missing."""

    indexes: Tuple[int, ...] = ()
    cells: Mapping[Tuple[int, int], str] = field(default_factory=dict)
    p2p: bool = False
    gaps: Tuple[str, ...] = ()
    failures: Tuple[SmiFailure, ...] = ()

    def links(self, row: int) -> Dict[int, int]:
        """{other GPU: number of NVLinks} of a row; 0 where the pair is joined by PCIe only."""
        found = {}
        for column in self.indexes:
            cell = self.cells.get((row, column))
            if column != row and cell is not None:
                match = re.search(r"NV(\d+)$", cell)
                found[column] = int(match.group(1)) if match else 0
        return found


def parse_topology(text: str) -> Topology:
    lines = [_ESCAPE.sub("", line) for line in text.splitlines()]
    columns: List[int] = []
    rows: Dict[int, List[str]] = {}
    gaps: List[str] = []
    for line in lines:
        tokens = line.split()
        if not tokens:
            continue
        label = _GPU_LABEL.match(tokens[0])
        if not label:
            continue
        if not columns and line[:1].isspace() and (len(tokens) < 2 or not _CELL.match(tokens[1])):
            columns = _columns(tokens)
        elif columns:
            number = int(label.group(1))
            if number in rows and rows[number] != tokens[1:]:
                gaps.append("GPU%d has two rows" % number)
            rows[number] = tokens[1:]
    cells: Dict[Tuple[int, int], str] = {}
    for number in columns:
        row = rows.get(number)
        if row is None:
            gaps.append("the row of GPU%d is missing" % number)
            continue
        for column, cell in zip(columns, row):
            if not _CELL.match(cell):
                gaps.append("GPU%d to GPU%d reads %s" % (number, column, cell[:20]))
            else:
                cells[(number, column)] = cell
        if len(row) < len(columns):
            gaps.append("the row of GPU%d is cut off" % number)
        elif cells.get((number, number)) != "X":
            gaps.append("the diagonal at GPU%d is not X" % number)
    gaps.extend("GPU%d has a row and no column" % number for number in sorted(set(rows) - set(columns)))
    p2p = any(cell in _P2P_CELLS for cell in cells.values())
    return Topology(tuple(sorted(columns)), cells, p2p, tuple(gaps), tuple(failures_in(text)))


def _columns(tokens: List[str]) -> List[int]:
    columns = []
    for token in tokens:
        match = _GPU_LABEL.match(token)
        if not match:
            break
        columns.append(int(match.group(1)))
    return columns


def judge_topology(
    topology: Topology, context: LinkContext, model_text: Optional[str] = None, already: FrozenSet[int] = frozenset()
) -> List[Finding]:
    """Findings of a matrix. `already` are GPUs whose links are named by other findings."""
    if topology.failures:
        return []
    if not topology.indexes:
        return [build_finding("topology_unreadable", "no matrix", "a matrix of GPUs")]
    found = []
    if topology.gaps:
        text = "; ".join(topology.gaps[:3])
        found.append(build_finding("topology_unreadable", text, "every pair of GPUs", detail=text))
    if len(topology.indexes) < 2:
        return found
    if topology.p2p:
        return found + _judge_p2p(topology, context, already)
    models = {index: _model_at(index, context) for index in topology.indexes}
    if all(model is None for model in models.values()):
        return found + _judge_unnamed(topology, context, model_text, already)
    return found + _judge_named(topology, context, models, already)


def _model_at(index: int, context: LinkContext) -> Optional[GpuModel]:
    name = context.names.get(index)
    return model_of_name(name) if name else context.hint


def _ref(index: int, context: LinkContext):
    return context.refs.get(index) or {"index": index, "uuid": None, "pci_bus_id": None}


def _judge_named(topology, context: LinkContext, models, already) -> List[Finding]:
    boards = [index for index, model in models.items() if model and model.links == LINKS_BOARD]
    boards = [index for index in boards if index not in context.lost and index not in context.mig]
    rows = {index: topology.links(index) for index in boards}
    if len(boards) > 1 and not any(any(row.values()) for row in rows.values()):
        if already:
            return []
        text = "no pair of GPUs is joined by NVLink"
        return [build_finding("topology_links_lost", "none", "NVLink between every pair", detail=text)]
    # A row that is cut off may have had its links in what is missing.
    whole = len(topology.indexes) - 1
    dead = {index for index, row in rows.items() if len(row) == whole and not any(row.values())}
    found = []
    for index in boards:
        row, model = rows[index], models[index]
        if index in already or not row:
            continue
        others = [links for column, links in row.items() if column not in dead and column not in context.lost]
        if index in dead:
            found.append(_lost(index, context, "no NVLink to any other GPU", model))
        elif model.architecture in MESHES:
            continue
        elif 0 in others:
            found.append(_lost(index, context, "not joined to every other GPU", model))
        elif others and max(others) < model.nvlink_count and sum(row.values()) != model.nvlink_count:
            # Behind switches every pair has all links; on a 4-GPU board they are shared out among the others.
            found.append(_lost(index, context, "NV%d" % min(others), model))
    return found


def _lost(index: int, context: LinkContext, text: str, model: GpuModel) -> Finding:
    return build_finding(
        "topology_links_lost", text, "%d links" % model.nvlink_count, _ref(index, context), detail=text
    )


def _judge_unnamed(topology, context: LinkContext, model_text, already) -> List[Finding]:
    """Without a model only the shape speaks: all alike is a whole board, a row unlike the others lost links."""
    rows = {index: topology.links(index) for index in topology.indexes}
    numbers = {links for row in rows.values() for links in row.values()}
    if numbers == {0}:
        if is_datacenter(model_text) is False:
            return []
        return [build_finding("topology_undecidable", "no NVLink", "depends on the model")]
    if all(sum(1 for links in row.values() if links) <= 1 for row in rows.values()):
        odd = sorted(numbers - {0} - KNOWN_LINK_NUMBERS)
        if odd:
            text = "NV%d" % odd[0]
            return [build_finding("topology_undecidable", text, "depends on the model", detail=text)]
        return []
    usual = max(numbers)
    if usual <= 2:
        # Pairs of a mesh (Pascal, Volta) have one link, two or none; which ones is not known without the model.
        return [build_finding("topology_undecidable", "NV%d" % usual, "depends on the model", detail="a mesh")]
    dead = {index for index, row in rows.items() if row and not any(row.values())}
    found = []
    for index, row in rows.items():
        others = [links for column, links in row.items() if column not in dead]
        if index in already or not row or (index not in dead and all(links == usual for links in others)):
            continue
        text = "no NVLink, the others NV%d" % usual if index in dead else "NV%d, the others NV%d" % (min(others), usual)
        found.append(build_finding("topology_links_lost", text, "NV%d" % usual, _ref(index, context), detail=text))
    return found


def _judge_p2p(topology, context: LinkContext, already: FrozenSet[int]) -> List[Finding]:
    found = []
    # A pair is one finding's matter: where one of the two is named already, the other one has nothing.
    silent = already | context.mig | context.lost
    for row in topology.indexes:
        model = _model_at(row, context)
        if model is None or model.links != LINKS_BOARD or row in silent or model.architecture in MESHES:
            continue
        bad = [
            "GPU%d %s" % (column, topology.cells[(row, column)])
            for column in topology.indexes
            if column != row and column not in silent and topology.cells.get((row, column)) not in ("OK", "X", None)
        ]
        if bad:
            found.append(build_finding("p2p_unavailable", bad[0], "OK", _ref(row, context), detail=", ".join(bad[:3])))
    return found


def topology_rows(topology: Optional[Topology]) -> List[Dict[str, object]]:
    """What the result shows under `topology`: one row a pair of GPUs."""
    if topology is None:
        return []
    return [
        {"gpu": row, "peer": column, "link": cell}
        for (row, column), cell in sorted(topology.cells.items())
        if row != column
    ]
