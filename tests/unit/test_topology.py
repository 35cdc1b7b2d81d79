# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Matrices of GPU pairs: whole boards, meshes, bridges, lost links, and what cannot be decided."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._gpu_models import model_of_name
from ansible_collections.gpufleet.server.plugins.module_utils._judge_nvlink import LinkContext
from ansible_collections.gpufleet.server.plugins.module_utils._topology import judge_topology, parse_topology


def matrix(rows, header_escape=True, nics=0):
    """A matrix of rows of cells, laid out as `topo -m` does, with columns of network cards behind the GPUs."""
    names = ["GPU%d" % number for number in range(len(rows))] + ["NIC%d" % number for number in range(nics)]
    head = "\t" + ("\x1b[4m" if header_escape else "") + "\t".join(names)
    lines = [head + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID" + ("\x1b[0m" if header_escape else "")]
    for number, cells in enumerate(rows):
        lines.append("\t".join(["GPU%d" % number] + cells + ["SYS"] * nics + ["0-31", "0", "", "N/A"]))
    return "\n".join(lines) + "\n\nLegend:\n\n  X    = Self\n"


def full(count, cell):
    return [[" X " if row == column else cell for column in range(count)] for row in range(count)]


def judged(text, model=None, **context):
    found = judge_topology(parse_topology(text), LinkContext(hint=model_of_name(model), **context), model)
    return [(item["id"], (item["gpu"] or {}).get("index")) for item in found]


def lost(count, cell, gpu):
    rows = full(count, cell)
    for other in range(count):
        if other != gpu:
            rows[gpu][other] = rows[other][gpu] = "SYS"
    return rows


def parted(count, cell, one, other):
    rows = full(count, cell)
    rows[one][other] = rows[other][one] = "SYS"
    return rows


@pytest.mark.parametrize(
    "rows, model, expected",
    [
        (parted(8, "NV18", 2, 5), "H100", [("topology_links_lost", 2), ("topology_links_lost", 5)]),
        (full(8, "NV18"), "H100 SXM", []),
        (full(8, "NV12"), "NVIDIA A100-SXM4-80GB", []),
        (full(8, "NV8"), "A800", []),
        (full(4, "NV6"), "H100", []),
        (full(4, "NV4"), "NVIDIA A100-SXM4-40GB", []),
        (full(8, "NV16"), "H100", [("topology_links_lost", number) for number in range(8)]),
        (lost(8, "NV18", 2), "B200", [("topology_links_lost", 2)]),
        (full(8, "SYS"), "H100", [("topology_links_lost", None)]),
        (full(8, "NODE"), "L40S", []),
        (full(2, "PHB"), "GTX 1080 Ti", []),
        (full(1, ""), "H100", []),
        ([[" X ", "NV12", "SYS", "SYS"], ["NV12", " X ", "SYS", "SYS"], ["SYS", "SYS", " X ", "NV12"],
          ["SYS", "SYS", "NV12", " X "]], "A100 PCIe", []),
        ([[" X ", "NV1", "NV1", "NV2"], ["NV1", " X ", "NV2", "SYS"], ["NV1", "NV2", " X ", "NV1"],
          ["NV2", "SYS", "NV1", " X "]], "Tesla V100-SXM2-16GB", []),
    ],
)
@pytest.mark.parametrize("nics", [0, 3])
def test_matrix_of_a_known_model(rows, model, expected, nics):
    assert judged(matrix(rows, nics=nics), model) == expected


@pytest.mark.parametrize(
    "rows, expected",
    [
        (full(8, "NV18"), []),
        (lost(8, "NV18", 2), [("topology_links_lost", 2)]),
        (full(8, "SYS"), [("topology_undecidable", None)]),
        (full(2, "NV3"), [("topology_undecidable", None)]),
        (full(2, "NV4"), []),
        ([[" X ", "NV1", "NV2", "SYS"], ["NV1", " X ", "SYS", "NV2"], ["NV2", "SYS", " X ", "NV1"],
          ["SYS", "NV2", "NV1", " X "]], [("topology_undecidable", None)]),
    ],
)
def test_matrix_without_a_model_speaks_by_its_shape(rows, expected):
    assert judged(matrix(rows, header_escape=False)) == expected


def test_gpu_that_other_findings_name_is_not_named_again():
    topology = parse_topology(matrix(lost(8, "NV18", 2)))
    context = LinkContext(hint=model_of_name("B200"))
    assert judge_topology(topology, context, already=frozenset([2])) == []


def test_lost_gpu_is_not_blamed_on_its_peers():
    assert judged(matrix(lost(8, "NV18", 2)), "B200", lost=frozenset([2])) == []


def test_a_row_that_is_cut_off_has_not_lost_its_links():
    rows = [[" X ", "SYS", "NV2", "NV2"], ["SYS", " X "], ["NV2", "NV1", " X ", "SYS"], ["NV2", "NV2", "SYS", " X "]]
    text = matrix(rows).replace("\tSYS\t X \t0-31\t0\t\tN/A", "\tSYS\t X ")
    assert judged(text, "Tesla V100-SXM2-16GB") == [("topology_unreadable", None)]


def test_rows_are_found_by_label_and_notes_are_passed_over():
    lines = matrix(full(3, "NV18"), header_escape=False).splitlines()
    text = "\n".join(["Note: GPU0 detected at startup", lines[0], lines[3], lines[1], lines[2]])
    topology = parse_topology(text)
    assert topology.gaps == () and topology.links(2) == {0: 18, 1: 18}


@pytest.mark.parametrize("text", ["", "no GPU columns here\n", "GPU0 X\n"])
def test_no_matrix_is_unreadable(text):
    assert judged(text, "H100") == [("topology_unreadable", None)]


@pytest.mark.parametrize(
    "cells, model, expected",
    [
        (full(2, "OK"), "H100", []),
        (full(2, "NS"), "H100", [("p2p_unavailable", 0), ("p2p_unavailable", 1)]),
        (full(2, "CNS"), "L4", []),
        (full(2, "NS"), "Tesla V100-SXM2-16GB", []),
    ],
)
def test_peer_to_peer_matrix(cells, model, expected):
    assert judged(matrix(cells), model) == expected


def test_a_pair_is_silent_where_one_of_the_two_is_named_already():
    cells = full(4, "OK")
    for other in range(3):
        cells[3][other] = cells[other][3] = "GNS"
    text = matrix(cells)
    assert judged(text, "H100") == [("p2p_unavailable", number) for number in range(4)]
    found = judge_topology(parse_topology(text), LinkContext(hint=model_of_name("H100")), "H100", frozenset({3}))
    assert found == []
    assert judged(text, "H100", mig=frozenset({3})) == judged(text, "H100", lost=frozenset({3})) == []
