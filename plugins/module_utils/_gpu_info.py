# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What GPUs a machine has and which driver: the PCI bus, and nvidia-smi where there is a driver. No judgement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Optional

from ._health import gpu_row
from ._host import Host
from ._observation import Observation
from ._observe_pci import DriverState, observe_driver, observe_pci
from ._pci import PciDevice
from ._smi_reading import SmiReading
from ._smi_xml import parse_smi_xml

_SHOWN = (
    "index",
    "uuid",
    "pci_bus_id",
    "name",
    "model",
    "architecture",
    "numa_node",
    "vbios_version",
    "memory_total_mib",
)


def gather_info(host: Host, nvidia_smi: str, timeout_s: float) -> Dict[str, Any]:
    """{gpus, nvswitches, nvlink_management, amd_gpus, driver, kernel, secure_boot}; GPUs of the bus come first, what
    nvidia-smi adds is null where it cannot be asked."""
    pci = observe_pci(host)
    driver = observe_driver(host)
    reading: Optional[SmiReading] = None
    if driver.loaded_version or not pci.readable:
        result = host.run((nvidia_smi, "-q", "-x"), timeout_s=timeout_s)
        reading = parse_smi_xml(result.stdout) if result.stdout else None
    seen = replace(Observation(live=True, pci=pci, driver=driver), smi=reading)
    rows = {gpu.bus_id: gpu_row(gpu, seen) for gpu in (reading.gpus if reading else ())}
    gpus = [_gpu(device, rows.pop(device.bus_id, None)) for device in pci.gpus]
    gpus += [{name: row.get(name) for name in _SHOWN + ("pci_device_id",)} for row in rows.values()]
    return {
        "gpus": gpus,
        "nvswitches": [_device(device) for device in pci.nvswitches],
        "nvlink_management": list(pci.nvlink_management),
        "amd_gpus": [_device(device) for device in pci.amd_gpus],
        "driver": _driver(driver, reading),
        "kernel": driver.kernel,
        "secure_boot": driver.secure_boot,
    }


def _device(device: PciDevice) -> Dict[str, Any]:
    return {"pci_bus_id": device.bus_id, "pci_device_id": device.device, "numa_node": device.numa_node}


def _gpu(device: PciDevice, row: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    data = {name: (row or {}).get(name) for name in _SHOWN}
    data.update(
        pci_bus_id=device.bus_id,
        pci_device_id=device.device,
        numa_node=device.numa_node,
        model=data["model"] or device.model,
        architecture=data["architecture"] or device.architecture,
    )
    return data


def _driver(driver: DriverState, reading: Optional[SmiReading]) -> Dict[str, Any]:
    return {
        "loaded_version": driver.loaded_version,
        "loaded_flavour": driver.loaded_flavour,
        "installed_version": driver.installed_version,
        "installed_flavour": driver.installed_flavour,
        "user_space_version": reading.driver_version if reading else None,
        "cuda_version": reading.cuda_version if reading else None,
        "nouveau_loaded": driver.nouveau_loaded,
    }
