# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every finding that the judgement of GPUs can make: id, severity, meaning, remedy, source. Data, in one place.

`build_finding` makes findings of it, so that a finding which is not listed cannot exist, and docs/health-findings.md is
rendered from it. Sources by short name: `rules` is the project's own rule, taken where sources disagree; `dcgm` is
NVIDIA/DCGM (modules/health, common/DcgmGPUHardwareLimits.h); `manual` NVIDIA's nvidia-smi manual; `fm-guide` the Fabric
Manager user guide; `gpud`, `azure-nhc`, `nvsentinel` the public health checkers of those names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional

from ._findings import Finding, finding

INFO, WARNING, CRITICAL = "info", "warning", "critical"

RESET = "Drain the GPU, then `nvidia-smi --gpu-reset -i BUS_ID`; on NVSwitch boards reset all GPUs, or reboot."
REBOOT = "Drain the machine and reboot it."
COLD = "Drain the machine, power it off and on; if it happens again, reseat or replace the GPU."
REPLACE = "Drain the GPU and have it replaced (RMA)."
WATCH = "Nothing to do now; watch whether it grows."
NOTHING = "Nothing to do."
RUN_AGAIN = "Run the same command by hand on the machine and look at its output; then judge again."


@dataclass(frozen=True)
class Entry:
    """One kind of finding. `unread` says that it stands for something due that could not be read."""

    severity: str
    meaning: str
    remedy: str
    source: str
    unread: bool = False


def _e(severity, meaning, remedy, source, unread=False) -> Entry:
    return Entry(severity, meaning, remedy, source, unread)


