# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi topo -m`: tabs, an underlined header even into a pipe, two tabs before the last column."""

from .. import links
from . import answer
from .answer import Failure

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def render(machine, _wanted) -> tuple:
    """Return the matrix. Behind switches a GPU with dead links shows its own number in its own row only."""
    gpus = machine.gpus
    if not gpus or any(one.lost for one in gpus):
        raise Failure(answer.TOPOLOGY_FAILED_TEXT, answer.OTHER)
    names = [f"GPU{one.index}" for one in gpus]
    header = "\t\x1b[4m" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    rows = []
    for one in gpus:
        if "reset_required" in one.faults:
            raise Failure(header + "".join(rows) + answer.TOPOLOGY_FAILED_TEXT, answer.OTHER)
        cells = [_cell(machine, one, other) for other in gpus]
        cpus = machine.numa_nodes[one.numa]["cpus"]
        rows.append("\t".join([f"GPU{one.index}", *cells, cpus, str(one.numa), "", "N/A"]) + "\n")
    return header + "".join(rows) + LEGEND, answer.OK


def _cell(machine, one, other) -> str:
    if one is other:
        return " X "
    count = links.joined(machine, one, other)
    if count:
        return f"NV{count}"
    return machine.pcie_level if one.numa == other.numa else "SYS"
