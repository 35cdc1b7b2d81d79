# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits into /boot."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._boot_space import (
    MARGIN_BYTES,
    boot_bytes_needed,
    shortage,
)

MIB = 1024 * 1024
BOOT = {
    "vmlinuz-5.15.0-160-generic": 11 * MIB,
    "vmlinuz-5.15.0-164-generic": 12 * MIB,
    "initrd.img-5.15.0-160-generic": 140 * MIB,
    "initrd.img-5.15.0-164-generic": 150 * MIB,
    "System.map-5.15.0-164-generic": 6 * MIB,
    "config-5.15.0-164-generic": 1 * MIB,
}


@pytest.mark.parametrize(
    "names, mib",
    [
        (["linux-image-5.15.0-170-generic", "nvidia-dkms-580-open"], 168),
        (["linux-image-6.12.30+deb13-amd64"], 168),
        (["linux-image-unsigned-6.8.0-90-generic"], 168),
        (["proxmox-kernel-6.8.12-4-pve"], 168),
        (["linux-headers-5.15.0-164-generic"], 150),
        (["linux-modules-nvidia-580-server-5.15.0-164-generic:amd64"], 150),
        (["nvidia-dkms-580-open"], 150),
        (["nvidia-kernel-open-dkms"], 150),
        (["dkms"], 150),
        (["linux-image-generic"], 0),
        (["lsof", "nvidia-utils-580", "linux-libc-dev"], 0),
        ([], 0),
    ],
)
def test_a_kernel_needs_its_files_and_a_module_an_initramfs(names, mib):
    assert boot_bytes_needed(names, BOOT) == (mib * MIB + MARGIN_BYTES if mib else 0)


def test_an_empty_boot_needs_the_margin():
    assert boot_bytes_needed(["dkms"], {}) == MARGIN_BYTES


def test_a_shortage_says_how_much_there_is_how_much_is_needed_and_what_can_go():
    text = shortage(["nvidia-dkms-580-open"], BOOT, 100 * MIB)
    for words in (
        "100 MiB left",
        "about 166 MiB",
        "5.15.0-160-generic, 5.15.0-164-generic",
        "Nothing was installed",
        "apt-get autoremove --purge",
    ):
        assert words in text


@pytest.mark.parametrize("names, free", [(["lsof"], 0), (["dkms"], 166 * MIB), (["dkms"], None)])
def test_no_shortage(names, free):
    assert shortage(names, BOOT, free) is None
