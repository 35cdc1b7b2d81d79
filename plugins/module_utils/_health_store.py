# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine remembers between two looks, in /var/lib/gpufleet/health: earlier counters, Xids of earlier boots, and
up to when a person has acknowledged Xids. Read here; written by `gpu-health check --store` and `gpu-health ack` alone.

A file that is missing or damaged is as good as none: it only takes the comparison away.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._host import Host
from ._judge_replays import EarlierReplays
from ._nvlink import NvlinkReading, parse_nvlink
from ._xid_repeats import boots_with, remember

STORE = "/var/lib/gpufleet/health"
ACKNOWLEDGED = STORE + "/acknowledged.json"
EARLIER = STORE + "/earlier.json"
XIDS = STORE + "/xids.json"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id_of(host: Host) -> str:
    return (host.read_text(BOOT_ID, 64) or "").strip()


def uptime_s(host: Host) -> float:
    """Seconds since boot; infinity where they cannot be read. Unlike the clock it never jumps."""
    words = (host.read_text("/proc/uptime", 128) or "").split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        return float("inf")


# -- counters --------------------------------------------------------------------------------------------------------


def earlier_nvlink(host: Host) -> Optional[NvlinkReading]:
    """The NVLink counters stored earlier in this boot; a reboot sets the counters to zero."""
    text = _of_this_boot(host).get("nvlink_errors")
    return parse_nvlink(text) if isinstance(text, str) else None


def earlier_replays(host: Host) -> Optional[EarlierReplays]:
    """The PCIe replay counters stored earlier in this boot."""
    stored = _of_this_boot(host)
    counts, then = stored.get("pcie_replays"), stored.get("uptime_s")
    if not isinstance(counts, dict) or not _is_number(then):
        return None
    age = uptime_s(host) - then
    known = {str(bus_id): count for bus_id, count in counts.items() if isinstance(count, int)}
    return EarlierReplays(age, known) if 0 < age < float("inf") else None


def _of_this_boot(host: Host) -> Dict[str, Any]:
    stored, boot = _json(host, EARLIER), boot_id_of(host)
    return stored if boot and stored.get("boot_id") == boot else {}


def counters_text(
    boot_id: str, time: float, uptime: float, nvlink_errors: Optional[str], replays: Dict[str, int]
) -> str:
    """The content of EARLIER: `time` in seconds since 1970, `uptime` in seconds since boot."""
    data: Dict[str, Any] = {"boot_id": boot_id, "time": time, "uptime_s": uptime, "pcie_replays": replays}
    if nvlink_errors is not None:
        data["nvlink_errors"] = nvlink_errors
    return json.dumps(data, sort_keys=True) + "\n"


# -- Xids ------------------------------------------------------------------------------------------------------------


def acknowledged_xids(host: Host) -> Mapping[str, float]:
    """{"*" or bus id: seconds since 1970} up to which a person has seen the Xids (`gpu-health ack`)."""
    data = _json(host, ACKNOWLEDGED).get("until")
    if not isinstance(data, dict):
        return {}
    return {str(name): float(time) for name, time in data.items() if _is_number(time)}


def xids_of_earlier_boots(host: Host, acknowledged: Mapping[str, float]) -> Mapping[Tuple[str, int], int]:
    """{(bus id, Xid): earlier boots in which it came}."""
    return boots_with(_boots(host), boot_id_of(host), acknowledged)


def xids_text(host: Host, now: float, seen: Mapping[Tuple[str, int], Optional[float]]) -> str:
    """The content of XIDS after this boot has shown the Xids `seen`."""
    boots = remember(_boots(host), boot_id_of(host), now, seen)
    return json.dumps({"boots": boots}, sort_keys=True) + "\n"


def _boots(host: Host) -> List[Mapping[str, object]]:
    boots = _json(host, XIDS).get("boots")
    return [boot for boot in boots if isinstance(boot, dict)] if isinstance(boots, list) else []


def _json(host: Host, path: str) -> Dict[str, Any]:
    text = host.read_text(path)
    try:
        data = json.loads(text) if text else {}
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
