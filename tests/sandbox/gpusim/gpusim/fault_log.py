# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the driver writes to the kernel log about faults, in the words of NVIDIA's Xid guide and of its drivers."""

from . import driver

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
"""Wording after `Xid (PCI:…): N, pid='<unknown>', name=<unknown>, `."""

PAGE_RETIRED = "Dynamic Page Retirement: New page retired, reboot required to activate (0x00000000000a1b2c)."
"""Xid 63 up to Volta."""

ACTIONS = {
    "reset": "0x1 (GPU Reset Required)",
    "reboot": "0x2 (Node Reboot Required)",
    "drain_p2p": "0x3 (Drain P2P)",
    "drain_and_reset": "0x4 (Drain and Reset)",
}
"""Recovery action (nvml.h) → as Xid 154 names it."""

SXID_TEXT = {
    12028: "egress non-posted PRIV error (First)",
    20034: "LTSSM Fault Up",
}
SXID_NONFATAL = (11012, 11021, 11022, 11023, 12021, 12023, 12028, 15008, 15011, 19049, 20001, 20009, 20012, 22013)
"""From the Fabric Manager guide's tables; every other number is written as fatal."""


def xid(one, code: int, words: str = "") -> str:
    """The kernel's line for an Xid without a process."""
    words = words or XID_TEXT.get(code, "simulated error")
    return f"NVRM: Xid (PCI:{one.kernel_bus_id}): {code}, pid='<unknown>', name=<unknown>, {words}"


def recovery(one, action: str, loaded: str) -> list:
    """Xid 154; the recovery action and its Xid exist since branch 570."""
    if driver.branch(loaded) < 570:
        return []
    return [xid(one, 154, f"GPU recovery action changed from 0x0 (None) to {ACTIONS[action]}")]


def lost(one, loaded: str) -> list:
    """A GPU that fell off the bus."""
    return [
        xid(one, 79),
        f"NVRM: GPU {one.sysfs_bus_id}: GPU has fallen off the bus.",
        f"NVRM: GPU {one.sysfs_bus_id}: GPU serial number is {one.serial}.",
        *recovery(one, "reboot", loaded),
    ]


def sxid(position: int, switch: dict, code: int) -> str:
    """A line of the NVSwitch driver about its link 33."""
    severity = "Non-fatal" if code in SXID_NONFATAL else "Fatal"
    words = SXID_TEXT.get(code, "simulated error")
    return f"nvidia-nvswitch{position}: SXid (PCI:{switch['bus']}): {code}, {severity}, Link 33 {words}"
