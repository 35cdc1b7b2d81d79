# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/sys/bus/pci/devices of the simulated machine, in the files that lspci, lshw and our roles read."""

import os
import shutil

from . import infiniband

CONFIG_BYTES = 256
SPEED_OF_GENERATION = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}


def config_space(device: dict) -> bytes:
    """The standard header of a PCI function: ids, class, header type 0, subsystem, everything else zero."""
    space = bytearray(CONFIG_BYTES)
    number = {key: int(device.get(key, "0x0"), 16) for key in _KEYS}
    space[0:2] = number["vendor"].to_bytes(2, "little")
    space[2:4] = number["device"].to_bytes(2, "little")
    space[4:6] = (0x0406).to_bytes(2, "little")  # memory, bus master, no legacy interrupt
    space[8] = number["revision"]
    space[9:12] = number["class"].to_bytes(3, "little")
    space[0x2C:0x2E] = number["subsystem_vendor"].to_bytes(2, "little")
    space[0x2E:0x30] = number["subsystem_device"].to_bytes(2, "little")
    return bytes(space)


_KEYS = ("vendor", "device", "class", "revision", "subsystem_vendor", "subsystem_device")


def build(folder: str, profile: dict, driver_loaded: bool) -> None:
    """Write the tree for a machine (data of :func:`gpusim.profiles.load`) into `folder`, replacing what is there."""
    if os.path.isdir(folder):
        for entry in os.listdir(folder):
            shutil.rmtree(os.path.join(folder, entry))
    os.makedirs(folder, exist_ok=True)
    for entry in profile["other_pci"]:
        _device(os.path.join(folder, entry["bus"]), entry, {"numa": entry["numa"]}, "")
    for entry in profile["nvlink_management"]:
        place = {"numa": entry["numa"], "vpd": infiniband.vpd(entry)}
        _device(os.path.join(folder, entry["bus"]), infiniband.FUNCTION, place, "mlx5_core")
    for kind, driver in (("gpus", "nvidia"), ("nvswitches", "nvidia-nvswitch")):
        for entry in profile[kind]:
            model = entry["model"]
            place = {"numa": entry["numa"], "pcie": model["pcie"], "bars": model["pci"]["bars"]}
            place["cpus"] = profile["numa_nodes"][entry["numa"]]["cpus"]
            _device(os.path.join(folder, entry["bus"]), model["pci"], place, driver if driver_loaded else "")


def _device(folder: str, device: dict, place: dict, driver: str) -> None:
    os.makedirs(folder)
    revision = device.get("revision", "0x00")
    files = {
        "vendor": device["vendor"],
        "device": device["device"],
        "class": device["class"],
        "revision": revision,
        "subsystem_vendor": device.get("subsystem_vendor", "0x0000"),
        "subsystem_device": device.get("subsystem_device", "0x0000"),
        "irq": "0",
        "enable": "1",
        "numa_node": str(place["numa"]),
        "resource": "\n".join(_resources(place.get("bars", []))),
        "modalias": _modalias(device),
    }
    if "cpus" in place:
        files["local_cpulist"] = place["cpus"]
    if "pcie" in place:
        speed = SPEED_OF_GENERATION[place["pcie"]["gen"]] + " GT/s PCIe"
        width = str(place["pcie"]["width"])
        files.update(current_link_speed=speed, max_link_speed=speed, current_link_width=width, max_link_width=width)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as stream:
            stream.write(text + "\n")
    with open(os.path.join(folder, "config"), "wb") as stream:
        stream.write(config_space(device))
    if "vpd" in place:
        with open(os.path.join(folder, "vpd"), "wb") as stream:
            stream.write(place["vpd"])
    if driver:
        os.symlink(f"../../../../bus/pci/drivers/{driver}", os.path.join(folder, "driver"))


def _resources(bars: list) -> list:
    """Lines `start end flags`: six BARs, the ROM and what follows, unused ones zero."""
    lines = []
    start = 0x380000000000
    for _, size in bars:
        start = (start + size - 1) // size * size
        lines.append(f"0x{start:016x} 0x{start + size - 1:016x} 0x000000000014220c")
        lines.append("0x" + "0" * 16 + " 0x" + "0" * 16 + " 0x" + "0" * 16)  # upper half of a 64-bit BAR
        start += size
    empty = "0x" + "0" * 16
    return (lines + [f"{empty} {empty} {empty}"] * 13)[:13]


def _modalias(device: dict) -> str:
    vendor, number = int(device["vendor"], 16), int(device["device"], 16)
    sub_vendor = int(device.get("subsystem_vendor", "0x0"), 16)
    sub_device = int(device.get("subsystem_device", "0x0"), 16)
    kind = int(device["class"], 16)
    return (
        f"pci:v{vendor:08X}d{number:08X}sv{sub_vendor:08X}sd{sub_device:08X}"
        f"bc{kind >> 16:02X}sc{kind >> 8 & 255:02X}i{kind & 255:02X}"
    )


def set_link(folder: str, one) -> None:
    """Write what the PCIe link of a GPU has now."""
    link = {"current_link_speed": SPEED_OF_GENERATION[one.pcie_generation] + " GT/s PCIe"}
    link["current_link_width"] = str(one.pcie_width)
    for name, text in link.items():
        with open(os.path.join(folder, one.sysfs_bus_id, name), "w", encoding="ascii") as stream:
            stream.write(text + "\n")


def set_lost(folder: str, bus: str, device: dict, lost: bool) -> None:
    """A function that fell off the bus stays listed, but every read of its registers returns ones."""
    path = os.path.join(folder, bus, "config")
    with open(path, "wb") as stream:
        stream.write(b"\xff" * CONFIG_BYTES if lost else config_space(device))
