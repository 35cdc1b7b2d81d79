# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links and counters: old and new sets, spellings of "down", bridges, sleep, saturation, growth."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._gpu_models import model_of_name
from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import Policy
from ansible_collections.gpufleet.server.plugins.module_utils._judge_nvlink import (
    LinkContext,
    judge_nvlink_errors,
    judge_nvlink_status,
)
from ansible_collections.gpufleet.server.plugins.module_utils._nvlink import parse_count, parse_nvlink

POLICY = Policy()


def header(index, name):
    return "GPU %d: %s (UUID: GPU-%d)\n" % (index, name, index)


def links(rates):
    return "".join("\t Link %d: %s\n" % (number, rate) for number, rate in rates)


def up(count, rate="26.562 GB/s"):
    return [(number, rate) for number in range(count)]


def judged(text, context=None):
    found = judge_nvlink_status(parse_nvlink(text), context or LinkContext(), POLICY)
    return [(item["id"], (item["gpu"] or {}).get("index"), item["link"]) for item in found]


H100, A100, H100_PCIE = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 PCIe"


@pytest.mark.parametrize(
    "text, expected",
    [
        (header(0, H100) + links(up(18)), []),
        (header(0, H100) + links(up(17)), [("nvlink_missing", 0, 17)]),
        (header(0, H100) + links(up(17) + [(17, "<inactive>")]), [("nvlink_inactive", 0, 17)]),
        (header(0, H100) + links(up(18, "<inactive>")), [("nvlink_all_down", 0, None)]),
        (header(0, H100) + links(up(18, "25.0 GB/s")), [("nvlink_slow", 0, None)]),
        (header(0, H100) + links(up(17) + [(17, "13.0 GB/s")]), [("nvlink_slow", 0, 17)]),
        (header(0, A100) + links(up(12, "25.781 GB/s")), []),
        (header(0, A100) + links(up(12, "25 GB/s")), []),
        (header(0, "NVIDIA B200") + links(up(18, "50.000 GB/s")), []),
        (header(0, "NVIDIA B200") + links(up(18, "Sleep")), []),
        (header(0, "NVIDIA H800") + links(up(8)), []),
        (header(0, H100) + "Nvlink queries are not supported for Devices in MIG mode\n", [("nvlink_mig", 0, None)]),
        (header(0, "NVIDIA L40S") + "Device does not have or support Nvlink\n", []),
        (header(0, H100) + "Device does not have or support Nvlink\n", [("nvlink_all_down", 0, None)]),
    ],
)
def test_links_of_one_gpu(text, expected):
    assert judged(text) == expected


@pytest.mark.parametrize(
    "note",
    [
        "NVML: Unable to retrieve NVLink information as all links are inActive",
        "NVML: Unable to retrieve NVLink information as all links are inactive",
        "Unable to retrieve Nvlink information as all links are inActive",
    ],
)
@pytest.mark.parametrize("name, expected", [(H100, [("nvlink_all_down", 0, None)]), ("NVIDIA RTX A6000", [])])
def test_all_links_inactive_is_a_fault_of_a_board_and_normal_without_a_bridge(note, name, expected):
    assert judged(header(0, name) + note + "\n") == expected


BRIDGED = [(n, "<inactive>" if n in (4, 5, 10, 11, 16, 17) else "26.562 GB/s") for n in range(18)]
HOLE = [(n, "<inactive>" if n in (3, 4, 5, 10, 11, 16, 17) else "26.562 GB/s") for n in range(18)]


def test_unused_slots_of_a_bridge_card_are_healthy():
    assert judged("".join(header(index, H100_PCIE) + links(BRIDGED) for index in (0, 1))) == []


def test_one_hole_in_a_bridge_is_told():
    text = header(0, H100_PCIE) + links(BRIDGED) + header(1, H100_PCIE) + links(HOLE)
    assert judged(text) == [("nvlink_bridge_hole", 1, 3)]


def test_gpu_that_is_not_listed_is_down_where_the_machine_is_known():
    refs = {1: {"index": 1, "uuid": "u", "pci_bus_id": "b"}}
    context = LinkContext(names={0: H100, 1: H100}, refs=refs, complete=True)
    assert judged(header(0, H100) + links(up(18)), context) == [("nvlink_all_down", 1, None)]


def test_lost_gpu_and_one_in_mig_mode_are_not_asked_for_links():
    context = LinkContext(names={0: H100, 1: H100, 2: H100}, lost=frozenset([1]), mig=frozenset([2]), complete=True)
    assert judged(header(0, H100) + links(up(18)), context) == []


