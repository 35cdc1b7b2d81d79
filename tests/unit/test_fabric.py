# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fabric Manager by its log and its unit; needed by what is on the bus."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._fabric import (
    fabric_needed,
    judge_fabric_log,
    judge_unit,
    last_error,
    parse_fabric_log,
    parse_status,
    parse_unit,
    version_of,
)
from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import Policy
from ansible_collections.gpufleet.server.plugins.module_utils._pci import classify_pci, pci_device

STAMP = "[Jul 23 2024 07:53:55] [ERROR] [tid 841] "


@pytest.mark.parametrize(
    "line, expected",
    [
        (STAMP + "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 "
         "port 33", [("sxid_fatal", 33)]),
        (STAMP + "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical "
         "id 3 port 61", [("sxid_nonfatal", 61)]),
        ("detected number of NVSwitches don't match with any supported system topology", [
            ("fabric_manager_topology", None)]),
        ("fabric manager NVIDIA GPU driver interface version 580.1.2 don't match with driver version 580.3.4. Please "
         "update", [("fabric_manager_version", None)]),
        (STAMP + "failed to find the GPU handle 5410063385821516767", [("fabric_manager_error", None)]),
        ("[Feb 27 2025 14:10:02] [INFO] [tid 1808] multicast group 1 is allocated.", []),
        ("Message payload details:Team release request: Team Handle:99c9f23d49236386 Flags:0", []),
    ],
)
def test_log_line(line, expected):
    found = judge_fabric_log(parse_fabric_log(line), needed=True)
    assert [(item["id"], item["link"]) for item in found] == expected


@pytest.mark.parametrize(
    "needed, expected",
    [(True, "fabric_manager_topology"), (False, "fabric_manager_not_needed"), (None, "fabric_manager_not_needed")],
)
def test_nothing_to_do_is_a_fault_only_where_switches_are(needed, expected):
    found = judge_fabric_log(parse_fabric_log("x: WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"), needed)
    assert [item["id"] for item in found] == [expected]


def unit(active="active", load="loaded", restarts=0):
    return "LoadState=%s\nActiveState=%s\nSubState=x\nNRestarts=%d\nResult=success\n" % (load, active, restarts)


@pytest.mark.parametrize(
    "text, needed, version, expected",
    [
        (unit(), True, "580.1.2", []),
        (unit("failed"), True, None, ["fabric_manager_not_running"]),
        (unit("inactive"), True, None, ["fabric_manager_not_running"]),
        (unit("activating"), True, None, ["fabric_manager_not_running"]),
        (unit(load="not-found", active="inactive"), True, None, ["fabric_manager_missing"]),
        (unit(load="masked", active="inactive"), True, None, ["fabric_manager_missing"]),
        (unit(restarts=3), True, None, ["fabric_manager_flapping"]),
        (unit(restarts=2), True, None, []),
        (unit(), True, "580.1.1", ["fabric_manager_version"]),
        ("", True, None, ["fabric_manager_unreadable"]),
        (unit("failed"), False, None, ["fabric_manager_not_needed"]),
        (unit("inactive", "not-found"), False, None, []),
    ],
)
def test_unit(text, needed, version, expected):
    found = judge_unit(parse_unit(text, version), needed, "580.1.2", Policy())
    assert [item["id"] for item in found] == expected


def test_status_that_a_person_pastes():
    text = "   Loaded: loaded (/lib/systemd/system/x; enabled)\n   Active: failed (Result: exit-code) since Mon\n"
    assert parse_status(text).active == "failed" and parse_status("nothing") is None


@pytest.mark.parametrize(
    "text, version",
    [("Fabric Manager version is : 580.178.04\n", "580.178.04"), ("580.178.04-1ubuntu1", "580.178.04"), ("", None)],
)
def test_version(text, version):
    assert version_of(text) == version


def bus(device, class_code, count):
    return [pci_device("0000:%02x:00.0" % n, {"vendor": "0x10de", "device": device, "class": class_code})
            for n in range(count)]


@pytest.mark.parametrize(
    "devices, management, needed",
    [
        (bus("0x2330", "0x030200", 8), (), False),
        (bus("0x2330", "0x030200", 4) + bus("0x22a3", "0x068000", 8)[4:], (), True),
        (bus("0x2901", "0x030200", 8), ("mlx5_4",), True),
        (bus("0x2901", "0x030200", 8), (), True),
        (bus("0x2901", "0x030200", 1), (), False),
        (bus("0x2941", "0x030200", 4), (), False),
        ([], (), None),
    ],
)
def test_needed_where_switches_are(devices, management, needed):
    assert fabric_needed(classify_pci(devices, management)) is needed


def test_last_error_is_the_one_that_tells():
    log = "Connected to 1 node.\n%sfailed to find the GPU handle 1\nStopping\n" % STAMP
    assert last_error(log).endswith("failed to find the GPU handle 1")
    assert last_error("Connected to 1 node.\n") == ""
