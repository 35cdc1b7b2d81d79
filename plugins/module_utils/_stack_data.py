# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits to what around CUDA: toolkits, drivers, architectures, repositories, cuDNN, NCCL, gcc. Data, with sources.

The one place to edit when NVIDIA publishes a toolkit. Sources, by the short name used below:

* ``release-notes``: CUDA release notes, table "CUDA Toolkit and Corresponding Driver Versions".
* ``minor-version``: CUDA compatibility guide, minor-version and forward compatibility.
* ``arch-matrix``: NVIDIA data-centre drivers, "CUDA Toolkit, Driver, and Architecture Matrix".
* ``host-compilers``: CUDA installation guide for Linux, host compiler support policy.
* ``cudnn-matrix``: cuDNN support matrix, releases 9.0.0, 9.5.1, 9.10.2 and 9.17.0.
* ``cuda-repo``: package lists of NVIDIA's CUDA repository as users and images show them.
* ``archive``: package lists of Ubuntu and Debian (`nvidia-cuda-toolkit`).

A source that says ``unconfirmed`` is general knowledge which nobody read up: the value is used, and is the first to
doubt. A field named `unconfirmed` holds what sources disagree on: the matrix says so and refuses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

REVIEWED = "2026-11-30"
"""Day when the tables were last compared with their sources (ISO date)."""

ARCHITECTURES = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
"""GPU generations, oldest first."""


def span(first: str, last: str) -> Tuple[str, ...]:
    """The generations from one to another, both included."""
    return ARCHITECTURES[ARCHITECTURES.index(first):ARCHITECTURES.index(last) + 1]


@dataclass(frozen=True)
class Generation:
    """One GPU architecture. `capabilities`: compute capabilities. `first_toolkit`: release that first builds for it,
    None where older than every toolkit here. `last_major`: last CUDA major that builds for it, None where current.
    `first_driver`, `last_driver`: driver branches, None where there is no limit among the branches in use."""

    name: str
    capabilities: Tuple[str, ...]
    first_toolkit: Optional[str]
    last_major: Optional[int]
    first_driver: Optional[int]
    last_driver: Optional[int]
    source: str


GENERATIONS: Dict[str, Generation] = {
    generation.name: generation
    for generation in (
        Generation("kepler", ("3.5", "3.7"), None, 11, None, 470, "arch-matrix"),
        Generation("maxwell", ("5.0", "5.2", "5.3"), None, 12, None, 580, "arch-matrix"),
        Generation("pascal", ("6.0", "6.1"), None, 12, None, 580, "arch-matrix"),
        Generation("volta", ("7.0",), None, 12, None, 580, "arch-matrix"),
        Generation("turing", ("7.5",), "10.0", None, None, None, "arch-matrix"),
        Generation("ampere", ("8.0", "8.6"), "11.0", None, 450, None,
                   "arch-matrix; driver of the first toolkit; unconfirmed"),
        Generation("ada", ("8.9",), "11.8", None, 520, None, "arch-matrix; driver of the first toolkit; unconfirmed"),
        Generation("hopper", ("9.0",), "11.8", None, 520, None,
                   "arch-matrix; driver of the first toolkit; unconfirmed"),
        Generation("blackwell", ("10.0", "12.0"), "12.8", None, 570, None, "arch-matrix"),
    )
}


@dataclass(frozen=True)
class Family:
    """A CUDA major. `driver`: the oldest driver that runs its programs, by minor-version compatibility."""

    major: int
    driver: str
    source: str


FAMILIES: Dict[int, Family] = {
    11: Family(11, "450.80.02", "minor-version"),
    12: Family(12, "525", "minor-version"),
    13: Family(13, "580", "minor-version"),
}


@dataclass(frozen=True)
class Toolkit:
    """A toolkit release. `driver`: the driver that came with its first version (all features, PTX of its own compiler),
    None where unknown. `gcc_max`: newest major of gcc that nvcc accepts, None where unknown."""

    name: str
    driver: Optional[str]
    gcc_max: Optional[int]
    source: str


_DRIVER_READ = "release-notes; gcc: host-compilers; unconfirmed"
_DRIVER_MEMORY = "release-notes; host-compilers; unconfirmed"

TOOLKITS: Dict[str, Toolkit] = {
    toolkit.name: toolkit
    for toolkit in (
        Toolkit("10.1", None, None, "archive"),
        Toolkit("11.0", None, 9, "host-compilers; unconfirmed"),
        Toolkit("11.1", None, 10, "host-compilers; unconfirmed"),
        Toolkit("11.2", None, 10, "host-compilers; unconfirmed"),
        Toolkit("11.3", None, 10, "host-compilers; unconfirmed"),
        Toolkit("11.4", None, 11, "host-compilers; unconfirmed"),
        Toolkit("11.5", None, 11, "host-compilers; unconfirmed"),
        Toolkit("11.6", None, 11, "host-compilers; unconfirmed"),
        Toolkit("11.7", None, 11, "host-compilers; unconfirmed"),
        Toolkit("11.8", "520.61.05", 11, _DRIVER_MEMORY),
        Toolkit("12.0", "525.60.13", 12, _DRIVER_MEMORY),
        Toolkit("12.1", "530.30.02", 12, _DRIVER_MEMORY),
        Toolkit("12.2", "535.54.03", 12, _DRIVER_READ),
        Toolkit("12.3", "545.23.06", 12, _DRIVER_READ),
        Toolkit("12.4", "550.54.14", 13, _DRIVER_READ),
        Toolkit("12.5", "555.42.02", 13, _DRIVER_READ),
        Toolkit("12.6", "560.28.03", 13, _DRIVER_READ),
        Toolkit("12.8", "570.26", 14, _DRIVER_READ),
        Toolkit("12.9", "575.51.03", 14, _DRIVER_READ),
        Toolkit("13.0", "580.65.06", 15, _DRIVER_READ),
        Toolkit("13.1", "590.44.01", 15, _DRIVER_READ),
        Toolkit("13.2", "595.45.04", 15, _DRIVER_READ),
        Toolkit("13.3", "610.43.02", 15, _DRIVER_READ),
        Toolkit("13.4", "615", 15, _DRIVER_READ),
        Toolkit("13.5", "620", 15, _DRIVER_MEMORY),
    )
}
"""Oldest first. There was no toolkit 12.7."""

