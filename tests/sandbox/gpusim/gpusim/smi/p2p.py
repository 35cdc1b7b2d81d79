# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi topo -p2p r|w|n|a|p`: which GPUs may reach each other, as a matrix of short words.

The format is 550's: a space before each name, a tab after each cell, an underlined header even into a pipe.
"""

from .. import links
from . import answer
from .answer import Failure

LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""


def render(machine, wanted) -> tuple:
    """Return the matrix of one capability (the first letter of the option's value)."""
    gpus = machine.gpus
    if any(one.lost for one in gpus):
        raise Failure(answer.P2P_FAILED_TEXT, answer.OTHER)
    text = " \t\x1b[4m" + "".join(f"GPU{one.index}\t" for one in gpus) + "\x1b[0m\n"
    for one in gpus:
        cells = ("X" if one is other else _cell(machine, wanted.value[0], one, other) for other in gpus)
        text += f" GPU{one.index}\t" + "".join(f"{cell}\t" for cell in cells) + "\n"
    return text + LEGEND, answer.OK


def _cell(machine, capability: str, one, other) -> str:
    """NVLink needs a living link between the two; GeForce cards refuse each other over PCIe (recorded: CNS)."""
    if one.cannot_reach(other):
        return "NS"
    if capability == "n":
        joined = links.joined(machine, one, other) and links.joined(machine, other, one)
        return "OK" if joined else "NS"
    return "CNS" if one.model.get("brand") == "GeForce" else "OK"
