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
    return paths_of(Machine(tmp_path, profile).install(version).boot().smi("-q", "-x").raw)


def public(corpus, name):
    return paths_of((corpus / "public" / "smi-xml" / name).read_bytes())


def captured(corpus, name):
    return paths_of((corpus / "captures" / name / "smi-q.xml").read_bytes())


@pytest.mark.parametrize("branch", ["535.261.03", "550.163.01"])
@pytest.mark.parametrize(
    "profile, capture", [("dgx-h100-8", "h100-healthy_tlimit_shim"), ("hgx-a100-8", "a100-healthy_abs_threshold_shim")]
)
def test_tree_of_535_and_550(tmp_path, corpus, branch, profile, capture):
    """The mock library answers N/A to the list of supported clocks; real cards of 550 print it."""
    real = captured(corpus, f"{branch}-{capture}")
    assert without(simulated(tmp_path, profile, branch), SUPPORTED + "/") == without(real, SUPPORTED + "/")


@pytest.mark.parametrize(
    "version, name", [("580.105.08", "h100-sxm-x8-580.xml"), ("580.178.04", "gb200-x4-580.xml")]
)
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
