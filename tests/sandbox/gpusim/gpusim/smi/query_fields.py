# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of `--query-gpu`: name → (unit, value).

A value is a constant, or a function of (context, GPU). None is N/A.
"""

import time

from .. import driver
from .xml_health import REASONS

DEPRECATED = "Requested functionality has been deprecated"

ALIASES = {
    "gpu_name": "name", "gpu_bus_id": "pci.bus_id", "gpu_serial": "serial", "gpu_uuid": "uuid",
    "inforom.image": "inforom.img", "inforom.power": "inforom.pwr",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count", "retired_pages.dbe": "retired_pages.double_bit.count",
    "clocks.gr": "clocks.current.graphics", "clocks.sm": "clocks.current.sm", "clocks.mem": "clocks.current.memory",
    "clocks.video": "clocks.current.video", "clocks.max.gr": "clocks.max.graphics",
    "clocks.max.mem": "clocks.max.memory", "clocks.applications.gr": "clocks.applications.graphics",
    "clocks.applications.mem": "clocks.applications.memory", "used_memory": "used_gpu_memory", "name": "name",
    **{f"clocks_throttle_reasons.{name}": f"clocks_event_reasons.{name}"
       for name in (*REASONS[:-1], "active", "supported")},
}  # fmt: skip
"""Other names of a field; the header prints the canonical one (`clocks_throttle_reasons.*` → `clocks_event_…`)."""


class Context:
    """What a value may depend on besides its GPU."""

    def __init__(self, machine, version: str, now: float):
        self.machine, self.version, self.now = machine, version, now
        self.branch = driver.branch(version)


def _model(*keys):
    def get(_context, one):
        value = one.model
        for key in keys:
            value = value[key]
        return value

    return get


def _pci(key: str):
    return lambda _context, one: one.model["pci"][key]


def _watts(key: str):
    return lambda _context, one: f"{one.model['power_w'][key]:.2f}"


def _limit(_context, one):
    return f"{one.power_limit_w:.2f}"


def _ecc(value):
    return lambda _context, one: value if one.model["ecc"] else None


def _mig(_context, one):
    return "Disabled" if one.model["mig"] else None


def _timestamp(context, _one):
    now = time.localtime(context.now)
    return time.strftime("%Y/%m/%d %H:%M:%S", now) + f".{int(context.now * 1000) % 1000:03d}"


def _fabric(done: str):
    return lambda _context, one: done if one.fabric_state == "Completed" else "N/A"


def _remap(value):
    return lambda _context, one: value if one.model["row_remapping"] else None


def _app_clock(key: str):
    return lambda context, one: DEPRECATED if context.branch >= 590 else one.model["clocks_mhz"][key]


def _pci_number(get):
    return lambda _context, one: "0x" + get(one)


def _margin(_context, one):
    limit = one.model["temperature_c"]["limit"]
    return None if limit is None else limit - one.temperature_c


def _average_draw(_context, one):
    return f"{one.power_draw_w:.2f}" if one.model["average_power"] else None


IDENTITY = {
    "timestamp": ("", _timestamp),
    "driver_version": ("", lambda context, _one: context.machine.loaded_version),
    "count": ("", lambda context, _one: len(context.machine.gpus)),
    "index": ("", lambda _context, one: one.index),
    "name": ("", _model("name")),
    "serial": ("", lambda _context, one: one.serial),
    "uuid": ("", lambda _context, one: one.uuid),
    "pci.bus_id": ("", lambda _context, one: one.bus_id),
    "pci.domain": ("", _pci_number(lambda one: one.short_bus_id[:4])),
    "pci.bus": ("", _pci_number(lambda one: one.short_bus_id[5:7])),
    "pci.device": ("", _pci_number(lambda one: one.short_bus_id[8:10])),
    "pci.baseClass": ("", "0x3"),
    "pci.subClass": ("", "0x2"),
    "pci.device_id": ("", lambda _context, one: "0x" + (one.model["pci"]["device"][2:] + "10DE").upper()),
    "pci.sub_device_id": (
        "",
        lambda _context, one: "0x" + (one.model["pci"]["subsystem_device"][2:] + "10DE").upper(),
    ),
    "pcie.link.gen.current": ("", _model("pcie", "gen")),
    "pcie.link.gen.gpucurrent": ("", _model("pcie", "gen")),
    "pcie.link.gen.max": ("", _model("pcie", "gen")),
    "pcie.link.gen.gpumax": ("", _model("pcie", "gen")),
    "pcie.link.gen.hostmax": ("", _model("pcie", "gen")),
    "pcie.link.width.current": ("", _model("pcie", "width")),
    "pcie.link.width.max": ("", _model("pcie", "width")),
    "vbios_version": ("", _model("vbios")),
    "inforom.img": ("", _model("inforom", "img")),
    "inforom.oem": ("", _model("inforom", "oem")),
    "inforom.ecc": ("", _model("inforom", "ecc")),
    "inforom.pwr": ("", None),
    "compute_cap": ("", _model("compute_cap")),
}

MODES = {
    "display_mode": ("", lambda context, _one: DEPRECATED if context.branch >= 580 else "Enabled"),
    "display_active": ("", "Disabled"),
    "persistence_mode": ("", lambda _context, one: "Enabled" if one.persistence else "Disabled"),
    "accounting.mode": ("", "Disabled"),
    "accounting.buffer_size": ("", 4000),
    "driver_model.current": ("", None),
    "driver_model.pending": ("", None),
    "gom.current": ("", None),
    "gom.pending": ("", None),
    "compute_mode": ("", "Default"),
    "mig.mode.current": ("", _mig),
    "mig.mode.pending": ("", _mig),
    "ecc.mode.current": ("", _ecc("Enabled")),
    "ecc.mode.pending": ("", _ecc("Enabled")),
    "gsp.mode.current": ("", "Enabled"),
    "gsp.mode.default": ("", "Enabled"),
    "fan.speed": ("%", None),
    "pstate": ("", "P0"),
}

READINGS = {
    "memory.total": ("MiB", _model("memory_mib")),
    "memory.reserved": ("MiB", _model("memory_reserved_mib")),
    "memory.used": ("MiB", 0),
    "memory.free": ("MiB", lambda _context, one: one.model["memory_mib"] - one.model["memory_reserved_mib"]),
    **{f"utilization.{name}": ("%", 0) for name in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa")},
    **{f"encoder.stats.{name}": ("", 0) for name in ("sessionCount", "averageFps", "averageLatency")},
    "temperature.gpu": ("", lambda _context, one: one.temperature_c),
    "temperature.gpu.tlimit": ("", _margin),
    "temperature.memory": ("", lambda _context, one: one.memory_temperature_c),
    "power.management": ("", lambda context, _one: DEPRECATED if context.branch >= 590 else "Enabled"),
    "power.draw": ("W", lambda _context, one: f"{one.power_draw_w:.2f}"),
    "power.draw.average": ("W", _average_draw),
    "power.draw.instant": ("W", lambda _context, one: f"{one.power_draw_w + 0.35:.2f}"),
    "power.limit": ("W", _limit),
    "enforced.power.limit": ("W", _limit),
    "power.default_limit": ("W", _watts("default")),
    "power.min_limit": ("W", _watts("min")),
    "power.max_limit": ("W", _watts("max")),
    "clocks.current.graphics": ("MHz", _model("clocks_mhz", "graphics_idle")),
    "clocks.current.sm": ("MHz", _model("clocks_mhz", "graphics_idle")),
    "clocks.current.memory": ("MHz", _model("clocks_mhz", "memory")),
    "clocks.current.video": ("MHz", _model("clocks_mhz", "video_idle")),
    "clocks.applications.graphics": ("MHz", _app_clock("graphics_max")),
    "clocks.applications.memory": ("MHz", _app_clock("memory")),
    "clocks.default_applications.graphics": ("MHz", _app_clock("graphics_max")),
    "clocks.default_applications.memory": ("MHz", _app_clock("memory")),
    "clocks.max.graphics": ("MHz", _model("clocks_mhz", "graphics_max")),
    "clocks.max.sm": ("MHz", _model("clocks_mhz", "graphics_max")),
    "clocks.max.memory": ("MHz", _model("clocks_mhz", "memory")),
    "clocks_event_reasons.supported": ("", "0x00000000000001FF"),
    "clocks_event_reasons.active": ("", "0x0000000000000001"),
    **{f"clocks_event_reasons.{name}": ("", "Active" if name == "gpu_idle" else "Not Active") for name in REASONS[:-1]},
}

_COUNTED = {"dram", "sram", "total"}
_PLACES = ("device_memory", "dram", "register_file", "l1_cache", "l2_cache", "texture_memory", "cbu", "sram", "total")
ERRORS = {
    **{
        f"ecc.errors.{kind}.{span}.{place}": ("", _ecc(0) if place in _COUNTED | {"device_memory"} else None)
        for kind in ("corrected", "uncorrected")
        for span in ("volatile", "aggregate")
        for place in _PLACES
    },
    "retired_pages.single_bit_ecc.count": ("", None),
    "retired_pages.double_bit.count": ("", None),
    "retired_pages.pending": ("", None),
    "fabric.state": ("", lambda _context, one: one.fabric_state),
    "fabric.status": ("", _fabric("Success")),
}

_HISTOGRAM = {
    "remapped_rows.histogram.max": ("", lambda _context, one: one.model["remap_banks"]),
    **{f"remapped_rows.histogram.{name}": ("", _remap(0)) for name in ("high", "partial", "low", "none")},
}
_ROWS = {
    "remapped_rows.correctable": ("", _remap(0)),
    "remapped_rows.uncorrectable": ("", _remap(0)),
    "remapped_rows.pending": ("", _remap("No")),
    "remapped_rows.failure": ("", _remap("No")),
}

SINCE = {
    550: {
        "c2c.mode": ("", None),
        "fabric.cliqueId": ("", _fabric("0")),
        "fabric.clusterUuid": ("", _fabric("00000000-0000-0000-0000-000000000000")),
        "fabric.health.bandwidth": ("", "N/A"),
        **{f"protected_memory.{name}": ("MiB", 0) for name in ("total", "used", "free")},
        **{f"ecc.errors.uncorrected.{span}.sram.{kind}": ("", _ecc(0))
           for span in ("volatile", "aggregate") for kind in ("parity", "secded")},
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": ("", _ecc("No")),
    },
    570: {
        "gpu_recovery_action": ("", "None"),
        "platform.module_id": ("", lambda _context, one: one.module_id),
        "dramEncryption.mode.current": ("", None),
        "dramEncryption.mode.pending": ("", None),
        **{f"fabric.health.{name}": ("", "N/A")
           for name in ("route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery")},
    },
    580: {
        "addressing_mode": ("", lambda context, _one: "HMM" if context.machine.open_modules else "None"),
        "display_attached": ("", "Yes"),
        "fabric.health.summary": ("", "N/A"),
        "fabric.health.incorrect_configuration": ("", "N/A"),
        "inforom.checksum_validation": ("", "valid"),
        **_ROWS,
        **_HISTOGRAM,
        **{f"clocks_event_reasons_counters.{name}": ("us", 0)
           for name in ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown",
                        "hw_power_brake_slowdown")},
    },
    590: {"edpp_multiplier": ("%", "100.00"), "hostname": ("", None)},
}  # fmt: skip
"""Fields that came with a branch (first seen there)."""

UNTIL_570 = {"reset_status.reset_required": ("", "No"), "reset_status.drain_and_reset_recommended": ("", "No")}

COMPUTE_APPS = {
    "timestamp": ("", _timestamp), "name": ("", None), "gpu_name": ("", None), "pci.bus_id": ("", None),
    "serial": ("", None), "uuid": ("", None), "pid": ("", None), "process_name": ("", None),
    "used_gpu_memory": ("MiB", None),
}  # fmt: skip

REMAPPED_ROWS = {
    **{name: IDENTITY[name] for name in ("timestamp", "name", "pci.bus_id", "serial", "uuid")},
    **_ROWS,
    **_HISTOGRAM,
}


def gpu_table(version: str) -> dict:
    """Return the fields that the tool of this version knows."""
    number = driver.branch(version)
    table = {**IDENTITY, **MODES, **READINGS, **ERRORS}
    if number < 580:
        table.update(UNTIL_570)
    for since, fields in SINCE.items():
        if number >= since:
            table.update(fields)
    return table
