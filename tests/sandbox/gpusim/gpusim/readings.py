# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU's sensors read now: idle or under load, within what was set, with what its faults do to it."""

import time

from . import settings
from .processes import alive

BUSY_UTILISATION = {"gpu_util": 98, "memory_util": 61}
"""Percent, of a training run; the video engines stay at 0."""
BUSY_PID = 41230
BUSY_PROCESS = "/opt/conda/bin/python3"
REASON_OF = {
    "hw_thermal": ("hw_slowdown", "hw_thermal_slowdown"),
    "hw_power_brake": ("hw_slowdown", "hw_power_brake_slowdown"),
    "hw_slowdown": ("hw_slowdown",),
    "sw_thermal": ("sw_thermal_slowdown",),
}
"""Value of the fault `throttle` → clock event reasons. HW Slowdown stands beside the reason for it."""

REASON_OF_COUNTER = {
    "sw_therm_slowdown": "sw_thermal_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown",
}
"""Name of a counter of the XML → its reason, where they differ."""


class Readings:
    """The part of a GPU that changes with load. Units are in the names; None is N/A."""

    @property
    def busy(self) -> bool:
        """True while it works: the state `load` of the simulator."""
        return "load" in self.faults

    @property
    def when(self) -> str:
        """`busy` or `idle`: the key of what a model says for both."""
        return "busy" if self.busy else "idle"

    @property
    def performance_state(self) -> str:
        return self.model["performance_state"][self.when]

    @property
    def utilisation(self) -> dict:
        """Percent by engine, as far as it is not 0."""
        return BUSY_UTILISATION if self.busy else {}

    @property
    def reasons(self) -> list:
        """Names of the active clock event reasons."""
        found = ["sw_power_cap" if self.busy else "gpu_idle"]
        heat = {"slowdown": "hw_thermal", "operating": "sw_thermal"}.get(self.faults.get("hot"))
        for cause in (self.faults.get("throttle"), heat):
            found += [name for name in REASON_OF.get(cause, ()) if name not in found]
        return found

    def reason_us(self, counter: str) -> int:
        """Microseconds for which the reasons of a counter (`sw_power_cap`, `hw_therm_slowdown`, …) held since boot."""
        if REASON_OF_COUNTER.get(counter, counter) not in self.reasons:
            return 0
        return int((time.time() - self.machine.state.get("booted", 0)) * 1e6)

    # -- power, temperature, fans ------------------------------------------------------------------------------------

    @property
    def power_limit_w(self) -> float:
        """The limit in force. One that was set is lost when nothing holds the GPU, as on the real thing."""
        wanted = float(settings.driver_setting(self, "power_limit_w") or self.model["power_w"]["default"])
        return min(wanted, float(self.faults.get("power_limit", wanted)))

    @property
    def power_draw_w(self) -> float:
        """Near the limit under load; at idle a little different on each GPU."""
        if self.busy:
            return self.power_limit_w - 3.1 - 0.73 * self.index
        return self.model["power_w"]["idle"] + 0.73 * self.index

    @property
    def temperature_c(self) -> int:
        facts = self.model["temperature_c"]
        limit = {"slowdown": "slow", "operating": "max_gpu"}.get(self.faults.get("hot"))
        if not limit:
            return facts[self.when] + self.index % 4
        if facts["layout"] == "tlimit":  # one degree past the margin
            return facts["limit"] - facts[limit] + 1
        return facts[limit] + (0 if limit == "slow" else 1)

    @property
    def tlimit_margin_c(self):
        """Degrees left to the limit; None on models before Ada."""
        limit = self.model["temperature_c"]["limit"]
        return None if limit is None else limit - self.temperature_c

    @property
    def memory_temperature_c(self):
        base = self.model["temperature_c"]["memory_" + self.when]
        return None if base is None else base + self.index % 3

    @property
    def fan_percent(self):
        """None on cards that the chassis cools."""
        fans = self.model["fan_percent"]
        return None if fans is None else fans[self.when]

    # -- clocks ------------------------------------------------------------------------------------------------------

    @property
    def graphics_clock_mhz(self) -> int:
        """Idle, or under load near the maximum, half of it where something slows it down; within a lock (`-lgc`)."""
        clocks = self.model["clocks_mhz"]
        clock = clocks["graphics_idle"]
        if self.busy:
            slow = any("thermal" in name or name.startswith("hw_") for name in self.reasons)
            clock = clocks["graphics_max"] // 2 if slow else clocks["graphics_max"] - 4 * clocks["step"]
        return self._locked("gpu_clocks", clock)

    @property
    def memory_clock_mhz(self) -> int:
        """The memory's clock, within a lock (`-lmc`)."""
        clocks = self.model["clocks_mhz"]
        return self._locked("memory_clocks", clocks["memory"] if self.busy else clocks["memory_idle"])

    def _locked(self, name: str, clock: int) -> int:
        low, high = settings.driver_setting(self, name) or (clock, clock)
        return max(low, min(clock, high))

    @property
    def default_application_clocks_mhz(self):
        """`[memory, graphics]`; None on cards without application clocks."""
        clocks = self.model["clocks_mhz"]
        return None if clocks["application"] is None else [clocks["memory"], clocks["application"]]

    @property
    def application_clocks_mhz(self):
        """What `-ac` set, else the default."""
        return settings.driver_setting(self, "application_clocks") or self.default_application_clocks_mhz

    # -- PCIe --------------------------------------------------------------------------------------------------------

    @property
    def pcie_generation(self) -> int:
        """Of the link now: some models save power at idle."""
        facts = self.model["pcie"]
        now = facts["gen"] if self.busy else facts["gen_idle"]
        return min(now, max(1, facts["gen"] - 2)) if self.faults.get("pcie") in ("generation", "both") else now

    @property
    def pcie_width(self) -> int:
        """Lanes of the link now."""
        width = self.model["pcie"]["width"]
        return width // 2 if self.faults.get("pcie") in ("width", "both") else width

    @property
    def pcie_replays(self) -> int:
        """Since the driver was loaded."""
        return self.grown("replays")

    def grown(self, fault: str) -> int:
        """A counter that rises while the fault `{since, per_minute}` lasts; the boot set it to 0. Times in seconds."""
        rising = self.faults.get(fault)
        if not rising:
            return 0
        start = max(rising["since"], self.machine.state.get("booted", 0))
        return 1 + int((time.time() - start) * rising["per_minute"] / 60)

    # -- memory and processes ----------------------------------------------------------------------------------------

    @property
    def processes(self) -> list:
        """Those that use this GPU now: `{pid, name, memory_mib}`."""
        known = self.machine.state.get("processes", {}).get(self.uuid, [])
        found = [entry for entry in known if alive(entry["pid"])]
        if self.busy:
            memory = self.model["memory_mib"] * 7 // 8
            found.append({"pid": BUSY_PID + self.index, "name": BUSY_PROCESS, "memory_mib": memory})
        return found

    @property
    def memory_used_mib(self) -> int:
        """What its processes hold, and what one that is gone has left behind."""
        held = self.model["memory_mib"] // 2 if "memory_held" in self.faults else 0
        return sum(entry["memory_mib"] for entry in self.processes) + held
