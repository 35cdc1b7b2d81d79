# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fields of nvidia-smi are judged, and every name that a driver branch has given them.

One row a field: its name here, how its text is read (`KIND`), what an unreadable value means (`TIER`), and its
paths in ``-q -x``, ``-q`` and ``--query-gpu``. The layout follows the nvidia-smi binary and the GPU, not the DOCTYPE,
so a field is looked up by all its names. Source: NVIDIA's nvidia-smi manual with its change log, and outputs of
drivers 384 to 610.

`since` is the driver branch from which a complete reading always has the field (its value may be N/A); None where it
may be absent. A field that is due and absent makes the reading incomplete, never healthy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional, Tuple

VITAL = "vital"
"""Temperature, ECC, row remapping, performance state: unreadable means that the GPU cannot be trusted."""
SENSOR = "sensor"
"""Power draw, fan, utilisation: unreadable is a defect, and the GPU still computes."""
INFO = "info"
"""Everything else: unreadable is worth a line, no more."""

NOT_AVAILABLE = "not_available"
LOST = "lost"
RESET_REQUIRED = "reset_required"
UNKNOWN_ERROR = "unknown_error"
MALFORMED = "malformed"

# Bodies that stand for "this card or this user has no such value"; none of them is a fault.
_NOT_AVAILABLE = (
    "n/a",
    "not supported",
    "not available",
    "not applicable",
    "insufficient permissions",
    "requested functionality has been deprecated",
    "function not found",
    "deprecated",
)
_UNKNOWN_ERROR = ("unknown error", "err!")


@dataclass(frozen=True)
class Field:
    name: str
    kind: str
    tier: str
    xml: Tuple[str, ...]
    text: Tuple[str, ...] = ()
    csv: Tuple[str, ...] = ()
    since: Optional[int] = None


def _row(name, kind, tier, xml, text="", csv="", since=None) -> Field:
    def split(names):
        return tuple(part.strip() for part in names.split("|") if part.strip())

    return Field(name, kind, tier, split(xml), tuple(part.lower() for part in split(text)), split(csv), since)


_LINK = "pci/pci_gpu_link_info/"
_TEXT_LINK = "PCI/GPU Link Info/"
_EVENT = "clocks_event_reasons/clocks_event_reason_%s | clocks_throttle_reasons/clocks_throttle_reason_%s"
_EVENT_TEXT = "Clocks Event Reasons/%s | Clocks Throttle Reasons/%s"
_EVENT_CSV = "clocks_event_reasons.%s | clocks_throttle_reasons.%s"
_DRAW = " | ".join(
    ("gpu_power_readings/instant_power_draw", "gpu_power_readings/average_power_draw",
     "gpu_power_readings/power_draw", "power_readings/power_draw")
)
_DRAW_TEXT = " | ".join(
    ("GPU Power Readings/Instantaneous Power Draw", "GPU Power Readings/Average Power Draw",
     "GPU Power Readings/Power Draw", "Power Readings/Power Draw")
)
_POWER_TEXT = "GPU Power Readings/%s | GPU Power Readings/GPU Ceiling Power Limit/%s | Power Readings/%s"


def _event(name, xml, text, since=384) -> Field:
    return _row(
        name,
        "active",
        INFO,
        _EVENT % (xml, xml),
        _EVENT_TEXT % (text, text),
        _EVENT_CSV % (xml, xml),
        since,
    )


def _ecc(name, span, xml, text, csv="", since=None) -> Field:
    return _row(
        "%s_%s" % (span, name),
        "count",
        VITAL,
        "ecc_errors/%s/%s" % (span, xml),
        "ECC Errors/%s/%s" % (span.capitalize(), text),
        csv.replace("SPAN", span),
        since,
    )


