# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -q -x`: the document, and each GPU's sections in the real tool's order.

The layout follows the branch of the tool: 535, 550, 570, 580 and 595 differ (element lists of real files of these
branches). Sections are in xml_board.py, xml_health.py and xml_power.py.
"""

import time

from .. import driver
from . import stuck, xml_board, xml_health, xml_power

DEPRECATED = "Requested functionality has been deprecated"


class Layout:
    """Which generation of the document to write. `late_580`: releases of 2026 (580.126, 595 and later) that grew."""

    def __init__(self, version: str):
        self.version = version
        self.branch = driver.branch(version)
        self.late_580 = driver.as_tuple(version) >= (580, 126) and self.branch != 590

    @property
    def doctype(self) -> str:
        return "nvsmi_device_v13.dtd" if self.branch >= 580 else "nvsmi_device_v12.dtd"


class Writer:
    """Lines of tab-indented XML."""

    def __init__(self):
        self.lines = []
        self.depth = 0

    def leaf(self, tag: str, value) -> None:
        """`<tag>value</tag>`."""
        self.lines.append("\t" * self.depth + f"<{tag}>{_escaped(str(value))}</{tag}>")

    def leaves(self, *pairs) -> None:
        """Several leaves in order."""
        for tag, value in pairs:
            self.leaf(tag, value)

    def block(self, tag: str, *pairs, attributes: str = "") -> "Writer":
        """An element with children: `pairs` at once, more inside `with`."""
        self.lines.append("\t" * self.depth + f"<{tag}{attributes}>")
        self.depth += 1
        self.leaves(*pairs)
        return _Open(self, tag)

    def group(self, tag: str, *pairs) -> None:
        """An element whose children are these leaves."""
        with self.block(tag, *pairs):
            pass


class _Open:
    def __init__(self, writer: Writer, tag: str):
        self.writer, self.tag = writer, tag

    def __enter__(self):
        return self.writer

    def __exit__(self, *_):
        self.writer.depth -= 1
        self.writer.lines.append("\t" * self.writer.depth + f"</{self.tag}>")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def render(machine, gpus: list, version: str) -> str:
    """Return the whole document. `attached_gpus` counts the machine's GPUs, whatever -i selects."""
    layout = Layout(version)
    xml = Writer()
    xml.lines = ['<?xml version="1.0" ?>', f'<!DOCTYPE nvidia_smi_log SYSTEM "{layout.doctype}">']
    head = (
        ("timestamp", time.strftime("%a %b %e %H:%M:%S %Y")),
        ("driver_version", machine.loaded_version),
        ("cuda_version", driver.cuda_version(machine.loaded_version)),
        ("attached_gpus", len(machine.gpus)),
    )
    with xml.block("nvidia_smi_log", *head):
        for one in gpus:
            start = len(xml.lines)
            with xml.block("gpu", attributes=f' id="{one.bus_id}"'):
                xml_board.write(xml, one, layout, machine)
                xml_health.write(xml, one, layout)
                xml_power.write(xml, one, layout)
            if "reset_required" in one.faults:
                xml.lines[start:] = stuck.hide(xml.lines[start:])
            xml.lines.append("")
    return "\n".join(xml.lines) + "\n"
