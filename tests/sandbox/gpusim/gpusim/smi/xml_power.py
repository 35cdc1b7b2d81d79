# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections: temperature, power, clocks, fabric, processes."""

from . import xml as document

LIMITS = ("current_power_limit", "requested_power_limit", "default_power_limit", "min_power_limit", "max_power_limit")
HEALTH = ("bandwidth", "route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery")


def write(xml, one, layout) -> None:
    """Write the last part of a GPU, from temperature to processes."""
    _temperature(xml, one)
    _power(xml, one, layout)
    _clocks(xml, one, layout)
    xml.group("clock_policy", ("auto_boost", "N/A"), ("auto_boost_default", "N/A"))
    if layout.branch < 580:
        xml.group("voltage", ("graphics_volt", "N/A"))
    _fabric(xml, one, layout)
    _supported_clocks(xml, one)
    for tag in ("processes", "accounted_processes"):
        xml.group(tag)
    if layout.branch >= 570:
        xml.group("capabilities", ("egm", "disabled"))


def _temperature(xml, one) -> None:
    """Hopper gives margins below a limit (`tlimit`), Ampere absolute temperatures; never both."""
    facts = one.model["temperature_c"]
    relative = facts["layout"] == "tlimit"
    suffix = "_tlimit_threshold" if relative else "_threshold"
    xml.group(
        "temperature",
        ("gpu_temp", f"{one.temperature_c} C"),
        ("gpu_temp_tlimit", f"{facts['limit'] - one.temperature_c} C" if relative else "N/A"),
        ("gpu_temp_max" + suffix, f"{facts['max']} C"),
        ("gpu_temp_slow" + suffix, f"{facts['slow']} C"),
        ("gpu_temp_max_gpu" + suffix, f"{facts['max_gpu']} C"),
        ("gpu_target_temperature", "N/A"),
        ("memory_temp", f"{one.memory_temperature_c} C"),
        ("gpu_temp_max_mem" + suffix, f"{facts['max_mem']} C"),
    )
    xml.group("supported_gpu_target_temp", ("gpu_target_temp_min", "N/A"), ("gpu_target_temp_max", "N/A"))


def _draw(layout, average: str, instant: str) -> list:
    if layout.branch < 550:
        return [("power_draw", instant)]
    return [("average_power_draw", average), ("instant_power_draw", instant)]


def _power(xml, one, layout) -> None:
    facts = one.model["power_w"]
    state = ("power_state", document.DEPRECATED if layout.branch >= 590 else "P0")
    average = f"{one.power_draw_w:.2f} W" if one.model["average_power"] else "N/A"
    limit = one.power_limit_w
    watts = (limit, limit, facts["default"], facts["min"], facts["max"])
    xml.group(
        "gpu_power_readings",
        state,
        *_draw(layout, average, f"{one.power_draw_w + 0.35:.2f} W"),
        *((tag, f"{value:.2f} W") for tag, value in zip(LIMITS, watts)),
    )
    if layout.branch >= 550:
        memory = facts["memory_idle"]
        xml.group("gpu_memory_power_readings", *_draw(layout, f"{memory:.2f} W" if memory else "N/A", "N/A"))
    xml.group("module_power_readings", state, *_draw(layout, "N/A", "N/A"), *((tag, "N/A") for tag in LIMITS))
    if layout.branch >= 570:
        xml.leaf("power_smoothing", "N/A")
        tags = ("power_profile_requested_profiles", "power_profile_enforced_profiles")
        xml.group("power_profiles", *((tag, "N/A") for tag in tags))
    if layout.branch >= 590:
        xml.leaf("edpp_multiplier", "N/A")


def _clocks(xml, one, layout) -> None:
    clocks = one.model["clocks_mhz"]
    idle, top, memory = (f"{clocks[key]} MHz" for key in ("graphics_idle", "graphics_max", "memory"))
    xml.group(
        "clocks",
        ("graphics_clock", idle),
        ("sm_clock", idle),
        ("mem_clock", memory),
        ("video_clock", f"{clocks['video_idle']} MHz"),
    )
    for tag in ("applications_clocks", "default_applications_clocks"):
        gone = layout.branch >= 590
        values = (document.DEPRECATED, document.DEPRECATED) if gone else (top, memory)
        xml.group(tag, ("graphics_clock", values[0]), ("mem_clock", values[1]))
    xml.group("deferred_clocks", ("mem_clock", "N/A"))
    xml.group(
        "max_clocks",
        ("graphics_clock", top),
        ("sm_clock", top),
        ("mem_clock", memory),
        ("video_clock", f"{clocks['video_max']} MHz"),
    )
    xml.group("max_customer_boost_clocks", ("graphics_clock", top))


def _fabric(xml, one, layout) -> None:
    state = one.fabric_state
    done = state == "Completed"
    rows = [("state", state), ("status", "Success" if done else "N/A")]
    if layout.branch < 550:
        xml.group("fabric", *rows)
        return
    rows.append(("cliqueId", "0" if done else "N/A"))
    rows.append(("clusterUuid", "00000000-0000-0000-0000-000000000000" if done else "N/A"))
    with xml.block("fabric", *rows):
        tags = list(HEALTH[:1] if layout.branch < 570 else HEALTH)
        if layout.branch >= 580:
            tags = ["summary", *tags, "incorrect_configuration"]
        if layout.late_580:
            tags.append("partition_assigned")
        xml.group("health", *((tag, "N/A") for tag in tags))


def _supported_clocks(xml, one) -> None:
    clocks = one.model["clocks_mhz"]
    steps = range(clocks["graphics_max"], clocks["graphics_min"] - 1, -clocks["step"])
    with xml.block("supported_clocks"):
        for memory in (clocks["memory"], clocks["memory_low"]):
            if memory:
                values = (("supported_graphics_clock", f"{value} MHz") for value in steps)
                xml.group("supported_mem_clock", ("value", f"{memory} MHz"), *values)
