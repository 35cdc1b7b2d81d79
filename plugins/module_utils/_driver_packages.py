# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the packages of a driver set are called: per source, distribution, era, flavour and need.

NVIDIA's repository carries branch numbers in its names up to 580 and none from 590 on, except for Fabric Manager, NSCQ
and IMEX, which lose theirs at 580 already. Ubuntu's archive keeps them throughout. NVIDIA's Debian repositories
never had any. (NVIDIA/gpu-driver-container: install.sh of ubuntu24.04 and ubuntu26.04, ansible-role-nvidia-driver#89,
packages.ubuntu.com.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Tuple

SOURCES = ("nvidia", "ubuntu")

UNVERSIONED_DRIVER_FROM = 590
UNVERSIONED_FABRIC_FROM = 580

REPOSITORY_OF = {
    ("ubuntu", "20.04"): "ubuntu2004",
    ("ubuntu", "22.04"): "ubuntu2204",
    ("ubuntu", "24.04"): "ubuntu2404",
    ("ubuntu", "26.04"): "ubuntu2604",
    ("debian", "12"): "debian12",
    ("debian", "13"): "debian13",
}
"""Folder of NVIDIA's repository, by os-release ID and VERSION_ID."""

_KEY_2022 = ("3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC")
REPOSITORY_KEYS = {
    "ubuntu2004": _KEY_2022,
    "ubuntu2204": _KEY_2022,
    "ubuntu2404": _KEY_2022,
    "debian12": _KEY_2022,
    "debian13": ("8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200"),
    "ubuntu2604": ("60DF8A40.pub", "14BAFBC7562AD710CA04E69905FBB6DA60DF8A40"),
}
"""Key file in the repository's folder, and the fingerprint of NVIDIA's key in it. The key before these was revoked on
2022-04-27 (NVIDIA/cuda-repo-management#4)."""

FIRST_BRANCH_OF = {"ubuntu2604": 595}
"""Repositories that start late."""

REPOSITORY_ARCHITECTURE = {"amd64": "x86_64", "arm64": "sbsa"}

PIN_PREFIX = "nvidia-driver-pinning-"

_MEMBER = re.compile(
    r"^(?:(?:lib)?nvidia-(?!container|cuda-toolkit|docker|gds|fs\b|mlnx|visual|nsight|dcgm)"
    r"|libnvsdm|libcuda1$|cuda-drivers|xserver-xorg-video-nvidia|linux-(?:modules|objects|signatures)-nvidia-"
    r"|firmware-nvidia-|nvlsm$)"
)
_VERSION = re.compile(r"^(?:\d+:)?(\d{3}\.\d+(?:\.\d+)?)(?:[-+~]|$)")
_PREBUILT = re.compile(r"^linux-(?:modules|objects|signatures)-nvidia-(\d{3})-")
_ARCHIVE_NAME = re.compile(r"-server(?:-|$)|^(?:nvidia-fabricmanager|libnvidia-nscq|libnvsdm|nvidia-imex)-(\d{3})$")

_OPEN_NAME = re.compile(r"^nvidia-(?:open|kernel-open-dkms|driver(?:-\d{3})?(?:-server)?-open|"
                        r"(?:dkms|kernel-source|headless|headless-no-dkms)(?:-\d{3})?(?:-server)?-open)(?:-\d{3})?$")
_PROPRIETARY_NAME = re.compile(r"^(?:cuda-drivers(?:-\d{3})?|nvidia-kernel-dkms|nvidia-driver-\d{3}(?:-server)?|"
                               r"nvidia-(?:dkms|kernel-source|headless|headless-no-dkms)(?:-\d{3})?(?:-server)?)$")
"""`nvidia-driver` without a number is left out: on Debian both flavours have it."""


@dataclass(frozen=True)
class Needs:
    """What the hardware asks for beside the driver (domain: 2.1 of the fabric table).

    `nvlink5`: the switches are managed through InfiniBand functions, by nvlsm. `imex`: multi-node NVLink.
    """

    fabric_manager: bool = False
    nvlink5: bool = False
    imex: bool = False


@dataclass(frozen=True)
class PackageSet:
    """`driver` and `fabric` carry the driver's version; `free` have versions of their own; `pin` goes in first.

    `modules` names those of `driver` that bring the kernel modules; `dkms` tells how.
    """

    pin: Optional[str]
    driver: Tuple[str, ...]
    fabric: Tuple[str, ...]
    free: Tuple[str, ...]
    modules: Tuple[str, ...]
    dkms: bool

    @property
    def versioned(self) -> Tuple[str, ...]:
        return self.driver + self.fabric


def repository_of(os_id: str, os_version: str) -> Optional[str]:
    return REPOSITORY_OF.get((os_id, os_version))


@dataclass(frozen=True)
class Kernel:
    """The kernel that will boot: `flavour` is the tail of its metapackage (``generic``, ``aws``); `release` may be
    empty where no kernel is to be seen."""

    flavour: str
    release: str


def package_set(
    source: str, os_id: str, branch: int, version: str, flavour: str, needs: Needs, kernel: Kernel, dkms: bool
) -> PackageSet:
    """The names to ask apt for."""
    if source == "nvidia":
        return _nvidia(os_id, branch, version, flavour, needs)
    return _ubuntu(branch, flavour, needs, kernel, dkms)


def _nvidia(os_id: str, branch: int, version: str, flavour: str, needs: Needs) -> PackageSet:
    suffix = "-%d" % branch if branch < UNVERSIONED_DRIVER_FROM and os_id == "ubuntu" else ""
    if flavour == "open":
        driver = "nvidia-open" + suffix
        modules = "nvidia-kernel-open-dkms" if os_id == "debian" else "nvidia-dkms%s-open" % suffix
    else:
        driver = "cuda-drivers" + suffix
        modules = "nvidia-kernel-dkms" if os_id == "debian" else "nvidia-dkms" + suffix
    fabric_suffix = "-%d" % branch if branch < UNVERSIONED_FABRIC_FROM else ""
    return PackageSet(
        pin=PIN_PREFIX + version,
        driver=(driver,),
        fabric=_fabric(fabric_suffix, needs),
        free=("nvlsm", "infiniband-diags") if needs.nvlink5 else (),
        modules=(modules,),
        dkms=True,
    )


def _ubuntu(branch: int, flavour: str, needs: Needs, kernel: Kernel, dkms: bool) -> PackageSet:
    """The metapackage of prebuilt modules follows kernel upgrades; while it is on hold the package of this kernel has
    to be named too."""
    tail = "-open" if flavour == "open" else ""
    prefix = "linux-modules-nvidia-%d-server%s-" % (branch, tail)
    prebuilt = tuple(prefix + part for part in (kernel.release, kernel.flavour) if part)
    return PackageSet(
        pin=None,
        driver=("nvidia-driver-%d-server%s" % (branch, tail), "nvidia-utils-%d-server" % branch),
        fabric=_fabric("-%d" % branch, needs),
        free=(() if dkms else prebuilt) + (("nvlsm", "infiniband-diags") if needs.nvlink5 else ()),
        modules=("nvidia-dkms-%d-server%s" % (branch, tail),) if dkms else prebuilt[:1],
        dkms=dkms,
    )


def _fabric(suffix: str, needs: Needs) -> Tuple[str, ...]:
    names = []
    if needs.fabric_manager:
        names += ["nvidia-fabricmanager" + suffix, "libnvidia-nscq" + suffix]
    if needs.nvlink5:
        names.append("libnvsdm" + suffix)
    if needs.imex:
        names.append("nvidia-imex" + suffix)
    return tuple(names)


# -- reading names back ------------------------------------------------------------------------------------------------


def is_member(name: str) -> bool:
    """Does a package of this name belong to a driver set (of whatever branch and source)? Pins do not."""
    return bool(_MEMBER.match(name)) and not is_pin(name)


def is_pin(name: str) -> bool:
    return name.startswith(PIN_PREFIX)


def is_fabric(name: str) -> bool:
    """Packages that only machines with a fabric have."""
    return bool(re.match(r"^(?:nvidia-fabricmanager|libnvidia-nscq|libnvsdm|nvlsm)(?:-\d{3})?$", name))


def is_fabric_manager(name: str) -> bool:
    return bool(re.match(r"^nvidia-fabricmanager(?:-\d{3})?$", name))


def is_other_flavour(name: str, flavour: str, source: str) -> bool:
    """Is this a package of module flavour's opposite? Those exclude each other, and a leftover wins the next build."""
    if flavour == "open":
        return bool(_PROPRIETARY_NAME.match(name)) or bool(
            prebuilt_branch_of(name) and source == "ubuntu" and "-server-open-" not in name
        )
    return bool(_OPEN_NAME.match(name)) or "-server-open-" in name


def driver_version_of(debian_version: str) -> Optional[str]:
    """``580.178.04-1ubuntu1`` → ``580.178.04``; None of a version that is not a driver's (a kernel's, nvlsm's)."""
    match = _VERSION.match(debian_version or "")
    return match.group(1) if match else None


def prebuilt_branch_of(name: str) -> Optional[str]:
    """Branch of a package with modules that the archive built and signed, else None."""
    match = _PREBUILT.match(name)
    return match.group(1) if match else None


def source_of(name: str, debian_version: str) -> Optional[str]:
    """Where an installed member came from, as far as its name and version tell; None: could be either."""
    version = driver_version_of(debian_version)
    if prebuilt_branch_of(name):
        return "ubuntu"
    match = _ARCHIVE_NAME.search(name)
    if match:
        branch = match.group(1)
        return "ubuntu" if branch is None or int(branch) >= UNVERSIONED_FABRIC_FROM else None
    if is_fabric(name) and name != "nvlsm" and version and int(version[:3]) >= UNVERSIONED_FABRIC_FROM:
        return "nvidia"
    if re.match(r"^(?:nvidia-open|cuda-drivers)(?:-\d{3})?$", name):
        return "nvidia"
    return None