# fmt: off
def _ecc_rows(span):
    return (
        _ecc("sram_correctable", span, "sram_correctable", "SRAM Correctable", "ecc.errors.corrected.SPAN.sram"),
        _ecc("sram_uncorrectable", span, "sram_uncorrectable", "SRAM Uncorrectable"),
        _ecc("sram_parity", span, "sram_uncorrectable_parity", "SRAM Uncorrectable Parity",
             "ecc.errors.uncorrected.SPAN.sram.parity"),
        _ecc("sram_secded", span, "sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED",
             "ecc.errors.uncorrected.SPAN.sram.secded"),
        _ecc("dram_correctable", span, "dram_correctable", "DRAM Correctable", "ecc.errors.corrected.SPAN.dram"),
        _ecc("dram_uncorrectable", span, "dram_uncorrectable", "DRAM Uncorrectable",
             "ecc.errors.uncorrected.SPAN.dram"),
        _ecc("single_bit", span, "single_bit/total", "Single Bit/Total"),
        _ecc("double_bit", span, "double_bit/total", "Double Bit/Total"),
        _row("%s_uncorrected_total" % span, "count", VITAL, "", "", "ecc.errors.uncorrected.%s.total" % span),
    )


_REMAP = "remapped_rows/"
_HISTOGRAM = _REMAP + "row_remapper_histogram/row_remapper_histogram_"
_HISTOGRAM_TEXT = "Remapped Rows/Bank Remap Availability Histogram/"

