# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cuDNN, NCCL, PyTorch and TensorFlow in the stack matrix, row by row; each cites the section of the facts."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._stack_matrix import conflicts

FITS = {}


def found(stack):
    """id → nearest for conflicts, id → None for what is only said."""
    return {item["id"]: item["nearest"] if item["severity"] == "critical" else None for item in conflicts(stack)}


def row(section, stack, expected):
    return pytest.param(stack, expected, id="%s %s" % (section, " ".join("%s=%s" % pair for pair in stack.items())))


CUDNN = [
    row("2.8", {"cudnn": "9.12", "toolkits": ["13.0"]}, FITS),
    row("2.8", {"cudnn": "9.12", "toolkits": ["12.9"]}, FITS),
    row("2.8", {"cudnn": "9.17.0", "toolkits": ["11.8"]},
        {"cudnn_toolkit": [{"cudnn": "9.10.2"}, {"toolkits": ["12.0"]}]}),
    row("2.8", {"cudnn": "9.17.0", "toolkits": ["11.8", "12.8"]}, FITS),
    row("2.8", {"cudnn": "9.12.0+cuda12", "toolkits": ["13.0"]},
        {"cudnn_toolkit": [{"cudnn": "9.12.0+cuda13"}, {"toolkits": ["12.9"]}]}),
    row("2.8", {"cudnn": "9.12.0+cuda13", "default_toolkit": "13.0"}, FITS),
    row("2.8", {"cudnn": "9.12.0+cuda12", "default_toolkit": "13.0"},
        {"cudnn_toolkit": [{"cudnn": "9.12.0+cuda13"}, {"default_toolkit": "12.9"}]}),
    row("2.8", {"cudnn": "8.9.7.29-1+cuda12.2", "toolkits": ["12.2"]}, FITS),
    row("2.8", {"cudnn": "8.9.7.29", "toolkits": ["13.0"]},
        {"cudnn_toolkit": [{"cudnn": "9.12"}, {"toolkits": ["12.9"]}]}),
    row("2.8", {"cudnn": "8.9.7.29-1+cuda13.0"}, {"cudnn_build": [{"cudnn": "8.9.7.29+cuda11"}]}),
    row("2.8", {"cudnn": "9.11.0", "toolkits": ["11.8"]}, {"cudnn_toolkit_unconfirmed": None}),
    row("2.8", {"cudnn": "9.11.0+cuda13", "toolkits": ["13.0"]}, {"cudnn_build_unconfirmed": None}),
    row("2.8", {"cudnn": "8.4.1", "toolkits": ["11.8"]}, {"cudnn_unknown": None}),
    row("2.8", {"cudnn": "10.0", "toolkits": ["13.0"]}, {"cudnn_unknown": None}),
    row("2.8", {"cudnn": "9.10.2", "gpus": ["V100"]}, FITS),
    row("2.8", {"cudnn": "9.11.0", "gpus": ["V100"]}, {"cudnn_gpu": [{"cudnn": "9.10.2"}]}),
    row("10.46", {"cudnn": "9.17.0+cuda12", "gpus": ["volta"]}, {"cudnn_gpu": [{"cudnn": "9.10.2+cuda12"}]}),
    row("2.8", {"cudnn": "9.5.1", "gpus": ["blackwell"]}, {"cudnn_gpu": [{"cudnn": "9.7"}]}),
    row("2.8", {"cudnn": "9.10.2", "gpus": ["blackwell"]}, FITS),
    # Volta keeps cuDNN below 9.11 and CUDA below 13, and these two have each other.
    row("2.8", {"cudnn": "9.10.2", "gpus": ["V100"], "toolkits": ["12.9"]}, FITS),
]

