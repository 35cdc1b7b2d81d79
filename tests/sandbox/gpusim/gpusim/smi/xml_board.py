# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections: identity, modes, firmware, PCI."""

from .. import settings
from . import xml as document
from . import xml_mig


def write(xml, one, layout, machine) -> None:
    """Write the first part of a GPU, from product_name to pci."""
    model = one.model
    new = layout.branch >= 580
    xml.leaves(
        ("product_name", model["name"]),
        ("product_brand", model["brand"]),
        ("product_architecture", model["architecture"]),
        ("display_mode", document.DEPRECATED if new else model["display_mode"]),
    )
    if new:
        xml.leaf("display_attached", "Yes")
    hmm = "HMM" if layout.branch >= 580 and machine.open_modules else "None"
    xml.leaves(
        ("display_active", "Disabled"),
        ("persistence_mode", "Enabled" if one.persistence else "Disabled"),
        ("addressing_mode", hmm if model["hmm"] else "N/A"),
    )
    xml.group("mig_mode", *zip(("current_mig", "pending_mig"), settings.words(settings.mig(one))))
    xml_mig.write(xml, one)
    xml.leaves(("accounting_mode", "Disabled"), ("accounting_mode_buffer_size", "4000"))
    xml.group("driver_model", ("current_dm", "N/A"), ("pending_dm", "N/A"))
    xml.leaves(("serial", one.serial), ("uuid", one.uuid))
    if new:
        xml.leaf("pdi", one.pdi)
    xml.leaves(
        ("minor_number", one.index),
        ("vbios_version", model["vbios"]),
        ("multigpu_board", "No"),
        ("board_id", "0x" + one.sysfs_bus_id[5:7] + "00"),
        ("board_part_number", model["board_part_number"]),
        ("gpu_part_number", model["gpu_part_number"]),
        ("gpu_fru_part_number", "N/A"),
    )
    _place(xml, one, layout)
    _firmware(xml, one, layout)
    _pci(xml, one, layout)


def _place(xml, one, layout) -> None:
    if layout.branch < 570:
        xml.leaf("gpu_module_id", one.module_id)
        return
    rows = [(tag, "N/A") for tag in ("chassis_serial_number", "slot_number", "tray_index")]
    fifth = one.model["nvlink"]["version"] == 5
    rows += [("host_id", "1" if fifth else "N/A"), ("peer_type", "Switch Connected" if fifth else "N/A")]
    rows.append(("module_id", one.module_id))
    if layout.branch >= 580:
        rows.append(("gpu_fabric_guid", one.pdi if fifth else "N/A"))
    xml.group("platformInfo", *rows)


def _firmware(xml, one, layout) -> None:
    inforom = one.model["inforom"]
    xml.group(
        "inforom_version",
        ("img_version", inforom["img"]),
        ("oem_object", inforom["oem"]),
        ("ecc_object", inforom["ecc"]),
        ("pwr_object", inforom["pwr"]),
    )
    xml.group("inforom_bbx_flush", ("latest_timestamp", "N/A"), ("latest_duration", "N/A"))
    xml.group("gpu_operation_mode", ("current_gom", "N/A"), ("pending_gom", "N/A"))
    firmware = ("gsp_firmware_version", one.gsp_firmware)
    if layout.branch < 550:
        xml.leaf(*firmware)
    else:
        xml.leaf("c2c_mode", one.model["c2c_mode"])
    rows = [("virtualization_mode", "None"), ("host_vgpu_mode", "N/A")]
    if layout.branch >= 550:
        rows.append(("vgpu_heterogeneous_mode", "N/A"))
    xml.group("gpu_virtualization_mode", *rows)
    if layout.branch < 580:
        values = reset_status(one) if layout.branch < 570 else (document.DEPRECATED, document.DEPRECATED)
        xml.group("gpu_reset_status", *zip(("reset_required", "drain_and_reset_recommended"), values))
    if layout.branch >= 570:
        xml.leaf("gpu_recovery_action", one.recovery_action)
    if layout.branch >= 550:
        xml.leaf(*firmware)
    xml.group("ibmnpu", ("relaxed_ordering_mode", "N/A"))


def reset_status(one) -> tuple:
    """`(reset required, drain and reset recommended)` of the branches before the recovery action."""
    action = one.faults.get("recovery")
    drain = "N/A" if one.model["architecture"] == "Volta" else "Yes" if action == "drain_and_reset" else "No"
    return ("Yes" if action == "reset" else "No", drain)


def _pci(xml, one, layout) -> None:
    pci, top = one.model["pci"], one.model["pcie"]["gen"]
    domain, bus, rest = one.short_bus_id.split(":")
    with xml.block("pci", ("pci_bus", bus), ("pci_device", rest[:2]), ("pci_domain", domain)):
        if layout.branch >= 550:
            xml.leaves(("pci_base_class", int(pci["class"][2:4], 16)), ("pci_sub_class", int(pci["class"][4:6], 16)))
        xml.leaves(
            ("pci_device_id", _id(pci["device"], pci["vendor"])),
            ("pci_bus_id", one.bus_id),
            ("pci_sub_system_id", _id(pci["subsystem_device"], pci["subsystem_vendor"])),
        )
        with xml.block("pci_gpu_link_info"):
            now = one.pcie_generation
            xml.group(
                "pcie_gen",
                ("max_link_gen", top),
                ("current_link_gen", now),
                ("device_current_link_gen", now),
                ("max_device_link_gen", top),
                ("max_host_link_gen", top),
            )
            widths = (f"{one.model['pcie']['width']}x", f"{one.pcie_width}x")
            xml.group("link_widths", *zip(("max_link_width", "current_link_width"), widths))
        xml.group("pci_bridge_chip", ("bridge_chip_type", "N/A"), ("bridge_chip_fw", "N/A"))
        xml.leaves(("replay_counter", one.pcie_replays), ("replay_rollover_counter", 0))
        xml.leaves(("tx_util", f"{502 + one.index} KB/s"), ("rx_util", f"{578 + one.index} KB/s"))
        caps = [("atomic_caps_outbound", "N/A"), ("atomic_caps_inbound", "N/A")]
        xml.leaves(*(caps if layout.branch >= 570 else reversed(caps)))


def _id(device: str, vendor: str) -> str:
    return (device[2:] + vendor[2:]).upper()
