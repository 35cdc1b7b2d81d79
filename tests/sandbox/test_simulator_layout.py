# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated XML has the element tree of real files of the same driver branch.

Real: 580 and 595 (`public/`), and the real tool over a mock library: 535 and 550 (`captures/`). No real A100 or H100
file of every branch exists: expected trees are then put together from two files, and each case says how.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from simulated_machine import Machine

pytestmark = pytest.mark.corpus

PREFIX = "/nvidia_smi_log/gpu/"
TEMPERATURE = PREFIX + "temperature/"
REMAPPED = PREFIX + "remapped_rows/"
SUPPORTED = PREFIX + "supported_clocks"


def paths_of(content: bytes) -> list[str]:
    """Element paths in document order, each once."""
    found: dict[str, None] = {}

    def walk(element, parent):
        path = f"{parent}/{element.tag}"
        found.setdefault(path)
        for child in element:
            walk(child, path)

    walk(ElementTree.fromstring(content[content.index(b"<?xml") :]), "")
    return list(found)


def without(paths, *prefixes):
    return [path for path in paths if not path.startswith(prefixes)]


def replaced(paths, prefix, other):
    """`paths` with the part below `prefix` taken from `other`."""
    place = next(number for number, path in enumerate(paths) if path.startswith(prefix))
    kept = without(paths, prefix)
    return kept[:place] + [path for path in other if path.startswith(prefix)] + kept[place:]


def simulated(tmp_path, profile, version):
    return paths_of(booted(tmp_path, profile, version).smi("-q", "-x").raw)


def booted(tmp_path, profile, version):
    return Machine(tmp_path, profile).install(version, "NVIDIA" if profile == "v100-8" else "Dual MIT/GPL").boot()


def public(corpus, name):
    return paths_of((corpus / "public" / "smi-xml" / name).read_bytes())


def captured(corpus, name):
    return paths_of((corpus / "captures" / name / "smi-q.xml").read_bytes())


@pytest.mark.parametrize("branch", ["535.261.03", "550.163.01"])
@pytest.mark.parametrize(
    "profile, capture",
    [
        ("dgx-h100-8", "h100-healthy_tlimit_shim"),
        ("hgx-a100-8", "a100-healthy_abs_threshold_shim"),
        ("hgx-b200-8", "b200-healthy"),
        ("l40s-4", "l40s-healthy"),
    ],
)
def test_tree_of_535_and_550(tmp_path, corpus, branch, profile, capture):
    """The mock library answers N/A to the list of supported clocks, and on B200 to the histogram of row remapping; real
    cards of 550 print both."""
    silent = [SUPPORTED + "/"] + ([REMAPPED + "row_remapper_histogram/"] if profile == "hgx-b200-8" else [])
    real = captured(corpus, f"{branch}-{capture}")
    assert without(simulated(tmp_path, profile, branch), *silent) == without(real, *silent)


MODELS = {"h100": "dgx-h100-8", "a100": "hgx-a100-8", "b200": "hgx-b200-8", "l40s": "l40s-4"}


def test_every_model_and_branch_that_was_captured_is_compared(corpus):
    """T4 and GB200 are no machines of the simulator."""
    kinds = {tuple(folder.name.split("-")[:2]) for folder in (corpus / "captures").glob("*-*-*")}
    ours = {(branch, model) for branch in ("535.261.03", "550.163.01") for model in MODELS}
    assert {(branch, model) for branch, model in kinds if model not in ("t4", "gb200")} == ours


def test_tree_of_580_on_b200(tmp_path, corpus):
    real = public(corpus, "b200-x8-580-persistence-off.xml")
    assert simulated(tmp_path, "hgx-b200-8", "580.105.08") == real


def test_tree_of_595_on_l40s(tmp_path, corpus):
    assert simulated(tmp_path, "l40s-4", "595.91.07") == public(corpus, "l40s-595.xml")


SINCE_535_86 = ("inforom_bbx_flush", "sparse_operation_mode", "ecc_errors", "remapped_rows", "supported_clocks",
                "processes", "accounted_processes")  # fmt: skip


def test_tree_of_535_on_rtx4090(tmp_path, corpus):
    """A real card of 535.86, which lacks what later 535 releases have, and shows rows that 535.261 does not."""
    skipped = [PREFIX + name for name in SINCE_535_86]
    real = public(corpus, "rtx4090-535.xml")
    assert without(simulated(tmp_path, "rtx4090-2", "535.261.03"), *skipped) == without(real, *skipped)


