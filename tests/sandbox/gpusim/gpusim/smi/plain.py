# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -q` without -x: the same facts as the XML, under the names that the text form gives them."""

import xml.etree.ElementTree as ElementTree

from .. import driver
from . import xml as document

NAMES = {
    "mig_mode/current_mig": "Current", "mig_mode/pending_mig": "Pending", "serial": "Serial Number",
    "driver_model/current_dm": "Current", "driver_model/pending_dm": "Pending",
    "uuid": "GPU UUID", "pdi": "GPU PDI", "multigpu_board": "MultiGPU Board", "gpu_fru_part_number": "FRU Part Number",
    "platformInfo": "Platform Info", "module_id": "Module Id", "gpu_module_id": "Module ID",
    "drain_and_reset_recommended": "Drain and Reset Recommended", "gpu_fabric_guid": "GPU Fabric GUID",
    "img_version": "Image Version", "pwr_object": "Power Management Object",
    "inforom_bbx_flush": "Inforom BBX Object Flush", "current_gom": "Current", "pending_gom": "Pending",
    "c2c_mode": "GPU C2C Mode", "vgpu_heterogeneous_mode": "vGPU Heterogeneous Mode", "ibmnpu": "IBMNPU",
    "pci_bus": "Bus", "pci_device": "Device", "pci_domain": "Domain", "pci_base_class": "Base Classcode",
    "pci_sub_class": "Sub Classcode", "pci_device_id": "Device Id", "pci_bus_id": "Bus Id",
    "pci_sub_system_id": "Sub System Id", "pci_gpu_link_info": "GPU Link Info", "pcie_gen": "PCIe Generation",
    "max_link_gen": "Max", "current_link_gen": "Current", "device_current_link_gen": "Device Current",
    "max_device_link_gen": "Device Max", "max_host_link_gen": "Host Max", "link_widths": "Link Width",
    "max_link_width": "Max", "current_link_width": "Current", "pci_bridge_chip": "Bridge Chip",
    "bridge_chip_type": "Type", "bridge_chip_fw": "Firmware", "replay_counter": "Replays Since Reset",
    "replay_rollover_counter": "Replay Number Rollovers", "tx_util": "Tx Throughput", "rx_util": "Rx Throughput",
    "clocks_event_reason_gpu_idle": "Idle", "clocks_event_reason_display_clocks_setting": "Display Clock Setting",
    "clocks_event_reasons_counters_sw_power_cap": "SW Power Capping",
    "clocks_event_reasons_counters_sw_therm_slowdown": "SW Thermal Slowdown",
    "clocks_event_reasons_counters_hw_therm_slowdown": "HW Thermal Slowdown",
    "clocks_event_reasons_counters_hw_power_brake": "HW Power Braking",
    "cc_protected_memory_usage": "Conf Compute Protected Memory Usage", "gpu_util": "GPU", "memory_util": "Memory",
    "encoder_util": "Encoder", "decoder_util": "Decoder", "jpeg_util": "JPEG", "ofa_util": "OFA",
    "session_count": "Active Sessions", "current_dram_encryption": "Current", "pending_dram_encryption": "Pending",
    "texture_shm": "Texture Shared", "cbu": "CBU",
    "current_ecc": "Current", "pending_ecc": "Pending", "sram_uncorrectable_secded": "SRAM Uncorrectable SEC-DED",
    "remapped_row_corr": "Correctable Error", "remapped_row_corr_inactive": "Inactive Correctable Error",
    "remapped_row_unc": "Uncorrectable Error", "remapped_row_unc_inactive": "Inactive Uncorrectable Error",
    "remapped_row_pending": "Pending", "remapped_row_failure": "Remapping Failure Occurred",
    "row_remapper_histogram": "Bank Remap Availability Histogram", "gpu_temp": "GPU Current Temp",
    "gpu_temp_tlimit": "GPU T.Limit Temp", "gpu_temp_max_tlimit_threshold": "GPU Shutdown T.Limit Temp",
    "gpu_temp_slow_tlimit_threshold": "GPU Slowdown T.Limit Temp",
    "gpu_temp_max_gpu_tlimit_threshold": "GPU Max Operating T.Limit Temp",
    "gpu_temp_max_mem_tlimit_threshold": "Memory Max Operating T.Limit Temp",
    "gpu_temp_max_threshold": "GPU Shutdown Temp", "gpu_temp_slow_threshold": "GPU Slowdown Temp",
    "gpu_temp_max_gpu_threshold": "GPU Max Operating Temp", "gpu_temp_max_mem_threshold": "Memory Max Operating Temp",
    "memory_temp": "Memory Current Temp", "gpu_target_temperature": "GPU Target Temperature",
    "instant_power_draw": "Instantaneous Power Draw", "power_profiles": "Workload Power Profiles",
    "power_profile_requested_profiles": "Requested Profiles", "power_profile_enforced_profiles": "Enforced Profiles",
    "edpp_multiplier": "EDPp Multiplier", "graphics_clock": "Graphics", "sm_clock": "SM", "mem_clock": "Memory",
    "video_clock": "Video", "graphics_volt": "Graphics", "cliqueId": "CliqueId", "clusterUuid": "ClusterUUID",
    "route_recovery_in_progress": "Route Recovery in progress", "supported_mem_clock": "Memory",
    "multiprocessor_count": "Multiprocessor count", "copy_engine_count": "Copy Engine count",
    "encoder_count": "Encoder count", "decoder_count": "Decoder count", "ofa_count": "OFA count",
    "jpg_count": "JPG count", "mig_device": "MIG Device", "mig_device/fb_memory_usage": "Shared FB Memory Usage",
    "mig_device/bar1_memory_usage": "Shared BAR1 Memory", "ecc_error_count": "ECC Errors",
    "volatile_count": "Volatile",
    "gpu_memory_power_readings": "GPU Memory Power Readings ",  # the space is the tool's
}  # fmt: skip
"""Tag (or parent/tag) → name, where it is not simply the tag's words."""