NCCL = [
    row("2.8", {"nccl": "2.30.4-1+cuda13.2", "toolkits": ["13.0"]}, FITS),
    row("2.8", {"nccl": "2.30.4-1+cuda13.2", "toolkits": ["12.9"]},
        {"nccl_toolkit": [{"nccl": "2.30.4+cuda12"}, {"toolkits": ["13.0"]}]}),
    row("2.8", {"nccl": "2.32.3", "toolkits": ["12.9"]}, FITS),
    row("2.8", {"nccl": "2.32.3", "toolkits": ["11.8"]},
        {"nccl_toolkit": [{"nccl": "2.16"}, {"toolkits": ["12.0"]}]}),
    row("2.8", {"nccl": "2.27.7", "toolkits": ["13.0"]}, {"nccl_toolkit_unconfirmed": None}),
    row("2.8", {"nccl": "2.27.7+cuda13.0", "toolkits": ["13.0"]}, {"nccl_build_unconfirmed": None}),
    row("2.8", {"nccl": "2.30.4+cuda11.0", "toolkits": ["11.8"]}, {"nccl_build": [{"nccl": "2.16+cuda11"}]}),
    row("2.8", {"nccl": "2.33.1", "toolkits": ["13.5"]}, {"nccl_unknown": None}),
    # Its build is known even where the version is not.
    row("2.8", {"nccl": "2.33.1+cuda13.5", "toolkits": ["12.9"]},
        {"nccl_unknown": None, "nccl_toolkit": [{"nccl": "2.33.1+cuda12"}, {"toolkits": ["13.0"]}]}),
]

TORCH = [
    row("6.2", {"torch": "2.11", "gpus": ["hopper"], "driver": "580", "python": "3.12"}, FITS),
    row("6.2", {"torch": "2.11", "gpus": ["volta"]},
        {"torch_gpu": [{"torch_cuda": "cu126"}, {"torch": "2.10"}]}),
    row("6.2", {"torch": "2.11", "torch_cuda": "cu126", "gpus": ["volta"]}, FITS),
    row("6.2", {"torch": "2.11", "torch_cuda": "cu128", "gpus": ["volta"]}, {"torch_gpu_unknown": None}),
    row("6.2", {"torch": "2.11", "torch_cuda": "cu128", "gpus": ["hopper"]}, FITS),
    row("6.2", {"torch": "2.8", "torch_cuda": "cu128", "gpus": ["volta"]}, FITS),
    row("6.2", {"torch": "2.7", "torch_cuda": "cu128", "gpus": ["volta"]},
        {"torch_gpu": [{"torch_cuda": "cu126"}, {"torch": "2.8"}]}),
    row("6.2", {"torch": "2.8", "gpus": ["pascal"]}, {"torch_gpu": [{"torch_cuda": "cu126"}, {"torch": "2.7"}]}),
    row("6.2", {"torch": "2.7", "gpus": ["NVIDIA B200"]}, {"torch_gpu": [{"torch_cuda": "cu128"}, {"torch": "2.8"}]}),
    row("6.2", {"torch": "2.7", "torch_cuda": "12.8", "gpus": ["NVIDIA B200"]}, FITS),
    row("6.2", {"torch": "2.15", "gpus": ["volta"]},
        {"torch_gpu": [{"torch": "2.14", "torch_cuda": "cu126"}, {"torch": "2.10"}]}),
    row("6.2", {"torch": "2.15", "torch_cuda": "cu126", "gpus": ["volta"]}, {"torch_build_unconfirmed": None}),
    row("6.2", {"torch": "2.9.1", "gpus": ["kepler"]}, {"torch_gpu": []}),
    row("6.2", {"torch": "2.0", "gpus": ["volta"]}, {"torch_gpu_unknown": None}),
    row("6.2", {"torch": "2.8", "torch_cuda": "cu129", "gpus": ["hopper"]}, {"torch_gpu_unknown": None}),
    row("6.2", {"torch_cuda": "cu130", "gpus": ["volta"]}, {"torch_gpu": [{"torch_cuda": "cu126"}]}),
    row("6.2", {"torch": "2.9", "torch_cuda": "cu121"}, {"torch_build": [{"torch_cuda": "cu126"}, {"torch": "2.5"}]}),
    row("6.2", {"torch": "2.5", "torch_cuda": "cu121"}, FITS),
    row("6.2", {"torch": "2.8.0+cu130"}, {"torch_build": [{"torch_cuda": "cu129"}, {"torch": "2.9"}]}),
    row("6.2", {"torch": "2.10.0+cu130"}, FITS),
    row("6.2", {"torch_cuda": "cu135"}, {"torch_build_unknown": None}),
    row("6.2", {"torch": "2.16"}, {"torch_unknown": None}),
    row("6.2", {"torch": "1.13", "torch_cuda": "cu117", "driver": "580"},
        {"torch_unknown": None}),
    row("6.2", {"torch": "2.15", "python": "3.10"}, {"torch_python": [{"python": "3.11"}, {"torch": "2.14"}]}),
    row("6.2", {"torch": "2.15", "python": "3.11"}, FITS),
    row("6.2", {"torch": "2.8", "python": "3.14.0"}, {"torch_python": [{"python": "3.13"}, {"torch": "2.9"}]}),
    row("6.2", {"torch": "2.9", "python": "3.14"}, FITS),
    row("6.2", {"torch": "2.1", "python": "3.12"}, {"torch_python_unconfirmed": None}),
    row("6.2", {"torch": "2.2", "python": "3.12"}, {"torch_python_unconfirmed": None}),
    row("6.2", {"torch": "2.3", "python": "3.12"}, {"torch_python_unconfirmed": None}),
    row("6.2", {"torch": "2.3", "python": "3.13"}, {"torch_python": [{"python": "3.11"}, {"torch": "2.6"}]}),
    row("6.2", {"torch": "2.11", "driver": "570"},
        {"torch_driver": [{"driver": "580"}, {"torch_cuda": "cu128"}, {"torch": "2.10"}]}),
    row("6.2", {"torch": "2.10", "driver": "525"}, FITS),
    row("6.2", {"torch": "2.5", "driver": "470"},
        {"torch_driver": [{"driver": "580"}, {"torch_cuda": "cu118"}, {"torch": "2.0"}]}),
    row("6.2", {"torch": "2.5", "torch_cuda": "cu118", "driver": "450.80.02"}, FITS),
    row("6.2", {"torch": "2.5", "architecture": "arm64"}, {"torch_arm64_unconfirmed": None}),
    row("6.2", {"torch": "2.9", "torch_cuda": "cu126", "architecture": "aarch64"}, FITS),
    row("6.2", {"torch": "2.6", "torch_cuda": "cu118", "architecture": "arm64"}, {"torch_arm64_unconfirmed": None}),
    # cu128 has arm64 wheels on its own index, but from the package index they may be for the CPU.
    row("6.2", {"torch": "2.9", "architecture": "arm64"}, {"torch_arm64_unconfirmed": None}),
    row("6.2", {"torch": "2.10", "architecture": "arm64"}, {"torch_arm64_unconfirmed": None}),
    row("6.2", {"torch": "2.9+cu128", "architecture": "arm64"}, FITS),
    row("6.2", {"torch": "2.11", "architecture": "sbsa"}, FITS),
    row("6.2", {"torch": "2.5", "architecture": "amd64"}, FITS),
    # The wheel's CUDA is its own: a toolkit of another major does not matter.
    row("6.2", {"torch": "2.11", "driver": "580", "toolkits": ["11.8"]}, FITS),
]

