# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections: performance state, memory, utilisation, ECC, retired pages, remapped rows."""

REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
    "hw_power_brake_slowdown", "sync_boost", "sw_thermal_slowdown", "display_clocks_setting",
)  # fmt: skip
REASON_COUNTERS = ("sw_power_cap", "sync_boost", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake")
UTILISATION = ("gpu_util", "memory_util", "encoder_util", "decoder_util", "jpeg_util", "ofa_util")


def write(xml, one, layout) -> None:
    """Write the second part of a GPU, from fan_speed to remapped_rows."""
    xml.leaves(("fan_speed", "N/A"), ("performance_state", "P0"))
    xml.group(
        "clocks_event_reasons",
        *((f"clocks_event_reason_{name}", "Active" if name == "gpu_idle" else "Not Active") for name in REASONS),
    )
    if layout.branch >= 580:
        prefix = "clocks_event_reasons_counters"
        xml.group(prefix, *((f"{prefix}_{name}", "0 us") for name in REASON_COUNTERS))
    xml.leaf("sparse_operation_mode", "Disabled")
    _memory(xml, one, layout)
    _ecc(xml, one, layout)
    _retired(xml)
    _remapped(xml, one, layout)


def _memory(xml, one, layout) -> None:
    model = one.model
    total, reserved = model["memory_mib"], model["memory_reserved_mib"]
    xml.group(
        "fb_memory_usage",
        ("total", f"{total} MiB"),
        ("reserved", f"{reserved} MiB"),
        ("used", "0 MiB"),
        ("free", f"{total - reserved} MiB"),
    )
    bar = model["bar1_mib"]
    xml.group("bar1_memory_usage", ("total", f"{bar} MiB"), ("used", "1 MiB"), ("free", f"{bar - 1} MiB"))
    xml.group("cc_protected_memory_usage", *((tag, "0 MiB") for tag in ("total", "used", "free")))
    xml.leaf("compute_mode", "Default")
    xml.group("utilization", *((tag, "0 %") for tag in UTILISATION))
    for tag in ("encoder_stats", "fbc_stats"):
        xml.group(tag, ("session_count", 0), ("average_fps", 0), ("average_latency", 0))
    if layout.branch >= 570:
        tags = ("current_dram_encryption", "pending_dram_encryption")
        xml.group("dram_encryption_mode", *((tag, "N/A") for tag in tags))


def _ecc(xml, one, layout) -> None:
    mode, zero = ("Enabled", 0) if one.model["ecc"] else ("N/A", "N/A")
    xml.group("ecc_mode", ("current_ecc", mode), ("pending_ecc", mode))
    counters = ["sram_correctable", "sram_uncorrectable_parity", "sram_uncorrectable_secded"]
    counters += ["dram_correctable", "dram_uncorrectable"]
    with xml.block("ecc_errors"):
        xml.group("volatile", *((tag, zero) for tag in counters))
        exceeded = ("sram_threshold_exceeded", "No" if one.model["ecc"] else "N/A")
        xml.group("aggregate", *((tag, zero) for tag in counters), exceeded)
        sources = ("sram_l2", "sram_sm", "sram_microcontroller", "sram_pcie", "sram_other")
        xml.group("aggregate_uncorrectable_sram_sources", *((tag, zero) for tag in sources))
        if layout.branch >= 580:
            xml.leaves(("channel_repair_pending", "No"), ("tpc_repair_pending", "No"))
        if layout.late_580:
            xml.leaf("unrepairable_memory", "No")


def _retired(xml) -> None:
    with xml.block("retired_pages"):
        for tag in ("multiple_single_bit_retirement", "double_bit_retirement"):
            xml.group(tag, ("retired_count", "N/A"), ("retired_pagelist", "N/A"))
        xml.leaves(("pending_blacklist", "N/A"), ("pending_retirement", "N/A"))


def _remapped(xml, one, layout) -> None:
    if not one.model["row_remapping"]:
        xml.leaf("remapped_rows", "N/A")
        return
    rows = []
    for kind in ("corr", "unc"):
        rows.append((f"remapped_row_{kind}", 0))
        if layout.late_580:
            rows.append((f"remapped_row_{kind}_inactive", 0))
    rows += [("remapped_row_pending", "No"), ("remapped_row_failure", "No")]
    with xml.block("remapped_rows", *rows):
        banks = {"max": one.model["remap_banks"], "high": 0, "partial": 0, "low": 0, "none": 0}
        tag = "row_remapper_histogram"
        xml.group(tag, *((f"{tag}_{name}", f"{number} bank(s)") for name, number in banks.items()))