WORDS = {"gpu": "GPU", "mig": "MIG", "vbios": "VBIOS", "id": "ID", "oem": "OEM", "ecc": "ECC", "gsp": "GSP",
         "vgpu": "VGPU", "bbx": "BBX", "pci": "PCI", "sw": "SW", "hw": "HW", "fb": "FB", "bar1": "BAR1", "fps": "FPS",
         "fbc": "FBC", "dram": "DRAM", "sram": "SRAM", "l2": "L2", "sm": "SM", "pcie": "PCIE", "tpc": "TPC",
         "egm": "EGM"}  # fmt: skip
RETIRED_PAGES = (
    ("Single Bit ECC", "multiple_single_bit_retirement/retired_count"),
    ("Double Bit ECC", "double_bit_retirement/retired_count"),
    ("Pending Page Blacklist", "pending_blacklist"),
)
LEFT_OUT = ("accounted_processes", "supported_gpu_target_temp", "supported_clocks", "retired_pages")
DEEPER = ("clocks_event_reason_hw_thermal_slowdown", "clocks_event_reason_hw_power_brake_slowdown")


NARROW = 42
"""Where values stand before 590, and where those of processes still do."""


def render(machine, gpus: list, version: str, blocks=()) -> str:
    """Return the text form, of some `blocks` (`-d`) only; values stand in column 55 (590 and later) or 42."""
    column = 55 if driver.branch(version) >= 590 else NARROW
    root = ElementTree.fromstring(document.render(machine, gpus, version).split("\n", 2)[2])
    lines = ["", "==============NVSMI LOG==============", ""]
    for name in ("Timestamp", "Driver Version", "CUDA Version"):
        lines.append(line(name, root.findtext(name.lower().replace(" ", "_")), 0, column))
    lines += ["", line("Attached GPUs", root.findtext("attached_gpus"), 0, column)]
    for element in root.findall("gpu"):
        lines.append("GPU " + element.get("id"))
        if blocks:
            from . import plain_blocks

            lines += plain_blocks.lines(element, blocks, column, driver.branch(version))
        else:
            for child in element:
                lines += element_lines(child, "", 4, column, driver.branch(version))
        lines.append("")
    return "\n".join(lines) + "\n"


def element_lines(element, parent: str, indent: int, column: int, branch: int) -> list:
    """Lines of one element of the XML document and what is below it."""
    if element.tag == "processes":
        return _processes(element, indent, column)
    if element.tag == "retired_pages":
        return [
            " " * indent + "Retired Pages",
            *(line(name, element.findtext(path), indent + 4, column) for name, path in RETIRED_PAGES),
        ]
    if element.tag == "mig_devices":
        return [text for device in element for text in element_lines(device, "", indent, column, branch)]
    if element.tag in LEFT_OUT or element.tag == "power_state":
        return []
    name = "Gpu" if element.tag == "gpu_util" and branch < 590 else _name(element.tag, parent)
    if not len(element):
        text = (element.text or "").strip()
        if element.tag.startswith("pci_") and element.tag != "pci_bus_id":
            text = "0x" + text
        return [line(name, text, indent + (4 if element.tag in DEEPER else 0), column)]
    lines = [" " * indent + name]
    for child in element:
        lines += element_lines(child, element.tag, indent + 4, column, branch)
    return lines


def _processes(element, indent: int, column: int) -> list:
    if not len(element):
        return [line("Processes", "None", indent, column)]
    lines = [" " * indent + "Processes"]
    for process in element:
        lines.append(line("GPU instance ID", process.findtext("gpu_instance_id"), indent + 4, NARROW))
        lines.append(line("Compute instance ID", process.findtext("compute_instance_id"), indent + 4, NARROW))
        lines.append(line("Process ID", process.findtext("pid"), indent + 4, NARROW))
        for name, tag in (("Type", "type"), ("Name", "process_name"), ("Used GPU Memory", "used_memory")):
            lines.append(line(name, process.findtext(tag), indent + 8, NARROW))
    return lines


def line(name: str, value, indent: int, column: int) -> str:
    """`    Name      : value`, the colon in `column`."""
    return f"{' ' * indent + name:<{column}}: {value}"


def _name(tag: str, parent: str) -> str:
    for key in (f"{parent}/{tag}", tag):
        if key in NAMES:
            return NAMES[key]
    for prefix in ("clocks_event_reasons_counters_", "clocks_event_reason_", "row_remapper_histogram_"):
        if tag.startswith(prefix):
            tag = tag[len(prefix) :]
    return " ".join(WORDS.get(word, word.capitalize()) for word in tag.split("_"))