TENSORFLOW = [
    row("6.3", {"tensorflow": "2.21", "python": "3.10", "driver": "580"}, FITS),
    row("6.3", {"tensorflow": "2.21.0", "python": "3.9"},
        {"tensorflow_python": [{"python": "3.10"}, {"tensorflow": "2.20"}]}),
    row("6.3", {"tensorflow": "2.18", "python": "3.13"},
        {"tensorflow_python": [{"python": "3.12"}, {"tensorflow": "2.20"}]}),
    row("6.3", {"tensorflow": "2.15", "python": "3.11"}, FITS),
    row("6.3", {"tensorflow": "2.15", "driver": "470"}, {"tensorflow_driver": [{"driver": "580"}]}),
    row("6.3", {"tensorflow": "2.18", "driver": "525"}, FITS),
    row("6.3", {"tensorflow": "2.19", "gpus": ["blackwell"]}, {"tensorflow_gpu": [{"tensorflow": "2.20"}]}),
    row("6.3", {"tensorflow": "2.20", "gpus": ["blackwell"]}, FITS),
    row("6.3", {"tensorflow": "2.18", "gpus": ["hopper"]}, FITS),
    row("6.3", {"tensorflow": "2.30", "python": "3.12"}, {"tensorflow_unknown": None}),
]


@pytest.mark.parametrize("stack, expected", CUDNN + NCCL + TORCH + TENSORFLOW)
def test_stack(stack, expected):
    assert found(stack) == expected


