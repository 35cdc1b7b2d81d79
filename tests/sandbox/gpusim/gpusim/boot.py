# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens when the machine starts: hardware appears, and the driver found on the disk is loaded."""

import hashlib
import os
import time
import uuid

from . import (
    driver,
    gpu,
    infiniband,
    kmsg,
    mounts,
    paths,
    profiles,
    settings,
    state,
    tree_cpufreq,
    tree_driver,
    tree_pci,
)

TREES = paths.VOLATILE + "/trees"


def boot(profile_name: str) -> dict:
    """Start the machine of that profile; return `{profile, kernel, module}`.

    The driver in the kernel is the one that the disk holds now for the kernel that boots. It stays until the next
    boot, whatever apt does meanwhile: that is how a version mismatch arises.
    """
    profile = present(profiles.load(profile_name))
    kernel = driver.boot_kernel()
    module = driver.module_on_disk(kernel) if profile["gpus"] else {}
    with state.changing(state.PERSISTENT) as kept:
        kept.setdefault("seed", os.environ.get("LAB_SEED") or os.uname().nodename)
        kept["boots"] = kept.get("boots", 0) + 1
        seed = kept["seed"]
    with state.changing() as machine:
        machine.clear()
        machine.update(profile=profile_name, kernel=kernel, module=module, booted=time.time())
        machine["identities"] = {
            device["bus"]: _identity(seed, device["bus"], device["model"]["serial"])
            for device in profiles.load(profile_name)["gpus"]
        }
        settings.latch(machine, [identity["uuid"] for identity in machine["identities"].values()])
    show_bus(profile, bool(module))
    if paths.on_machine():
        mounts.bind(pci_folder(), "/sys/bus/pci/devices")
    if profile["numa_nodes"]:
        _numa(profile)
    if profile.get("cpufreq"):
        _cpufreq(profile["cpufreq"])
    if module:
        _load(profile, module)
    return {"profile": profile_name, "kernel": kernel, "module": module}


def present(profile: dict) -> dict:
    """The profile without the GPUs that a fault has taken off the bus."""
    faults = state.load(state.PERSISTENT).get("faults", {})
    gpus = [device for device in profile["gpus"] if "gpu_missing" not in faults.get(device["bus"], {})]
    return {**profile, "gpus": gpus}


def show_bus(profile: dict, driver_loaded: bool) -> None:
    """Write what is on the PCI bus, and the InfiniBand functions where mlx5_ib is loaded."""
    tree_pci.build(pci_folder(), profile, driver_loaded)
    for one in gpu.Machine().gpus:
        tree_pci.set_link(pci_folder(), one)
    loaded = "mlx5_ib_missing" not in state.load(state.PERSISTENT).get("faults", {}).get("machine", {})
    classes = TREES + "/class" if paths.on_machine() else "/sys/class"
    infiniband.build(paths.at(classes + "/infiniband"), profile, loaded)
    if paths.on_machine() and profile["nvlink_management"]:
        mounts.overlay(classes, "/sys/class")


def _identity(seed: str, bus: str, has_serial: bool) -> dict:
    """UUID, serial and PDI of the GPU in a slot: the same after each boot, different on each machine."""
    digest = hashlib.sha256(f"{seed} {bus}".encode()).digest()
    return {
        "uuid": "GPU-" + str(uuid.UUID(bytes=digest[:16], version=4)),
        "serial": "N/A" if not has_serial else str(1650000000000 + int.from_bytes(digest[16:20], "big") % 9999999999),
        "pdi": "0x" + digest[20:28].hex(),
    }


def pci_folder() -> str:
    """The folder (as a path of this process) that shows as /sys/bus/pci/devices."""
    return paths.at(TREES + "/pci") if paths.on_machine() else paths.at("/sys/bus/pci/devices")


def _numa(profile: dict) -> None:
    real = "/sys/devices/system/node"
    if not paths.on_machine():
        tree_driver.build_numa(paths.at(real), profile["numa_nodes"])
    elif os.path.isdir(real):
        tree_driver.build_numa(paths.at(TREES + "/node"), profile["numa_nodes"])
        mounts.bind(TREES + "/node", real)


def _cpufreq(frequency_driver: str) -> None:
    """Give the CPUs that are really there governors that can be written; in a test there are four."""
    real = "/sys/devices/system/cpu"
    if not paths.on_machine():
        tree_cpufreq.build(paths.at(real), frequency_driver, list(range(4)))
        return
    tree_cpufreq.build(TREES + "/cpu/upper", frequency_driver, tree_cpufreq.cpus_of(real))
    mounts.overlay_writable(TREES + "/cpu", real)


def _load(profile: dict, module: dict) -> None:
    gpus = gpu.Machine().gpus
    mounted = paths.on_machine()
    modules = TREES + "/module" if mounted else "/sys/module"
    proc = TREES + "/proc" if mounted else "/proc/driver"
    tree_driver.build_modules(paths.at(modules), module["version"])
    tree_driver.build_proc(paths.at(proc), profile, gpus, module)
    if mounted:
        mounts.overlay(modules, "/sys/module")
        mounts.bind(proc, "/proc/driver")
    tree_driver.make_nodes(paths.at("/dev"), len(gpus), len(profile["nvswitches"]), mounted)
    text = paths.read(("/proc/driver" if not mounted else TREES + "/proc") + "/nvidia/version").splitlines()[0]
    kmsg.emit("NVRM: loading " + text.split(": ", 1)[1], level=kmsg.NOTICE)
    for device in profile["gpus"]:
        reason = driver.refusal(device, module)
        if reason:
            kmsg.emit(*reason)
