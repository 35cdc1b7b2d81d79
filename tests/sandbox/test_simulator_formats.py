# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated text forms have the labels, units and layout of real outputs of the same driver branch.

Values are not compared: labels in their order, units, and what is N/A. The XML is compared in test_simulator_layout.py.
"""

from __future__ import annotations

import csv
import json
import re

import pytest
from simulated_machine import Machine

pytestmark = pytest.mark.corpus

CAPTURES = [
    ("535.261.03-h100-healthy_tlimit_shim", "dgx-h100-8"),
    ("535.261.03-a100-healthy_abs_threshold_shim", "hgx-a100-8"),
    ("535.261.03-l40s-healthy", "l40s-4"),
    ("550.163.01-h100-healthy", "dgx-h100-8"),
    ("550.163.01-a100-healthy_abs_threshold_shim", "hgx-a100-8"),
    ("550.163.01-l40s-healthy", "l40s-4"),
]


def machine_of(tmp_path, capture: str, profile: str) -> Machine:
    """Of the capture's version, with persistence mode on as there."""
    machine = Machine(tmp_path, profile).install(capture.split("-")[0]).boot()
    machine.smi("-pm", "1")
    return machine


def captured(corpus, capture: str, name: str) -> str:
    return (corpus / "captures" / capture / name).read_text(errors="replace")


def without_value(line: str) -> str:
    """`Link 0, Link is supported: false` says true in the mock: a label is what is compared."""
    return re.sub(r": (true|false)$", "", line)


def shape(line: str) -> str:
    """The line with its numbers, identities and blanks at the end taken out."""
    line = re.sub(r"GPU-[0-9a-f-]{36}|[0-9A-Fa-f]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0", "ID", line)
    return re.sub(r"-?[0-9]+(\.[0-9]+)*", "0", line).rstrip()


def of_first_gpu(text: str) -> list[str]:
    """Lines up to the second GPU's title."""
    first = re.split(r"^GPU 1: ", text, flags=re.MULTILINE)[0]
    return [shape(line) for line in first.splitlines()]


@pytest.mark.parametrize("capture, profile", CAPTURES)
@pytest.mark.parametrize("name", ["nvlink-s.txt", "nvlink-e.txt", "nvlink-c.txt"])
def test_links_are_listed_as_in_the_capture(tmp_path, corpus, capture, profile, name):
    arguments = json.loads(captured(corpus, capture, "rc.json"))[name]["cmd"][1:]
    ours = machine_of(tmp_path, capture, profile).smi(*arguments)
    theirs = of_first_gpu(captured(corpus, capture, name))
    ours, theirs = ([without_value(line) for line in lines[1:]] for lines in (of_first_gpu(ours.text), theirs))
    assert ours == theirs


@pytest.mark.parametrize("capture, profile", CAPTURES)
def test_csv_cells_have_the_units_of_the_capture(tmp_path, corpus, capture, profile):
    arguments = json.loads(captured(corpus, capture, "rc.json"))["query.csv"]["cmd"][1:]
    answer = machine_of(tmp_path, capture, profile).smi(*arguments)
    assert answer.rc == 0, answer.text
    fields = next(text for text in arguments if text.startswith("--query-gpu=")).split("=")[1].split(",")
    ours, theirs = (text.splitlines()[0].split(", ") for text in (answer.text, captured(corpus, capture, "query.csv")))
    assert len(ours) == len(theirs)
    units = {name: (one.split(" ")[1:], other.split(" ")[1:]) for name, one, other in zip(fields, ours, theirs)}
    names = ("name", "gpu_name")
    assert {name: pair for name, pair in units.items() if pair[0] != pair[1] and name not in names} == {}


@pytest.mark.parametrize("capture, profile", CAPTURES)
def test_topology_has_the_columns_and_legend_of_the_capture(tmp_path, corpus, capture, profile):
    ours = machine_of(tmp_path, capture, profile).smi("topo", "-m").text
    theirs = captured(corpus, capture, "topo-m.txt")

    def frame(text):
        lines = text.splitlines()
        header = re.sub(r"(GPU[0-9]+\t)+", "GPUS\t", lines[0])
        return [header, *lines[next(number for number, line in enumerate(lines) if not line.strip()) :]]

    assert frame(ours) == frame(theirs)
    assert {len(line.split("\t")) - ours.count("\nGPU") for line in ours.splitlines() if line[:3] == "GPU"} == {
        len(line.split("\t")) - theirs.count("\nGPU") for line in theirs.splitlines() if line[:3] == "GPU"
    }


