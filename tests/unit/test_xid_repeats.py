# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Xid that comes back: bursts within a day, earlier boots, what a person has acknowledged."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import Policy
from ansible_collections.gpufleet.server.plugins.module_utils._xid import (
    critical_xids,
    judge_kernel_log,
    parse_kernel_log,
)
from ansible_collections.gpufleet.server.plugins.module_utils._xid_repeats import (
    KEPT_BOOTS,
    boots_with,
    count_bursts,
    remember,
)

BUS = "00000000:43:00.0"
HOUR = 3600


@pytest.mark.parametrize(
    "number, times, bursts",
    [
        pytest.param(48, [0], 1, id="one line"),
        pytest.param(48, [0, 1, 100, 250], 1, id="lines within three minutes of each other are one burst"),
        pytest.param(48, [0, 181], 2, id="more than three minutes apart"),
        pytest.param(48, [181, 0], 2, id="in any order"),
        pytest.param(79, [0, HOUR, 3 * HOUR], 1, id="a number that stays until a reset, within three hours"),
        pytest.param(79, [0, 3 * HOUR + 1], 2, id="and later"),
        pytest.param(48, [0, 25 * HOUR, 26 * HOUR], 2, id="a day counts, not the whole log"),
        pytest.param(48, [0, None, 400], 0, id="a line without a time cannot be counted"),
        pytest.param(48, [], 0, id="none"),
    ],
)
def test_bursts(number, times, bursts):
    assert count_bursts(number, [None if time is None else 1700000000.0 + time for time in times]) == bursts


def log(number, times, text="pid=1, name=p"):
    return parse_kernel_log(
        "".join("%d.0 n kernel: NVRM: Xid (PCI:0000:43:00): %d, %s\n" % (1.7e9 + time, number, text) for time in times)
    )


def judged(number, times, text="pid=1, name=p", policy=None, boots=0):
    earlier = {(BUS, number): boots}
    found = judge_kernel_log(log(number, times, text), lambda name: {"pci_bus_id": name}, Policy(policy), {}, earlier)
    return [item["id"] for item in found]


FIVE = [0, 1000, 2000, 3000, 4000]


@pytest.mark.parametrize(
    "number, text, times, expected",
    [
        pytest.param(48, "DBE", FIVE, ["xid_48", "xid_recurring"], id="a fatal one, five bursts"),
        pytest.param(48, "DBE", FIVE[:4], ["xid_48"], id="four"),
        pytest.param(63, "row remapped", FIVE, ["xid_63", "xid_recurring"], id="one that is only a warning"),
        pytest.param(94, "Contained", FIVE, ["xid_94"], id="a contained error never"),
        pytest.param(43, "Ch 1", FIVE, ["xid_43"], id="an application's has a measure of its own"),
        pytest.param(154, "changed from 0x1 to 0x0 (None)", FIVE, ["xid_154"], id="information only"),
    ],
)
def test_bursts_escalate(number, text, times, expected):
    assert judged(number, times, text) == expected


@pytest.mark.parametrize(
    "number, boots, policy, expected",
    [
        (79, 1, None, ["xid_79"]),
        (79, 2, None, ["xid_79", "xid_recurring"]),
        (79, 2, {"default": {"xid_boots_max": 3}}, ["xid_79"]),
        (63, 9, None, ["xid_63"]),
    ],
)
def test_earlier_boots_escalate_what_a_reboot_should_have_cured(number, boots, policy, expected):
    assert judged(number, [0], policy=policy, boots=boots) == expected


def test_limit_of_bursts_can_be_declared():
    assert judged(48, FIVE, policy={"default": {"xid_bursts_max": 6}}) == ["xid_48"]
    assert judged(48, FIVE[:2], policy={"default": {"xid_bursts_max": 2}}) == ["xid_48", "xid_recurring"]


def test_history_holds_critical_xids_with_the_time_of_their_last_line():
    events = parse_kernel_log(
        "1700000000.0 n kernel: NVRM: Xid (PCI:0000:43:00): 79, gone\n"
        "1700000009.0 n kernel: NVRM: Xid (PCI:0000:43:00): 79, gone\n"
        "1700000001.0 n kernel: NVRM: Xid (PCI:0000:43:00): 31, pid=1\n"
    )
    assert critical_xids(events) == {(BUS, 79): 1700000009.0}


def test_history_counts_other_boots_and_forgets_the_acknowledged():
    history = remember([], "a", 100.0, {(BUS, 79): 90.0})
    history = remember(history, "b", 200.0, {(BUS, 79): 190.0, ("x", 48): None})
    assert boots_with(history, "c", {}) == {(BUS, 79): 2, ("x", 48): 1}
    assert boots_with(history, "b", {}) == {(BUS, 79): 1}
    assert boots_with(history, "c", {"*": 95.0}) == {(BUS, 79): 1, ("x", 48): 1}
    assert boots_with(history, "c", {BUS: 190.0}) == {("x", 48): 1}


def test_a_line_without_a_time_keeps_that_of_its_first_sight():
    history = remember(remember([], "a", 100.0, {(BUS, 79): None}), "a", 500.0, {(BUS, 79): None})
    assert history == [{"boot_id": "a", "xids": [[BUS, 79, 100.0]]}]


def test_history_is_bounded_and_holds_no_boot_without_an_xid():
    history = []
    for number in range(KEPT_BOOTS + 5):
        history = remember(history, "boot-%d" % number, 1.0, {(BUS, 79): 1.0} if number != 12 else {})
    assert [boot["boot_id"] for boot in history] == ["boot-%d" % number for number in range(4, 15) if number != 12]
