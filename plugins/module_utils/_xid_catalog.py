# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xids and SXids: what each number means, what NVIDIA advises, how bad it is here, what to do. Data.

Source of numbers, mnemonics, meanings and `nvidia_action`: NVIDIA's analyzing-xid-catalog of 2025-10-29, with 173 to
176 from the driver's headers. `severity` is the project's own, where published checkers (NVIDIA/DCGM, gpud, azure-nhc,
gcm, NVSentinel) disagree: application faults are no fault of the machine. SXids: tables of the Fabric Manager guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet

CRITICAL, WARNING, INFO = "critical", "warning", "info"
APP = "app"
"""A fault of the program that used the GPU: information, unless it comes again and again."""
BY_WORD = "by_word"
"""NVLink 5: the line itself says Fatal or Nonfatal."""
BY_ACTION = "by_action"
"""Xid 154: the line names the recovery action."""


@dataclass(frozen=True)
class Xid:
    mnemonic: str
    meaning: str
    nvidia_action: str
    severity: str
    remedy: str


REMEDIES: Dict[str, str] = {
    "app": "Look at the program that used the GPU; nothing to do on the machine.",
    "watch": "Nothing to do now; watch whether it comes again.",
    "follow": "Follow the Xid before it; alone, restart the program.",
    "reset": "Drain the GPU and reset it; on NVSwitch boards reset all GPUs, or reboot.",
    "reboot": "Drain the machine and reboot it.",
    "cold": "Drain the machine, power it off and on; if it happens again, reseat or replace the GPU.",
    "memory": "Drain the GPU and reset it; then look at row remapping and SRAM counters.",
    "replace": "Drain the GPU, reset it; if it comes back, have it replaced (RMA).",
    "nvlink": "Drain, look at `nvidia-smi nvlink -s` and `-e`, reset all GPUs of the board; then hardware.",
    "recovery": "Do what the line names: reset the GPU, drain and reset, or reboot the machine.",
    "cable": "Connect the GPU's power cables.",
    "driver": "Drain and reboot; update the driver if it comes again.",
    "support": "Collect nvidia-bug-report.sh and ask NVIDIA's support.",
}