TEXTS = [
    ("550.163.01", "dgx-h100-8", "q-h200-550.txt"),
    ("550.163.01", "l40s-4", "q-l40s-550.txt"),
    ("550.163.01", "rtx4090-2", "q-rtx4090-x8-550.txt"),
    ("590.48.01", "dgx-h100-8", "q-h200-590.txt"),
    ("595.91.07", "l40s-4", "q-l40s-595-load.txt"),
]


def expected(text: str, version: str) -> list[str]:
    """Labels of a real card. The files of 550 are of its first releases; 550.163.01 prints two power draws."""
    found = []
    for label in labels(text):
        two = ("        Average Power Draw", "        Instantaneous Power Draw")
        found += two if label == "        Power Draw" and version.startswith("550.163") else [label]
    return found


def labels(text: str) -> list[str]:
    """Labels of the first GPU with their indentation; without its processes."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = next(number for number, line in enumerate(lines) if re.match("GPU [0-9A-F]{8}:", line))
    found = []
    for line in lines[first + 1 :]:
        if not line or line.startswith("GPU "):
            break
        found.append(re.split(r"\s+: ", line)[0].rstrip(" :"))
    if "    Processes" in found:
        start = found.index("    Processes") + 1
        while start < len(found) and found[start].startswith("        "):
            del found[start]
    return found


@pytest.mark.parametrize("version, profile, name", TEXTS)
def test_labels_of_the_text_form_are_those_of_a_real_card(tmp_path, corpus, version, profile, name):
    theirs = expected((corpus / "public/smi-plain" / name).read_text(errors="replace"), version)
    assert labels(machine_of(tmp_path, version, profile).smi("-q", "-i", "0").text) == theirs


@pytest.mark.parametrize("version, profile, name", TEXTS)
def test_blocks_of_a_filtered_query_are_parts_of_the_real_text(tmp_path, corpus, version, profile, name):
    theirs = expected((corpus / "public/smi-plain" / name).read_text(errors="replace"), version)
    machine = machine_of(tmp_path, version, profile)
    for block in ("MEMORY", "ECC", "TEMPERATURE", "COMPUTE", "PERFORMANCE", "PAGE_RETIREMENT", "ROW_REMAPPER"):
        ours = labels(machine.smi("-q", "-d", block, "-i", "0").text)
        heads = [label for label in ours if label[4] != " "]
        assert heads and set(heads) <= set(theirs), block
        for head in heads:
            start, there = ours.index(head), theirs.index(head)
            size = next((n for n, one in enumerate(ours[start + 1 :]) if one[4] != " "), len(ours) - start - 1)
            assert ours[start : start + size + 1] == theirs[there : there + size + 1], block


NOT_SIMULATED = ("vgpu_driver_capability.", "vgpu_device_capability.", "protected_memory.", "platform.", "fabric.",
                 "power_smoothing.")  # fmt: skip


def test_csv_headers_of_590_have_the_real_names_and_units(tmp_path, corpus):
    """Of a real H100 that was asked for every field; what the simulator lacks is named, not overlooked."""
    with open(corpus / "public/smi-plain/csv-h100-mig-590-all-fields.csv", encoding="utf-8") as stream:
        header = [cell.strip() for cell in next(csv.reader(stream))]
    machine = machine_of(tmp_path, "590.48.01", "dgx-h100-8")
    known, lacking = [], []
    for cell in header:
        answer = machine.smi(f"--query-gpu={cell.split(' [')[0]}", "--format=csv", "-i", "0")
        (known if answer.rc == 0 else lacking).append((cell, answer.text.splitlines()[0]))
    assert [theirs for theirs, _ in known] == [ours for _, ours in known]
    assert [cell for cell, _ in lacking if not cell.startswith(NOT_SIMULATED)] == []


def test_the_peer_to_peer_matrix_reads_like_the_real_one(tmp_path, corpus):
    theirs = (corpus / "public/smi-topo/p2p-h100-x8-ok.txt").read_text().splitlines()
    ours = Machine(tmp_path).install("580.178.04").boot().smi("topo", "-p2p", "r").text.replace("\x1b[4m", "")
    lines = ours.replace("\x1b[0m", "").splitlines()
    assert [line.split() for line in lines] == [line.split() for line in theirs]
