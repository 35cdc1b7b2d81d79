# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML sections about memory errors: ECC, retired pages (up to Volta), remapped rows (from Ampere on)."""

from .. import memory, settings

SOURCES = ("sram_l2", "sram_sm", "sram_microcontroller", "sram_pcie", "sram_other")
RETIRED = (("multiple_single_bit_retirement", "retired_single"), ("double_bit_retirement", "retired_double"))
PAGE_ADDRESS = 0x00000000000A1B00
"""Of the first retired page; the others follow it."""


def write(xml, one, layout) -> None:
    """Write ecc_mode, ecc_errors, retired_pages and remapped_rows."""
    modes = settings.ecc(one)
    xml.group("ecc_mode", *zip(("current_ecc", "pending_ecc"), settings.words(modes)))
    counted = bool(modes and modes[0])
    with xml.block("ecc_errors"):
        if one.model["memory_errors"] == "single_double":
            for span in ("volatile", "aggregate"):
                _single_double(xml, one, span, counted)
        else:
            _split(xml, one, layout, counted)
    _retired(xml, one)
    _remapped(xml, one, layout)


def _single_double(xml, one, span: str, counted: bool) -> None:
    errors = memory.ecc_errors(one, span)
    with xml.block(span):
        for kind in ("single_bit", "double_bit"):
            values = {place: errors.get(f"{kind}/{place}", 0) for place in memory.PLACES}
            values["total"] = sum(values.values())
            silent = {place for place in values if not counted or (kind, place) in memory.NOT_COUNTED}
            xml.group(kind, *((place, "N/A" if place in silent else value) for place, value in values.items()))


def _split(xml, one, layout, counted: bool) -> None:
    def counters(span, shown):
        errors = memory.ecc_errors(one, span)
        return [(name, errors.get(name, 0) if shown else "N/A") for name in memory.SPLIT]

    xml.group("volatile", *counters("volatile", counted and not settings.in_mig(one)))
    exceeded = "Yes" if memory.kept(one).get("threshold") else "No"
    aggregate = counters("aggregate", counted)
    xml.group("aggregate", *aggregate, ("sram_threshold_exceeded", exceeded if counted else "N/A"))
    total = memory.uncorrected(one, "aggregate", "sram")
    of_source = {name: total if name == "sram_l2" else 0 for name in SOURCES}
    name = "aggregate_uncorrectable_sram_sources"
    xml.group(name, *((tag, value if counted else "N/A") for tag, value in of_source.items()))
    if layout.branch >= 580:
        xml.leaves(("channel_repair_pending", "No"), ("tpc_repair_pending", "No"))
    if layout.late_580 or layout.branch == 590:
        xml.leaf("unrepairable_memory", "No")


def _retired(xml, one) -> None:
    counted = one.model["memory_errors"] == "single_double"
    number = 0
    with xml.block("retired_pages"):
        for tag, key in RETIRED:
            count = memory.kept(one).get(key, 0)
            if not counted:
                xml.group(tag, ("retired_count", "N/A"), ("retired_pagelist", "N/A"))
                continue
            with xml.block(tag, ("retired_count", count)), xml.block("retired_pagelist"):
                for _ in range(count):
                    xml.group("retired_page", ("retired_page_address", f"0x{PAGE_ADDRESS + number:016x}"))
                    number += 1
        pending = ("Yes" if memory.retirement_pending(one) else "No") if counted else "N/A"
        xml.leaves(("pending_blacklist", pending), ("pending_retirement", pending))


def _remapped(xml, one, layout) -> None:
    known = one.model["row_remapping"] and layout.branch >= one.model.get("row_remapping_since", 0)
    if not known or settings.in_mig(one):
        xml.leaf("remapped_rows", "N/A")
        return
    kept, rows = memory.kept(one), []
    for kind in ("corr", "unc"):
        rows.append((f"remapped_row_{kind}", kept.get(f"remapped_{kind}", 0)))
        if layout.late_580:
            rows.append((f"remapped_row_{kind}_inactive", 0))
    rows.append(("remapped_row_pending", "Yes" if memory.remap_pending(one) else "No"))
    rows.append(("remapped_row_failure", "Yes" if kept.get("remap_failure") else "No"))
    with xml.block("remapped_rows", *rows):
        tag = "row_remapper_histogram"
        xml.group(tag, *((f"{tag}_{name}", f"{count} bank(s)") for name, count in memory.histogram(one).items()))
