# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections: temperature, power, clocks, fabric, processes."""

from . import xml as document

LIMITS = ("current_power_limit", "requested_power_limit", "default_power_limit", "min_power_limit", "max_power_limit")
HEALTH_OF_NVLINK5 = {"summary": "Healthy", "access_timeout_recovery": "False", "partition_assigned": "True"}
"""What a healthy HGX B200 says of its fabric; HGX H100 says N/A."""
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
    _processes(xml, one)
    xml.group("accounted_processes")
    if layout.branch >= 570:
        xml.group("capabilities", ("egm", "disabled"))


def _processes(xml, one) -> None:
    with xml.block("processes"):
        for process in one.processes:
            xml.group(
                "process_info",
                ("gpu_instance_id", "N/A"),
                ("compute_instance_id", "N/A"),
                ("pid", process["pid"]),
                ("type", "C"),
                ("process_name", process["name"]),
                ("used_memory", f"{process['memory_mib']} MiB"),
            )


def _temperature(xml, one) -> None:
    """Hopper gives margins below a limit (`tlimit`), Ampere absolute temperatures; never both."""
    facts = one.model["temperature_c"]
    relative = facts["layout"] == "tlimit"
    target = facts["target"]
    suffix = "_tlimit_threshold" if relative else "_threshold"
    xml.group(
        "temperature",
        ("gpu_temp", f"{one.temperature_c} C"),
        ("gpu_temp_tlimit", f"{one.tlimit_margin_c} C" if relative else "N/A"),
        ("gpu_temp_max" + suffix, f"{facts['max']} C"),
        ("gpu_temp_slow" + suffix, f"{facts['slow']} C"),
        ("gpu_temp_max_gpu" + suffix, f"{facts['max_gpu']} C"),
        ("gpu_target_temperature", f"{target['value']} C" if target else "N/A"),
        ("memory_temp", _celsius(one.memory_temperature_c)),
        ("gpu_temp_max_mem" + suffix, _celsius(facts["max_mem"])),
    )
    ends = [f"{target[end]} C" if target else "N/A" for end in ("min", "max")]
    xml.group("supported_gpu_target_temp", *zip(("gpu_target_temp_min", "gpu_target_temp_max"), ends))


def _celsius(value) -> str:
    return "N/A" if value is None else f"{value} C"


def _draw(layout, average: str, instant: str) -> list:
    if layout.branch < 550:
        return [("power_draw", instant)]
    return [("average_power_draw", average), ("instant_power_draw", instant)]


def _power(xml, one, layout) -> None:
    facts = one.model["power_w"]
    state = ("power_state", document.DEPRECATED if layout.branch >= 590 else one.performance_state)
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
    current, top, memory = f"{one.graphics_clock_mhz} MHz", f"{clocks['graphics_max']} MHz", f"{clocks['memory']} MHz"
    xml.group(
        "clocks",
        ("graphics_clock", current),
        ("sm_clock", current),
        ("mem_clock", f"{one.memory_clock_mhz} MHz"),
        ("video_clock", f"{clocks['video_idle']} MHz"),
    )
    chosen = (one.application_clocks_mhz, one.default_application_clocks_mhz)
    for tag, pair in zip(("applications_clocks", "default_applications_clocks"), chosen):
        words = ["N/A"] * 2 if pair is None else [f"{value} MHz" for value in pair]
        if layout.branch >= 590:
            words = [document.DEPRECATED] * 2
        xml.group(tag, ("graphics_clock", words[1]), ("mem_clock", words[0]))
    xml.group("deferred_clocks", ("mem_clock", "N/A"))
    xml.group(
        "max_clocks",
        ("graphics_clock", top),
        ("sm_clock", top),
        ("mem_clock", memory),
        ("video_clock", f"{clocks['video_max']} MHz"),
    )
    xml.group("max_customer_boost_clocks", ("graphics_clock", "N/A" if one.model["brand"] == "GeForce" else top))


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
        told = HEALTH_OF_NVLINK5 if done and one.model["nvlink"]["version"] == 5 else {}
        xml.group("health", *((tag, told.get(tag, "N/A")) for tag in tags))


def _supported_clocks(xml, one) -> None:
    clocks = one.model["clocks_mhz"]
    steps = range(clocks["graphics_max"], clocks["graphics_min"] - 1, -clocks["step"])
    with xml.block("supported_clocks"):
        for memory in (clocks["memory"], clocks["memory_low"]):
            if memory:
                values = (("supported_graphics_clock", f"{value} MHz") for value in steps)
                xml.group("supported_mem_clock", ("value", f"{memory} MHz"), *values)
