# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One element of a healthy machine changed: the finding it gives, how bad, and that it names that GPU and no other."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import Policy
from ansible_collections.gpufleet.server.plugins.module_utils._observation import Observation
from ansible_collections.gpufleet.server.plugins.module_utils._recording import add_recording

CASES = Path(__file__).resolve().parent / "cases"
BUS_IDS = ("00000000:1B:00.0", "00000000:43:00.0")
"""The two GPUs of the recorded H100 machine; changes go into the second."""


@lru_cache(maxsize=None)
def healthy():
    return (CASES / "dgx-h100-8" / "smi-q.xml").read_text(encoding="utf-8")


def changed(*changes):
    """The document with elements of the second GPU changed: (name, text), or (name, None) to take it out."""
    head, mark, tail = healthy().partition('<gpu id="%s">' % BUS_IDS[1])
    for name, text in changes:
        new = "" if text is None else "<%s>%s</%s>" % (name, text, name)
        tail, count = re.subn(r"<%s>[^<]*</%s>" % (name, name), new, tail, count=1)
        assert count == 1, name
    return head + mark + tail


def judged(text, **options):
    return judge(add_recording(Observation(), "xml", text), **options)


def ids(found):
    return sorted(item["id"] for item in found.findings)


BUSY = (("gpu_util", "97 %"), ("clocks_event_reason_gpu_idle", "Not Active"), ("performance_state", "P0"))

ONE_CHANGE = [
    # name, new text, verdict, findings
    ("gpu_temp", "GPU is lost", "failed", ["gpu_lost"]),
    ("gpu_temp", "GPU requires reset", "failed", ["gpu_reset_required"]),
    ("gpu_temp", "Unknown Error", "failed", ["vital_unreadable"]),
    ("performance_state", "Unknown Error", "failed", ["vital_unreadable"]),
    ("remapped_row_pending", "Unknown Error", "failed", ["vital_unreadable"]),
    ("fan_speed", "Unknown Error", "degraded", ["sensor_unreadable"]),
    ("gpu_util", "ERR!", "degraded", ["sensor_unreadable"]),
    ("addressing_mode", "Unknown Error", "healthy", ["field_unreadable"]),
    ("gpu_recovery_action", "Reset", "failed", ["recovery_action"]),
    ("gpu_recovery_action", "Reboot", "failed", ["recovery_action"]),
    ("gpu_recovery_action", "Drain and Reset", "failed", ["recovery_action"]),
    ("gpu_recovery_action", "Drain P2P", "degraded", ["recovery_drain"]),
    ("gpu_recovery_action", "Recover Imex Domain", "failed", ["recovery_action"]),
    ("dram_uncorrectable", "1", "failed", ["ecc_uncorrectable"]),
    ("sram_uncorrectable_parity", "1", "failed", ["ecc_uncorrectable"]),
    ("dram_correctable", "353", "healthy", []),
    ("dram_correctable", "20000001", "degraded", ["ecc_correctable_high"]),
    ("sram_correctable", "10001", "degraded", ["ecc_correctable_high"]),
    ("sram_threshold_exceeded", "Yes", "failed", ["sram_threshold_exceeded"]),
    ("unrepairable_memory", "Yes", "failed", ["memory_unrepairable"]),
    ("channel_repair_pending", "Yes", "degraded", ["memory_repair_pending"]),
    ("remapped_row_corr", "2", "healthy", []),
    ("remapped_row_unc", "2", "healthy", []),
    ("remapped_row_unc", "512", "degraded", ["remap_rows_many"]),
    ("remapped_row_pending", "Yes", "degraded", ["remap_pending"]),
    ("remapped_row_failure", "Yes", "failed", ["remap_failure"]),
    ("row_remapper_histogram_none", "1 bank(s)", "degraded", ["remap_bank_exhausted"]),
    ("clocks_event_reason_sw_power_cap", "Active", "healthy", []),
    ("clocks_event_reason_sw_thermal_slowdown", "Active", "degraded", ["throttle_software_thermal"]),
    ("clocks_event_reason_hw_slowdown", "Active", "failed", ["throttle_hardware"]),
    ("clocks_event_reason_hw_thermal_slowdown", "Active", "failed", ["throttle_thermal"]),
    ("clocks_event_reason_hw_power_brake_slowdown", "Active", "failed", ["throttle_power_brake"]),
    ("current_power_limit", "560.00 W", "degraded", ["gpu_unlike_peers_info", "power_limit_low"]),
    ("persistence_mode", "Disabled", "degraded", ["persistence_off"]),
    ("compute_mode", "Prohibited", "failed", ["compute_prohibited"]),
    ("compute_mode", "Exclusive_Process", "healthy", ["compute_exclusive"]),
    ("pending_ecc", "Disabled", "degraded", ["ecc_mode_pending"]),
    ("pending_mig", "Enabled", "degraded", ["mig_mode_pending"]),
    ("current_link_width", "8x", "degraded", ["pcie_width_low"]),
    ("current_link_gen", "1", "healthy", []),
    ("replay_counter", "120", "healthy", []),
    ("replay_counter", "48211", "healthy", ["pcie_replays_high"]),
    ("state", "In Progress", "failed", ["fabric_not_completed"]),
    ("state", "Not Started", "failed", ["fabric_not_completed"]),
    ("state", "Not Supported", "healthy", []),
    ("status", "Insufficient Resources", "failed", ["fabric_not_completed"]),
    ("bandwidth", "Degraded", "degraded", ["fabric_degraded"]),
    ("route_unhealthy", "True", "failed", ["fabric_unhealthy"]),
    ("summary", "Unhealthy", "failed", ["fabric_unhealthy"]),
    ("summary", "Limited Capacity", "degraded", ["fabric_degraded"]),
    ("incorrect_configuration", "No Partition", "failed", ["fabric_unhealthy"]),
    ("serial", "N/A", "healthy", []),
    ("persistence_mode", "Perhaps", "unknown", ["fields_missing"]),
    ("gpu_temp", "warm", "unknown", ["fields_missing"]),
    ("gpu_temp", None, "unknown", ["fields_missing"]),
]


