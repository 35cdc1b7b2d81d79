# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of `--query-gpu`: name → (unit, value).

A value is a constant, or a function of (context, GPU). None is N/A.
"""

import time

from .. import driver
from . import query_document
from .xml_health import REASONS

DEPRECATED = "Requested functionality has been deprecated"
ERRORS_IN_PLACE = (DEPRECATED, "GPU is lost", "GPU requires reset", "Unknown Error", "Insufficient Permissions")
"""Texts that stand where a value should; this form puts them in brackets."""

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
        self.documents = {}

    def document(self, one):
        """What `-q -x` says of the GPU: an element with its sections. Made once, and only when a field needs it."""
        if one.uuid not in self.documents:
            import xml.etree.ElementTree as ElementTree

            from . import xml as document

            text = document.render(self.machine, [one], self.version)
            self.documents[one.uuid] = ElementTree.fromstring(text.split("\n", 2)[2]).find("gpu")
        return self.documents[one.uuid]


def _model(*keys):
    def get(_context, one):
        value = one.model
        for key in keys:
            value = value[key]
        return value

    return get


def _pci_number(get):
    return lambda _context, one: "0x" + get(one)


def _timestamp(context, _one):
    now = time.localtime(context.now)
    return time.strftime("%Y/%m/%d %H:%M:%S", now) + f".{int(context.now * 1000) % 1000:03d}"


def _average_draw(_context, one):
    return f"{one.power_draw_w:.2f}" if one.model["average_power"] else None


def _active(name: str):
    return lambda _context, one: "Active" if name in one.reasons else "Not Active"


def _mask(_context, one):
    bits = sum(1 << number for number, name in enumerate(REASON_BITS) if name in one.reasons)
    return f"0x{bits:016X}"


REASON_BITS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown",
    "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clocks_setting",
)  # fmt: skip
"""Bit 0 upwards of the mask of clock event reasons (nvml.h)."""

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
    "vbios_version": ("", _model("vbios")),
    "inforom.img": ("", _model("inforom", "img")),
    "inforom.oem": ("", _model("inforom", "oem")),
    "inforom.ecc": ("", _model("inforom", "ecc")),
    "inforom.pwr": ("", None),
    "compute_cap": ("", _model("compute_cap")),
}

MODES = {
    **query_document.MODES,
    "display_active": ("", "Disabled"),
    "driver_model.current": ("", None),
    "driver_model.pending": ("", None),
    "gom.current": ("", None),
    "gom.pending": ("", None),
    "gsp.mode.current": ("", "Enabled"),
    "gsp.mode.default": ("", "Enabled"),
}

READINGS = {
    **query_document.READINGS,
    **{f"encoder.stats.{name}": ("", 0) for name in ("sessionCount", "averageFps", "averageLatency")},
    "power.management": ("", lambda context, _one: DEPRECATED if context.branch >= 590 else "Enabled"),
    "power.draw": ("W", lambda _context, one: f"{one.power_draw_w:.2f}"),
    "power.draw.average": ("W", _average_draw),
    "power.draw.instant": ("W", lambda _context, one: f"{one.power_draw_w + 0.35:.2f}"),
    "clocks_event_reasons.supported": ("", "0x00000000000001FF"),
    "clocks_event_reasons.active": ("", _mask),
    **{f"clocks_event_reasons.{name}": ("", _active(name)) for name in REASONS[:-1]},
}

ERRORS = {
    **query_document.ERRORS,
    **query_document.RETIRED,
    "fabric.state": ("", query_document.path("fabric/state")),
    "fabric.status": ("", query_document.path("fabric/status")),
}

SINCE = {
    550: {
        "c2c.mode": ("", query_document.path("c2c_mode")),
        "fabric.cliqueId": ("", query_document.path("fabric/cliqueId")),
        "fabric.clusterUuid": ("", query_document.path("fabric/clusterUuid")),
        "fabric.health.bandwidth": ("", query_document.path("fabric/health/bandwidth")),
        **{f"protected_memory.{name}": ("MiB", 0) for name in ("total", "used", "free")},
        **query_document.SPLIT_SRAM,
        **{f"module.{name}": ("W", None)
           for name in ("power.draw.average", "power.draw.instant", "power.limit", "enforced.power.limit",
                        "power.default_limit", "power.min_limit", "power.max_limit")},
    },
    570: {
        "gpu_recovery_action": ("", query_document.path("gpu_recovery_action")),
        "platform.module_id": ("", lambda _context, one: one.module_id),
        "dramEncryption.mode.current": ("", None),
        "dramEncryption.mode.pending": ("", None),
        **{f"fabric.health.{name}": ("", query_document.path(f"fabric/health/{name}"))
           for name in ("route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery")},
    },
    580: {
        "addressing_mode": ("", query_document.path("addressing_mode")),
        "display_attached": ("", "Yes"),
        "fabric.health.summary": ("", query_document.path("fabric/health/summary")),
        "fabric.health.incorrect_configuration": ("", query_document.path("fabric/health/incorrect_configuration")),
        "inforom.checksum_validation": (
            "", lambda _context, one: "invalid" if "inforom" in one.faults else "valid",
        ),
        **query_document.REMAPPED,
        **query_document.HISTOGRAM,
        **{f"clocks_event_reasons_counters.{name}": (
               "us", query_document.path(f"clocks_event_reasons_counters/clocks_event_reasons_counters_{tag}"))
           for name, tag in (("sw_power_cap", "sw_power_cap"), ("sync_boost", "sync_boost"),
                             ("sw_thermal_slowdown", "sw_therm_slowdown"),
                             ("hw_thermal_slowdown", "hw_therm_slowdown"),
                             ("hw_power_brake_slowdown", "hw_power_brake"))},
    },
    590: {"edpp_multiplier": ("%", "100.00"), "hostname": ("", None)},
}  # fmt: skip
"""Fields that came with a branch (first seen there)."""

UNTIL_570 = {
    f"reset_status.{name}": ("", query_document.path(f"gpu_reset_status/{name}"))
    for name in ("reset_required", "drain_and_reset_recommended")
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