CATALOG: Dict[str, Entry] = {
    # -- can the machine be read at all -----------------------------------------------------------------------------
    "no_gpu": _e(INFO, "no NVIDIA GPU on the PCI bus, and none expected", NOTHING, "rules"),
    "amd_gpu": _e(INFO, "AMD GPUs are present; this collection does not judge them", NOTHING, "rules"),
    "driver_not_loaded": _e(
        CRITICAL,
        "the NVIDIA kernel module is not loaded",
        "Look at `dmesg` and `dkms status`, install or build the module for the running kernel, reboot.",
        "manual: exit status 9",
    ),
    "driver_library_mismatch": _e(
        CRITICAL,
        "the loaded kernel module and the driver's libraries differ in version",
        "Reboot: the driver was upgraded while the old module stays loaded.",
        "nvml.h: return code 18",
    ),
    "driver_library_missing": _e(
        WARNING,
        "the NVML library (libnvidia-ml.so.1) is missing",
        "Install the driver's user space of the same version as the module.",
        "manual: exit status 12",
        True,
    ),
    "driver_version_differs": _e(
        CRITICAL,
        "nvidia-smi and the loaded kernel module are of different versions",
        "Reboot, so that the installed module is loaded.",
        "rules",
    ),
    "nouveau_loaded": _e(CRITICAL, "the nouveau module holds the GPUs", "Blacklist nouveau and reboot.", "rules"),
    "no_devices": _e(
        CRITICAL,
        "the driver is loaded and finds no usable GPU",
        "Look at `dmesg`: the module flavour may not support the GPU, or its initialisation failed.",
        "manual: exit status 6",
    ),
    "gpu_unsupported": _e(
        CRITICAL,
        "the loaded driver does not support this GPU",
        "Install the module flavour and branch that the GPU needs (open or proprietary).",
        "kernel log of the NVIDIA driver",
    ),
    "smi_missing": _e(WARNING, "nvidia-smi is not installed", "Install the driver's utilities package.", "rules", True),
    "smi_timeout": _e(
        WARNING,
        "nvidia-smi does not answer",
        "A GPU or the driver hangs: look for Xid 119/120 and 79 in the kernel log, drain and reboot.",
        "microsoft/pai#889",
        True,
    ),
    "smi_failed": _e(WARNING, "nvidia-smi cannot answer", RUN_AGAIN, "manual: RETURN VALUE", True),
    "smi_permission": _e(
        WARNING,
        "no permission to query the GPUs",
        "Judge as root; look at SELinux and at the device nodes' permissions.",
        "manual: exit status 4",
        True,
    ),
    "smi_blocked": _e(
        CRITICAL,
        "the operating system blocks access to the GPUs",
        "Look at cgroup device rules and at virtualisation settings.",
        "nvml.h: return code 17",
    ),
    "smi_usage": _e(
        WARNING,
        "nvidia-smi refused the question",
        "Ask for fields that this driver has.",
        "manual: exit status 2",
        True,
    ),
    "smi_unreadable": _e(WARNING, "the output of nvidia-smi cannot be understood", RUN_AGAIN, "rules", True),
    "smi_incomplete": _e(WARNING, "the output of nvidia-smi is incomplete", RUN_AGAIN, "rules", True),
    "fields_missing": _e(WARNING, "values that are due are missing or cannot be understood", RUN_AGAIN, "rules", True),
    "nothing_to_judge": _e(
        WARNING, "the recording says nothing about health", "Record `nvidia-smi -q -x`.", "rules", True
    ),
    "nvlink_unreadable": _e(WARNING, "the NVLink output cannot be understood", RUN_AGAIN, "rules", True),
    "topology_unreadable": _e(WARNING, "the topology matrix cannot be read", RUN_AGAIN, "rules", True),
    "topology_undecidable": _e(
        WARNING,
        "the topology cannot be judged without knowing the GPU model",
        "Name the model, or judge a recording that names it.",
        "rules",
        True,
    ),
    "kernel_log_unreadable": _e(
        WARNING, "the kernel log cannot be read", "Judge as root; keep a persistent journal.", "rules", True
    ),
    "fabric_manager_unreadable": _e(
        WARNING,
        "the state of Fabric Manager cannot be read",
        "Look at `systemctl status nvidia-fabricmanager`.",
        "rules",
        True,
    ),
    # -- number of GPUs ---------------------------------------------------------------------------------------------
    "gpu_count_low": _e(
        CRITICAL,
        "fewer GPUs than expected",
        "Compare `lspci -d 10de:` with `nvidia-smi -L`; look for the missing one in the kernel log, "
        "reseat or replace it.",
        "gpud: gpu-counts",
    ),
    "gpu_count_high": _e(WARNING, "more GPUs than expected", "Correct the expected number, or the machine.", "rules"),
    "gpu_missing_from_driver": _e(
        CRITICAL, "a GPU is on the PCI bus and the driver does not show it", COLD, "gpud: gpu-counts"
    ),
    "model_unexpected": _e(
        WARNING, "the GPU is not of the expected model", "Correct the inventory, or the machine.", "rules"
    ),
    "model_unknown": _e(
        INFO, "the model is not in the table; it is judged by what the card itself reports", NOTHING, "rules"
    ),
    # -- state ------------------------------------------------------------------------------------------------------
    "gpu_lost": _e(CRITICAL, "the GPU is lost: it fell off the bus", COLD, "nvml.h: return code 15"),
    "gpu_unreachable": _e(CRITICAL, "the GPU cannot be opened", COLD, "public reports of this text"),
    "gpu_reset_required": _e(CRITICAL, "the GPU requires a reset", RESET, "nvml.h: return code 16"),
    "gpu_init_failed": _e(CRITICAL, "the driver could not initialise the GPU", COLD, "NVIDIA/gpu-operator#1146"),
    "recovery_action": _e(
        CRITICAL,
        "the driver asks for a recovery action",
        "Do what it names: Reset: drain and reset the GPU; Reboot: reboot the machine.",
        "manual: GPU Recovery Action; dcgm",
    ),
    "recovery_drain": _e(
        WARNING,
        "the driver asks to drain peer-to-peer traffic",
        "Drain the jobs that use this GPU's NVLink, then reset it.",
        "dcgm",
    ),
    "vital_unreadable": _e(CRITICAL, "a vital value of the GPU cannot be read", RESET, "rules"),
    "sensor_unreadable": _e(
        WARNING,
        "a sensor of the GPU cannot be read",
        "Read again; if it stays, look at the fan or power connection.",
        "rules",
    ),
    "field_unreadable": _e(INFO, "an informational value cannot be read", NOTHING, "rules"),
    "power_unreadable": _e(
        WARNING,
        "power readings are missing, unlike on the other GPUs",
        "Read again; if it stays, reset the GPU.",
        "dcgm",
    ),
    "power_cable": _e(
        CRITICAL, "an external power cable is not connected", "Connect the power cable.", "manual: exit status 8"
    ),
    "inforom_corrupted": _e(CRITICAL, "the InfoROM is corrupted", REPLACE, "manual: exit status 14"),
    "inforom_invalid": _e(WARNING, "the InfoROM's checksum is not valid", REPLACE, "dcgm"),
    # -- memory errors ----------------------------------------------------------------------------------------------
    "ecc_uncorrectable": _e(
        CRITICAL,
        "uncorrectable memory errors since the driver was loaded",
        "Drain and reset the GPU; if they come back, have it replaced.",
        "dcgm",
    ),
    "ecc_correctable_high": _e(
        WARNING,
        "very many corrected memory errors since the driver was loaded",
        "Reset the GPU at the next drain; replace it if they come back.",
        "azure-nhc",
    ),
    "ecc_aggregate": _e(
        INFO, "uncorrectable memory errors in the GPU's life, none since the driver was loaded", WATCH, "rules"
    ),
    "sram_threshold_exceeded": _e(
        CRITICAL, "more uncorrectable SRAM errors than NVIDIA allows", REPLACE, "manual: SRAM Threshold Exceeded"
    ),
    "memory_unrepairable": _e(
        CRITICAL, "the GPU has memory that cannot be repaired", REPLACE, "manual: Unrepairable Memory"
    ),
    "memory_repair_pending": _e(
        WARNING, "a memory or TPC repair waits for a reset", RESET, "manual: Channel/TPC Repair Pending"
    ),
    "remap_pending": _e(
        WARNING, "a row remapping waits for a reset, after correctable errors only", RESET, "manual: Remapped Rows"
    ),
    "remap_pending_uncorrectable": _e(
        CRITICAL, "a row remapping waits for a reset, after an uncorrectable error", RESET, "manual: Remapped Rows"
    ),
    "remap_failure": _e(CRITICAL, "row remapping failed", REPLACE, "dcgm; gpud"),
    "remap_bank_exhausted": _e(
        WARNING,
        "a memory bank has no spare rows left",
        "Plan a replacement: the next uncorrectable error there cannot be repaired.",
        "manual: Bank Remap Availability Histogram",
    ),
    "remap_rows_many": _e(WARNING, "very many rows were remapped after uncorrectable errors", REPLACE, "dcgm"),
    "retired_pages_pending": _e(
        WARNING, "page retirement waits for a reset, after single-bit errors only", RESET, "manual: Retired Pages; dcgm"
    ),
    "retired_pages_pending_uncorrectable": _e(
        CRITICAL, "page retirement waits for a reset, after double-bit errors", RESET, "rules"
    ),
    "retired_pages_many": _e(CRITICAL, "the table of retired pages is nearly full", REPLACE, "dcgm: 63 of 64 pages"),
    "ecc_off": _e(
        WARNING, "ECC is off on a data-centre GPU", "`nvidia-smi -i BUS_ID -e 1`, then reset or reboot.", "rules"
    ),
    "ecc_mode_pending": _e(
        WARNING, "the ECC mode will change at the next reset", "Reset or reboot, or set it back.", "manual: ECC Mode"
    ),
    # -- temperature, power, clocks ---------------------------------------------------------------------------------
    "temperature_critical": _e(
        CRITICAL,
        "at or above the card's own slowdown temperature",
        "Look at air flow, fans, cold plates and inlet temperature.",
        "nvsentinel; gpud",
    ),
    "temperature_high": _e(
        WARNING,
        "above the card's own maximum operating temperature",
        "Look at air flow, fans, cold plates and inlet temperature.",
        "gpud",
    ),
    "throttle_thermal": _e(
        CRITICAL,
        "hardware lowers the clocks because of heat",
        "Look at air flow, fans, cold plates and inlet temperature.",
        "nvml.h: reason 0x40; gpud",
    ),
    "throttle_power_brake": _e(
        CRITICAL,
        "the chassis asserts the power brake: hardware lowers the clocks",
        "Look at power supplies, power distribution and the chassis' controller.",
        "nvml.h: reason 0x80; gpud",
    ),
    "throttle_hardware": _e(
        CRITICAL,
        "hardware lowers the clocks",
        "Look at temperature, power supplies and power cables.",
        "nvml.h: reason 0x8; gpud",
    ),
    "throttle_transient": _e(WARNING, "hardware lowered the clocks for a moment", WATCH, "rules"),
    "throttle_software_thermal": _e(
        WARNING,
        "software lowers the clocks because of heat",
        "Look at air flow, fans and inlet temperature.",
        "nvml.h: reason 0x20",
    ),
    "power_limit_low": _e(
        WARNING,
        "the power limit is below the card's default, and not declared so",
        "`nvidia-smi -i BUS_ID -pl WATTS`, or declare the limit.",
        "rules",
    ),
    "power_limit_differs": _e(
        WARNING,
        "the power limit is not the declared one",
        "Apply the gpu_power role, or correct the declared value.",
        "rules",
    ),
    "app_clocks_low": _e(
        WARNING, "application clocks are below their default under load", "`nvidia-smi -i BUS_ID -rac`.", "rules"
    ),
    "persistence_off": _e(WARNING, "persistence mode is off", "Enable nvidia-persistenced.", "azure-nhc; gpud"),
    "persistence_off_desktop": _e(INFO, "persistence mode is off on a desktop card", NOTHING, "rules"),
    # -- PCIe -------------------------------------------------------------------------------------------------------
    "pcie_width_low": _e(
        WARNING,
        "the PCIe link has fewer lanes than it could have",
        "Reseat the GPU or its riser; where the slot is wired so, declare expected_pcie_width.",
        "rules; dcgm",
    ),
    "pcie_generation_low": _e(
        WARNING,
        "the PCIe link of a busy GPU is slower than it could be",
        "Reseat the GPU or its riser; look at the BIOS settings of the slot.",
        "rules",
    ),
    "pcie_degraded": _e(
        CRITICAL,
        "the PCIe link of a busy GPU lost both lanes and speed, unlike its peers",
        "Reseat the GPU or its riser; replace the riser or the GPU.",
        "rules",
    ),
    "pcie_replays_high": _e(
        INFO,
        "many PCIe replays since reset, far above the other GPUs",
        "Watch their rate; a marginal link is reseated.",
        "dcgm judges a rate only",
    ),
    "pcie_replay_rate": _e(
        WARNING,
        "PCIe packets are sent again more often than a sound link needs",
        "Reseat the GPU and its riser or cable; look for AER lines in the kernel log.",
        "dcgm: DcgmHealthWatch.cpp",
    ),
    # -- modes ------------------------------------------------------------------------------------------------------
    "compute_prohibited": _e(
        CRITICAL,
        "compute mode is Prohibited: no program can use the GPU",
        "`nvidia-smi -i BUS_ID -c 0`, or declare the compute mode.",
        "manual: Compute Mode",
    ),
    "compute_exclusive": _e(
        INFO,
        "compute mode is exclusive: one program at a time",
        "`nvidia-smi -i BUS_ID -c 0` if that is not wanted.",
        "manual: Compute Mode",
    ),
    "mig_mode_pending": _e(
        WARNING, "the MIG mode will change at the next reset", "Reset the GPU, or set it back.", "manual: MIG Mode"
    ),
    "mig_mode_differs": _e(WARNING, "the MIG mode is not the declared one", "Apply the gpu_power role.", "rules"),
    "mig_memory_unjudged": _e(INFO, "MIG is on: row remapping cannot be read", NOTHING, "rules"),
    "memory_held": _e(
        WARNING,
        "GPU memory is held and no process owns it",
        "Look for dead containers and processes (`fuser -v /dev/nvidia*`), then reset the GPU.",
        "rules; gcm",
    ),
    "gpu_unlike_peers": _e(
        WARNING,
        "one GPU differs from the others of this machine",
        "Make it equal to its peers, or replace it.",
        "rules",
    ),
    # -- fabric -----------------------------------------------------------------------------------------------------
    "fabric_not_completed": _e(
        CRITICAL,
        "the GPU is not registered with the NVLink fabric",
        "Look at Fabric Manager (and nvlsm): running, and of the driver's version?",
        "dcgm: MonitorFabricFields",
    ),
    "fabric_unhealthy": _e(
        CRITICAL,
        "the NVLink fabric of the GPU is not healthy",
        "Look at the Fabric Manager log; drain and reset all GPUs.",
        "dcgm: MonitorFabricFields",
    ),
    "fabric_degraded": _e(
        WARNING,
        "the NVLink fabric of the GPU is degraded",
        "Look at the Fabric Manager log; drain and reset all GPUs.",
        "rules",
    ),
    "fabric_manager_not_running": _e(
        CRITICAL,
        "NVSwitches are present and Fabric Manager does not run",
        "`systemctl status nvidia-fabricmanager`, and its log.",
        "gpud#1151; nvsentinel",
    ),
    "fabric_manager_missing": _e(
        CRITICAL,
        "NVSwitches are present and Fabric Manager is not installed",
        "Install nvidia-fabricmanager of exactly the driver's version.",
        "nvsentinel",
    ),
    "fabric_manager_version": _e(
        CRITICAL,
        "Fabric Manager and the driver are of different versions",
        "Install Fabric Manager of exactly the driver's version and restart it.",
        "fm-guide",
    ),
    "fabric_manager_flapping": _e(
        WARNING,
        "Fabric Manager restarts again and again",
        "Look at its log: `journalctl -u nvidia-fabricmanager`.",
        "nvsentinel",
    ),
    "nvlsm_missing": _e(
        CRITICAL,
        "NVLink 5 switches are present and their subnet manager nvlsm is not installed",
        "Install nvlsm; Fabric Manager starts it.",
        "siderolabs/extensions#893",
    ),
    "nvlsm_not_running": _e(
        CRITICAL,
        "NVLink 5 switches are present and their subnet manager nvlsm does not run",
        "Look at /var/log/nvlsm.log, then restart nvidia-fabricmanager, which starts it.",
        "siderolabs/extensions#893",
    ),
    "fabric_manager_not_needed": _e(
        INFO,
        "Fabric Manager failed on a machine without NVSwitch",
        "Remove the nvidia-fabricmanager package.",
        "NVIDIA/gpu-operator#610",
    ),
    "fabric_manager_error": _e(WARNING, "Fabric Manager logged an error", "Look at the Fabric Manager log.", "gpud"),
    "fabric_manager_topology": _e(
        CRITICAL,
        "Fabric Manager found fewer NVSwitches than the machine has",
        "Compare `lspci -d 10de::0680` with the machine's design; power cycle.",
        "gpud",
    ),
    "nvlink_management_missing": _e(
        CRITICAL,
        "NVLink 5 GPUs without the management functions of their switches",
        "Load mlx5_ib and ib_umad (package linux-modules-extra on cloud kernels).",
        "NVIDIA/gpu-operator#2781",
    ),
    "sxid_fatal": _e(
        CRITICAL,
        "an NVSwitch reported a fatal error (SXid)",
        "Drain the machine and reset all GPUs and switches (reboot).",
        "fm-guide: SXid tables",
    ),
    "sxid_nonfatal": _e(WARNING, "an NVSwitch reported a non-fatal error (SXid)", WATCH, "fm-guide: SXid tables"),
    # -- NVLink -----------------------------------------------------------------------------------------------------
    "nvlink_inactive": _e(
        CRITICAL,
        "an NVLink is down",
        "Drain and reset all GPUs of the board; then hardware.",
        "dcgm; health-validation: max_inactive 0",
    ),
    "nvlink_missing": _e(
        CRITICAL,
        "an NVLink that the model has is not there",
        "Drain and reset all GPUs of the board; then hardware.",
        "dcgm; health-validation",
    ),
    "nvlink_all_down": _e(
        CRITICAL,
        "no NVLink of the GPU is up",
        "Look at Fabric Manager and the fabric state; drain, reset all GPUs of the board.",
        "gpud#1085",
    ),
    "nvlink_bridge_hole": _e(WARNING, "a link of an NVLink bridge is down", "Reseat the bridge.", "rules"),
    "nvlink_slow": _e(
        WARNING,
        "NVLinks run below the model's rate",
        "Drain and reset all GPUs of the board.",
        "health-validation: speed",
    ),
    "nvlink_replays": _e(WARNING, "an NVLink had to replay packets", "Watch it; reset if it grows.", "dcgm"),
    "nvlink_errors": _e(
        CRITICAL,
        "an NVLink has errors that break transfers",
        "Drain and reset; if they come back on the same slot, it is the board or its connector.",
        "dcgm",
    ),
    "nvlink_crc_errors": _e(WARNING, "an NVLink has a few CRC errors", "Watch it; reset if it grows.", "dcgm"),
    "nvlink_counter_saturated": _e(
        CRITICAL,
        "an NVLink error counter is stuck at its maximum",
        "Drain and reset; a check on growth would see nothing.",
        "ScuffedSquared/NVLink-Error-Testing-Notes",
    ),
    "nvlink_recoveries": _e(WARNING, "an NVLink had to recover", WATCH, "dcgm: recovery successful"),
    "nvlink_fec_marginal": _e(WARNING, "an NVLink corrects unusually many bits", WATCH, "rules"),
    "nvlink_mig": _e(INFO, "NVLink is not judged while MIG is on", NOTHING, "manual"),
    "topology_links_lost": _e(
        CRITICAL,
        "the topology shows fewer NVLinks than the model has",
        "Look at `nvidia-smi nvlink -s` and at Fabric Manager.",
        "vllm-project/vllm#16336",
    ),
    "p2p_unavailable": _e(
        CRITICAL,
        "GPUs that are joined by NVLink cannot reach each other",
        "Look at Fabric Manager, IOMMU and ACS settings.",
        "gpud",
    ),
    # -- kernel log -------------------------------------------------------------------------------------------------
    "gpu_fell_off_bus": _e(CRITICAL, "the kernel says that the GPU has fallen off the bus", COLD, "kernel log"),
    "xid_recurring": _e(
        CRITICAL,
        "the same Xid comes back after resets or reboots",
        "Resetting again will not help: drain the GPU, run its diagnostics (`dcgmi diag -r 3`), ask for a replacement.",
        "nvsentinel: 5 bursts in 24 h; gpud: 2 reboots",
    ),
    "xid_repeated": _e(
        WARNING,
        "the same application-level Xid comes again and again on one GPU",
        "Run the GPU's diagnostics (`dcgmi diag -r 2`).",
        "nvsentinel",
    ),
    "xid_unlisted": _e(WARNING, "an Xid that the catalogue does not list", "Ask NVIDIA's Xid documentation.", "rules"),
}

