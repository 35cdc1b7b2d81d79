# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which system each image is, and which archive it is bootstrapped from. Pure.

`debian12` and `debian13` are what they say. An `ubuntu*` image is a stand-in, the Debian release nearest in age with
Ubuntu's identity (see images/setup.sh), unless a mirror of Ubuntu's archive is named: then it is the genuine system.
It has to be named, and is not looked for: the stand-ins' archive is a double whose packages tests rely on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Tuple

from .errors import UsageError

REPOSITORY_SUITE = "bookworm"
"""The base that the repository server runs on, whatever the hosts are."""

_MODERN = "main contrib non-free non-free-firmware"
_DEBIAN_COMPONENTS = {"bullseye": "main contrib non-free", "bookworm": _MODERN, "trixie": _MODERN}
"""contrib and non-free hold Debian's own NVIDIA driver; before bookworm, firmware was part of non-free."""

_UBUNTU_COMPONENTS = "main restricted universe multiverse"

_DEBIAN_SUITE = {
    "debian12": "bookworm",
    "debian13": "trixie",
    "ubuntu2004": "bullseye",
    "ubuntu2204": "bookworm",
    "ubuntu2404": "bookworm",
    "ubuntu2604": "trixie",
}
_UBUNTU_CODENAME = {"ubuntu2004": "focal", "ubuntu2204": "jammy", "ubuntu2404": "noble", "ubuntu2604": "resolute"}


@dataclass(frozen=True)
class Base:
    """A bootstrapped system. `vendor` is the Origin field of its archive's Release file."""

    suite: str
    vendor: str
    components: str

    @property
    def name(self) -> str:
        """The image's name, without the tag."""
        return f"base-{self.suite}"

    def mirror_sources(self, mirror: str) -> List[str]:
        """Lines of sources.list for a mirror that was named. Debian keeps its security suite on another server."""
        pockets = ("", "-updates", "-security") if self.vendor == "Ubuntu" else ("", "-updates")
        return [f"deb {mirror} {self.suite}{pocket} {self.components}" for pocket in pockets]

    def machine_sources(self, targets: str) -> List[str]:
        """Lines of sources.list from what a machine's own apt uses, `URL SUITE ORIGIN` a line; none: it has not got it.

        A machine that has one release of Debian reaches the others at the same addresses.
        """
        found: Dict[str, str] = {}
        for entry in targets.splitlines():
            fields = entry.split()
            if len(fields) == 3 and fields[2] == self.vendor and fields[0].startswith(("http:", "https:")):
                pocket = fields[1].partition("-")[2]
                found.setdefault(pocket, fields[0])
        if "" not in found:
            return []
        pockets = [pocket for pocket in ("", "updates", "security") if pocket in found]
        return [f"deb {found[pocket]} {'-'.join(filter(None, (self.suite, pocket)))} {self.components}"
                for pocket in pockets]


@dataclass(frozen=True)
class System:
    """One image: its name, what it is bootstrapped from, and whether it only looks like what its name says."""

    image: str
    base: Base
    stand_in: bool


def debian(suite: str) -> Base:
    """A release of Debian, by its codename."""
    return Base(suite, "Debian", _DEBIAN_COMPONENTS[suite])


def known_images() -> List[str]:
    """The names that `sandbox_image` may have."""
    return sorted(_DEBIAN_SUITE)


def check_known(wanted: Iterable[str]) -> None:
    """Refuse an image that cannot be built, naming those that can."""
    unknown = sorted(set(wanted) - set(known_images()))
    if unknown:
        raise UsageError(f"unknown sandbox_image {', '.join(unknown)}; known: {', '.join(known_images())}")


def system_of(image: str, ubuntu_mirror: str = "") -> System:
    """What an image is made of; `ubuntu_mirror` makes Ubuntu's genuine."""
    codename = _UBUNTU_CODENAME.get(image)
    if codename and ubuntu_mirror:
        return System(image, Base(codename, "Ubuntu", _UBUNTU_COMPONENTS), stand_in=False)
    return System(image, debian(_DEBIAN_SUITE[image]), stand_in=codename is not None)


def references_first(references: Iterable[str], prefix: str) -> List[str]:
    """In the order of removal: images before the bases they are layers on."""
    return sorted(references, key=lambda reference: (reference.startswith(f"{prefix}/base-"), reference))


def bases_of(systems: Iterable[System]) -> Mapping[str, Base]:
    """{name: base}, the repository server's among them."""
    wanted: Tuple[Base, ...] = (debian(REPOSITORY_SUITE), *(system.base for system in systems))
    return {base.name: base for base in wanted}
