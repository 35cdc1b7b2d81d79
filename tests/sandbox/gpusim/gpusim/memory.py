# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of a GPU's memory: what its InfoROM keeps, what only lasts until the driver is loaded anew.

=====================  =======================================  ================================================
what                   where                                    what ends it
=====================  =======================================  ================================================
volatile ECC errors    VOLATILE `ecc_errors`                    a reset or reboot (`-p 0`)
aggregate ECC errors   PERSISTENT `ecc_errors`                  nothing but a new card (`-p 1`)
rows, pages            PERSISTENT `memory`                      nothing but a new card
a repair that waits    VOLATILE faults `remap`, `pages`, `ecc`  a reset or reboot: then it is done
=====================  =======================================  ================================================

Sources: nvidia-smi(1) on ECC errors, retired pages and remapped rows; NVIDIA's GPU memory error management guide.
"""

from . import state

SPLIT = ("sram_correctable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_correctable",
         "dram_uncorrectable")  # fmt: skip
"""Counters from Turing on, by the names of the XML."""
PLACES = ("device_memory", "register_file", "l1_cache", "l2_cache", "texture_memory", "texture_shm", "cbu", "total")
"""Counters up to Volta, below `single_bit` and `double_bit`; textures are never counted on Volta."""
NOT_COUNTED = (("single_bit", "texture_memory"), ("single_bit", "texture_shm"), ("single_bit", "cbu"),
               ("double_bit", "texture_memory"), ("double_bit", "texture_shm"))  # fmt: skip


def ecc_errors(one, span: str) -> dict:
    """Counters of `volatile` or `aggregate` that are not 0: names of :data:`SPLIT`, or `double_bit/l2_cache`."""
    source = one.machine.state if span == "volatile" else one.machine.kept
    return source.get("ecc_errors", {}).get(one.uuid, {})


def uncorrected(one, span: str, place: str = "total") -> int:
    """Uncorrectable errors in `sram`, `dram` or both (`total`), by either layout."""
    inside = {"sram": ("sram_un", "double_bit/l2"), "dram": ("dram_un", "double_bit/device")}
    heads = inside.get(place) or inside["sram"] + inside["dram"]
    return sum(number for name, number in ecc_errors(one, span).items() if name.startswith(heads))


def kept(one) -> dict:
    """What the InfoROM says besides ECC: `{threshold, remapped_corr, remapped_unc, remap_failure, retired_single,
    retired_double}`, as far as it is not 0."""
    return one.machine.kept.get("memory", {}).get(one.uuid, {})


def remap_pending(one) -> bool:
    """A row waits for a reset to be remapped."""
    return one.faults.get("remap") in ("pending", "uncorrectable") or (
        one.faults.get("ecc") == "dram" and one.model["row_remapping"]
    )


def retirement_pending(one) -> bool:
    """A page waits for a reset to be retired (up to Volta)."""
    return one.faults.get("pages") in ("single", "double") or (
        one.faults.get("ecc") == "dram" and not one.model["row_remapping"]
    )


def histogram(one) -> dict:
    """Banks by how many spare rows they have left."""
    used = 1 if kept(one).get("remap_failure") else 0
    return {"max": one.model["remap_banks"] - used, "high": 0, "partial": 0, "low": 0, "none": used}


def count(one, counters: dict) -> None:
    """Add ECC errors to the volatile and the aggregate counters."""
    for path in (state.VOLATILE, state.PERSISTENT):
        with state.changing(path) as content:
            ours = content.setdefault("ecc_errors", {}).setdefault(one.uuid, {})
            for name, number in counters.items():
                ours[name] = ours.get(name, 0) + number


def keep(one, **facts) -> None:
    """Write to the InfoROM: numbers are added, truths are set."""
    with state.changing(state.PERSISTENT) as content:
        ours = content.setdefault("memory", {}).setdefault(one.uuid, {})
        for name, value in facts.items():
            ours[name] = value if value is True else ours.get(name, 0) + value


def forget() -> None:
    """New cards: nothing was ever wrong with them."""
    for path in (state.VOLATILE, state.PERSISTENT):
        with state.changing(path) as content:
            content.pop("ecc_errors", None)
            content.pop("memory", None)