@pytest.mark.parametrize(
    "model, expected",
    [("NVIDIA A10", []), (H100, [("nvlink_all_down", None, None)]), (None, [("nvlink_unreadable", None, None)])],
)
def test_empty_output_depends_on_the_model(model, expected):
    assert judged("", LinkContext(hint=model_of_name(model))) == expected


def test_line_that_is_not_understood_is_not_passed_over():
    assert judged(header(0, "NVIDIA X9000") + "\t Link 0: 26.562 GB/s\n\t Link 1: ???\n") == [
        ("nvlink_unreadable", None, None)
    ]


@pytest.mark.parametrize(
    "text, value",
    [("0", 0), ("65535", 65535), ("15e-255", 0.0), ("15e-238", 0.0), ("2e-4", 2e-4), ("15E-10", 1.5e-9), ("x", None)],
)
def test_counter_and_bit_error_rate(text, value):
    assert parse_count(text) == (pytest.approx(value) if value else value)


def counters(index, name, rows):
    return header(index, name) + "".join(
        "\t Link %d: %s: %s\n" % (link, label, value) for link, values in rows for label, value in values.items()
    )


def classic(replay=0, recovery=0, crc=0):
    return {"Replay Errors": replay, "Recovery Errors": recovery, "CRC Errors": crc}


def fifth(**changed):
    values = {
        "Tx packets": 5, "Malformed packet Errors": 0, "Rx Errors": 0, "Link recovery successful events": 0,
        "Link recovery failed events": 0, "Total link recovery events": 0, "Effective Errors": 0,
        "Effective BER": "15e-255", "Symbol Errors": 0, "Symbol BER": "15e-255", "FEC Errors - 0": 36140749276,
        "FEC Errors - 1": 3, "Raw BER Lane 0": 2061, "Raw Errors Lane 0": 82,
    }
    values.update({name.replace("_", " "): value for name, value in changed.items()})
    return values


def counted(text, earlier=None):
    before = parse_nvlink(earlier) if earlier else None
    context = LinkContext(names={0: "NVIDIA X9000"}, complete=True)
    found = judge_nvlink_errors(parse_nvlink(text), context, POLICY, before)
    return [(item["id"], item["link"]) for item in found]


@pytest.mark.parametrize(
    "values, expected",
    [
        (classic(), []),
        (classic(replay=1), [("nvlink_replays", 4)]),
        (classic(recovery=1), [("nvlink_errors", 4)]),
        (classic(crc=5), [("nvlink_crc_errors", 4)]),
        (classic(crc=1000), [("nvlink_errors", 4)]),
        (classic(crc=65535), [("nvlink_counter_saturated", 4)]),
        (classic(replay=65535), [("nvlink_counter_saturated", 4)]),
        (fifth(), []),
        (fifth(Link_recovery_failed_events=1), [("nvlink_errors", 4)]),
        (fifth(Link_recovery_successful_events=2), [("nvlink_recoveries", 4)]),
        (fifth(Effective_Errors=9, Effective_BER="15e-10"), [("nvlink_errors", 4)]),
        (fifth(Effective_BER="15e-14"), []),
        (fifth(Symbol_Errors=2, Symbol_BER="15e-12"), [("nvlink_errors", 4)]),
        (fifth(Symbol_Errors=2), []),
        (fifth(Rx_Errors=50), [("nvlink_errors", 4)]),
        (dict(fifth(), **{"FEC Errors - 1": 36140}), [("nvlink_fec_marginal", 4)]),
        ({"Bogus counter": 3}, [("nvlink_unreadable", 4)]),
    ],
)
def test_counters_of_a_link(values, expected):
    assert counted(counters(0, "NVIDIA X9000", [(4, values)])) == expected


def test_only_growth_counts_against_an_earlier_reading():
    earlier = counters(0, "NVIDIA X9000", [(4, classic(replay=7, recovery=2))])
    assert counted(earlier, earlier) == []
    later = counters(0, "NVIDIA X9000", [(4, classic(replay=8, recovery=2))])
    assert counted(later, earlier) == [("nvlink_replays", 4)]


def test_saturated_counter_cannot_grow_and_is_told_all_the_same():
    stuck = counters(0, "NVIDIA X9000", [(4, classic(crc=65535))])
    assert counted(stuck, stuck) == [("nvlink_counter_saturated", 4)]


def test_counter_that_was_reset_is_all_new():
    earlier = counters(0, "NVIDIA X9000", [(4, classic(replay=90))])
    assert counted(counters(0, "NVIDIA X9000", [(4, classic(replay=2))]), earlier) == [("nvlink_replays", 4)]
