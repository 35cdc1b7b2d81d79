# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of `--query-gpu` that say what `-q -x` says: read out of that document, so that the two never disagree."""

UNITS = (" MiB", " MHz", " %", " W", " C", " us", " bank(s)", "x")
"""Cut off. The last one is that of link widths: `16x`."""
NO_VALUE = ("N/A", "", None)


def value(text):
    """`345 MHz` → `345`; None for N/A."""
    if text in NO_VALUE:
        return None
    for unit in UNITS:
        if text.endswith(unit):
            return text[: -len(unit)]
    return text


def path(where: str):
    """The element below `gpu` at this path."""
    return lambda context, one: value(context.document(one).findtext(where))


def _same(unit: str, prefix: str, names: dict) -> dict:
    return {field: (unit, path(prefix + tag)) for field, tag in names.items()}


READINGS = {
    "fan.speed": ("%", path("fan_speed")),
    "pstate": ("", path("performance_state")),
    **_same("MiB", "fb_memory_usage/", {f"memory.{name}": name for name in ("total", "reserved", "used", "free")}),
    **_same(
        "%", "utilization/",
        {f"utilization.{name}": f"{name}_util" for name in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa")},
    ),
    **_same(
        "", "temperature/",
        {"temperature.gpu": "gpu_temp", "temperature.gpu.tlimit": "gpu_temp_tlimit",
         "temperature.memory": "memory_temp"},
    ),
    **_same(
        "W", "gpu_power_readings/",
        {"power.limit": "requested_power_limit", "enforced.power.limit": "current_power_limit",
         "power.default_limit": "default_power_limit", "power.min_limit": "min_power_limit",
         "power.max_limit": "max_power_limit"},
    ),
    **_same(
        "MHz", "",
        {f"clocks.{span}.{name}": f"{group}/{tag}"
         for span, group in (("current", "clocks"), ("max", "max_clocks"))
         for name, tag in (("graphics", "graphics_clock"), ("sm", "sm_clock"), ("memory", "mem_clock"),
                           ("video", "video_clock"))
         if (span, name) != ("max", "video")},
    ),
    **_same(
        "MHz", "",
        {f"clocks.{span}.{name}": f"{span}_clocks/{tag}"
         for span in ("applications", "default_applications")
         for name, tag in (("graphics", "graphics_clock"), ("memory", "mem_clock"))},
    ),
    **_same(
        "", "pci/pci_gpu_link_info/pcie_gen/",
        {"pcie.link.gen.current": "current_link_gen", "pcie.link.gen.gpucurrent": "device_current_link_gen",
         "pcie.link.gen.max": "max_link_gen", "pcie.link.gen.gpumax": "max_device_link_gen",
         "pcie.link.gen.hostmax": "max_host_link_gen"},
    ),
    **_same(
        "", "pci/pci_gpu_link_info/link_widths/",
        {f"pcie.link.width.{name}": f"{name}_link_width" for name in ("current", "max")},
    ),
}  # fmt: skip

MODES = {
    **_same(
        "", "",
        {"persistence_mode": "persistence_mode", "compute_mode": "compute_mode",
         "mig.mode.current": "mig_mode/current_mig", "mig.mode.pending": "mig_mode/pending_mig",
         "ecc.mode.current": "ecc_mode/current_ecc",
         "ecc.mode.pending": "ecc_mode/pending_ecc", "display_mode": "display_mode",
         "accounting.mode": "accounting_mode", "accounting.buffer_size": "accounting_mode_buffer_size"},
    ),
}  # fmt: skip

REMAPPED = {
    "remapped_rows.correctable": ("", path("remapped_rows/remapped_row_corr")),
    "remapped_rows.uncorrectable": ("", path("remapped_rows/remapped_row_unc")),
    "remapped_rows.pending": ("", path("remapped_rows/remapped_row_pending")),
    "remapped_rows.failure": ("", path("remapped_rows/remapped_row_failure")),
}
HISTOGRAM = _same(
    "", "remapped_rows/row_remapper_histogram/row_remapper_histogram_",
    {f"remapped_rows.histogram.{name}": name for name in ("max", "high", "partial", "low", "none")},
)  # fmt: skip

RETIRED = _same(
    "", "retired_pages/",
    {"retired_pages.single_bit_ecc.count": "multiple_single_bit_retirement/retired_count",
     "retired_pages.double_bit.count": "double_bit_retirement/retired_count",
     "retired_pages.pending": "pending_retirement"},
)  # fmt: skip

_PLACES = ("device_memory", "dram", "register_file", "l1_cache", "l2_cache", "texture_memory", "cbu", "sram", "total")


def _counter(kind: str, span: str, place: str):
    """One counter in either layout: SRAM and DRAM (Turing and later), or single and double bit by place."""

    def get(context, one):
        counters = {child.tag: child for child in context.document(one).find(f"ecc_errors/{span}")}
        old = counters.get("single_bit" if kind == "corrected" else "double_bit")
        if old is not None:
            return value(old.findtext(place))
        tail = "_correctable" if kind == "corrected" else "_uncorrectable"
        heads = {"device_memory": ("dram",), "dram": ("dram",), "sram": ("sram",), "total": ("sram", "dram")}
        texts = [
            value(child.text)
            for tag, child in counters.items()
            for head in heads.get(place, ())
            if tag.startswith(head + tail)
        ]
        return sum(int(text) for text in texts) if texts and all(text is not None for text in texts) else None

    return get


ERRORS = {
    f"ecc.errors.{kind}.{span}.{place}": ("", _counter(kind, span, place))
    for kind in ("corrected", "uncorrected")
    for span in ("volatile", "aggregate")
    for place in _PLACES
}
SPLIT_SRAM = {
    **_same(
        "", "ecc_errors/aggregate_uncorrectable_sram_sources/",
        {f"ecc.errors.uncorrected.aggregate.sram.{name}": f"sram_{tag}"
         for name, tag in (("l2", "l2"), ("sm", "sm"), ("mcu", "microcontroller"), ("pcie", "pcie"),
                           ("other", "other"))},
    ),
    **{f"ecc.errors.uncorrected.{span}.sram.{kind}": ("", path(f"ecc_errors/{span}/sram_uncorrectable_{kind}"))
       for span in ("volatile", "aggregate") for kind in ("parity", "secded")},
    **_same(
        "", "ecc_errors/aggregate/",
        {"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "sram_threshold_exceeded"},
    ),
}  # fmt: skip
