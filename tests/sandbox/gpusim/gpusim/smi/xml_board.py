# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections: identity, modes, firmware, PCI."""

from . import xml as document


def write(xml, one, layout, machine) -> None:
    """Write the first part of a GPU, from product_name to pci."""
    model = one.model
    new = layout.branch >= 580
    xml.leaves(
        ("product_name", model["name"]),
        ("product_brand", model.get("brand", "NVIDIA")),
        ("product_architecture", model["architecture"]),
        ("display_mode", document.DEPRECATED if new else "Enabled"),
    )
    if new:
        xml.leaf("display_attached", "Yes")
    hmm = layout.branch >= 580 and machine.open_modules
    xml.leaves(
        ("display_active", "Disabled"),
        ("persistence_mode", "Enabled" if one.persistence else "Disabled"),
        ("addressing_mode", "HMM" if hmm else "None"),
    )
    mig = "Disabled" if model["mig"] else "N/A"
    xml.group("mig_mode", ("current_mig", mig), ("pending_mig", mig))
    with xml.block("mig_devices"):
        xml.lines.append("\t" * xml.depth + "None")
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
    rows = [(tag, "N/A") for tag in ("chassis_serial_number", "slot_number", "tray_index", "host_id", "peer_type")]
    rows.append(("module_id", one.module_id))
    if layout.branch >= 580:
        rows.append(("gpu_fabric_guid", "N/A"))
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
    firmware = ("gsp_firmware_version", layout.version)
    if layout.branch < 550:
        xml.leaf(*firmware)
    else:
        xml.leaf("c2c_mode", "N/A")
    rows = [("virtualization_mode", "None"), ("host_vgpu_mode", "N/A")]
    if layout.branch >= 550:
        rows.append(("vgpu_heterogeneous_mode", "N/A"))
    xml.group("gpu_virtualization_mode", *rows)
    if layout.branch < 580:
        value = "No" if layout.branch < 570 else document.DEPRECATED
        xml.group("gpu_reset_status", ("reset_required", value), ("drain_and_reset_recommended", value))
    if layout.branch >= 570:
        xml.leaf("gpu_recovery_action", "None")
    if layout.branch >= 550:
        xml.leaf(*firmware)
    xml.group("ibmnpu", ("relaxed_ordering_mode", "N/A"))


def _pci(xml, one, layout) -> None:
    pci, generation = one.model["pci"], one.model["pcie"]["gen"]
    width = f"{one.model['pcie']['width']}x"
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
            tags = ("max_link_gen", "current_link_gen", "device_current_link_gen", "max_device_link_gen")
            xml.group("pcie_gen", *((tag, generation) for tag in tags), ("max_host_link_gen", generation))
            xml.group("link_widths", ("max_link_width", width), ("current_link_width", width))
        xml.group("pci_bridge_chip", ("bridge_chip_type", "N/A"), ("bridge_chip_fw", "N/A"))
        xml.leaves(("replay_counter", 0), ("replay_rollover_counter", 0))
        xml.leaves(("tx_util", f"{502 + one.index} KB/s"), ("rx_util", f"{578 + one.index} KB/s"))
        caps = [("atomic_caps_outbound", "N/A"), ("atomic_caps_inbound", "N/A")]
        xml.leaves(*(caps if layout.branch >= 570 else reversed(caps)))


def _id(device: str, vendor: str) -> str:
    return (device[2:] + vendor[2:]).upper()
