# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a loaded driver leaves behind: /sys/module/nvidia*, /proc/driver/nvidia*, /dev/nvidia*."""

import os
import stat

from . import driver

MAJOR = 195
"""The character device number that Linux reserves for NVIDIA."""


def build_modules(folder: str, version: str) -> None:
    """Write /sys/module entries of the loaded modules into `folder`."""
    users = {"nvidia": 2, "nvidia-uvm": 0, "nvidia-modeset": 1, "nvidia-drm": 0}
    for name in driver.MODULES:
        entry = os.path.join(folder, name.replace("-", "_"))
        _files(entry, {"version": version, "refcnt": str(users[name]), "initstate": "live", "taint": "OE"})
        os.makedirs(os.path.join(entry, "parameters"), exist_ok=True)
        os.makedirs(os.path.join(entry, "holders"), exist_ok=True)
    _files(os.path.join(folder, "nvidia_drm", "parameters"), {"modeset": "N"})


def build_proc(folder: str, profile: dict, gpus: list, module: dict) -> None:
    """Write /proc/driver entries into `folder`: nvidia/version, params, gpus/*/information, nvidia-nvswitch/devices."""
    version = module["version"]
    if "GPL" in module["license"]:
        flavour = f"NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (root@gpulab)"
    else:
        flavour = f"NVIDIA UNIX x86_64 Kernel Module  {version}  Mon Sep 14 20:52:36 UTC 2026"
    text = f"NVRM version: {flavour}\nGCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)"
    _files(os.path.join(folder, "nvidia"), {"version": text, "params": _params()})
    for gpu in gpus:
        information = {
            "Model": gpu.model["name"],
            "IRQ": str(200 + gpu.index),
            "GPU UUID": gpu.uuid,
            "Video BIOS": gpu.model["vbios"],
            "Bus Type": "PCIe",
            "DMA Size": "52 bits",
            "DMA Mask": "0xfffffffffffff",
            "Bus Location": gpu.sysfs_bus_id,
            "Device Minor": str(gpu.index),
            "GPU Firmware": version,
            "GPU Excluded": "No",
        }
        lines = "\n".join(f"{key + ':':<17}{value}" for key, value in information.items())
        _files(os.path.join(folder, "nvidia", "gpus", gpu.sysfs_bus_id), {"information": lines})
    for switch in profile["nvswitches"]:
        _files(os.path.join(folder, "nvidia-nvswitch", "devices", switch["bus"]), {"information": "NVSwitch"})


def _params() -> str:
    settings = {"ResmanDebugLevel": 4294967295, "RmLogonRC": 1, "ModifyDeviceFiles": 1, "DeviceFileUID": 0}
    settings.update({"DeviceFileGID": 0, "DeviceFileMode": 438, "EnableGpuFirmware": 18, "RegistryDwords": '""'})
    return "\n".join(f"{key}: {value}" for key, value in settings.items())


def make_nodes(folder: str, gpus: int, switches: int, real: bool) -> None:
    """Make the device files in `folder`; plain files when `real` is false (no right to make others in a test)."""
    nodes = {f"nvidia{number}": (MAJOR, number) for number in range(gpus)}
    nodes.update({"nvidiactl": (MAJOR, 255), "nvidia-modeset": (MAJOR, 254)})
    nodes.update({"nvidia-uvm": (511, 0), "nvidia-uvm-tools": (511, 1)})
    nodes.update({f"nvidia-nvswitch{number}": (234, number) for number in range(switches)})
    if switches:
        nodes["nvidia-nvswitchctl"] = (234, 255)
    os.makedirs(folder, exist_ok=True)
    for name, (major, minor) in nodes.items():
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        if real:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        else:
            with open(path, "w", encoding="ascii"):
                pass
        os.chmod(path, 0o666)


def build_numa(folder: str, nodes: list) -> None:
    """Write /sys/devices/system/node entries for the declared NUMA nodes."""
    listing = "0" if len(nodes) == 1 else f"0-{len(nodes) - 1}"
    _files(folder, dict.fromkeys(("online", "possible", "has_cpu", "has_memory", "has_normal_memory"), listing))
    for number, node in enumerate(nodes):
        total = node["memory_mib"] * 1024
        meminfo = f"Node {number} MemTotal:       {total} kB\nNode {number} MemFree:        {total - 4194304} kB"
        distance = " ".join("10" if other == number else "21" for other in range(len(nodes)))
        _files(
            os.path.join(folder, f"node{number}"),
            {"cpulist": node["cpus"], "cpumap": _cpu_mask(node["cpus"]), "meminfo": meminfo, "distance": distance},
        )


def _cpu_mask(cpus: str) -> str:
    """`0-3,8` → `0000010f`: the kernel's mask, 32-bit words from high to low. lscpu crashes without it."""
    mask = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            mask |= 1 << number
    words = []
    while mask or not words:
        words.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(words))


def _files(folder: str, files: dict) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
