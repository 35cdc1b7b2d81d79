# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each fault does beyond being remembered: `set_NAME(target, value, link)` for a GPU, the rest for the machine."""

import os
import shutil
import signal
import time

from . import boot, driver, fault_log, gpu, kmsg, memory, paths, profiles, state, tree_pci
from .fault_table import GONE, TABLE, WAITING, BadFault

REPLAYS_PER_MINUTE = 600
LINK_ERRORS_PER_MINUTE = 120
NEARLY_FULL = {"retired_single": 50, "retired_double": 13}
"""63 of the 64 pages that can be retired."""
THRESHOLD_ERRORS = 5
"""SRAM errors in a GPU's life, more than the four that NVIDIA allows."""


def of_gpu(name: str, target, value, link) -> dict:
    """Break a GPU; return what is worth recording besides its name."""
    special = globals().get("set_" + name)
    return (special(target, value, link) if special else keep(name, target, value)) or {}


def links_of(target, link, usual: list) -> list:
    """`[link]`, or `usual` when none was given."""
    count = target.model["nvlink"]["count"]
    if link is None:
        return usual
    if not 0 <= link < count:
        raise BadFault(f"--link {link}: allowed: 0 to {count - 1}")
    return [link]


def gpu_at(machine, index):
    """The GPU of that index, the first one when none is given."""
    index = 0 if index is None else index
    if not 0 <= index < len(machine.gpus):
        allowed = f"0 to {len(machine.gpus) - 1}" if machine.gpus else "none, this machine shows no GPU"
        raise BadFault(f"--gpu {index}: allowed: {allowed}")
    return machine.gpus[index]


def keep(name: str, target, value) -> None:
    remember(name, target.sysfs_bus_id, True if value is None else value)


def set_lost(target, _value, _link) -> None:
    keep("lost", target, None)
    tree_pci.set_lost(boot.pci_folder(), target.sysfs_bus_id, target.model["pci"], True)
    log(fault_log.lost, target)


def set_gpu_missing(target, _value, _link) -> None:
    keep("gpu_missing", target, None)
    shutil.rmtree(os.path.join(boot.pci_folder(), target.sysfs_bus_id), ignore_errors=True)


def set_xid(target, code, _link) -> dict:
    code = 48 if code is None else code
    if not driver.loaded_version():
        raise BadFault("xid: no driver is loaded, so nothing would log it; install one and reboot")
    kmsg.emit(fault_log.xid(target, code))
    return {"xid": code}


def set_recovery(target, action, _link) -> None:
    keep("recovery", target, action)
    log(lambda one, loaded: fault_log.recovery(one, action, loaded), target)


def set_ecc(target, kind, _link) -> None:
    old = target.model["memory_errors"] == "single_double"
    if kind == "threshold":
        if old:
            raise BadFault("ecc=threshold: this GPU does not count SRAM errors")
        memory.keep(target, threshold=True)
        with state.changing(state.PERSISTENT) as content:
            content.setdefault("ecc_errors", {})[target.uuid] = {"sram_uncorrectable_parity": THRESHOLD_ERRORS}
        return
    keep("ecc", target, kind)
    names = {"sram": ("sram_uncorrectable_parity", "double_bit/l2_cache")}
    names["dram"] = ("dram_uncorrectable", "double_bit/device_memory")
    memory.count(target, {names[kind][old]: 1})
    if kind == "dram":  # a row is set aside, a page is retired
        memory.keep(target, **{"retired_double" if old else "remapped_unc": 1})
    log(lambda one, _loaded: [fault_log.xid(one, 48)] + (_repair(one) if kind == "dram" else []), target)


def set_remap(target, kind, _link) -> None:
    keep("remap", target, kind)
    if kind == "failure":
        memory.keep(target, remap_failure=True)
    else:
        memory.keep(target, **{"remapped_unc" if kind == "uncorrectable" else "remapped_corr": 1})
    log(lambda one, _loaded: [fault_log.xid(one, 64)] if kind == "failure" else _repair(one), target)