XID_REMEDY_SOURCE = "NVIDIA's Xid catalogue (analyzing-xid-catalog), 2025-10-29"


def build_finding(
    finding_id: str,
    observed: Any = None,
    expected: Any = None,
    gpu: Optional[Mapping[str, Any]] = None,
    link: Optional[int] = None,
    detail: str = "",
    severity: Optional[str] = None,
    entry: Optional[Entry] = None,
) -> Finding:
    """A finding of the catalogue. `detail` is added to its meaning; `entry` stands in for ids that are numbered."""
    item = entry or CATALOG[finding_id]
    where = describe_gpu(gpu)
    if link is not None:
        where = ("%s link %d" % (where, link)).strip()
    message = item.meaning + (": " + detail if detail else "")
    return finding(
        finding_id,
        severity or item.severity,
        "%s: %s" % (where, message) if where else message[:1].upper() + message[1:],
        observed=observed,
        expected=expected,
        remedy=item.remedy.replace("BUS_ID", str((gpu or {}).get("pci_bus_id") or "BUS_ID")),
        source=item.source,
        gpu=gpu,
        link=link,
    )


def describe_gpu(gpu: Optional[Mapping[str, Any]]) -> str:
    """``GPU 3 (00000000:4B:00.0)``: the index for a person, the bus id for certainty."""
    if not gpu:
        return ""
    index, bus_id = gpu.get("index"), gpu.get("pci_bus_id")
    name = bus_id or gpu.get("uuid")
    if index is None:
        return "GPU %s" % name if name else ""
    return "GPU %d (%s)" % (index, name) if name else "GPU %d" % index


def is_unread(item: Mapping[str, Any]) -> bool:
    """True for a finding that stands for something due that could not be read."""
    entry = CATALOG.get(item["id"])
    return bool(entry and entry.unread)
