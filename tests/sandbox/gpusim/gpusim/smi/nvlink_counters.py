# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of `nvidia-smi nvlink -e`: three up to NVLink 4; NVLink 5 has a set of its own since branch 570.

A healthy NVLink 5 does not read all zeros: FEC bin 0 counts good codewords, and `15e-255` is how a bit error rate of
zero is written (outputs of B300 machines on 595).
"""

ZERO_RATE = "15e-255"
CLASSIC = {"replay": "Replay Errors", "recovery": "Recovery Errors", "crc": "CRC Errors"}
"""Value of the fault `nvlink_errors` → the counter that rises."""
SATURATED = 65535
"""Replay and CRC counters stick there."""
PACKET_ERRORS = (
    "Malformed packet Errors", "Buffer overrun Errors", "Rx Errors", "Rx remote Errors", "Rx General Errors",
    "Local link integrity Errors",
)  # fmt: skip
FEC_BINS = 16


def lines(one, link: int, branch: int) -> list:
    """Return the lines of one live link."""
    fault = one.faults.get("nvlink_errors", {})
    count = one.grown("nvlink_errors") if link in fault.get("links", ()) else 0
    fifth = one.model["nvlink"]["version"] == 5 and branch >= 570
    counters = _fifth(one, link, branch, fault.get("kind"), count) if fifth else _classic(fault.get("kind"), count)
    return [f"\t Link {link}: {name}: {value}" for name, value in counters] + ([] if fifth else [""])


def _classic(kind, count: int) -> list:
    counters = dict.fromkeys(CLASSIC.values(), 0)
    if count:
        counters[CLASSIC[kind]] = count if kind == "recovery" else min(count, SATURATED)
    return list(counters.items())


def _fifth(one, link: int, branch: int, kind, count: int) -> list:
    """NVLink 5 recovers a link where earlier ones replay: `replay` is a successful recovery, `recovery` a failed one,
    `crc` symbol errors at a real rate."""
    packets = 2_000_000_000 + 1_000_003 * (18 * one.index + link)
    recovered, failed = (count if kind == name else 0 for name in ("replay", "recovery"))
    symbols = count if kind == "crc" else 0
    rows = [("Tx packets", packets), ("Tx bytes", 130 * packets)]
    rows += [("Rx packets", packets + 3), ("Rx bytes", 130 * packets + 390)]
    rows += [(name, 0) for name in PACKET_ERRORS]
    rows.append(("Tx discards", 0))
    rows += [("Link recovery successful events", recovered), ("Link recovery failed events", failed)]
    rows.append(("Total link recovery events", recovered + failed))
    rows += [("Effective Errors", 0), ("Effective BER", ZERO_RATE)]
    rows += [("Symbol Errors", symbols), ("Symbol BER", "4e-12" if symbols else ZERO_RATE)]
    rows += [(f"FEC Errors - {number}", _fec(packets, number)) for number in range(FEC_BINS)]
    if branch >= 595:
        rows += [("Raw BER Lane 0", 2061), ("Raw BER Lane 1", 1001), ("Raw BER Total", 1037)]
        rows += [("Raw Errors Lane 0", 37), ("Raw Errors Lane 1", 5)]
    if branch >= 610:
        rows += [("PLR Xmit Blocks", packets * 2), ("PLR Xmit Retry Blocks", 0)]
    return rows


def _fec(packets: int, number: int) -> int:
    """Codewords by how many symbols had to be corrected: 0, and one in many milliards."""
    return packets * 12 if number == 0 else 1 if number == 1 else 0
