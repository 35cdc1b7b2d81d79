# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand: what breaks, how it shows, and whether a reboot cures it, as it would on real hardware."""

import os
import re
import signal

from . import boot, driver, gpu, kmsg, paths, profiles, state, tree_pci

XID_TEXT = {
    13: "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address",
    31: "Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2c_00000000.",
    43: "Ch 00000010",
    45: "Ch 00000010",
    48: "DBE (double bit error) ECC Error",
    63: "Row Remapper: New row (0x00000000000a1b2c) marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Error: failed to remap row 0x00000000000a1b2c",
    74: "NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "GPU has fallen off the bus.",
    92: "High single-bit ECC error rate",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
    95: "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU GSP! Expected function 76 (GSP_RM_CONTROL).",
    154: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
}
"""Wording after `Xid (PCI:…): N, pid='<unknown>', name=<unknown>, `, as NVIDIA's Xid guide and drivers print it."""

TABLE = {
    "lost": (
        "fell off the bus: nvidia-smi cannot get its handle (rc 15), PCI registers read as ones, Xid 79 is logged",
        "gone after a reboot",
    ),
    "xid": ("writes Xid 48 to the kernel log, `xid=N` another one; nothing else changes", "gone after a reboot"),
    "hang": ("every nvidia-smi blocks until it is killed (machine-wide, --gpu has no meaning)", "gone after a reboot"),
    "nvlink_down": ("one link (--link N) or all links of a GPU are inactive", "stays until cleared"),
    "fm_dead": ("the fabric manager exits with an error and does not start again", "stays until cleared"),
    "garbage": ("nvidia-smi prints cut and garbled output, rc 0", "gone after a reboot"),
}
"""Name → (what it does, what a reboot does to it)."""

OF_MACHINE = ("hang", "fm_dead", "garbage")
SURVIVES_REBOOT = ("nvlink_down", "fm_dead")


class BadFault(Exception):
    """A fault that cannot be had: the text names the argument and what is allowed."""


def set_fault(text: str, index=None, link=None) -> dict:
    """Inject `text` (`lost`, `xid=63`, …) into GPU `index` (default 0), return what was recorded."""
    name, _, value = text.partition("=")
    if name not in TABLE:
        raise BadFault(f"no fault {name!r}; there are: {', '.join(TABLE)}")
    if value and name != "xid":
        raise BadFault(f"fault {name!r} takes no value")
    if link is not None and name != "nvlink_down":
        raise BadFault(f"--link goes with nvlink_down, not with {name}")
    if name in OF_MACHINE:
        _remember(name, "machine", True)
        if name == "fm_dead":
            _signal(paths.FABRIC_PID, signal.SIGUSR1)
        return {"fault": name}
    target = _gpu(index)
    loaded = driver.loaded_version()
    if name == "xid":
        code = _xid_code(value or "48")
        if not loaded:
            raise BadFault("xid: no driver is loaded, so nothing would log it; install one and reboot")
        kmsg.emit(xid_line(target, code))
        return {"fault": name, "xid": code, "gpu": target.index, "bus_id": target.bus_id}
    if name == "nvlink_down":
        links = _links(target, link)
        _remember(name, target.sysfs_bus_id, sorted(set(target.down_links + links)))
        return {"fault": name, "gpu": target.index, "bus_id": target.bus_id, "links": links}
    _remember(name, target.sysfs_bus_id, True)
    tree_pci.set_lost(boot.pci_folder(), target.sysfs_bus_id, target.model["pci"], True)
    if loaded:  # the lines are the driver's
        kmsg.emit(*_lost_lines(target, loaded))
    return {"fault": name, "gpu": target.index, "bus_id": target.bus_id}


def clear() -> None:
    """Remove every fault. What was logged stays logged, as in reality."""
    for device in profiles.load(state.load().get("profile", "none"))["gpus"]:
        tree_pci.set_lost(boot.pci_folder(), device["bus"], device["model"]["pci"], False)
    for path in (state.VOLATILE, state.PERSISTENT):
        with state.changing(path) as content:
            content.pop("faults", None)


def xid_line(target, code: int) -> str:
    """The kernel's line for an Xid without a process."""
    words = XID_TEXT.get(code, "simulated error")
    return f"NVRM: Xid (PCI:{target.kernel_bus_id}): {code}, pid='<unknown>', name=<unknown>, {words}"


def _lost_lines(target, loaded: str) -> list:
    lines = [
        xid_line(target, 79),
        f"NVRM: GPU {target.sysfs_bus_id}: GPU has fallen off the bus.",
        f"NVRM: GPU {target.sysfs_bus_id}: GPU serial number is {target.serial}.",
    ]
    if driver.branch(loaded) >= 570:  # the recovery action and its Xid exist since then
        action = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
        head = f"NVRM: Xid (PCI:{target.kernel_bus_id}): 154, pid='<unknown>', name=<unknown>, "
        lines.append(head + action)
    return lines


def _gpu(index):
    gpus = gpu.Machine().gpus
    index = 0 if index is None else index
    if not 0 <= index < len(gpus):
        allowed = f"0 to {len(gpus) - 1}" if gpus else "none, this machine has no GPU"
        raise BadFault(f"--gpu {index}: allowed: {allowed}")
    return gpus[index]


def _links(target, link) -> list:
    count = target.model["nvlink"]["count"]
    if link is None:
        return list(range(count))
    if not 0 <= link < count:
        raise BadFault(f"--link {link}: allowed: 0 to {count - 1}" if count else "this GPU has no NVLink")
    return [link]


def _xid_code(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise BadFault(f"xid={text}: allowed: a number, such as xid=63")
    return int(text)


def _remember(name: str, where: str, value) -> None:
    path = state.PERSISTENT if name in SURVIVES_REBOOT else state.VOLATILE
    with state.changing(path) as content:
        content.setdefault("faults", {}).setdefault(where, {})[name] = value


def _signal(pid_file: str, number: int) -> None:
    pid = paths.read(pid_file)
    if pid.isdigit():
        try:
            os.kill(int(pid), number)
        except ProcessLookupError:
            return
