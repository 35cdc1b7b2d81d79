# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch and TensorFlow wheels: their CUDA, their Python, the GPUs they have kernels for. Data, with sources.

Wheels bring CUDA, cuDNN and NCCL with them: nothing here depends on a toolkit of the system. Sources, by short name:

* ``pypi``: metadata of the releases on the Python package index.
* ``pytorch-release``: RELEASE.md of pytorch/pytorch, table of builds per release.
* ``pytorch-arch``: architecture lists of the wheels; PyTorch developers' list of 2025-07-14 for Volta in cu128.
* ``tf-build``: build settings of tensorflow/tensorflow (compute capabilities of the wheels).

`unconfirmed` means here what it means in `_stack_data`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from ._stack_data import span

REVIEWED = "2026-11-30"


@dataclass(frozen=True)
class Release:
    """A release of torch or TensorFlow. `default`: the build that the package index serves (``cu128``). `builds`: the
    others. `python`: oldest and newest minor version. `unconfirmed` and `unconfirmed_python`: sources disagree."""

    name: str
    default: str
    builds: Tuple[str, ...]
    python: Tuple[str, str]
    source: str
    unconfirmed: Tuple[str, ...] = ()
    unconfirmed_python: Tuple[str, ...] = ()


_TORCH = "pypi; pytorch-release; newest Python unconfirmed"

TORCH: Dict[str, Release] = {
    release.name: release
    for release in (
        Release("2.0", "cu117", ("cu118",), ("3.8", "3.11"), _TORCH),
        Release("2.1", "cu121", ("cu118",), ("3.8", "3.11"), _TORCH, (), ("3.12",)),
        Release("2.2", "cu121", ("cu118",), ("3.8", "3.11"), _TORCH, (), ("3.12",)),
        Release("2.3", "cu121", ("cu118",), ("3.8", "3.11"), _TORCH, (), ("3.12",)),
        Release("2.4", "cu121", ("cu118", "cu124"), ("3.8", "3.12"), _TORCH),
        Release("2.5", "cu124", ("cu118", "cu121"), ("3.9", "3.12"), _TORCH),
        Release("2.6", "cu124", ("cu118", "cu126"), ("3.9", "3.13"), _TORCH),
        Release("2.7", "cu126", ("cu118", "cu128"), ("3.9", "3.13"), _TORCH),
        Release("2.8", "cu128", ("cu126", "cu129"), ("3.9", "3.13"), _TORCH),
        Release("2.9", "cu128", ("cu126", "cu130"), ("3.10", "3.14"), _TORCH),
        Release("2.10", "cu128", ("cu126", "cu130"), ("3.10", "3.14"), _TORCH),
        Release("2.11", "cu130", ("cu126", "cu128"), ("3.10", "3.14"), _TORCH),
        Release("2.12", "cu130", ("cu126", "cu132"), ("3.10", "3.14"), _TORCH),
        Release("2.13", "cu130", ("cu126", "cu132"), ("3.10", "3.14"), _TORCH),
        Release("2.14", "cu130", ("cu126", "cu132"), ("3.10", "3.14"), _TORCH),
        Release("2.15", "cu132", (), ("3.11", "3.14"), _TORCH, ("cu126", "cu130")),
    )
}


@dataclass(frozen=True)
class Build:
    """Wheels of one CUDA, from torch `first` up to the next entry of the same name. `cuda`: version of the CUDA inside.
    `architectures`: GPU generations with kernels, None where nobody says. `unconfirmed`: perhaps these too."""

    name: str
    first: str
    cuda: str
    architectures: Optional[Tuple[str, ...]]
    source: str
    unconfirmed: Tuple[str, ...] = ()
    arm64: bool = False


TORCH_BUILDS: Tuple[Build, ...] = (
    Build("cu117", "2.0", "11.7", None, "pytorch-release"),
    Build("cu118", "2.0", "11.8", span("maxwell", "hopper"), "pytorch-arch"),
    Build("cu121", "2.1", "12.1", span("maxwell", "hopper"), "pytorch-arch"),
    Build("cu124", "2.4", "12.4", span("maxwell", "hopper"), "pytorch-arch"),
    Build("cu126", "2.6", "12.6", span("maxwell", "hopper"), "pytorch-arch", (), True),
    Build("cu128", "2.7", "12.8", span("turing", "blackwell"), "pytorch-arch", (), True),
    Build("cu128", "2.8", "12.8", span("volta", "blackwell"), "pytorch-arch", (), True),
    # Whether Volta stayed when cu128 ceased to be the default is not said anywhere.
    Build("cu128", "2.11", "12.8", span("turing", "blackwell"), "pytorch-arch", ("volta",), True),
    Build("cu129", "2.8", "12.9", None, "pytorch-release", (), True),
    Build("cu130", "2.9", "13.0", span("turing", "blackwell"), "pytorch-arch", (), True),
    Build("cu132", "2.12", "13.2", span("turing", "blackwell"), "pytorch-arch", (), True),
)
"""`arm64`: the build's own index has wheels for arm64 (pytorch-release); for the others nobody says."""

ARM64_FIRST_DEFAULT = "2.11"
"""First torch whose arm64 wheel on the package index surely is a CUDA one (2.9 or 2.10: unconfirmed). Source: pypi."""


@dataclass(frozen=True)
class TensorflowRelease:
    """`cuda`: version inside the wheels of ``tensorflow[and-cuda]``. `architectures`: generations with kernels."""

    name: str
    cuda: str
    python: Tuple[str, str]
    architectures: Tuple[str, ...]
    source: str


_TF_GPUS = "architectures: tf-build; unconfirmed"

TENSORFLOW: Dict[str, TensorflowRelease] = {
    release.name: release
    for release in (
        TensorflowRelease("2.15", "12.2", ("3.9", "3.11"), span("pascal", "hopper"), "pypi; " + _TF_GPUS),
        TensorflowRelease("2.16", "12.3", ("3.9", "3.12"), span("pascal", "hopper"), "pypi, unconfirmed; " + _TF_GPUS),
        TensorflowRelease("2.17", "12.3", ("3.9", "3.12"), span("pascal", "hopper"), "pypi, unconfirmed; " + _TF_GPUS),
        TensorflowRelease("2.18", "12.5", ("3.9", "3.12"), span("pascal", "hopper"), "pypi; " + _TF_GPUS),
        TensorflowRelease("2.19", "12.5", ("3.9", "3.12"), span("pascal", "hopper"), "pypi, unconfirmed; " + _TF_GPUS),
        TensorflowRelease("2.20", "12.5", ("3.9", "3.13"), span("pascal", "blackwell"), "pypi; " + _TF_GPUS),
        TensorflowRelease("2.21", "12.5", ("3.10", "3.13"), span("pascal", "blackwell"), "pypi; " + _TF_GPUS),
    )
}
