# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -q -d BLOCK,…`: which parts of `-q` each block shows, and the samples that only this form has.

Names and order as 550.163.01 prints them. The order is that of `-q`, however the blocks were named.
"""

from . import plain

BLOCKS = {
    "MEMORY": ("fb_memory_usage", "bar1_memory_usage", "cc_protected_memory_usage"),
    "UTILIZATION": ("utilization",),
    "ECC": ("ecc_mode", "ecc_errors"),
    "TEMPERATURE": ("temperature",),
    "POWER": ("gpu_power_readings", "gpu_memory_power_readings", "module_power_readings"),
    "CLOCK": (
        "clocks", "applications_clocks", "default_applications_clocks", "deferred_clocks", "max_clocks",
        "max_customer_boost_clocks", "clock_policy",
    ),
    "COMPUTE": ("compute_mode",),
    "PIDS": ("processes",),
    "PERFORMANCE": (
        "performance_state", "clocks_event_reasons", "clocks_event_reasons_counters", "sparse_operation_mode",
    ),
    "SUPPORTED_CLOCKS": ("supported_clocks",),
    "PAGE_RETIREMENT": ("retired_pages",),
    "ACCOUNTING": ("accounting_mode", "accounting_mode_buffer_size", "accounted_processes"),
    "ENCODER_STATS": ("encoder_stats",),
    "SUPPORTED_GPU_TARGET_TEMP": ("supported_gpu_target_temp",),
    "VOLTAGE": ("voltage",),
    "FBC_STATS": ("fbc_stats",),
    "ROW_REMAPPER": ("remapped_rows",),
    "RESET_STATUS": ("gpu_reset_status",),
    "GSP_FIRMWARE_VERSION": ("gsp_firmware_version",),
}  # fmt: skip
"""Block → elements of the XML document."""

SAMPLES = {
    "utilization": (
        ("GPU Utilization", "utilization/gpu_util"), ("Memory Utilization", "utilization/memory_util"),
        ("ENC Utilization", "utilization/encoder_util"), ("DEC Utilization", "utilization/decoder_util"),
        ("JPG Utilization", "utilization/jpeg_util"), ("OFA Utilization", "utilization/ofa_util"),
    ),
    "gpu_power_readings": (("Power", "gpu_power_readings/instant_power_draw"),),
    "max_customer_boost_clocks": (("SM Clock", "clocks/sm_clock"), ("Memory Clock", "clocks/mem_clock")),
}  # fmt: skip
"""Element → the samples printed after it, each with the reading that it is about."""


def lines(gpu, blocks: list, column: int, branch: int) -> list:
    """Return the lines of one GPU's element for these blocks; values stand in `column`."""
    tags = {tag for block in blocks for tag in BLOCKS[block]}
    found = []
    for element in gpu:
        if element.tag in tags:
            found += _element(element, column, branch)
            for title, path in SAMPLES.get(element.tag, ()):
                found += _samples(title, gpu.findtext(path) or gpu.findtext(path.replace("instant_", "")), column)
    return found


def _element(element, column: int, branch: int) -> list:
    if element.tag == "supported_clocks":
        return _supported(element, column)
    if element.tag == "accounted_processes":
        return [plain.line("Accounted Processes", "None", 4, column)]
    if element.tag == "supported_gpu_target_temp":
        limits = zip(("Min", "Max"), element)
        return ["    Supported GPU_TARGET_TEMP", *(plain.line(name, one.text, 8, column) for name, one in limits)]
    return plain.element_lines(element, "", 4, column, branch)


def _supported(element, column: int) -> list:
    if not len(element):
        return [plain.line("Supported Clocks", "N/A", 4, column)]
    found = ["    Supported Clocks"]
    for group in element:
        for child in group:
            memory = child.tag == "value"
            found.append(plain.line("Memory" if memory else "Graphics", child.text, 8 if memory else 12, column))
    return found


def _samples(title: str, reading: str, column: int) -> list:
    """A steady reading: minimum, maximum and average are the same. The driver keeps about 2.4 s of 20 ms samples."""
    there = reading != "N/A"
    rows = [("Duration", "2.38 sec" if there else "N/A"), ("Number of Samples", "119" if there else "N/A")]
    rows += [(name, reading) for name in ("Max", "Min", "Avg")]
    return [f"    {title} Samples", *(plain.line(name, value, 8, column) for name, value in rows)]
