# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections: performance state, memory, utilisation; what comes after them is in xml_memory.py."""

from .. import settings
from . import xml_memory

REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
    "hw_power_brake_slowdown", "sync_boost", "sw_thermal_slowdown", "display_clocks_setting",
)  # fmt: skip
REASON_COUNTERS = ("sw_power_cap", "sync_boost", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake")
UTILISATION = ("gpu_util", "memory_util", "encoder_util", "decoder_util", "jpeg_util", "ofa_util")


def write(xml, one, layout) -> None:
    """Write the second part of a GPU, from fan_speed to remapped_rows."""
    fan = one.fan_percent
    xml.leaves(("fan_speed", "N/A" if fan is None else f"{fan} %"), ("performance_state", one.performance_state))
    xml.group(
        "clocks_event_reasons",
        *((f"clocks_event_reason_{name}", "Active" if name in one.reasons else "Not Active") for name in REASONS),
    )
    if layout.branch >= 580:
        prefix = "clocks_event_reasons_counters"
        xml.group(prefix, *((f"{prefix}_{name}", f"{one.reason_us(name)} us") for name in REASON_COUNTERS))
    xml.leaf("sparse_operation_mode", "Disabled")
    _memory(xml, one, layout)
    xml_memory.write(xml, one, layout)


def _memory(xml, one, layout) -> None:
    model = one.model
    total, reserved = model["memory_mib"], model["memory_reserved_mib"]
    xml.group(
        "fb_memory_usage",
        ("total", f"{total} MiB"),
        ("reserved", f"{reserved} MiB"),
        ("used", f"{one.memory_used_mib} MiB"),
        ("free", f"{total - reserved - one.memory_used_mib} MiB"),
    )
    bar = model["bar1_mib"]
    xml.group("bar1_memory_usage", ("total", f"{bar} MiB"), ("used", "1 MiB"), ("free", f"{bar - 1} MiB"))
    xml.group("cc_protected_memory_usage", *((tag, "0 MiB") for tag in ("total", "used", "free")))
    xml.leaf("compute_mode", settings.COMPUTE_MODES[settings.compute_mode(one)])
    xml.group("utilization", *((tag, _percent(one, tag)) for tag in UTILISATION))
    for tag in ("encoder_stats", "fbc_stats"):
        xml.group(tag, ("session_count", 0), ("average_fps", 0), ("average_latency", 0))
    if layout.branch >= 570:
        tags = ("current_dram_encryption", "pending_dram_encryption")
        xml.group("dram_encryption_mode", *((tag, "N/A") for tag in tags))


def _percent(one, engine: str) -> str:
    """Volta has no engines for JPEG and optical flow; a partitioned GPU tells nothing."""
    absent = one.model["architecture"] == "Volta" and engine in ("jpeg_util", "ofa_util")
    return "N/A" if absent or settings.in_mig(one) else f"{one.utilisation.get(engine, 0)} %"
