# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU looks like at this moment: its model's data, the machine's state and the faults put together."""

import time

from . import profiles, state

FABRIC_SECONDS = 1.0
"""From the fabric manager's start until the GPUs have registered with the fabric."""


class Gpu:
    """One GPU. `faults` are the names of its faults, `down_links` the numbers of its dead links."""

    def __init__(self, index: int, device: dict, machine: "Machine"):
        self.index = index
        self.model = device["model"]
        self.numa = device["numa"]
        self.module_id = device["module_id"]
        self.sysfs_bus_id = device["bus"]
        self.machine = machine
        identity = machine.state.get("identities", {}).get(device["bus"], {})
        self.uuid = identity.get("uuid", "")
        self.serial = identity.get("serial", "")
        self.pdi = identity.get("pdi", "")
        faults = machine.faults.get(device["bus"], {})
        self.lost = "lost" in faults
        self.down_links = sorted(set(faults.get("nvlink_down", [])))

    @property
    def bus_id(self) -> str:
        """As nvidia-smi prints it: eight digits of domain, upper case (`00000000:4B:00.0`)."""
        return "0000" + self.sysfs_bus_id.upper()

    @property
    def short_bus_id(self) -> str:
        """As error texts print it: `0000:4B:00.0`."""
        return self.sysfs_bus_id.upper()

    @property
    def kernel_bus_id(self) -> str:
        """As the kernel log prints it, without the function: `0000:4b:00`."""
        return self.sysfs_bus_id.rsplit(".", 1)[0]

    @property
    def persistence(self) -> bool:
        """True while something holds the GPU: `-pm 1`, or a living nvidia-persistenced."""
        held = self.machine.state.get("persistence", {}).get(self.uuid)
        return bool(held) and (held["by"] is None or alive(held["by"]))

    @property
    def power_limit_w(self) -> float:
        """The limit in force. One that was set is lost when nothing holds the GPU, as on the real thing."""
        setting = self.machine.state.get("power_limit_w", {}).get(self.uuid)
        held = self.machine.state.get("persistence", {}).get(self.uuid)
        if setting and self.persistence and setting["held_by"] == held["by"]:
            return float(setting["value"])
        return float(self.model["power_w"]["default"])

    @property
    def power_draw_w(self) -> float:
        """Idle draw, a little different on each GPU."""
        return self.model["power_w"]["idle"] + 0.73 * self.index

    @property
    def temperature_c(self) -> int:
        return self.model["temperature_c"]["idle"] + self.index % 4

    @property
    def memory_temperature_c(self) -> int:
        return self.model["temperature_c"]["memory_idle"] + self.index % 3

    @property
    def fabric_state(self) -> str:
        """`N/A` before Hopper; else `In Progress` until the fabric manager has configured the switches."""
        if not self.model["fabric"] or not self.machine.nvswitches:
            return "N/A"
        started = self.machine.state.get("fabric_started")
        done = started is not None and time.time() >= started + FABRIC_SECONDS
        return "Completed" if done else "In Progress"

    @property
    def links(self) -> dict:
        """Link number → True when it is up."""
        return {link: link not in self.down_links for link in range(self.model["nvlink"]["count"])}


class Machine:
    """Everything the tools ask about: GPUs, NVSwitches, faults, versions."""

    def __init__(self):
        self.state = state.load()
        kept = state.load(state.PERSISTENT)
        profile = profiles.load(self.state.get("profile", "none"))
        self.numa_nodes = profile["numa_nodes"]
        self.nvswitches = profile["nvswitches"]
        self.faults = {}
        for source in (kept.get("faults", {}), self.state.get("faults", {})):
            for bus, faults in source.items():
                self.faults.setdefault(bus, {}).update(faults)
        self.gpus = [Gpu(index, device, self) for index, device in enumerate(profile["gpus"])]

    def has_fault(self, name: str) -> bool:
        """True when the machine as a whole has this fault."""
        return name in self.faults.get("machine", {})

    @property
    def loaded_version(self) -> str:
        """Version of the loaded kernel module, "" when none is."""
        return self.state.get("module", {}).get("version", "")

    @property
    def open_modules(self) -> bool:
        return "GPL" in self.state.get("module", {}).get("license", "")


def alive(pid: int) -> bool:
    """True when a process of that number runs (whoever owns it). A dead one that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False