FORWARD_COMPATIBILITY = "cuda-compat-%s"
"""Package that lets a toolkit's programs run on an older driver, on data-centre GPUs only. Source: minor-version."""


@dataclass(frozen=True)
class Repository:
    """Toolkits of one system's repository. `origin`: ``nvidia`` (packages cuda-toolkit-X-Y) or ``archive`` (package
    nvidia-cuda-toolkit, in /usr). What is neither in `toolkits` nor in `unconfirmed` is absent. `read_on`: the
    architectures whose lists were seen; on others, what is present here is unconfirmed."""

    os: str
    os_version: str
    origin: str
    toolkits: Tuple[str, ...]
    source: str
    unconfirmed: Tuple[str, ...] = ()
    read_on: Tuple[str, ...] = ("amd64",)


_11 = tuple(name for name in TOOLKITS if name.startswith("11."))
_12 = tuple(name for name in TOOLKITS if name.startswith("12."))
_13 = tuple(name for name in TOOLKITS if name.startswith("13."))

REPOSITORIES: Tuple[Repository, ...] = (
    Repository("ubuntu", "20.04", "nvidia", _11 + _12, "cuda-repo; no 13.x; unconfirmed"),
    Repository("ubuntu", "20.04", "archive", ("10.1",), "archive"),
    Repository("ubuntu", "22.04", "nvidia", ("11.7", "11.8") + _12 + _13, "cuda-repo"),
    Repository("ubuntu", "22.04", "archive", ("11.5",), "archive"),
    Repository("ubuntu", "24.04", "nvidia", ("12.5", "12.6", "12.8", "12.9") + _13, "cuda-repo"),
    Repository("ubuntu", "24.04", "archive", ("12.0",), "archive"),
    # One page claims 12.8 here, and no list shows any 12.x: taken as absent.
    Repository("ubuntu", "26.04", "nvidia", ("13.3", "13.4", "13.5"), "cuda-repo; 13.5 unconfirmed", ("13.2",)),
    Repository("ubuntu", "26.04", "archive", ("12.4", "13.1"), "archive"),
    Repository("debian", "12", "nvidia", tuple(name for name in _12 if name != "12.0") + _13,
               "cuda-repo; unconfirmed"),
    Repository("debian", "12", "archive", ("11.8",), "archive"),
    Repository("debian", "13", "nvidia", _13, "cuda-repo; only 13.3 was seen; unconfirmed", _12),
    Repository("debian", "13", "archive", ("12.4",), "archive"),
)


@dataclass(frozen=True)
class LibrarySeries:
    """Releases of cuDNN or NCCL from `first` up to the next series. `majors`: CUDA majors with a build.
    `architectures`: GPU generations that it has kernels for, None where the library does not depend on them.
    `newest`: the last version of the series that a source names, None where none does."""

    first: str
    majors: Tuple[int, ...]
    source: str
    unconfirmed: Tuple[int, ...] = ()
    architectures: Optional[Tuple[str, ...]] = None
    newest: Optional[str] = None


CUDNN: Tuple[LibrarySeries, ...] = (
    LibrarySeries("8.9", (11, 12), "cuda-repo; cuda11 unconfirmed", (), span("maxwell", "hopper"), "8.9.7"),
    LibrarySeries("9.0", (11, 12), "cudnn-matrix", (), span("maxwell", "hopper"), "9.5.1"),
    LibrarySeries("9.7", (11, 12), "cudnn-matrix; 9.7 as the first with Blackwell is unconfirmed", (),
                  span("maxwell", "blackwell"), "9.10.2"),
    LibrarySeries("9.11", (12,), "cudnn-matrix; Quansight/open-gpu-server#69", (11, 13), span("turing", "blackwell")),
    LibrarySeries("9.12", (12, 13), "cudnn-matrix; 9.12 as the first for CUDA 13 is unconfirmed", (11,),
                  span("turing", "blackwell")),
    LibrarySeries("9.17", (12, 13), "cudnn-matrix", (), span("turing", "blackwell")),
)
CUDNN_END = "10"
"""First version that the table does not know. Source: cuda-repo (packages are named cudnn9-…)."""

NCCL: Tuple[LibrarySeries, ...] = (
    LibrarySeries("2.16", (11, 12), "cuda-repo; unconfirmed"),
    LibrarySeries("2.22", (12,), "cuda-repo; unconfirmed", (11,)),
    LibrarySeries("2.27", (12,), "cuda-repo; unconfirmed", (13,)),
    LibrarySeries("2.28", (12, 13), "cuda-repo; cuda12 unconfirmed"),
)
NCCL_END = "2.33"
"""First version that the table does not know: 2.32.3 is the newest seen. Source: cuda-repo."""
