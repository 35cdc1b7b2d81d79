# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much space in /boot a set of packages needs. Pure.

A /boot that fills up in the middle leaves an initramfs cut short and packages half-configured, and the machine may not
boot: so it is asked before. A new kernel needs room for its image and its initramfs; a module built by DKMS makes the
initramfs of a kernel anew, beside the old one until it is complete (update-initramfs(8)).
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional

MARGIN_BYTES = 16 * 1024 * 1024
"""Above what is there now: initramfs files grow, and other packages write there too."""

_KERNEL = re.compile(r"^(?:linux-image|proxmox-kernel)(?:-unsigned)?-\d")
_INITRAMFS = re.compile(r"^(?:linux-headers|linux-modules|proxmox-headers|initramfs-tools|dracut)|-dkms(?:-|$)|^dkms$")


def boot_bytes_needed(names: Iterable[str], files: Mapping[str, int]) -> int:
    """`names`: packages that would be unpacked; `files`: names in /boot and their sizes in bytes. 0: none."""
    plain = [name.split(":")[0] for name in names]
    image = _largest(files, ("vmlinuz-", "vmlinux-"))
    initramfs = _largest(files, ("initrd.img-",))
    if any(_KERNEL.match(name) for name in plain):
        return image + initramfs + _largest(files, ("System.map-",)) + MARGIN_BYTES
    if any(_INITRAMFS.search(name) for name in plain):
        return initramfs + MARGIN_BYTES
    return 0


def shortage(names: Iterable[str], files: Mapping[str, int], free_bytes: Optional[int]) -> Optional[str]:
    """What is missing in /boot, in words; None where there is enough or nobody knows (`free_bytes` is None)."""
    needed = boot_bytes_needed(names, files)
    if free_bytes is None or free_bytes >= needed:
        return None
    kernels = sorted(name[len("vmlinuz-") :] for name in files if name.startswith("vmlinuz-"))
    return (
        "/boot has %d MiB left, and what is to be installed needs about %d MiB there. Nothing was installed. "
        "Kernels there: %s. Remove those that are not used (apt-get autoremove --purge), then run again"
        % (free_bytes >> 20, needed >> 20, ", ".join(kernels) or "none")
    )


def _largest(files: Mapping[str, int], prefixes) -> int:
    return max((size for name, size in files.items() if name.startswith(tuple(prefixes))), default=0)