def set_pages(target, kind, _link) -> None:
    keep("pages", target, kind)
    if kind == "many":
        memory.keep(target, **NEARLY_FULL)
        return
    memory.keep(target, **{"retired_" + kind: 1 if kind == "double" else 2})
    log(lambda one, _loaded: _repair(one), target)


def _repair(one) -> list:
    return [fault_log.xid(one, 63, "" if one.model["row_remapping"] else fault_log.PAGE_RETIRED)]


def set_pcie(target, kind, _link) -> None:
    keep("pcie", target, kind)
    tree_pci.set_link(boot.pci_folder(), gpu.Machine().gpus[target.index])


def set_replays(target, rate, _link) -> None:
    remember("replays", target.sysfs_bus_id, {"since": time.time(), "per_minute": rate or REPLAYS_PER_MINUTE})


def set_power_limit(target, watts, _link) -> None:
    lowest = target.model["power_w"]["min"]
    watts = lowest if watts is None else watts
    if not lowest <= watts < target.model["power_w"]["default"]:
        raise BadFault(f"power_limit={watts}: allowed: {lowest} to {target.model['power_w']['default'] - 1}")
    keep("power_limit", target, watts)


def set_nvlink_down(target, _value, link) -> dict:
    links = links_of(target, link, list(range(target.model["nvlink"]["count"])))
    remember("nvlink_down", target.sysfs_bus_id, sorted(set(target.faults.get("nvlink_down", []) + links)))
    return {"links": links}


def set_nvlink_errors(target, kind, link) -> dict:
    links = links_of(target, link, [0])
    rising = {"since": time.time(), "per_minute": LINK_ERRORS_PER_MINUTE, "kind": kind, "links": links}
    remember("nvlink_errors", target.sysfs_bus_id, rising)
    return {"links": links}


def set_p2p(target, other, _link) -> dict:
    gpus = target.machine.gpus
    other = (target.index + 1) % len(gpus) if other is None else other
    if not 0 <= other < len(gpus):
        raise BadFault(f"p2p={other}: allowed: 0 to {len(gpus) - 1}")
    peer = gpus[other]
    if peer is target:
        raise BadFault(f"p2p={other}: a GPU always reaches itself; name another one")
    remember("p2p", target.sysfs_bus_id, peer.sysfs_bus_id)
    return {"peer": peer.bus_id}


def on_machine(name: str, value, machine) -> dict:
    if name == "sxid":
        if not driver.loaded_version():
            raise BadFault("sxid: no driver is loaded, so nothing would log it; install one and reboot")
        code = 20034 if value is None else value
        kmsg.emit(fault_log.sxid(0, machine.nvswitches[0], code))
        return {"fault": name, "sxid": code}
    remember(name, "machine", True)
    if name in ("fm_dead", "fm_version"):
        _signal(paths.FABRIC_PID, signal.SIGUSR1)
    if name in ("fm_dead", "fm_version", "nvlsm_dead"):
        _signal(paths.NVLSM_PID, signal.SIGTERM)
    if name == "mlx5_ib_missing":
        boot.show_bus(boot.present(profiles.load(machine.state["profile"])), bool(machine.loaded_version))
    return {"fault": name}


def log(lines, target) -> None:
    """Write lines of the driver: there are none where none is loaded."""
    loaded = driver.loaded_version()
    if loaded:
        kmsg.emit(*lines(target, loaded))


def remember(name: str, where: str, value) -> None:
    gone = TABLE[name].reboot == GONE or name in WAITING
    with state.changing(state.VOLATILE if gone else state.PERSISTENT) as content:
        content.setdefault("faults", {}).setdefault(where, {})[name] = value


def _signal(pid_file: str, number: int) -> None:
    pid = paths.read(pid_file)
    if pid.isdigit():
        try:
            os.kill(int(pid), number)
        except ProcessLookupError:
            return