@pytest.mark.parametrize(
    "profile, name",
    [("rtx4090-2", "q-rtx4090-x8-550.txt"), ("v100-8", "q-v100-x8-550-hostmax-unknown-error.txt")],
)
def test_names_of_the_text_form_of_550(tmp_path, corpus, profile, name):
    """Of real cards of 550.127, which has one power draw where 550.163 has the average and the instant one."""

    def names(text):
        first = text.split("\nGPU 0000")[1].splitlines()[1:]
        keys = [line.split(" : ")[0].rstrip() for line in first if line.strip()]
        return [key for key in keys if "Power Draw" not in key]

    text = (corpus / "public/smi-plain" / name).read_text(errors="replace")
    ours = booted(tmp_path, profile, "550.163.01").smi("-q").text
    assert names(ours) == names(text)


@pytest.mark.parametrize(
    "version, name",
    [
        ("580.178.04", "derived-b200-x8-nvlink5-gpu3-link7-failed.txt"),
        ("610.57.04", "rebuilt-b200-x8-nvlink5-plr-610.txt"),
    ],
)
def test_counters_of_nvlink_5(tmp_path, corpus, version, name):
    """Names and order of the counters of link 0; the lanes' raw counters came with 595, the last two with 610."""

    def names(text):
        lines = (line for line in text.partition("GPU 1:")[0].splitlines() if line.startswith("\t Link 0: "))
        return [line.split(": ")[1] for line in lines]

    real = names((corpus / "public/smi-nvlink-errors" / name).read_text())
    ours = names(booted(tmp_path, "hgx-b200-8", version).smi("nvlink", "-e", "-i", "0").text)
    assert ours == [one for one in real if version.startswith("610") or not one.startswith("Raw ")]


@pytest.mark.parametrize("version, name", [("580.105.08", "h100-sxm-x8-580.xml"), ("580.178.04", "gb200-x4-580.xml")])
def test_tree_of_580_on_h100(tmp_path, corpus, version, name):
    """Early 580 from a real H100. Late 580 from a GB200 of 580.173.02: on early 580 both boards have the same tree."""
    assert simulated(tmp_path, "dgx-h100-8", version) == public(corpus, name)


def test_tree_of_580_on_a100(tmp_path, corpus):
    """The H100's, with the absolute temperatures of an A100 on 570."""
    real = replaced(public(corpus, "gb200-x4-580.xml"), TEMPERATURE, public(corpus, "a100-sxm4-40-vm-570.xml"))
    assert simulated(tmp_path, "hgx-a100-8", "580.178.04") == real


def test_tree_of_595_on_h100(tmp_path, corpus):
    """From a real L40S, which has the same relative temperatures and remapped rows."""
    assert simulated(tmp_path, "dgx-h100-8", "595.91.07") == public(corpus, "l40s-595.xml")


def test_tree_of_595_on_a100(tmp_path, corpus):
    """From the L40S, with the absolute temperatures of a real Ampere card on 595."""
    real = replaced(public(corpus, "l40s-595.xml"), TEMPERATURE, public(corpus, "rtx3080-595.xml"))
    assert simulated(tmp_path, "hgx-a100-8", "595.91.07") == real


def test_names_of_the_text_form_of_595(tmp_path, corpus):
    """`-q` of a real L40S under load, without its processes."""

    def names(lines):
        keys = [line.split(" : ")[0].rstrip() for line in lines if line.strip() and not line.startswith("GPU ")]
        if "    Processes" in keys:
            first = keys.index("    Processes") + 1
            last = keys.index("    Capabilities")
            del keys[first:last]
        return keys

    text = (corpus / "public/smi-plain/q-l40s-595-load.txt").read_text(errors="replace")
    machine = Machine(tmp_path).install("595.91.07").boot()
    assert names(machine.smi("-q", "-i", "0").text.splitlines()) == names(text.splitlines())


def test_every_field_that_a_capture_asks_is_known(tmp_path, corpus):
    import json

    recorded = json.loads((corpus / "captures/550.163.01-h100-healthy/rc.json").read_text())
    command = recorded["query.csv"]["cmd"]
    answer = Machine(tmp_path).install("550.163.01").boot().smi(*command[1:])
    assert answer.rc == 0
    real = (corpus / "captures/550.163.01-h100-healthy/query.csv").read_text().splitlines()[0].split(", ")
    ours = answer.text.splitlines()[0].split(", ")
    asked = command[1].split("=")[1].split(",")
    differing = {name for name, one, other in zip(asked, ours, real) if one != other}
    # What differs is this machine's own, plus the idle temperature and the mock's retired pages of an Ampere board.
    assert differing == {"uuid", "pci.bus_id", "persistence_mode", "temperature.gpu", "retired_pages.pending"}
