# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi nvlink -s | -e | -c`."""

from .. import driver
from . import listing

CAPABILITIES = (
    ("P2P is supported", "true"),
    ("Access to system memory supported", "true"),
    ("P2P atomics supported", "true"),
    ("System memory atomics supported", "true"),
    ("SLI is supported", "true"),
    ("Link is supported", "false"),  # so on healthy links of an NVSwitch machine: no health signal
)
COUNTERS = ("Replay Errors", "Recovery Errors", "CRC Errors")


def render(gpus: list, version: str, wanted) -> str:
    """Return the listing of every GPU; one without NVLink says so since 590 and was left out before."""
    part = {"s": _status, "e": _errors, "c": _capabilities}[wanted.mode]
    lines = []
    for one in gpus:
        links = {link: up for link, up in one.links.items() if wanted.link in (-1, link)}
        if not one.links:
            if driver.branch(version) >= 590:
                lines += [listing.title(one), "Device does not have or support Nvlink"]
            continue
        lines.append(listing.title(one))
        lines += part(one, links)
    return "".join(line + "\n" for line in lines)


def _status(one, links: dict) -> list:
    if not any(links.values()):
        return ["NVML: Unable to retrieve NVLink information as all links are inActive"]
    speed = one.model["nvlink"]["gb_per_s"] + " GB/s"
    return [f"\t Link {link}: {speed if up else '<inactive>'}" for link, up in links.items()]


def _errors(_one, links: dict) -> list:
    if not any(links.values()):
        return ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    lines = []
    for link, up in links.items():
        if up:
            lines += [f"\t Link {link}: {counter}: 0" for counter in COUNTERS] + [""]
    return lines


def _capabilities(_one, links: dict) -> list:
    return [f"\t Link {link}, {name}: {value}" for link, up in links.items() if up for name, value in CAPABILITIES]
