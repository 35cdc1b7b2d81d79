# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other `--query-…` switches: their fields, and the rows that each GPU contributes.

A value is a function of (context, GPU, row). Names with two spellings print the first one in the header.
"""

from . import query_document
from . import query_fields as fields

ALIASES = {
    "gpu_name": ("gpu_name", "name"), "gpu_bus_id": ("gpu_bus_id", "pci.bus_id"),
    "gpu_serial": ("gpu_serial", "serial"),
    "gpu_uuid": ("gpu_uuid", "uuid"), "used_gpu_memory": ("used_gpu_memory", "used_memory"),
    "memory": ("memory", "mem"), "graphics": ("graphics", "gr"),
}  # fmt: skip


def _of_gpu(name: str):
    unit, get = fields.IDENTITY[name]
    return unit, lambda context, one, _row: get(context, one) if callable(get) else get


def _without_row(get):
    return lambda context, one, _row: get(context, one)


def _of_row(key: str, unit: str = ""):
    return unit, lambda _context, _one, row: row[key]


COMMON = {
    "timestamp": _of_gpu("timestamp"), "gpu_name": _of_gpu("name"), "gpu_bus_id": _of_gpu("pci.bus_id"),
    "gpu_serial": _of_gpu("serial"), "gpu_uuid": _of_gpu("uuid"),
}  # fmt: skip

_REMAPPED = {**query_document.REMAPPED, **query_document.HISTOGRAM}
TABLES = {
    "query-compute-apps": {
        **COMMON, "pid": _of_row("pid"), "process_name": _of_row("name"),
        "used_gpu_memory": _of_row("memory_mib", "MiB"),
    },
    "query-remapped-rows": {
        **COMMON,
        **{name: (unit, _without_row(get)) for name, (unit, get) in _REMAPPED.items()},
    },
    "query-retired-pages": {
        **COMMON, "retired_pages.address": _of_row("address"), "retired_pages.cause": _of_row("cause"),
    },
    "query-supported-clocks": {
        **COMMON, "memory": _of_row("memory", "MHz"), "graphics": _of_row("graphics", "MHz"),
    },
}  # fmt: skip
"""Switch → name → (unit, value)."""


def rows(switch: str, one) -> list:
    """Return what the GPU has to list: its processes, clocks, retired pages; one row for its remapped rows."""
    if switch == "query-compute-apps":
        return one.processes
    if switch == "query-supported-clocks":
        clocks = one.model["clocks_mhz"]
        steps = range(clocks["graphics_max"], clocks["graphics_min"] - 1, -clocks["step"])
        levels = [clocks[key] for key in ("memory", "memory_low") if clocks[key]]
        return [{"memory": memory, "graphics": graphics} for memory in levels for graphics in steps]
    if switch == "query-retired-pages":  # from Ampere on rows are remapped instead: N/A for each cause
        return [{"address": None, "cause": cause} for cause in ("Single Bit ECC", "Double Bit ECC")]
    return [{}]


def canonical(table: dict, name: str) -> str:
    """The name that the header prints; `process_name` also goes by `name` where processes are listed."""
    if name == "name":
        return "process_name" if "process_name" in table else "gpu_name"
    return next((first for first, spellings in ALIASES.items() if name in spellings), name)
