# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel a machine will boot, and what its packages are called. Pure.

A module that is built for the running kernel alone is gone after the next boot, so everything here asks about the
kernel that *will* boot: the newest one in /boot, which is what GRUB's first entry starts. Package names follow the
Ubuntu and Debian archives: ``linux-image-<meta>`` and ``linux-headers-<meta>`` follow kernel upgrades, the ones that
carry a release do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Tuple

from ._dpkg import Package, version_key

_IMAGE = re.compile(r"^vmlinu[xz]-(?P<release>\d[^/]*)$")
_LEFTOVER = re.compile(r"\.(old|bak|efi|signed|dpkg-\w+|dpkg-bak|orig|sig|hmac)$|~$")
_UBUNTU_FLAVOUR = re.compile(r"^\d+(?:\.\d+)+-\d+-(?P<flavour>[a-z].*)$")
_DEBIAN_FLAVOUR = re.compile(r"^\d+(?:\.\d+)+\S*?-(?P<flavour>(?:(?:cloud|rt)-)?(?:amd64|arm64)(?:-16k)?)$")
_PROXMOX = re.compile(r"^(?P<series>\d+\.\d+)\.\d+-\d+(?:-bpo\S*)?-pve$")


@dataclass(frozen=True)
class BootKernel:
    """The kernel that will boot. `source` says how it is known; `installed` has all releases, oldest first."""

    release: Optional[str]
    flavour: Optional[str]
    source: str
    running: str
    installed: Tuple[str, ...] = ()
    without_modules: bool = False

    @property
    def differs(self) -> bool:
        return self.release is not None and self.release != self.running


@dataclass(frozen=True)
class Headers:
    """Names of the headers packages of one kernel: `exact` for this release, `meta` for those that follow it."""

    exact: Optional[str]
    meta: Optional[str]

    @property
    def names(self) -> Tuple[str, ...]:
        return tuple(name for name in (self.exact, self.meta) if name)


def boot_releases(boot_names: Sequence[str]) -> Tuple[str, ...]:
    """Kernel releases in /boot, oldest first; leftovers such as ``vmlinuz-….old`` do not count."""
    matches = (_IMAGE.match(name) for name in boot_names if not _LEFTOVER.search(name))
    return tuple(sorted({match.group("release") for match in matches if match}, key=version_key))


def boot_kernel(
    boot_names: Sequence[str],
    module_dirs: Sequence[str],
    packages: Mapping[str, Package],
    running: str,
    distribution: str,
) -> BootKernel:
    """The kernel that the next boot starts.

    `boot_names` are the names in /boot, `module_dirs` those in /lib/modules, `running` is the running release,
    `distribution` is os-release's ID. A kernel whose package dpkg still has to configure counts when it is in /boot.
    Without any kernel in /boot (a container, a network boot) it is the running one where its modules are here
    (source ``running``), else none: then nothing on this file system decides what boots.
    """
    releases = boot_releases(boot_names)
    if releases:
        release = releases[-1]
        return BootKernel(
            release=release,
            flavour=flavour_of(release, distribution),
            source="boot",
            running=running,
            installed=releases,
            without_modules=release not in module_dirs,
        )
    if running and (running in module_dirs or "linux-image-" + running in packages):
        return BootKernel(running, flavour_of(running, distribution), "running", running, (running,))
    return BootKernel(None, None, "none", running, ())


def flavour_of(release: str, distribution: str) -> Optional[str]:
    """``generic``, ``aws``, ``amd64``, ``cloud-amd64``, ``pve``…; None where the release is of no known form."""
    if _PROXMOX.match(release):
        return "pve"
    match = (_UBUNTU_FLAVOUR if distribution == "ubuntu" else _DEBIAN_FLAVOUR).match(release)
    return match.group("flavour") if match else None


def kernel_meta(release: str, packages: Mapping[str, Package], distribution: str) -> Optional[str]:
    """The part after ``linux-image-`` of the metapackage that this kernel came with, e.g. ``generic-hwe-22.04``.

    Falls back on the flavour where no metapackage is installed. Of several, the newest one wins: that is the one
    whose kernel boots.
    """
    flavour = flavour_of(release, distribution)
    if flavour is None or flavour == "pve":
        return None
    prefix = "linux-image-"
    metas = [
        package
        for name, package in packages.items()
        if name.startswith(prefix)
        and package.state == "installed"
        and (name[len(prefix) :] == flavour or name.startswith(prefix + flavour + "-"))
        and not _names_other_flavour(name[len(prefix) :], flavour, distribution)
    ]
    if not metas:
        return flavour
    return max(metas, key=lambda package: version_key(package.version)).name[len(prefix) :]


def _names_other_flavour(meta: str, flavour: str, distribution: str) -> bool:
    """`generic-64k` is a flavour of its own, `generic-hwe-22.04` a metapackage of `generic`; Debian has no such."""
    rest = meta[len(flavour) + 1 :]
    if not rest:
        return False
    return distribution != "ubuntu" or not re.match(r"^(hwe-|lts-|edge|fips|\d+\.\d+)", rest)


def headers_packages(release: str, packages: Mapping[str, Package], distribution: str) -> Headers:
    """Headers packages of a kernel; both None where the release is of no known form (a kernel built by hand)."""
    proxmox = _PROXMOX.match(release)
    if proxmox:
        return Headers("proxmox-headers-" + release, "proxmox-headers-" + proxmox.group("series"))
    meta = kernel_meta(release, packages, distribution)
    if meta is None:
        return Headers(None, None)
    return Headers("linux-headers-" + release, "linux-headers-%s" % meta)
