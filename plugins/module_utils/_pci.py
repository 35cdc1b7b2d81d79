# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the PCI bus says about a machine's GPUs and NVSwitches, with or without a driver.

Pure: it is given what stands in /sys/bus/pci/devices (see `_observe.observe_pci`). PCI addresses leave this file as
nvidia-smi writes them, ``00000000:4B:00.0``, so that a finding of the bus and one of the tool name the same GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterable, Mapping, Optional, Tuple

from ._gpu_models import architecture_of, model_of_pci_id

NVIDIA = "10de"
AMD = "1002"
_GPU_CLASSES = ("0300", "0302")
"""VGA and 3D controllers; GPUs of NVIDIA's and AMD's servers are 0302 and 0380 respectively."""
_AMD_GPU_CLASSES = ("0300", "0302", "0380")
_NVSWITCH_CLASS = "0680"
"""The driver itself takes class 0680 of vendor 10de for an NVSwitch (open-gpu-kernel-modules, linux_nvswitch.c)."""

_ADDRESS = re.compile(
    r"^\s*(?:(?:pci|gpu)\s*:?\s*)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?\s*$", re.IGNORECASE
)


def normal_bus_id(text: Optional[str]) -> Optional[str]:
    """``00000000:4B:00.0`` of any spelling: ``0000:4b:00.0``, ``PCI:0000:4b:00``, ``4b:00.0``; None of nonsense."""
    match = _ADDRESS.match(text or "")
    if not match:
        return None
    domain, bus, device, function = match.groups()
    return ("%8s:%s:%s.%s" % (domain or "0", bus, device, function or "0")).replace(" ", "0").upper()


@dataclass(frozen=True)
class PciDevice:
    """One PCI function. `bus_id` as nvidia-smi writes it, `address` as sysfs does; widths are lane counts."""

    bus_id: str
    address: str
    vendor: str
    device: str
    class_code: str
    numa_node: Optional[int] = None
    current_link_width: Optional[int] = None
    max_link_width: Optional[int] = None
    driver: Optional[str] = None

    @property
    def architecture(self) -> Optional[str]:
        return architecture_of(self.device) if self.vendor == NVIDIA else None

    @property
    def model(self) -> Optional[str]:
        found = model_of_pci_id(self.device) if self.vendor == NVIDIA else None
        return found.name if found else None


@dataclass(frozen=True)
class PciInventory:
    """What matters of a machine's PCI bus, each sorted by address.

    `nvlink_management` holds the InfiniBand functions through which NVLink 5 switches are managed (HGX B200 and
    later have no class-0680 device); it is empty as well where the mlx5_ib module is not loaded.
    """

    gpus: Tuple[PciDevice, ...] = ()
    nvswitches: Tuple[PciDevice, ...] = ()
    amd_gpus: Tuple[PciDevice, ...] = ()
    nvlink_management: Tuple[str, ...] = ()
    readable: bool = True

    @property
    def has_nvswitch(self) -> bool:
        return bool(self.nvswitches)

    @property
    def architectures(self) -> Tuple[str, ...]:
        return tuple(sorted({gpu.architecture for gpu in self.gpus if gpu.architecture}))


def pci_device(address: str, attributes: Mapping[str, Optional[str]]) -> Optional[PciDevice]:
    """A device of its sysfs address and the text of its attribute files; None where it is not one.

    Attributes used: vendor, device, class, numa_node, current_link_width, max_link_width, driver (a base name).
    """
    bus_id = normal_bus_id(address)
    if bus_id is None:
        return None
    return PciDevice(
        bus_id=bus_id,
        address=address.lower(),
        vendor=_hex(attributes.get("vendor"), 4),
        device=_hex(attributes.get("device"), 4),
        class_code=_hex(attributes.get("class"), 6),
        numa_node=_numa_node(attributes.get("numa_node")),
        current_link_width=_lanes(attributes.get("current_link_width")),
        max_link_width=_lanes(attributes.get("max_link_width")),
        driver=(attributes.get("driver") or "").strip() or None,
    )


def classify_pci(
    devices: Iterable[PciDevice], nvlink_management: Iterable[str] = (), readable: bool = True
) -> PciInventory:
    """Sort PCI functions into GPUs, NVSwitches and AMD GPUs; everything else is left out."""
    found: Dict[str, list] = {"gpus": [], "nvswitches": [], "amd_gpus": []}
    for device in sorted(devices, key=lambda item: item.bus_id):
        base = device.class_code[:4]
        if device.vendor == NVIDIA and base in _GPU_CLASSES:
            found["gpus"].append(device)
        elif device.vendor == NVIDIA and base == _NVSWITCH_CLASS:
            found["nvswitches"].append(device)
        elif device.vendor == AMD and base in _AMD_GPU_CLASSES:
            found["amd_gpus"].append(device)
    return PciInventory(
        gpus=tuple(found["gpus"]),
        nvswitches=tuple(found["nvswitches"]),
        amd_gpus=tuple(found["amd_gpus"]),
        nvlink_management=tuple(nvlink_management),
        readable=readable,
    )


def _hex(text: Optional[str], digits: int) -> str:
    match = re.match(r"^\s*(?:0x)?([0-9a-fA-F]+)\s*$", text or "")
    return match.group(1).lower().rjust(digits, "0") if match else ""


def _numa_node(text: Optional[str]) -> Optional[int]:
    """The kernel writes -1 where it does not know."""
    match = re.match(r"^\s*(\d+)\s*$", text or "")
    return int(match.group(1)) if match else None


def _lanes(text: Optional[str]) -> Optional[int]:
    match = re.match(r"^\s*(\d+)\s*$", text or "")
    lanes = int(match.group(1)) if match else 0
    return lanes if 0 < lanes <= 64 else None
