# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver, GPUs, toolkits, repositories and gcc in the stack matrix, row by row.

Each row cites the section of the facts it was written from, and says all that is found: the ids, and for each conflict
the nearest stacks that work (None where the finding proposes no change).
"""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._stack_matrix import conflicts
from ansible_collections.gpufleet.server.plugins.module_utils._stack_rules_toolkit import toolkits_offered


def found(stack):
    """id → nearest for conflicts, id → None for what is only said."""
    return {item["id"]: item["nearest"] if item["severity"] == "critical" else None for item in conflicts(stack)}


def row(section, stack, expected):
    return pytest.param(stack, expected, id="%s %s" % (section, " ".join("%s=%s" % pair for pair in stack.items())))


FITS = {}

DRIVER_GPU = [
    row("1.3", {"driver": "580", "gpus": ["volta"]}, FITS),
    row("1.3", {"driver": "590", "gpus": ["volta"]}, {"driver_gpu": [{"driver": "580"}]}),
    row("1.3", {"driver": "620.70.06", "gpus": ["Tesla P100-PCIE-16GB"]}, {"driver_gpu": [{"driver": "580"}]}),
    row("1.3", {"driver": "595", "gpus": ["maxwell"]}, {"driver_gpu": [{"driver": "580"}]}),
    row("1.3", {"driver": "470", "gpus": ["kepler"]}, FITS),
    row("1.3", {"driver": "535", "gpus": ["kepler"]}, {"driver_gpu": [{"driver": "470"}]}),
    row("1.3", {"driver": "570", "gpus": ["NVIDIA B200"]}, FITS),
    row("1.3", {"driver": "550.163.01", "gpus": ["NVIDIA B200"]}, {"driver_gpu": [{"driver": "580"}]}),
    row("1.3", {"driver": "620", "gpus": ["turing", "hopper", "blackwell"]}, FITS),
    row("1.1", {"driver": "535", "gpus": ["hopper", "ada"]}, FITS),
    row("1.1", {"driver": "470", "gpus": ["hopper"]}, {"driver_gpu": [{"driver": "580"}]}),
    row("1.1", {"driver": "470", "gpus": ["NVIDIA A100-SXM4-80GB"]}, FITS),
    row("1.1", {"driver": "640", "gpus": ["hopper"]}, {"driver_unknown": None}),
    row("1.3", {"driver": "640", "gpus": ["volta"]}, {"driver_unknown": None, "driver_gpu": [{"driver": "580"}]}),
    row("1.3", {"gpus": ["volta", "hopper"]}, FITS),
    row("1.3", {"gpus": ["V100", "B200"]}, {"gpus_mixed": []}),
    row("1.3", {"gpus": ["kepler", "ampere"]}, FITS),
    row("1.3", {"gpus": ["kepler", "hopper"]}, {"gpus_mixed": []}),
    row("1.3", {"driver": "580", "gpus": ["NVIDIA X9000"]}, {"gpu_unknown": None}),
]

TOOLKIT_GPU = [
    row("1.3", {"toolkits": ["12.9"], "gpus": ["volta"]}, FITS),
    row("3.1", {"toolkits": ["13.0"], "gpus": ["volta"]}, {"toolkit_gpu": [{"toolkits": ["12.9"]}]}),
    row("3.1", {"toolkits": ["11.8", "13.0"], "default_toolkit": "13.0", "gpus": ["Tesla V100-SXM2-32GB"]},
        {"toolkit_gpu": [{"toolkits": ["11.8", "12.9"], "default_toolkit": "12.9"}]}),
    row("3.1", {"toolkits": ["13.5"], "gpus": ["pascal"]}, {"toolkit_gpu": [{"toolkits": ["12.9"]}]}),
    row("1.3", {"toolkits": ["11.8"], "gpus": ["kepler"]}, FITS),
    row("1.3", {"toolkits": ["12.0"], "gpus": ["kepler"]}, {"toolkit_gpu": [{"toolkits": ["11.8"]}]}),
    row("1.3", {"toolkits": ["12.8"], "gpus": ["blackwell"]}, FITS),
    row("1.3", {"toolkits": ["12.6"], "gpus": ["blackwell"]}, {"toolkit_gpu": [{"toolkits": ["12.8"]}]}),
    row("1.3", {"toolkits": ["11.8"], "gpus": ["NVIDIA GeForce RTX 5090"]}, {"toolkit_gpu": [{"toolkits": ["12.8"]}]}),
    row("6.2", {"toolkits": ["11.8"], "gpus": ["hopper"]}, FITS),
    row("6.2", {"toolkits": ["11.7"], "gpus": ["hopper"]}, {"toolkit_gpu": [{"toolkits": ["11.8"]}]}),
    row("1.3", {"toolkits": ["13.5"], "gpus": ["turing"]}, FITS),
    row("3.1", {"default_toolkit": "13.0", "gpus": ["volta"]}, {"toolkit_gpu": [{"default_toolkit": "12.9"}]}),
    row("3.1", {"toolkits": ["14.0"], "gpus": ["hopper"]}, {"toolkit_unknown": None}),
    row("3.1", {"toolkits": ["14.0"], "gpus": ["volta"]},
        {"toolkit_unknown": None, "toolkit_gpu": [{"toolkits": ["12.9"]}]}),
    row("3.1", {"toolkits": ["12.7"], "driver": "580"}, {"toolkit_unknown": None}),
]

TOOLKIT_DRIVER = [
    row("3.1", {"toolkits": ["13.0"], "driver": "580"}, FITS),
    row("3.1", {"toolkits": ["13.0"], "driver": "580.65.06"}, FITS),
    row("3.1", {"toolkits": ["13.0"], "driver": "535"},
        {"toolkit_driver": [{"driver": "580"}, {"toolkits": ["12.9"]}]}),
    row("3.1", {"toolkits": ["13.0"], "driver": "575.57.08"},
        {"toolkit_driver": [{"driver": "580"}, {"toolkits": ["12.9"]}]}),
    # Minor-version compatibility: it runs, and what does not is said.
    row("3.1", {"toolkits": ["13.5"], "driver": "580.178.04"}, {"toolkit_newer_than_driver": None}),
    row("3.1", {"toolkits": ["13.5"], "driver": "620"}, FITS),
    row("3.1", {"toolkits": ["13.4"], "driver": "610"}, {"toolkit_newer_than_driver": None}),
    row("3.1", {"toolkits": ["13.4"], "driver": "615"}, FITS),
    row("3.1", {"toolkits": ["12.8"], "driver": "570.26"}, FITS),
    row("3.1", {"toolkits": ["12.9"], "driver": "525.60.13"}, {"toolkit_newer_than_driver": None}),
    row("3.1", {"toolkits": ["12.0"], "driver": "520.61.05"},
        {"toolkit_driver": [{"driver": "580"}, {"toolkits": ["11.8"]}]}),
    row("3.1", {"toolkits": ["11.8"], "driver": "520.61.05"}, FITS),
    row("3.1", {"toolkits": ["11.8"], "driver": "450.80.02"}, {"toolkit_newer_than_driver": None}),
    row("3.1", {"toolkits": ["11.8"], "driver": "450.51.06"}, {"toolkit_driver": [{"driver": "580"}]}),
    # Its newest version is meant where only the branch is given.
    row("3.1", {"toolkits": ["11.8"], "driver": "450"}, {"toolkit_newer_than_driver": None}),
    row("3.2", {"toolkits": ["10.1"], "driver": "580"}, {"toolkit_driver_unknown": None}),
    # The driver may not go beyond 580 for Volta, so 12.9 alone helps against CUDA 13.
    row("3.1", {"toolkits": ["13.0"], "driver": "535", "gpus": ["volta"]},
        {"toolkit_driver": [{"driver": "580"}, {"toolkits": ["12.9"]}], "toolkit_gpu": [{"toolkits": ["12.9"]}]}),
    # Kepler ends at driver 470, which is too old for CUDA 12.
    row("3.1", {"toolkits": ["12.2"], "driver": "470", "gpus": ["kepler"]},
        {"toolkit_driver": [{"toolkits": ["11.8"]}], "toolkit_gpu": [{"toolkits": ["11.8"]}]}),
]


def on(os, version, *toolkits, **more):
    return dict({"os": os, "os_version": version, "toolkits": list(toolkits)}, **more)


REPOSITORY = [
    row("3.2", on("ubuntu", "20.04", "11.8", "12.9"), FITS),
    row("3.2", on("ubuntu", "20.04", "13.0"), {"toolkit_repository": [{"toolkits": ["12.9"]}]}),
    row("3.2", on("ubuntu", "22.04", "11.7", "13.5"), FITS),
    row("3.2", on("ubuntu", "22.04", "11.4"), {"toolkit_repository": [{"toolkits": ["11.5"]}]}),
    row("3.2", on("ubuntu", "22.04", "11.5"), {"toolkit_archive_only": None}),
    row("3.2", on("ubuntu", "24.04", "12.5", "13.2"), FITS),
    row("3.2", on("ubuntu", "24.04", "12.4"), {"toolkit_repository": [{"toolkits": ["12.5"]}]}),
    row("3.2", on("ubuntu", "24.04", "12.0"), {"toolkit_archive_only": None}),
    row("3.2", on("ubuntu", "26.04", "13.3"), FITS),
    row("3.2", on("ubuntu", "26.04", "11.8"), {"toolkit_repository": [{"toolkits": ["12.4"]}]}),
    row("3.2", on("ubuntu", "26.04", "12.8"), {"toolkit_repository": [{"toolkits": ["13.1"]}]}),
    row("3.2", on("ubuntu", "26.04", "13.1"), {"toolkit_archive_only": None}),
    row("3.2", on("ubuntu", "26.04", "13.2"), {"toolkit_repository_unconfirmed": None}),
    row("3.2", on("debian", "12", "12.1"), FITS),
    row("3.2", on("debian", "12", "11.8"), {"toolkit_archive_only": None}),
    row("3.2", on("debian", "12", "12.0"), {"toolkit_repository": [{"toolkits": ["12.1"]}]}),
    row("3.2", on("debian", "13", "13.3"), FITS),
    row("3.2", on("debian", "13", "12.4"), {"toolkit_archive_only": None}),
    row("11.2", on("debian", "13", "12.8"), {"toolkit_repository_unconfirmed": None}),
    row("3.2", on("debian", "13", "11.8"), {"toolkit_repository": [{"toolkits": ["12.4"]}]}),
    row("3.2", on("ubuntu", "22.04", "12.8", architecture="arm64"), {"toolkit_repository_unconfirmed": None}),
    row("3.2", on("ubuntu", "22.04", "12.8", architecture="x86_64"), FITS),
    row("3.2", on("fedora", "43", "12.8"), {"system_unknown": None}),
    # A system of which nothing else is asked, and half a system, judge nothing.
    row("3.2", {"os": "ubuntu", "os_version": "26.04"}, FITS),
    row("3.2", {"os": "ubuntu", "toolkits": ["11.8"]}, FITS),
    # Volta on Ubuntu 26.04: its archive has the only toolkit for it.
    row("3.2", on("ubuntu", "26.04", "13.3", gpus=["volta"]), {"toolkit_gpu": [{"toolkits": ["12.4"]}]}),
]

GCC = [
    row("3.3", {"toolkits": ["13.5"], "gcc": "15.2"}, FITS),
    row("3.3", {"toolkits": ["13.0"], "gcc": "16"}, {"toolkit_gcc": [{"gcc": "15"}]}),
    row("3.3", {"toolkits": ["12.4"], "gcc": "13"}, FITS),
    row("3.3", {"toolkits": ["12.4"], "gcc": "15.2.0"}, {"toolkit_gcc": [{"gcc": "13"}, {"toolkits": ["13.0"]}]}),
    row("3.3", {"toolkits": ["12.8", "13.0"], "gcc": 15},
        {"toolkit_gcc": [{"gcc": "14"}, {"toolkits": ["13.0"]}]}),
    row("3.3", {"toolkits": ["12.9"], "gcc": 14}, FITS),
    row("3.2", {"toolkits": ["10.1"], "gcc": 9}, {"toolkit_gcc_unknown": None}),
]

DEFAULT = [
    row("3.3", {"toolkits": ["11.8", "13.0"], "default_toolkit": "11.8"}, FITS),
    row("3.3", {"toolkits": ["11.8", "13.0"], "default_toolkit": "12.8"},
        {"default_toolkit": [{"default_toolkit": "13.0"}]}),
]


@pytest.mark.parametrize(
    "stack, expected", DRIVER_GPU + TOOLKIT_GPU + TOOLKIT_DRIVER + REPOSITORY + GCC + DEFAULT)
def test_stack(stack, expected):
    assert found(stack) == expected


@pytest.mark.parametrize(
    "gpus, advice",
    [
        # 3.1: forward compatibility is for data-centre GPUs only.
        (["NVIDIA H100 80GB HBM3"], "install cuda-compat-13-0 (forward compatibility, data-centre GPUs only)"),
        (["hopper"], "install cuda-compat-13-0 (forward compatibility, data-centre GPUs only), "
                     "where every GPU is a data-centre model"),
        ([], "install cuda-compat-13-0 (forward compatibility, data-centre GPUs only), "
             "where every GPU is a data-centre model"),
        (["NVIDIA H100 80GB HBM3", "ada"], "install cuda-compat-13-0 (forward compatibility, data-centre GPUs only), "
                                           "where every GPU is a data-centre model"),
        (["NVIDIA GeForce RTX 4090"], None),
        (["NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"], None),
        # No driver library makes CUDA 13 compile for Volta.
        (["Tesla V100-SXM2-16GB"], None),
    ],
)
def test_forward_compatibility_is_offered_where_it_is_allowed(gpus, advice):
    (item,) = [one for one in conflicts({"toolkits": ["13.0"], "driver": "535", "gpus": gpus})
               if one["id"] == "toolkit_driver"]
    assert item["remedy"] == "use driver 580, or toolkits 12.9" + ("; or " + advice if advice else "")


def test_conflict_of_driver_and_toolkit_names_both_and_what_works():
    (item,) = conflicts({"toolkits": ["13.0"], "driver": "535"})
    assert item["observed"] == "toolkit 13.0, driver 535"
    assert item["expected"] == "driver 580 or later, or toolkit 12.x with driver 525 or later"
    assert item["message"].startswith("driver 535 is too old for programs of toolkit 13.0")


@pytest.mark.parametrize(
    "os, version, toolkit, offer",
    [
        ("ubuntu", "26.04", "11.8", "NVIDIA's repository has 13.3, 13.4, 13.5; the archive has 12.4, 13.1"),
        ("debian", "13", "11.8",
         "NVIDIA's repository has 13.0, 13.1, 13.2, 13.3, 13.4, 13.5; the archive has 12.4"),
        ("debian", "12", "11.7",
         "NVIDIA's repository has 12.1, 12.2, 12.3, 12.4, 12.5, 12.6, 12.8, 12.9, 13.0, 13.1, 13.2, 13.3, 13.4, 13.5; "
         "the archive has 11.8"),
    ],
)
def test_missing_toolkit_lists_what_can_be_had(os, version, toolkit, offer):
    (item,) = conflicts(on(os, version, toolkit))
    assert (item["id"], item["expected"]) == ("toolkit_repository", offer)


@pytest.mark.parametrize(
    "toolkit, driver, older",
    [
        # 3.1: the driver of the release notes runs all of it, the one before by minor-version compatibility.
        ("13.5", "620.0", "615.71.09"),
        ("13.4", "615.0", "610.57.04"),
        ("13.3", "610.43.02", "610.43.01"),
        ("13.2", "595.45.04", "595.45.03"),
        ("13.1", "590.44.01", "590.44.00"),
        ("12.9", "575.51.03", "575.51.02"),
        ("12.8", "570.26", "570.25"),
        ("12.6", "560.28.03", "560.28.02"),
        ("12.5", "555.42.02", "555.42.01"),
        ("12.4", "550.54.14", "550.54.13"),
        ("12.3", "545.23.06", "545.23.05"),
        ("12.2", "535.54.03", "535.54.02"),
        ("12.1", "530.30.02", "530.30.01"),
        ("12.0", "525.60.13", "525.60.12"),
        ("11.8", "520.61.05", "520.61.04"),
    ],
)
def test_driver_of_the_release_notes(toolkit, driver, older):
    assert found({"toolkits": [toolkit], "driver": driver}) == FITS
    assert found({"toolkits": [toolkit], "driver": older}) == {"toolkit_newer_than_driver": None}


@pytest.mark.parametrize(
    "toolkit, gcc",
    # 3.3 for 12.x and 13.x; the others unconfirmed.
    [("11.0", 9), ("11.1", 10), ("11.2", 10), ("11.3", 10), ("11.4", 11), ("11.5", 11), ("11.6", 11), ("11.7", 11),
     ("11.8", 11), ("12.0", 12), ("12.1", 12), ("12.2", 12), ("12.3", 12), ("12.4", 13), ("12.5", 13), ("12.6", 13),
     ("12.8", 14), ("12.9", 14), ("13.0", 15), ("13.1", 15), ("13.2", 15), ("13.3", 15), ("13.4", 15), ("13.5", 15)],
)
def test_newest_gcc_of_each_toolkit(toolkit, gcc):
    assert found({"toolkits": [toolkit], "gcc": gcc}) == FITS
    assert "toolkit_gcc" in found({"toolkits": [toolkit], "gcc": gcc + 1})


@pytest.mark.parametrize(
    "architecture, first, last, before, after",
    [
        # 1.3, with the architecture matrix for what came first: the toolkits at both ends, and those just beyond.
        ("kepler", "11.0", "11.8", None, "12.0"),
        ("maxwell", "11.0", "12.9", None, "13.0"),
        ("pascal", "11.0", "12.9", None, "13.0"),
        ("volta", "11.0", "12.9", None, "13.0"),
        ("turing", "11.0", "13.5", "9.2", None),
        ("ampere", "11.0", "13.5", "10.1", None),
        ("ada", "11.8", "13.5", "11.7", None),
        ("hopper", "11.8", "13.5", "11.7", None),
        ("blackwell", "12.8", "13.5", "12.6", None),
    ],
)
def test_toolkits_of_each_architecture(architecture, first, last, before, after):
    for toolkit in (first, last):
        assert found({"toolkits": [toolkit], "gpus": [architecture]}) == FITS
    for toolkit in filter(None, (before, after)):
        assert "toolkit_gpu" in found({"toolkits": [toolkit], "gpus": [architecture]})


@pytest.mark.parametrize(
    "architecture, first, last",
    [
        # 1.3 and, for where Ada and Hopper begin, 1.1: 470 ends at Ampere, CUDA 11.8 came with 520.
        ("kepler", None, 470),
        ("maxwell", None, 580),
        ("pascal", None, 580),
        ("volta", None, 580),
        ("turing", None, None),
        ("ampere", 450, None),
        ("ada", 520, None),
        ("hopper", 520, None),
        ("blackwell", 570, None),
    ],
)
def test_drivers_of_each_architecture(architecture, first, last):
    for driver in (first or 418, last or 620):
        assert found({"driver": driver, "gpus": [architecture]}) == FITS
    for driver in ([first - 1] if first else []) + ([last + 1] if last else []):
        assert "driver_gpu" in found({"driver": driver, "gpus": [architecture]})


ALL_12 = "12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9"
ALL_13 = "13.0 13.1 13.2 13.3 13.4 13.5"


@pytest.mark.parametrize(
    "os, version, nvidia, archive",
    [
        # 3.2
        ("ubuntu", "20.04", "11.0 11.1 11.2 11.3 11.4 11.5 11.6 11.7 11.8 " + ALL_12, "10.1"),
        ("ubuntu", "22.04", "11.7 11.8 %s %s" % (ALL_12, ALL_13), "11.5"),
        ("ubuntu", "24.04", "12.5 12.6 12.8 12.9 " + ALL_13, "12.0"),
        ("ubuntu", "26.04", "13.3 13.4 13.5", "12.4 13.1"),
        ("debian", "12", "12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9 " + ALL_13, "11.8"),
        ("debian", "13", ALL_13, "12.4"),
        ("fedora", "43", None, None),
    ],
)
def test_offer_of_each_system(os, version, nvidia, archive):
    expected = {"nvidia": tuple(nvidia.split()), "archive": tuple(archive.split())} if nvidia else {}
    assert toolkits_offered(os, version) == expected


@pytest.mark.parametrize("stack, package", [(on("ubuntu", "26.04", "13.2"), "cuda-toolkit-13-2"),
                                            (on("debian", "13", "12.8"), "cuda-toolkit-12-8")])
def test_unconfirmed_package_says_how_to_find_out(stack, package):
    (item,) = conflicts(stack)
    assert item["remedy"] == "ask `apt-cache policy %s`" % package


def test_each_toolkit_is_judged_and_named():
    messages = [item["message"] for item in conflicts({"toolkits": ["11.8", "13.0", "13.1"], "gpus": ["V100"]})]
    assert messages == ["toolkit 13.0 cannot compile for V100 (volta)", "toolkit 13.1 cannot compile for V100 (volta)"]


def test_gpus_of_one_generation_are_named_in_one_finding():
    (item,) = conflicts({"driver": "595", "gpus": ["P100", "Tesla P40", "H100"]})
    assert item["message"] == "driver 595 does not support P100 and Tesla P40 (pascal)"
