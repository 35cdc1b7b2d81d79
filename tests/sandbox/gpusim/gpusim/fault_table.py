# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults that can be had: what each does, what a reboot does to it, and which machines can have it. Data."""

from dataclasses import dataclass

GONE = "gone after a reboot"
STAYS = "stays until cleared"
WAITING = ("ecc", "remap", "pages")
"""Faults whose waiting repair a reboot does; what they left in the InfoROM stays."""
NEVER = "its trace in the InfoROM stays until cleared"


class BadFault(Exception):
    """A fault that cannot be had: the text names the argument and what is allowed."""


@dataclass(frozen=True)
class Fault:
    """`of` is what it strikes: `gpu`, `link` or `machine`. `values` are the words after `=`, the first one is meant
    where none is given; `number` says instead what a number means. `needs` names a condition of :data:`CONDITIONS`."""

    what: str
    reboot: str
    of: str = "gpu"
    values: tuple = ()
    number: str = ""
    needs: str = ""


TABLE = {
    "lost": Fault("fell off the bus: nvidia-smi has no handle of it (rc 15), PCI registers read as ones, Xid 79", GONE),
    "gpu_missing": Fault("not on the PCI bus at all, as if it had not come up at the last boot", STAYS),
    "xid": Fault("writes Xid 48, or `xid=N`, to the kernel log; nothing else changes", GONE, number="Xid"),
    "reset_required": Fault("every value reads `GPU requires reset`, topo -m fails", GONE),
    "recovery": Fault(
        "the driver asks for a recovery action (Xid 154; before 570 as reset status)", GONE,
        values=("reset", "reboot", "drain_p2p", "drain_and_reset"),
    ),
    "ecc": Fault(
        "uncorrectable memory errors in SRAM or DRAM (Xid 48), or more SRAM errors in its life than NVIDIA allows",
        "counters since boot start anew, " + NEVER, values=("sram", "dram", "threshold"), needs="ecc",
    ),
    "remap": Fault(
        "a memory row waits for a reset to be remapped after correctable errors or an uncorrectable one (Xid 63), or "
        "remapping failed (Xid 64)", "the row is remapped, " + NEVER,
        values=("pending", "uncorrectable", "failure"), needs="row_remapping",
    ),
    "pages": Fault(
        "a memory page waits for a reset to be retired after single-bit or double-bit errors (Xid 63), or the table of "
        "retired pages is nearly full", "the page is retired, " + NEVER,
        values=("single", "double", "many"), needs="pages",
    ),
    "inforom": Fault("the InfoROM is corrupted: a warning below the table (rc 14), checksum invalid", STAYS),
    "throttle": Fault(
        "clocks are slowed down, by hardware or software", STAYS,
        values=("hw_thermal", "hw_power_brake", "hw_slowdown", "sw_thermal"),
    ),
    "hot": Fault(
        "at its own slowdown temperature, or above its maximum operating temperature", STAYS,
        values=("slowdown", "operating"),
    ),
    "pcie": Fault(
        "the PCIe link has half its lanes, a lower generation (which tells under load only), or both", STAYS,
        values=("width", "generation", "both"),
    ),
    "replays": Fault("PCIe replays rise all the time, 600 a minute or `replays=N`", STAYS, number="replays a minute"),
    "power_limit": Fault(
        "the power limit is lowered to the card's minimum, or `power_limit=WATTS`", GONE, number="watts"
    ),
    "memory_held": Fault("half the memory is held and no process owns it", GONE),
    "nvlink_down": Fault("one link (--link N) or all links of a GPU are inactive", STAYS, of="link", needs="nvlink"),
    "nvlink_errors": Fault(
        "an error counter of a link (--link N, default 0) rises all the time; on NVLink 5 recoveries and symbol errors",
        STAYS, of="link", values=("recovery", "replay", "crc"), needs="nvlink",
    ),
    "p2p": Fault(
        "the GPU and another one (`p2p=N`, default the next) cannot reach each other", STAYS, number="index of a GPU",
        needs="board",
    ),
    "hang": Fault("every nvidia-smi blocks until it is killed", GONE, of="machine"),
    "garbage": Fault("nvidia-smi prints cut and garbled output, rc 0", GONE, of="machine"),
    "sxid": Fault(
        "an NVSwitch writes SXid 20034, or `sxid=N`, to the kernel log", GONE, of="machine", number="SXid",
        needs="nvswitches",
    ),
    "fm_dead": Fault("the fabric manager exits with an error and stays dead", STAYS, "machine", needs="fabric"),
    "fm_version": Fault(
        "the fabric manager is of another version than the driver and does not start", STAYS, "machine", needs="fabric"
    ),
    "nvlsm_dead": Fault(
        "the subnet manager of NVLink 5 dies for good: after a reboot no fabric completes", STAYS,
        "machine", needs="nvlink5",
    ),
    "mlx5_ib_missing": Fault(
        "mlx5_ib is not loaded: no management functions of NVLink 5, from the next boot on no fabric", STAYS, "machine",
        needs="nvlink5",
    ),
    "load": Fault("no fault: GPUs (all, or --gpu N) work as in a training run", GONE, of="gpus"),
}  # fmt: skip
"""Name → fault, in the order in which they are listed."""

CONDITIONS = {
    "ecc": (lambda machine, one: one.model["ecc"], "this GPU has no ECC"),
    "row_remapping": (
        lambda machine, one: one.model["ecc"] and one.model["row_remapping"],
        "this GPU does not remap rows",
    ),
    "pages": (
        lambda machine, one: one.model["memory_errors"] == "single_double",
        "this GPU does not retire pages, it remaps rows",
    ),
    "nvlink": (lambda machine, one: one.model["nvlink"]["count"] > 0, "this GPU has no NVLink"),
    "board": (
        lambda machine, one: len(machine.gpus) > 1 and machine.switched,
        "no NVSwitch joins the GPUs of this machine",
    ),
    "nvswitches": (lambda machine, one: bool(machine.nvswitches), "this machine has no NVSwitch on its PCI bus"),
    "fabric": (lambda machine, one: machine.switched, "this machine needs no fabric manager: it has no NVSwitch"),
    "nvlink5": (lambda machine, one: bool(machine.nvlink_management), "this machine has no NVLink 5 switches"),
}
"""Name → (test of machine and GPU, which is None for faults of the machine; why it cannot be had)."""