@pytest.mark.parametrize(
    "library, version, builds, unconfirmed",
    [
        # 2.8 and the support matrix of cuDNN; NCCL before 2.30 unconfirmed.
        ("cudnn", "8.9.0", [11, 12], []),
        ("cudnn", "9.0.0", [11, 12], []),
        ("cudnn", "9.10.2", [11, 12], []),
        ("cudnn", "9.11.0", [12], [11, 13]),
        ("cudnn", "9.12.0", [12, 13], [11]),
        ("cudnn", "9.16.0", [12, 13], [11]),
        ("cudnn", "9.17.0", [12, 13], []),
        ("nccl", "2.16.5", [11, 12], []),
        ("nccl", "2.21.5", [11, 12], []),
        ("nccl", "2.22.3", [12], [11]),
        ("nccl", "2.26.2", [12], [11]),
        ("nccl", "2.27.7", [12], [13]),
        ("nccl", "2.28.3", [12, 13], []),
        ("nccl", "2.32.3", [12, 13], []),
    ],
)
def test_builds_of_each_library(library, version, builds, unconfirmed):
    answers = {cuda: found({library: "%s+cuda%d" % (version, cuda)}) for cuda in (10, 11, 12, 13, 14)}
    assert [cuda for cuda, answer in answers.items() if answer == FITS] == builds
    assert [cuda for cuda, answer in answers.items() if answer == {library + "_build_unconfirmed": None}] == unconfirmed
    assert all(library + "_build" in answers[cuda] for cuda in answers if cuda not in builds + unconfirmed)


@pytest.mark.parametrize(
    "torch, default, others, oldest, newest",
    [
        # 6.2: the build of the package index, the other builds, the Pythons at both ends.
        ("2.0", "cu117", "cu118", "3.8", "3.11"),
        ("2.1", "cu121", "cu118", "3.8", "3.11"),
        ("2.2", "cu121", "cu118", "3.8", "3.11"),
        ("2.3", "cu121", "cu118", "3.8", "3.11"),
        ("2.4", "cu121", "cu118 cu124", "3.8", "3.12"),
        ("2.5", "cu124", "cu118 cu121", "3.9", "3.12"),
        ("2.6", "cu124", "cu118 cu126", "3.9", "3.13"),
        ("2.7", "cu126", "cu118 cu128", "3.9", "3.13"),
        ("2.8", "cu128", "cu126 cu129", "3.9", "3.13"),
        ("2.9", "cu128", "cu126 cu130", "3.10", "3.14"),
        ("2.10", "cu128", "cu126 cu130", "3.10", "3.14"),
        ("2.11", "cu130", "cu126 cu128", "3.10", "3.14"),
        ("2.12", "cu130", "cu126 cu132", "3.10", "3.14"),
        ("2.13", "cu130", "cu126 cu132", "3.10", "3.14"),
        ("2.14", "cu130", "cu126 cu132", "3.10", "3.14"),
        ("2.15", "cu132", "", "3.11", "3.14"),
    ],
)
def test_builds_and_pythons_of_each_torch(torch, default, others, oldest, newest):
    every = "cu117 cu118 cu121 cu124 cu126 cu128 cu129 cu130 cu132".split()
    having = [build for build in every if "torch_build" not in found({"torch": torch, "torch_cuda": build})
              and "torch_build_unconfirmed" not in found({"torch": torch, "torch_cuda": build})]
    assert having == sorted([default, *others.split()])
    (item,) = conflicts({"torch": torch, "driver": "390"})
    assert item["observed"] == "torch %s+%s, driver 390" % (torch, default)
    for python in (oldest, newest):
        assert found({"torch": torch, "python": python}) == FITS
    before, after = "3.%d" % (int(oldest[2:]) - 1), "3.%d" % (int(newest[2:]) + 1)
    assert "torch_python" in found({"torch": torch, "python": before})
    assert set(found({"torch": torch, "python": after})) & {"torch_python", "torch_python_unconfirmed"}


@pytest.mark.parametrize(
    "torch, build, oldest, newest",
    [
        # 6.2: the GPUs at both ends of what a wheel has kernels for.
        ("2.5", "cu118", "maxwell", "hopper"),
        ("2.4", "cu121", "maxwell", "hopper"),
        ("2.5", "cu124", "maxwell", "hopper"),
        ("2.11", "cu126", "maxwell", "hopper"),
        ("2.7", "cu128", "turing", "blackwell"),
        ("2.8", "cu128", "volta", "blackwell"),
        ("2.10", "cu128", "volta", "blackwell"),
        ("2.9", "cu130", "turing", "blackwell"),
        ("2.14", "cu132", "turing", "blackwell"),
    ],
)
def test_kernels_of_each_build(torch, build, oldest, newest):
    generations = "kepler maxwell pascal volta turing ampere ada hopper blackwell".split()
    fitting = [name for name in generations
               if found({"torch": torch, "torch_cuda": build, "gpus": [name]}) == FITS]
    assert fitting == generations[generations.index(oldest):generations.index(newest) + 1]


