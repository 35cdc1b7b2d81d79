# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/sys/devices/system/cpu/cpu*/cpufreq: governors that can be written, new at each boot.

Plain files: unlike the kernel they take any word, and one setting does not change another. A writer that does not cut
the file first (cpupower) leaves the end of a longer word behind a shorter one.
"""

import json
import os

from . import profiles


def build(folder: str, driver: str, cpus: list) -> None:
    """Write the policies of these CPUs (numbers), as the kernel's `driver` has them, into `folder`.

    `driver` is one of data/cpufreq.json (what Linux's documentation of CPU performance scaling says of each).
    """
    with open(os.path.join(profiles.DATA, "cpufreq.json"), encoding="utf-8") as stream:
        facts = json.load(stream)[driver]
    for cpu in cpus:
        policy = os.path.join(folder, "cpufreq", f"policy{cpu}")
        os.makedirs(policy, exist_ok=True)
        for name, value in _files(driver, facts, cpu).items():
            with open(os.path.join(policy, name), "w", encoding="ascii") as stream:
                stream.write(f"{value}\n")
        place = os.path.join(folder, f"cpu{cpu}")
        os.makedirs(place, exist_ok=True)
        link = os.path.join(place, "cpufreq")
        if not os.path.islink(link):
            os.symlink(f"../cpufreq/policy{cpu}", link)


def _files(driver: str, facts: dict, cpu: int) -> dict:
    """Frequencies in kHz."""
    low, high = facts["min_khz"], facts["max_khz"]
    files = {
        "affected_cpus": cpu,
        "related_cpus": cpu,
        "cpuinfo_min_freq": low,
        "cpuinfo_max_freq": high,
        "cpuinfo_transition_latency": facts["latency_ns"],
        "scaling_min_freq": low,
        "scaling_max_freq": high,
        "scaling_cur_freq": low,
        "scaling_driver": driver,
        "scaling_available_governors": " ".join(facts["governors"]),
        "scaling_governor": facts["governor"],
        "scaling_setspeed": "<unsupported>",
    }
    if facts["preferences"]:
        files["energy_performance_available_preferences"] = " ".join(facts["preferences"])
        files["energy_performance_preference"] = facts["preference"]
    return files


def cpus_of(folder: str) -> list:
    """Return the numbers of the CPUs below a /sys/devices/system/cpu, sorted."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(int(name[3:]) for name in names if name[:3] == "cpu" and name[3:].isdigit())
