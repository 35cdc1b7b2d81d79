# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions: what lies on the disk, what was loaded at boot, what the user-space library is.

nvidia-smi is called often and imports this: `re` and the decompressors, which cost more than all of the rest, are
imported where they are used, at boot.
"""

import os

from . import paths, state

MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm")

CUDA_OF_BRANCH = {
    535: "12.2", 550: "12.4", 555: "12.5", 560: "12.6", 565: "12.7", 570: "12.8", 575: "12.9",
    580: "13.0", 590: "13.1", 595: "13.2", 610: "13.3", 615: "13.4", 620: "13.5",
}  # fmt: skip
"""The "CUDA Version" a driver branch prints (NVIDIA's release notes)."""


def branch(version: str) -> int:
    """`580.178.04` → 580."""
    return int(version.split(".")[0])


def as_tuple(version: str) -> tuple:
    """`580.178.04` → `(580, 178, 4)`, to compare versions."""
    return tuple(int(part) for part in version.split("."))


def nvml_style(version: str) -> str:
    """NVML names itself by the first two parts: `580.178.04` → `580.178`."""
    return ".".join(version.split(".")[:2])


def cuda_version(version: str) -> str:
    """The CUDA version of the newest known branch that is not newer than `version`."""
    known = [number for number in CUDA_OF_BRANCH if number <= branch(version)]
    return CUDA_OF_BRANCH[max(known)] if known else "N/A"


def boot_kernel() -> str:
    """The kernel that the boot loader takes: the newest /boot/vmlinuz-*, else the running one."""
    import re

    files = os.listdir(paths.at("/boot")) if os.path.isdir(paths.at("/boot")) else []
    images = [name[len("vmlinuz-") :] for name in files if name.startswith("vmlinuz-")]
    images = [name for name in images if not name.endswith((".old", ".bak")) and os.path.isdir(_modules(name))]
    if not images:
        return os.uname().release
    return max(images, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def _modules(kernel: str) -> str:
    return paths.at("/lib/modules/" + kernel)


def module_on_disk(kernel: str) -> dict:
    """Return `{path, version, license}` of the nvidia module that this kernel would load, `{}` when there is none.

    depmod's order: updates/ (DKMS) before the kernel's own tree (prebuilt, signed).
    """
    import re

    found = []
    for folder, _, files in os.walk(_modules(kernel)):
        found += [os.path.join(folder, name) for name in files if re.fullmatch(r"nvidia(-current)?\.ko(\.\w+)?", name)]
    for path in sorted(found, key=lambda name: ("/updates/" not in name, name)):
        info = _modinfo(path)
        if "version" in info:
            return {"path": path, "version": info["version"], "license": info.get("license", "NVIDIA")}
    return {}


def refusal(device: dict, module: dict) -> list:
    """Lines of the kernel log with which a loaded module turns a GPU down; empty when it drives it."""
    model = device["model"]
    head = f"NVRM: The NVIDIA GPU {device['bus']} (PCI ID: {model['pci']['vendor'][2:]}:{model['pci']['device'][2:]})"
    is_open = "GPL" in module.get("license", "")
    if is_open and model["modules"] == "proprietary":
        return [
            head,
            "NVRM: installed in this system is not supported by open",
            "NVRM: nvidia.ko because it does not include the required GPU",
            "NVRM: System Processor (GSP).",
        ]
    if not is_open and model["modules"] == "open":
        return [head, "NVRM: installed in this system requires use of the NVIDIA open kernel modules."]
    if model["last_branch"] and branch(module["version"]) > model["last_branch"]:
        return [
            head,
            "NVRM: installed in this system is supported through the NVIDIA",
            f"NVRM: {model['last_branch']}.xx Legacy drivers. The {module['version']} NVIDIA driver will ignore",
            "NVRM: this GPU.",
        ]
    return []


def _modinfo(path: str) -> dict:
    """Read `key=value` strings out of a module's .modinfo bytes; compressed modules are opened with what is known."""
    import bz2
    import lzma
    import re
    import zlib

    with open(path, "rb") as stream:
        content = stream.read()
    if path.endswith(".xz"):
        content = lzma.decompress(content)
    elif path.endswith(".gz"):
        content = zlib.decompress(content, 31)
    elif path.endswith(".bz2"):
        content = bz2.decompress(content)
    pairs = re.findall(rb"(?<![A-Za-z_])(version|license)=([^\0]+)(?=\0)", content)
    return {key.decode(): value.decode(errors="replace") for key, value in pairs}


def loaded_version() -> str:
    """Version of the module in the kernel since boot, "" when none is loaded."""
    return state.load().get("module", {}).get("version", "")


def library_version() -> str:
    """Version of the installed NVML library, "" when it is missing or its link dangles."""
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"):
        link = paths.at(folder + "/libnvidia-ml.so.1")
        if os.path.exists(link):
            version = os.path.realpath(link).rpartition("libnvidia-ml.so.")[2]
            return version if version.replace(".", "").isdigit() and "." in version else ""
    return ""