XIDS: Dict[int, Xid] = {
    8: Xid("ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT", "GPU stopped processing", "RESTART_APP", APP, "app"),
    11: Xid("ROBUST_CHANNEL_GR_ERROR_MISSING_HW", "Invalid or corrupted push buffer stream", "RESTART_APP", APP, "app"),
    13: Xid("ROBUST_CHANNEL_GR_EXCEPTION", "Graphics Engine Exception", "RESTART_APP", APP, "app"),
    14: Xid("ROBUST_CHANNEL_FAKE_ERROR", "Unused", "IGNORE", INFO, "watch"),
    25: Xid("ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY", "Invalid or illegal push buffer stream", "RESTART_APP", APP, "app"),
    31: Xid("ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", "GPU memory page fault", "RESTART_APP", APP, "app"),
    32: Xid("ROBUST_CHANNEL_PBDMA_ERROR", "Invalid or corrupted push buffer stream", "RESTART_APP", APP, "app"),
    37: Xid("ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD", "Driver firmware error", "IGNORE", WARNING, "watch"),
    38: Xid("ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT", "Driver firmware error", "IGNORE", WARNING, "watch"),
    39: Xid("ROBUST_CHANNEL_CE0_ERROR", "Copy Engine Exception", "RESTART_APP", WARNING, "app"),
    40: Xid("ROBUST_CHANNEL_CE1_ERROR", "Copy Engine Exception", "RESTART_APP", INFO, "app"),
    41: Xid("ROBUST_CHANNEL_CE2_ERROR", "Copy Engine Exception", "RESTART_APP", INFO, "app"),
    42: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    43: Xid("ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR", "GPU stopped processing", "IGNORE", APP, "watch"),
    44: Xid(
        "ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW",
        "Graphics Engine fault during context switch",
        "IGNORE",
        WARNING,
        "watch",
    ),
    45: Xid(
        "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL",
        "Preemptive cleanup after an earlier error",
        "WORKFLOW_XID_45",
        APP,
        "follow",
    ),
    46: Xid("ROBUST_CHANNEL_GPU_TIMEOUT_ERROR", "GPU stopped processing", "RESET_GPU", CRITICAL, "reset"),
    48: Xid("ROBUST_CHANNEL_GPU_ECC_DBE", "Double Bit ECC Error", "WORKFLOW_XID_48", CRITICAL, "memory"),
    54: Xid(
        "SILENT_RUNNING_PWR_REDUCED_CLOCKING",
        "Auxiliary power is not connected to the GPU board",
        "CHECK_MECHANICALS",
        CRITICAL,
        "cable",
    ),
    56: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    57: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    58: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    60: Xid("ROBUST_CHANNEL_SEC2_ERROR", "Video processor exception", "RESTART_APP", WARNING, "app"),
    61: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    62: Xid("PMU_HALT_ERROR", "Internal micro-controller halt", "RESET_GPU", CRITICAL, "reset"),
    63: Xid("INFOROM_DRAM_RETIREMENT_EVENT", "GPU memory remapping event", "IGNORE", WARNING, "memory"),
    64: Xid("INFOROM_DRAM_RETIREMENT_FAILURE", "GPU memory remapping failure", "RESET_GPU", CRITICAL, "replace"),
    65: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    66: Xid("ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION", "Illegal access by driver", "IGNORE", WARNING, "watch"),
    67: Xid("ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION", "Illegal access by driver", "IGNORE", WARNING, "watch"),
    68: Xid("ROBUST_CHANNEL_NVDEC0_ERROR", "NVDEC0 Exception", "RESTART_APP", WARNING, "app"),
    69: Xid("ROBUST_CHANNEL_GR_CLASS_ERROR", "Graphics Engine class error", "RESTART_APP", WARNING, "app"),
    70: Xid("ROBUST_CHANNEL_CE3_ERROR", "CE3: Unknown Error", "RESTART_APP", INFO, "app"),
    71: Xid("ROBUST_CHANNEL_CE4_ERROR", "CE4: Unknown Error", "RESTART_APP", INFO, "app"),
    72: Xid("ROBUST_CHANNEL_CE5_ERROR", "CE5: Unknown Error", "RESTART_APP", INFO, "app"),
    73: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    74: Xid("NVLINK_ERROR", "NVLINK Error", "WORKFLOW_NVLINK_ERR", CRITICAL, "nvlink"),
    75: Xid("ROBUST_CHANNEL_CE6_ERROR", "CE6: Unknown Error", "RESTART_APP", INFO, "app"),
    76: Xid("ROBUST_CHANNEL_CE7_ERROR", "CE7: Unknown Error", "RESTART_APP", INFO, "app"),
    77: Xid("ROBUST_CHANNEL_CE8_ERROR", "CE8: Unknown Error", "RESTART_APP", INFO, "app"),
    78: Xid("VGPU_START_ERROR", "vGPU Start Error", "UPDATE_SWFW", WARNING, "driver"),
    79: Xid("ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "GPU has fallen off the bus", "RESTART_BM", CRITICAL, "cold"),
    80: Xid("PBDMA_PUSHBUFFER_CRC_MISMATCH", "Corrupted data sent to GPU", "RESTART_APP", WARNING, "app"),
    81: Xid("", "Unused", "CONTACT_SUPPORT", WARNING, "support"),
    82: Xid("ROBUST_CHANNEL_NVJPG0_ERROR", "NVJPG0 Error", "RESTART_APP", INFO, "app"),
    83: Xid("ROBUST_CHANNEL_NVDEC1_ERROR", "NVDEC1 Error", "RESTART_APP", INFO, "app"),
    84: Xid("ROBUST_CHANNEL_NVDEC2_ERROR", "NVDEC2 Error", "RESTART_APP", INFO, "app"),
    85: Xid("ROBUST_CHANNEL_CE9_ERROR", "CE9: Unknown Error", "RESTART_APP", INFO, "app"),
    86: Xid("ROBUST_CHANNEL_OFA0_ERROR", "OFA Exception", "RESTART_APP", INFO, "app"),
    88: Xid("ROBUST_CHANNEL_NVDEC3_ERROR", "NVDEC3 Error", "RESTART_APP", INFO, "app"),
    89: Xid("ROBUST_CHANNEL_NVDEC4_ERROR", "NVDEC4 Error", "RESTART_APP", INFO, "app"),
    92: Xid("EXCESSIVE_SBE_INTERRUPTS", "High single-bit ECC error rate", "IGNORE", WARNING, "watch"),
    93: Xid(
        "INFOROM_ERASE_LIMIT_EXCEEDED",
        "InfoROM written more often than its wear limit allows",
        "IGNORE",
        WARNING,
        "watch",
    ),
    94: Xid("ROBUST_CHANNEL_CONTAINED_ERROR", "Contained memory error", "RESTART_APP", WARNING, "memory"),
    95: Xid("ROBUST_CHANNEL_UNCONTAINED_ERROR", "Uncontained memory error", "RESET_GPU", CRITICAL, "reset"),
    96: Xid("ROBUST_CHANNEL_NVDEC5_ERROR", "NVDEC5 Error", "RESTART_APP", INFO, "app"),
    97: Xid("ROBUST_CHANNEL_NVDEC6_ERROR", "NVDEC6 Error", "RESTART_APP", INFO, "app"),
    98: Xid("ROBUST_CHANNEL_NVDEC7_ERROR", "NVDEC7 Error", "RESTART_APP", INFO, "app"),
    99: Xid("ROBUST_CHANNEL_NVJPG1_ERROR", "NVJPG1 Error", "RESTART_APP", INFO, "app"),
    100: Xid("ROBUST_CHANNEL_NVJPG2_ERROR", "NVJPG2 Error", "RESTART_APP", INFO, "app"),
    101: Xid("ROBUST_CHANNEL_NVJPG3_ERROR", "NVJPG3 Error", "RESTART_APP", INFO, "app"),
    102: Xid("ROBUST_CHANNEL_NVJPG4_ERROR", "NVJPG4 Error", "RESTART_APP", INFO, "app"),
    103: Xid("ROBUST_CHANNEL_NVJPG5_ERROR", "NVJPG5 Error", "RESTART_APP", INFO, "app"),
    104: Xid("ROBUST_CHANNEL_NVJPG6_ERROR", "NVJPG6 Error", "RESTART_APP", INFO, "app"),
    105: Xid("ROBUST_CHANNEL_NVJPG7_ERROR", "NVJPG7 Error", "RESTART_APP", INFO, "app"),
    106: Xid("SMBPBI_TEST_MESSAGE", "SMBPBI Test Message", "IGNORE", INFO, "watch"),
    107: Xid("SMBPBI_TEST_MESSAGE_SILENT", "SMBPBI Test Message Silent", "IGNORE", INFO, "watch"),
    108: Xid("NVLINK_REMOTE_TRANSLATION_ERROR", "Unused", "IGNORE", INFO, "watch"),
    109: Xid("ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR", "Context Switch Timeout Error", "RESET_GPU", CRITICAL, "reset"),
    110: Xid("SEC_FAULT_ERROR", "Security Fault Error", "RESET_GPU", CRITICAL, "reset"),
    119: Xid("GSP_RPC_TIMEOUT", "GSP RPC Timeout", "RESET_GPU", CRITICAL, "driver"),
    120: Xid("GSP_ERROR", "GSP Error", "RESET_GPU", CRITICAL, "driver"),
    121: Xid("C2C_ERROR", "C2C Error", "IGNORE", WARNING, "watch"),
    126: Xid("ROBUST_CHANNEL_CE10_ERROR", "CE10: Unknown Error", "RESTART_APP", INFO, "app"),
    127: Xid("ROBUST_CHANNEL_CE11_ERROR", "CE11: Unknown Error", "RESTART_APP", INFO, "app"),
    128: Xid("ROBUST_CHANNEL_CE12_ERROR", "CE12: Unknown Error", "RESTART_APP", INFO, "app"),
    129: Xid("ROBUST_CHANNEL_CE13_ERROR", "CE13: Unknown Error", "RESTART_APP", INFO, "app"),
    130: Xid("ROBUST_CHANNEL_CE14_ERROR", "CE14: Unknown Error", "RESTART_APP", INFO, "app"),
    131: Xid("ROBUST_CHANNEL_CE15_ERROR", "CE15: Unknown Error", "RESTART_APP", INFO, "app"),
    132: Xid("ROBUST_CHANNEL_CE16_ERROR", "CE16: Unknown Error", "RESTART_APP", INFO, "app"),
    133: Xid("ROBUST_CHANNEL_CE17_ERROR", "CE17: Unknown Error", "RESTART_APP", INFO, "app"),
    134: Xid("ROBUST_CHANNEL_CE18_ERROR", "CE18: Unknown Error", "RESTART_APP", INFO, "app"),
    135: Xid("ROBUST_CHANNEL_CE19_ERROR", "CE19: Unknown Error", "RESTART_APP", INFO, "app"),
    136: Xid("ALI_TRAINING_FAIL", "Link Training Failed", "RESET_GPU", CRITICAL, "reset"),
    137: Xid("NVLINK_PRIV_ERR", "NVLink Privilege Error", "IGNORE", INFO, "watch"),
    139: Xid("ROBUST_CHANNEL_OFA1_ERROR", "OFA1 Error", "RESTART_APP", INFO, "app"),
    140: Xid("UNRECOVERABLE_ECC_ERROR_ESCAPE", "ECC Unrecovered Error", "RESET_GPU", CRITICAL, "reset"),
    141: Xid("ROBUST_CHANNEL_FAST_PATH_ERROR", "CUDA Fast Path Error", "IGNORE", INFO, "watch"),
    142: Xid("ROBUST_CHANNEL_NVENC3_ERROR", "NVENC3 Error", "CONTACT_SUPPORT", WARNING, "support"),
    143: Xid("GPU_INIT_ERROR", "GPU Initialization Error", "RESET_GPU", CRITICAL, "reset"),
    144: Xid("NVLINK_SAW_ERROR", "NVLINK: SAW Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    145: Xid("NVLINK_RLW_ERROR", "NVLINK: RLW Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    146: Xid("NVLINK_TLW_ERROR", "NVLINK: TLW Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    147: Xid("NVLINK_TREX_ERROR", "NVLINK: TREX Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    148: Xid("NVLINK_NVLPW_CTRL_ERROR", "NVLINK: NVLPW_CTRL Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    149: Xid("NVLINK_NETIR_ERROR", "NVLINK: NETIR Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    150: Xid("NVLINK_MSE_ERROR", "NVLINK: MSE Error", "WORKFLOW_NVLINK5_ERR", BY_WORD, "nvlink"),
    151: Xid("ROBUST_CHANNEL_KEY_ROTATION_ERROR", "Key rotation Error", "RESTART_VM", CRITICAL, "reboot"),
    152: Xid("ROBUST_CHANNEL_DLA_SMMU_ERROR", "DLA SMMU Error", "IGNORE", INFO, "watch"),
    153: Xid("ROBUST_CHANNEL_DLA_TIMEOUT", "DLA timeout Error", "IGNORE", INFO, "watch"),
    154: Xid("GPU_RECOVERY_ACTION_CHANGED", "GPU Recovery Action Changed", "XID_154", BY_ACTION, "recovery"),
    155: Xid("NVLINK_SW_DEFINED_ERROR", "NVLINK: SW Defined Error", "RESET_GPU", CRITICAL, "reset"),
    156: Xid("RESOURCE_RETIREMENT_EVENT", "Resource Retirement Event", "RESET_GPU", CRITICAL, "reset"),
    157: Xid("RESOURCE_RETIREMENT_FAILURE", "Resource Retirement Failure", "IGNORE", WARNING, "watch"),
    158: Xid("GPU_FATAL_TIMEOUT", "GPU Fatal Timeout", "RESET_GPU", CRITICAL, "reset"),
    159: Xid("ROBUST_CHANNEL_CHI_NON_DATA_ERROR", "CHI Non-Data Error", "CHECK_UVM", WARNING, "app"),
    160: Xid("CHANNEL_RETIREMENT_EVENT", "Channel Retirement Event", "IGNORE", WARNING, "watch"),
    161: Xid("CHANNEL_RETIREMENT_FAILURE", "Channel Retirement Failure", "IGNORE", WARNING, "watch"),
    162: Xid("PSHC_REENGAGED", "Power Smoothing HW Circuitry capability reengaged", "", INFO, "watch"),
    163: Xid("PSHC_DISENGAGED", "Power Smoothing HW Circuitry capability disengaged", "", WARNING, "support"),
    164: Xid("PSHC_LOW_LIFETIME", "Power Smoothing HW Circuitry low lifetime reached", "", INFO, "watch"),
    165: Xid("PSHC_ZERO_LIFETIME", "Power Smoothing HW Circuitry lifetime exhausted", "", WARNING, "support"),
    166: Xid("NVLINK_SECURE_CRYPTO_ERR", "Traffic before the link was set up for encryption", "", WARNING, "support"),
    167: Xid("PCIE_FATAL_TIMEOUT", "PCIE_FATAL_TIMEOUT", "", CRITICAL, "reboot"),
    168: Xid("REDUCED_GPU_MEMORY_CAPACITY", "Errors found in WPR (write protected region)", "", WARNING, "support"),
    169: Xid("SEC2_HALT_ERROR", "Internal micro-controller halt", "", WARNING, "support"),
    170: Xid("NVLINK_SECURE_OTHER", "Interrupt seen in CC mode", "", WARNING, "support"),
    171: Xid("UNCORRECTABLE_DRAM_ERROR", "Uncorrectable DRAM error (details of Xid 48)", "", WARNING, "memory"),
    172: Xid("UNCORRECTABLE_SRAM_ERROR", "Uncorrectable SRAM error (details of Xid 48)", "", WARNING, "memory"),
    173: Xid("C2C_FATAL_LINK_FAILURE", "C2C fatal link failure", "", CRITICAL, "reboot"),
    174: Xid("", "new in driver headers", "", WARNING, "support"),
    175: Xid("MEMORY_SUBSYSTEM_ERROR", "Memory subsystem error", "", WARNING, "support"),
    176: Xid("PCIE_CORRECTABLE_ERROR", "PCIe correctable error", "", INFO, "watch"),
    535: Xid("LTS", "535.309.01", "", INFO, "watch"),
}

SXID_FATAL: FrozenSet[int] = frozenset((12020, 22003, 22011)) | frozenset(range(23001, 23018))
"""Always fatal. A line normally says Fatal or Non-fatal itself, and then the word decides."""

SXID_HOST: FrozenSet[int] = frozenset((10003, 10004, 10005))
"""The whole board needs a reset (10003), or is too hot (10004, 10005)."""