# fmt: off
FIELDS: Tuple[Field, ...] = (
    # -- identity ---------------------------------------------------------------------------------------------------
    _row("product_name", "word", INFO, "product_name", "Product Name", "name | gpu_name", 384),
    _row("product_brand", "word", INFO, "product_brand", "Product Brand", "", 384),
    _row("product_architecture", "word", INFO, "product_architecture", "Product Architecture"),
    _row("uuid", "word", INFO, "uuid", "GPU UUID", "uuid | gpu_uuid", 384),
    _row("serial", "word", INFO, "serial", "Serial Number", "serial | gpu_serial"),
    _row("pci_bus_id", "word", INFO, "pci/pci_bus_id", "PCI/Bus Id", "pci.bus_id | gpu_bus_id"),
    _row("pci_device_id", "word", INFO, "pci/pci_device_id", "PCI/Device Id", "pci.device_id"),
    _row("minor_number", "word", INFO, "minor_number", "Minor Number"),
    _row("vbios_version", "word", INFO, "vbios_version", "VBIOS Version", "vbios_version", 410),
    _row("inforom_image", "word", INFO, "inforom_version/img_version", "Inforom Version/Image Version", "inforom.img"),
    _row("inforom_checksum", "word", INFO, "", "", "inforom.checksum_validation"),
    _row("gsp_firmware", "word", INFO, "gsp_firmware_version", "GSP Firmware Version"),
    # -- modes ------------------------------------------------------------------------------------------------------
    _row("persistence_mode", "switch", INFO, "persistence_mode", "Persistence Mode", "persistence_mode", 384),
    _row("compute_mode", "word", INFO, "compute_mode", "Compute Mode", "compute_mode", 384),
    _row("mig_current", "switch", INFO, "mig_mode/current_mig", "MIG Mode/Current", "mig.mode.current", 470),
    _row("mig_pending", "switch", INFO, "mig_mode/pending_mig", "MIG Mode/Pending", "mig.mode.pending", 470),
    _row("ecc_current", "switch", VITAL, "ecc_mode/current_ecc", "ECC Mode/Current | Ecc Mode/Current",
         "ecc.mode.current", 384),
    _row("ecc_pending", "switch", VITAL, "ecc_mode/pending_ecc", "ECC Mode/Pending | Ecc Mode/Pending",
         "ecc.mode.pending", 384),
    # -- what the driver asks for -----------------------------------------------------------------------------------
    _row("recovery_action", "word", INFO, "gpu_recovery_action", "GPU Recovery Action", "gpu_recovery_action", 570),
    _row("reset_required", "yesno", INFO, "gpu_reset_status/reset_required", "GPU Reset Status/Reset Required",
         "reset_status.reset_required"),
    _row("drain_and_reset", "yesno", INFO, "gpu_reset_status/drain_and_reset_recommended",
         "GPU Reset Status/Drain and Reset Recommended", "reset_status.drain_and_reset_recommended"),
    # -- PCIe -------------------------------------------------------------------------------------------------------
    _row("pcie_gen_max", "count", INFO, _LINK + "pcie_gen/max_link_gen", _TEXT_LINK + "PCIe Generation/Max",
         "pcie.link.gen.max", 384),
    _row("pcie_gen_current", "count", INFO, _LINK + "pcie_gen/current_link_gen",
         _TEXT_LINK + "PCIe Generation/Current", "pcie.link.gen.current | pcie.link.gen.gpucurrent", 384),
    _row("pcie_width_max", "lanes", INFO, _LINK + "link_widths/max_link_width", _TEXT_LINK + "Link Width/Max",
         "pcie.link.width.max", 384),
    _row("pcie_width_current", "lanes", INFO, _LINK + "link_widths/current_link_width",
         _TEXT_LINK + "Link Width/Current", "pcie.link.width.current", 384),
    _row("pcie_replays", "count", INFO, "pci/replay_counter", "PCI/Replays Since Reset", "", 410),
    # -- state ------------------------------------------------------------------------------------------------------
    _row("fan_speed", "percent", SENSOR, "fan_speed", "Fan Speed", "fan.speed", 384),
    _row("performance_state", "pstate", VITAL, "performance_state", "Performance State", "pstate", 384),
    _row("gpu_util", "percent", SENSOR, "utilization/gpu_util", "Utilization/Gpu", "utilization.gpu", 384),
    _row("memory_total", "mib", INFO, "fb_memory_usage/total", "FB Memory Usage/Total", "memory.total", 384),
    _row("memory_used", "mib", INFO, "fb_memory_usage/used", "FB Memory Usage/Used", "memory.used", 384),
    # -- why clocks are lowered -------------------------------------------------------------------------------------
    _event("reason_idle", "gpu_idle", "Idle"),
    _event("reason_app_clocks", "applications_clocks_setting", "Applications Clocks Setting"),
    _event("reason_sw_power_cap", "sw_power_cap", "SW Power Cap"),
    _event("reason_hw_slowdown", "hw_slowdown", "HW Slowdown"),
    _event("reason_hw_thermal", "hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown", 410),
    _event("reason_hw_power_brake", "hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown", 410),
    _event("reason_sync_boost", "sync_boost", "Sync Boost", None),
    _event("reason_sw_thermal", "sw_thermal_slowdown", "SW Thermal Slowdown", 410),
    _row("reasons_active", "mask", INFO, "", "", _EVENT_CSV % ("active", "active")),
    # -- memory errors ----------------------------------------------------------------------------------------------
    *_ecc_rows("volatile"),
    *_ecc_rows("aggregate"),
    _row("sram_threshold_exceeded", "yesno", VITAL, "ecc_errors/aggregate/sram_threshold_exceeded",
         "ECC Errors/Aggregate/SRAM Threshold Exceeded", "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded"),
    _row("channel_repair_pending", "yesno", VITAL, "ecc_errors/channel_repair_pending",
         "ECC Errors/Channel Repair Pending"),
    _row("tpc_repair_pending", "yesno", VITAL, "ecc_errors/tpc_repair_pending", "ECC Errors/TPC Repair Pending"),
    _row("unrepairable_memory", "yesno", VITAL, "ecc_errors/unrepairable_memory", "ECC Errors/Unrepairable Memory"),
    _row("retired_single_bit", "count", INFO, "retired_pages/multiple_single_bit_retirement/retired_count",
         "Retired Pages/Single Bit ECC", "retired_pages.single_bit_ecc.count | retired_pages.sbe", 384),
    _row("retired_double_bit", "count", INFO, "retired_pages/double_bit_retirement/retired_count",
         "Retired Pages/Double Bit ECC", "retired_pages.double_bit.count | retired_pages.dbe", 384),
    _row("retired_pending", "yesno", INFO, "retired_pages/pending_retirement | retired_pages/pending_blacklist",
         "Retired Pages/Pending Page Blacklist | Retired Pages/Pending", "retired_pages.pending", 384),
    _row("remapped_correctable", "count", VITAL, _REMAP + "remapped_row_corr", "Remapped Rows/Correctable Error",
         "remapped_rows.correctable", 470),
    _row("remapped_uncorrectable", "count", VITAL, _REMAP + "remapped_row_unc", "Remapped Rows/Uncorrectable Error",
         "remapped_rows.uncorrectable", 470),
    _row("remapped_pending", "yesno", VITAL, _REMAP + "remapped_row_pending", "Remapped Rows/Pending",
         "remapped_rows.pending", 470),
    _row("remapped_failure", "yesno", VITAL, _REMAP + "remapped_row_failure",
         "Remapped Rows/Remapping Failure Occurred", "remapped_rows.failure", 470),
    _row("banks_low", "banks", VITAL, _HISTOGRAM + "low", _HISTOGRAM_TEXT + "Low", "remapped_rows.histogram.low"),
    _row("banks_none", "banks", VITAL, _HISTOGRAM + "none", _HISTOGRAM_TEXT + "None", "remapped_rows.histogram.none"),
    # -- temperature, degrees Celsius; T.Limit values are margins, 0 at the limit and negative above it --------------
    _row("temperature", "celsius", VITAL, "temperature/gpu_temp", "Temperature/GPU Current Temp", "temperature.gpu",
         384),
    _row("memory_temperature", "celsius", INFO, "temperature/memory_temp", "Temperature/Memory Current Temp",
         "temperature.memory"),
    _row("tlimit_margin", "celsius", INFO, "temperature/gpu_temp_tlimit",
         "Temperature/GPU T.Limit Temp | Temperature/GPU Current T.Limit Temp", "temperature.gpu.tlimit"),
    _row("tlimit_slowdown", "celsius", INFO, "temperature/gpu_temp_slow_tlimit_threshold",
         "Temperature/GPU Slowdown T.Limit Temp | Temperature/GPU Slowdown T.Limit Temp Specification"),
    _row("slowdown_temperature", "celsius", INFO, "temperature/gpu_temp_slow_threshold",
         "Temperature/GPU Slowdown Temp | Temperature/GPU Slowdown Temp Specification"),
    _row("max_operating_temperature", "celsius", INFO, "temperature/gpu_temp_max_gpu_threshold",
         "Temperature/GPU Max Operating Temp | Temperature/GPU Max Operating Temp Specification"),
    _row("max_memory_temperature", "celsius", INFO, "temperature/gpu_temp_max_mem_threshold",
         "Temperature/Memory Max Operating Temp | Temperature/Memory Max Operating Temp Specification"),
    # -- power, watts -----------------------------------------------------------------------------------------------
    _row("power_draw", "watts", SENSOR,
         _DRAW, _DRAW_TEXT, "power.draw | power.draw.instant", 384),
    _row("power_limit", "watts", INFO,
         "gpu_power_readings/current_power_limit | power_readings/enforced_power_limit | power_readings/power_limit",
         (_POWER_TEXT % (("Current Power Limit",) * 3)) + " | Power Readings/Power Limit",
         "power.limit | enforced.power.limit", 384),
    _row("power_limit_default", "watts", INFO,
         "gpu_power_readings/default_power_limit | power_readings/default_power_limit",
         _POWER_TEXT % (("Default Power Limit",) * 3), "power.default_limit", 384),
    # -- clocks, MHz ------------------------------------------------------------------------------------------------
    _row("app_clock", "mhz", INFO, "applications_clocks/graphics_clock", "Applications Clocks/Graphics",
         "clocks.applications.graphics"),
    _row("app_clock_default", "mhz", INFO, "default_applications_clocks/graphics_clock",
         "Default Applications Clocks/Graphics", "clocks.default_applications.graphics"),
    # -- NVLink fabric ----------------------------------------------------------------------------------------------
    _row("fabric_state", "word", INFO, "fabric/state", "Fabric/State", "fabric.state"),
    _row("fabric_status", "word", INFO, "fabric/status", "Fabric/Status", "fabric.status"),
    _row("fabric_summary", "word", INFO, "fabric/health/summary", "Fabric/Health/Summary", "fabric.health.summary"),
    _row("fabric_bandwidth", "word", INFO, "fabric/health/bandwidth", "Fabric/Health/Bandwidth",
         "fabric.health.bandwidth"),
    _row("fabric_route_recovery", "truth", INFO, "fabric/health/route_recovery_in_progress",
         "Fabric/Health/Route Recovery in progress", "fabric.health.route_recovery_in_progress"),
    _row("fabric_route_unhealthy", "truth", INFO, "fabric/health/route_unhealthy", "Fabric/Health/Route Unhealthy",
         "fabric.health.route_unhealthy"),
    _row("fabric_access_timeout", "truth", INFO, "fabric/health/access_timeout_recovery",
         "Fabric/Health/Access Timeout Recovery", "fabric.health.access_timeout_recovery"),
    _row("fabric_configuration", "word", INFO, "fabric/health/incorrect_configuration",
         "Fabric/Health/Incorrect Configuration", "fabric.health.incorrect_configuration"),
)
# fmt: on