@pytest.mark.parametrize("name, text, verdict, expected", ONE_CHANGE)
def test_one_changed_element(name, text, verdict, expected):
    found = judged(changed((name, text)))
    wanted = sorted(item[:-5] if item.endswith("_info") else item for item in expected)
    assert (found.verdict, ids(found)) == (verdict, wanted)
    assert {item["gpu"]["pci_bus_id"] for item in found.findings} <= {BUS_IDS[1]}


SEVERAL = [
    # an uncorrectable error makes a pending row urgent
    ([("remapped_row_pending", "Yes"), ("remapped_row_unc", "1")], "failed", ["remap_pending_uncorrectable"]),
    # the reason stands beside HW Slowdown: one finding
    ([("clocks_event_reason_hw_slowdown", "Active"), ("clocks_event_reason_hw_thermal_slowdown", "Active")], "failed",
     ["throttle_thermal"]),
    # at idle a slow link saves power, under load it is a fault
    ([("current_link_gen", "1"), *BUSY], "degraded", ["pcie_generation_low"]),
    ([("current_link_gen", "3"), ("current_link_width", "8x"), *BUSY], "failed", ["pcie_degraded"]),
    ([("current_link_gen", "1"), ("gpu_util", "5 %"), ("performance_state", "P8")], "healthy", []),
    # memory that nobody owns
    ([("used", "40000 MiB")], "degraded", ["memory_held"]),
    ([("used", "40000 MiB"), ("gpu_util", "90 %")], "healthy", []),
    ([("used", "700 MiB")], "healthy", []),
]


@pytest.mark.parametrize("changes, verdict, expected", SEVERAL)
def test_changes_that_belong_together(changes, verdict, expected):
    found = judged(changed(*changes))
    assert (found.verdict, ids(found)) == (verdict, expected)


@pytest.mark.parametrize(
    "margin, verdict, expected",
    [
        ("59 C", "healthy", []),
        ("0 C", "healthy", []),
        ("-2 C", "healthy", []),
        ("-3 C", "failed", ["temperature_critical"]),
    ],
)
def test_temperature_by_the_cards_own_margin(margin, verdict, expected):
    found = judged(changed(("gpu_temp_tlimit", margin), ("gpu_temp_slow_tlimit_threshold", "-2 C")))
    assert (found.verdict, ids(found)) == (verdict, expected)


POLICIES = [
    ("current_power_limit", "560.00 W", {"power_limit_w": 560}, ["power_limit_differs"]),
    ("current_link_width", "8x", {"expected_pcie_width": 8}, []),
    ("compute_mode", "Prohibited", {"compute_mode": "Prohibited"}, []),
    ("persistence_mode", "Disabled", {"persistence_required": False}, ["persistence_off_desktop"]),
    ("row_remapper_histogram_none", "1 bank(s)", {}, ["remap_bank_exhausted"]),
    ("remapped_row_unc", "20", {"remapped_rows_max": 10}, ["remap_rows_many"]),
    ("current_mig", "Disabled", {"mig_mode": "enabled"}, ["mig_mode_differs", "mig_mode_differs"]),
]


@pytest.mark.parametrize("name, text, thresholds, expected", POLICIES)
def test_declared_values_are_what_is_expected(name, text, thresholds, expected):
    found = judged(changed((name, text)), policy=Policy({"models": {"H100": thresholds}}))
    assert [item for item in ids(found) if item != "gpu_unlike_peers"] == expected


def test_expected_count_and_model_are_compared():
    assert ids(judged(healthy(), expected_gpus=8)) == ["gpu_count_low"]
    assert ids(judged(healthy(), expected_gpus=1)) == ["gpu_count_high"]
    assert ids(judged(healthy(), expected_gpus=2, expected_model="H100")) == []
    assert ids(judged(healthy(), expected_model="A100")) == ["model_unexpected", "model_unexpected"]


def test_unknown_model_is_judged_by_the_card_and_said_to_be_unknown():
    found = judged(healthy().replace("NVIDIA H100 80GB HBM3", "NVIDIA X9000"))
    assert (found.verdict, set(ids(found))) == ("healthy", {"model_unknown"})


def test_warning_before_the_document_names_its_gpu():
    found = judged("WARNING: infoROM is corrupted at gpu 0000:43:00.0\n" + healthy())
    assert (found.verdict, ids(found)) == ("failed", ["inforom_corrupted"])
    assert found.findings[0]["gpu"]["index"] == 1


def test_raw_process_names_do_not_hide_the_gpus():
    name = "<process_name>a & b <c> \x1b[31m \ufffd</process_name>"
    process = "<process_info><pid>7</pid><type>C</type>%s</process_info>" % name
    text = re.sub(r"<processes>\s*</processes>", lambda _match: "<processes>%s</processes>" % process, healthy())
    assert text != healthy()
    found = judged(text)
    assert (found.verdict, [gpu["processes"] for gpu in found.gpus]) == ("healthy", [1, 1])


def test_row_of_a_gpu_has_units_and_no_words():
    row = judged(healthy()).gpus[0]
    assert row["power_limit_w"] == 700 and row["memory_total_mib"] == 81559 and row["ecc_mode"] is True
    assert row["model"] == "H100 SXM" and row["architecture"] == "hopper" and row["index"] == 0
