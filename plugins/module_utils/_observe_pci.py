# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the PCI bus and the driver's versions through the `Host` that is handed in."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Dict, Optional

from ._host import Host
from ._pci import AMD, NVIDIA, PciInventory, classify_pci, pci_device

PCI_DEVICES = "/sys/bus/pci/devices"
_INFINIBAND_VPD = "/sys/class/infiniband/*/device/vpd"
_NVLINK_MANAGEMENT_MARK = b"SW_MNG"
"""Part name in the vital product data of an NVLink 5 switch's management function (gpu-driver-container does so)."""
_ATTRIBUTES = ("device", "class", "numa_node", "current_link_width", "max_link_width")
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_MODINFO_TIMEOUT_S = 15.0


def observe_pci(host: Host) -> PciInventory:
    """GPUs, NVSwitches, NVLink 5 management functions and AMD GPUs of this machine. Starts no command."""
    devices = []
    addresses = host.list_dir(PCI_DEVICES)
    for address in addresses:
        folder = posixpath.join(PCI_DEVICES, address)
        vendor = host.read_text(posixpath.join(folder, "vendor"), 32)
        if not vendor or vendor.strip().lower().replace("0x", "") not in (NVIDIA, AMD):
            continue
        attributes: Dict[str, Optional[str]] = {"vendor": vendor}
        for name in _ATTRIBUTES:
            attributes[name] = host.read_text(posixpath.join(folder, name), 64)
        link = posixpath.join(folder, "driver")
        if host.exists(link):
            attributes["driver"] = posixpath.basename(host.real_path(link))
        device = pci_device(address, attributes)
        if device is not None:
            devices.append(device)
    management = []
    for path in host.glob(_INFINIBAND_VPD):
        if _NVLINK_MANAGEMENT_MARK in (host.read_bytes(path, 65536) or b""):
            management.append(path.split("/")[4])
    return classify_pci(devices, management, readable=bool(addresses) or host.exists(PCI_DEVICES))


@dataclass(frozen=True)
class DriverState:
    """Versions of the NVIDIA kernel module: what runs, what is on disk for the running kernel. None: not there."""

    kernel: Optional[str] = None
    loaded_version: Optional[str] = None
    loaded_flavour: Optional[str] = None
    installed_version: Optional[str] = None
    installed_flavour: Optional[str] = None
    nouveau_loaded: bool = False
    secure_boot: Optional[bool] = None


def observe_driver(host: Host, ask_modinfo: bool = True) -> DriverState:
    """`flavour` is ``open`` or ``proprietary``. `ask_modinfo` False leaves out the two commands."""
    proc = host.read_text("/proc/driver/nvidia/version", 4096)
    loaded = (host.read_text("/sys/module/nvidia/version", 64) or "").strip() or _version_of_proc(proc)
    installed, licence = None, None
    if ask_modinfo:
        installed, licence = _modinfo(host, "version"), _modinfo(host, "license")
    return DriverState(
        kernel=(host.read_text("/proc/sys/kernel/osrelease", 256) or "").strip() or None,
        loaded_version=loaded,
        loaded_flavour=_flavour_of_proc(proc) if loaded else None,
        installed_version=installed,
        installed_flavour=_flavour_of_licence(licence),
        nouveau_loaded=host.exists("/sys/module/nouveau"),
        secure_boot=_secure_boot(host),
    )


def _version_of_proc(text: Optional[str]) -> Optional[str]:
    match = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text or "", re.MULTILINE)
    return match.group(1) if match else None


def _flavour_of_proc(text: Optional[str]) -> Optional[str]:
    if not text:
        return None
    return "open" if "Open Kernel Module" in text else "proprietary"


def _flavour_of_licence(text: Optional[str]) -> Optional[str]:
    if not text:
        return None
    return "open" if "MIT" in text else "proprietary"


def _modinfo(host: Host, field: str) -> Optional[str]:
    """Debian's own package calls the module `nvidia-current`; NVIDIA's and Ubuntu's call it `nvidia`."""
    for module in ("nvidia", "nvidia-current"):
        result = host.run(("modinfo", "-F", field, module), timeout_s=_MODINFO_TIMEOUT_S)
        if result.ok and result.stdout.strip():
            return result.stdout.strip().splitlines()[0]
    return None


def _secure_boot(host: Host) -> Optional[bool]:
    """The efivar holds four bytes of attributes, then one of state; None on a machine that did not boot by EFI."""
    data = host.read_bytes(_SECURE_BOOT, 16)
    return bool(data[4]) if data and len(data) >= 5 else None