BY_NAME = {field.name: field for field in FIELDS}

UNCORRECTABLE_LAYOUTS: Tuple[Tuple[str, ...], ...] = (
    ("sram_parity", "sram_secded", "dram_uncorrectable"),
    ("sram_uncorrectable", "dram_uncorrectable"),
    ("double_bit",),
)
"""ECC layouts: Ampere and later from 550, Turing and Ampere before it, Volta and older. One must be complete."""

_NUMBER = r"^(-?\d+(?:\.\d+)?)\s*(?:%s)?$"
_UNITS = {
    "count": re.compile(_NUMBER % ""),
    "lanes": re.compile(_NUMBER % "x"),
    "percent": re.compile(_NUMBER % "%"),
    "mib": re.compile(_NUMBER % "MiB|MB"),
    "celsius": re.compile(_NUMBER % "C"),
    "watts": re.compile(_NUMBER % "W"),
    "mhz": re.compile(_NUMBER % "MHz"),
    "banks": re.compile(_NUMBER % r"bank\(s\)"),
}
_SIGNED = ("celsius",)
_WORDS = {
    "switch": {"enabled": True, "disabled": False, "on": True, "off": False},
    "yesno": {"yes": True, "no": False},
    "active": {"active": True, "not active": False},
    "truth": {"true": True, "false": False, "yes": True, "no": False},
}


