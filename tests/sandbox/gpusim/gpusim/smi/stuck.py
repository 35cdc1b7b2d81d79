# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that waits for a reset: what NVML has cached still answers, everything else reads `GPU requires reset`.

Which elements do so is from a recording of the real tool of 535 with that answer of NVML.
"""

import re

WORDS = "GPU requires reset"
READABLE = frozenset((
    "product_name", "product_brand", "product_architecture", "addressing_mode", "serial", "uuid", "pdi", "minor_number",
    "vbios_version", "multigpu_board", "board_id", "board_part_number", "gpu_part_number", "gpu_fru_part_number",
    "relaxed_ordering_mode", "pci_bus", "pci_device", "pci_domain", "pci_base_class", "pci_sub_class", "pci_device_id",
    "pci_bus_id", "pci_sub_system_id", "max_host_link_gen", "atomic_caps_inbound", "atomic_caps_outbound",
    "sparse_operation_mode", "gpu_target_temperature", "graphics_volt",
))  # fmt: skip
COLLAPSED = ("clocks_event_reasons", "clocks_event_reasons_counters", "remapped_rows", "supported_clocks")
"""Blocks that shrink to the words."""
WITHOUT_VALUE = ("ecc_errors", "deferred_clocks")
"""Blocks whose counters read N/A."""

_LEAF = re.compile(r"^(\t+)<(\w+)>(.*)</\2>$")


def hide(lines: list) -> list:
    """Return the lines of a GPU's element with what cannot be read any more replaced."""
    found, inside = [], ""
    for line in lines:
        tag = line.strip().strip("</>")
        if inside:
            if line.strip() == f"</{inside}>":
                if inside not in COLLAPSED:
                    found.append(line)
                inside = ""
            elif inside in WITHOUT_VALUE:
                found.append(_LEAF.sub(r"\1<\2>N/A</\2>", line))
        elif tag in COLLAPSED:
            found.append(line.replace(f"<{tag}>", f"<{tag}>{WORDS}</{tag}>"))
            inside = tag
        else:
            inside = tag if tag in WITHOUT_VALUE else ""
            leaf = _LEAF.match(line)
            hidden = leaf and leaf.group(2) not in READABLE
            found.append(_LEAF.sub(rf"\1<\2>{WORDS}</\2>", line) if hidden else line)
    return found
