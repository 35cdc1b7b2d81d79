# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel log lines: every prefix, Xids by number, word and action, switches, and what only looks like one."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import Policy
from ansible_collections.gpufleet.server.plugins.module_utils._xid import (
    judge_kernel_log,
    parse_kernel_log,
    xid_severity,
)

BODY = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def findings(text, acknowledged=None, policy=None):
    found = judge_kernel_log(
        parse_kernel_log(text), lambda name: {"pci_bus_id": name}, Policy(policy), acknowledged or {}
    )
    return [(item["id"], item["severity"], (item["gpu"] or {}).get("pci_bus_id")) for item in found]


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[12345.678901] ",
        "[Thu Sep 19 02:29:46 2024] ",
        "[Di Mär  4 01:10:44 2025] ",
        "2024-11-15T12:02:03,470068+00:00 ",
        "kern  :warn  : 2025-01-17T15:36:28,631476+00:00 ",
        "6,3964,206764307,-;",
        "Feb 10 08:11:03 node02 kernel: [  901.113204] ",
        "1732000000.123456 node02 kernel: ",
    ],
)
def test_prefix_does_not_matter(prefix):
    assert findings(prefix + BODY + "\n") == [("xid_79", "critical", "00000000:9B:00.0")]


@pytest.mark.parametrize(
    "line",
    [
        "kernel: sunrpc: xid 0x5d1f7a3b reply not found",
        "sshd[811]: Accepted publickey for ops from 10.0.0.3 port 50022 ssh2 xid=79",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
        "NVRM: API mismatch: the client has the version 580.1",
        "nvidia-nvswitch2: open (major=510)",
        "kernel: nvidia: module license 'NVIDIA' taints kernel.",
    ],
)
def test_line_that_only_looks_like_one_is_none(line):
    assert findings(line) == []


@pytest.mark.parametrize(
    "number, text, severity",
    [
        (13, "", "app"),
        (31, "", "app"),
        (43, "", "app"),
        (45, "", "app"),
        (46, "", "critical"),
        (48, "", "critical"),
        (62, "", "critical"),
        (63, "", "warning"),
        (64, "", "critical"),
        (74, "", "critical"),
        (79, "", "critical"),
        (92, "", "warning"),
        (93, "", "warning"),
        (94, "", "warning"),
        (95, "", "critical"),
        (109, "", "critical"),
        (119, "", "critical"),
        (120, "", "critical"),
        (136, "", "critical"),
        (137, "", "info"),
        (140, "", "critical"),
        (143, "", "critical"),
        (145, "RLW_REMAP Nonfatal XC0 i0 Link 00", "warning"),
        (145, "RLW_REMAP Fatal XC0 i0 Link 00", "critical"),
        (145, "RLW_REMAP Non-fatal XC0 i0 Link 00", "warning"),
        (149, "NETIR Link Fatal", "critical"),
        (150, "", "warning"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "critical"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "critical"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", "warning"),
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "info"),
        (999, "", "warning"),
    ],
)
def test_severity_of_an_xid(number, text, severity):
    assert xid_severity(number, text) == severity


def test_follow_up_does_not_hide_the_first():
    lines = "\n".join(
        "NVRM: Xid (PCI:0000:19:00): %d, pid=1, name=p, text" % number for number in (48, 63, 94, 94, 45)
    )
    assert [name for name, _severity, _bus in findings(lines)] == ["xid_48", "xid_63", "xid_94", "xid_45"]


def test_nvlink5_lines_are_judged_each_by_its_own_word():
    lines = (
        "NVRM: Xid (PCI:0000:04:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 03 (0x6)\n"
        "NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Fatal XC0 i0 Link 03 (0x4)\n"
    )
    found = judge_kernel_log(parse_kernel_log(lines), lambda name: {"pci_bus_id": name}, Policy())
    assert [(item["severity"], item["link"], item["observed"]) for item in found] == [("critical", 3, "2 times")]


@pytest.mark.parametrize("pids, repeated", [(1, False), (4, False), (5, True)])
def test_application_fault_of_many_processes_is_the_gpus(pids, repeated):
    lines = "\n".join("NVRM: Xid (PCI:0000:19:00): 31, pid=%d, name=p, MMU Fault" % (100 + n) for n in range(pids))
    assert ("xid_repeated" in [name for name, _severity, _bus in findings(lines)]) is repeated


@pytest.mark.parametrize(
    "line, expected",
    [
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 timeout (First)", ["sxid_fatal"]),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20009, Non-fatal, Li", ["sxid_nonfatal"]),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12033, Severity 1 Engine instance 00", []),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Data {0x10000000, 0x1}", []),
        ("nvidia-nvswitch0: SXid (PCI:0004:00:00.0): 26006, SOE HALTED", ["sxid_nonfatal"]),
        ("nvidia-nvswitch0: SXid (PCI:0004:00:00.0): 22003, something", ["sxid_fatal"]),
    ],
)
def test_switch_errors_go_by_their_word_then_by_number(line, expected):
    assert [name for name, _severity, _bus in findings(line)] == expected


def test_gpu_that_never_started_is_told_once():
    lines = "NVRM: GPU 0000:0b:00.0: RmInitAdapter failed! (0x24:0x72:1568)\n" * 3
    assert findings(lines) == [("gpu_init_failed", "critical", "00000000:0B:00.0")]


def test_fallen_off_the_bus_is_told_with_or_without_its_xid():
    line = "NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.\n"
    assert [name for name, *_rest in findings(line)] == ["gpu_fell_off_bus"]
    assert [name for name, *_rest in findings(line + BODY.replace("9b", "91"))] == ["xid_79"]


def test_unsupported_gpu_is_told():
    line = (
        "NVRM: The NVIDIA GPU 0000:04:00.0 (PCI ID: 10de:1db5) installed in this system is not supported by "
        "open nvidia.ko because it does not include the required GPU System Processor (GSP)."
    )
    assert [name for name, *_rest in findings(line)] == ["gpu_unsupported"]


@pytest.mark.parametrize(
    "acknowledged, left",
    [({}, 1), ({"*": 1000000000.0}, 1), ({"*": 1732000000.2}, 0), ({"00000000:9B:00.0": 1732000000.2}, 0),
     ({"00000000:1A:00.0": 1999999999.0}, 1)],
)
def test_acknowledged_events_are_left_out(acknowledged, left):
    assert len(findings("1732000000.123456 node kernel: " + BODY, acknowledged)) == left


def test_event_without_a_time_is_never_left_out():
    assert len(findings(BODY, {"*": 9e9})) == 1
