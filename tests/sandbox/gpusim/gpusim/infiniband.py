# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""InfiniBand functions by which NVLink 5 switches are managed: /sys/class/infiniband, vital product data.

The switches of an HGX B200 are no PCI functions. ConnectX functions stand before them, and those that manage carry
`SW_MNG` in their vital product data (NVIDIA's driver container looks for it). They appear when mlx5_ib is loaded.
"""

import os
import shutil

FUNCTION = {
    "vendor": "0x15b3",
    "device": "0x1021",
    "class": "0x020700",
    "revision": "0x00",
    "subsystem_vendor": "0x15b3",
    "subsystem_device": "0x0041",
}
"""A ConnectX-7 in InfiniBand mode (ids of pci.ids; how many an HGX B200 has is not confirmed)."""


def vpd(entry: dict) -> bytes:
    """PCI vital product data: an identifier string, then the keyword V3 with the part's role."""
    name = b"ConnectX-7 bridge to NVLink switch"
    role = b"SW_MNG" if entry["management"] else b"SW_DAT"
    field = b"V3" + bytes([len(role)]) + role
    return (
        b"\x82" + len(name).to_bytes(2, "little") + name + b"\x90" + len(field).to_bytes(2, "little") + field + b"\x78"
    )


def build(folder: str, profile: dict, loaded: bool) -> None:
    """Write the entries of /sys/class/infiniband into `folder`, replacing what is there; none without mlx5_ib."""
    if os.path.isdir(folder):
        shutil.rmtree(folder)
    if not profile["nvlink_management"]:
        return
    os.makedirs(folder)
    for entry in profile["nvlink_management"] if loaded else []:
        device = os.path.join(folder, entry["infiniband"])
        os.makedirs(device, exist_ok=True)
        with open(os.path.join(device, "node_type"), "w", encoding="ascii") as stream:
            stream.write("1: CA\n")
        os.symlink(f"../../../bus/pci/devices/{entry['bus']}", os.path.join(device, "device"))