def problem_of(text: str) -> Optional[str]:
    """Why a value is no value: `NOT_AVAILABLE`, `LOST`, `RESET_REQUIRED`, `UNKNOWN_ERROR`; None for a value."""
    word = text.strip().strip("[]").strip().lower()
    if word in _NOT_AVAILABLE:
        return NOT_AVAILABLE
    if word == "gpu is lost":
        return LOST
    if word == "gpu requires reset":
        return RESET_REQUIRED
    if word in _UNKNOWN_ERROR:
        return UNKNOWN_ERROR
    return None


def read_value(kind: str, text: str) -> Tuple[Any, Optional[str]]:
    """(value, problem) of the text of a field. Numbers lose their unit, `N/A` becomes None."""
    problem = problem_of(text)
    if problem is not None:
        return None, problem
    word = " ".join(text.split())
    if kind == "word":
        return (word, None) if word else (None, MALFORMED)
    if kind in _WORDS:
        value = _WORDS[kind].get(word.lower())
        return value, None if value is not None else MALFORMED
    if kind == "pstate":
        return (word, None) if re.match(r"^P([0-9]|1[0-5])$", word) else (None, MALFORMED)
    if kind == "mask":
        return (int(word, 16), None) if re.match(r"^0x[0-9a-fA-F]{1,16}$", word) else (None, MALFORMED)
    match = _UNITS[kind].match(word)
    if not match:
        return None, MALFORMED
    number = float(match.group(1))
    if number < 0 and kind not in _SIGNED:
        return None, MALFORMED
    return (int(number) if number == int(number) else number), None
