# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi nvlink -s | -e | -c`. The counters of `-e` are in nvlink_counters.py."""

from .. import driver
from . import listing, nvlink_counters

CAPABILITIES = (
    ("P2P is supported", "true"),
    ("Access to system memory supported", "true"),
    ("P2P atomics supported", "true"),
    ("System memory atomics supported", "true"),
    ("SLI is supported", "true"),
    ("Link is supported", "false"),  # so on healthy links of an NVSwitch machine: no health signal
)
WITHOUT = "Device does not have or support Nvlink"


def render(gpus: list, version: str, wanted) -> str:
    """Return the listing of every GPU; one without NVLink says so since 590 and was left out before."""
    part = {"s": _status, "e": _errors, "c": _capabilities}[wanted.mode]
    branch = driver.branch(version)
    lines = []
    for one in gpus:
        links = {link: up for link, up in one.links.items() if wanted.link in (-1, link)}
        if "reset_required" in one.faults:
            continue  # left out, heading and all
        if not one.links:
            lines += [listing.title(one), WITHOUT] if branch >= 590 else []
            continue
        lines.append(listing.title(one))
        lines += part(one, links, branch)
    return "".join(line + "\n" for line in lines)


def _status(one, links: dict, _branch: int) -> list:
    if not any(links.values()):
        return ["NVML: Unable to retrieve NVLink information as all links are inActive"]
    speed = one.model["nvlink"]["gb_per_s"] + " GB/s"
    return [f"\t Link {link}: {speed if up else '<inactive>'}" for link, up in links.items()]


def _errors(one, links: dict, branch: int) -> list:
    if not any(links.values()):
        return ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    lines = []
    for link in (link for link, up in links.items() if up):
        lines += nvlink_counters.lines(one, link, branch)
    return lines


def _capabilities(_one, links: dict, _branch: int) -> list:
    return [f"\t Link {link}, {name}: {value}" for link, up in links.items() if up for name, value in CAPABILITIES]