@pytest.mark.parametrize(
    "tensorflow, oldest, newest, first_gpu, last_gpu",
    [
        # 6.3 and the metadata of the package index; 2.16, 2.17, 2.19 and the GPUs unconfirmed.
        ("2.15", "3.9", "3.11", "pascal", "hopper"),
        ("2.16", "3.9", "3.12", "pascal", "hopper"),
        ("2.17", "3.9", "3.12", "pascal", "hopper"),
        ("2.18", "3.9", "3.12", "pascal", "hopper"),
        ("2.19", "3.9", "3.12", "pascal", "hopper"),
        ("2.20", "3.9", "3.13", "pascal", "blackwell"),
        ("2.21", "3.10", "3.13", "pascal", "blackwell"),
    ],
)
def test_pythons_and_gpus_of_each_tensorflow(tensorflow, oldest, newest, first_gpu, last_gpu):
    pythons = ["3.%d" % minor for minor in range(7, 16)]
    fitting = [name for name in pythons if found({"tensorflow": tensorflow, "python": name}) == FITS]
    assert (fitting[0], fitting[-1]) == (oldest, newest)
    generations = "kepler maxwell pascal volta turing ampere ada hopper blackwell".split()
    fitting = [name for name in generations if found({"tensorflow": tensorflow, "gpus": [name]}) == FITS]
    assert (fitting[0], fitting[-1]) == (first_gpu, last_gpu)


def test_whole_stack_of_a_volta_server_fits():
    assert conflicts({
        "os": "Ubuntu", "os_version": "22.04", "architecture": "x86_64", "gpus": ["Tesla V100-SXM2-32GB"],
        "driver": "580.178.04", "toolkits": ["11.8", "12.9"], "default_toolkit": "12.9",
        "cudnn": "9.10.2.21-1+cuda12.9", "nccl": "2.28.3-1+cuda12.9", "gcc": "11.4.0", "python": "3.10.12",
        "torch": "2.10.0+cu126", "tensorflow": "2.18.0",
    }) == []


def test_whole_stack_of_a_blackwell_server_fits():
    assert conflicts({
        "os": "Ubuntu", "os_version": "24.04", "architecture": "amd64", "gpus": ["NVIDIA B200"],
        "driver": "595.91.07", "toolkits": ["12.8", "13.0"], "default_toolkit": "13.0",
        "cudnn": "9.17.0.29-1+cuda13.0", "nccl": "2.30.4-1+cuda13.2", "gcc": "13.3.0", "python": "3.12.3",
        "torch": "2.14.1", "torch_cuda": "cu130", "tensorflow": "2.21.0",
    }) == []


def test_changes_that_follow_from_another_are_proposed_together():
    # 3.2, 3.3, 2.8: CUDA 13 packages on a V100 with Ubuntu 26.04, whose archive has 12.4, which wants gcc 13.
    stack = {"os": "ubuntu", "os_version": "26.04", "gpus": ["V100"], "toolkits": ["13.5"], "gcc": "15",
             "cudnn": "9.17+cuda13", "nccl": "2.30+cuda13"}
    assert found(stack) == {
        "toolkit_gpu": [{"toolkits": ["12.4"], "cudnn": "9.17+cuda12", "nccl": "2.30+cuda12", "gcc": "13"}],
        # Its turn comes when the toolkit is 12.4.
        "cudnn_gpu": [],
    }


def test_messages_name_wheel_gpu_and_what_it_is_made_for():
    (item,) = conflicts({"torch": "2.11", "gpus": ["V100"]})
    assert item["message"] == "torch 2.11+cu130 has no kernels for V100 (volta); it has those for turing to blackwell"
    assert item["remedy"] == "use torch cuda cu126, or torch 2.10"


def test_range_of_a_library_names_both_ends():
    (item,) = conflicts({"cudnn": "9.12", "gpus": ["V100"]})
    assert item["expected"] == "cuDNN 8.9 or later, before 9.11"
    (item,) = conflicts({"cudnn": "9.5.1", "gpus": ["B200"]})
    assert item["expected"] == "cuDNN 9.7 or later"
