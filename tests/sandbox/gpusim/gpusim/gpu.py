# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU looks like at this moment: its model's data, the machine's state and the faults put together."""

import time

from . import driver, links, profiles, state
from .processes import alive
from .readings import Readings

FABRIC_SECONDS = 1.0
"""From the fabric manager's start until the GPUs have registered with the fabric."""


RECOVERY_ACTIONS = {
    "none": "None", "reset": "Reset", "reboot": "Reboot", "drain_p2p": "Drain P2P",
    "drain_and_reset": "Drain and Reset",
}  # fmt: skip
"""Value of the fault `recovery` → `GPU Recovery Action` (nvidia-smi's manual)."""


class Gpu(Readings):
    """One GPU. `faults` are its faults by name, with their values; `position` is its place in the profile."""

    def __init__(self, index: int, position: int, device: dict, machine: "Machine"):
        self.index = index
        self.position = position
        self.model = device["model"]
        self.numa = device["numa"]
        self.module_id = device["module_id"]
        self.sysfs_bus_id = device["bus"]
        self.machine = machine
        identity = machine.state.get("identities", {}).get(device["bus"], {})
        self.uuid = identity.get("uuid", "")
        self.serial = identity.get("serial", "")
        self.pdi = identity.get("pdi", "")
        self.faults = machine.faults.get(device["bus"], {})
        self.lost = "lost" in self.faults
        self.down_links = links.down(machine, position, machine.faulty_links)

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
    def fabric_state(self) -> str:
        """`N/A` before Hopper; else `In Progress` until the fabric manager has configured the switches."""
        if not self.model["fabric"] or not self.machine.switched:
            return "N/A"
        started = self.machine.state.get("fabric_started")
        done = started is not None and time.time() >= started + FABRIC_SECONDS
        return "Completed" if done else "In Progress"

    @property
    def gsp_firmware(self) -> str:
        """Version of the GSP's firmware: the driver's; GeForce cards of the proprietary module and Volta have none."""
        without = self.model["brand"] == "GeForce" and not self.machine.open_modules
        return self.machine.loaded_version if self.model["gsp"] and not without else "N/A"

    @property
    def recovery_action(self) -> str:
        """What the driver asks for, since branch 570."""
        return RECOVERY_ACTIONS[self.faults.get("recovery", "none")]

    @property
    def mig_instances(self) -> list:
        """GPU instances, as smi/mig.py keeps them; they make the GPU busy."""
        return self.machine.state.get("mig_instances", {}).get(self.uuid, [])

    @property
    def links(self) -> dict:
        """Link number → True when it is up."""
        return {link: link not in self.down_links for link in range(self.model["nvlink"]["count"])}

    def cannot_reach(self, other: "Gpu") -> bool:
        """True when the pair is broken for peer-to-peer transfers (fault `p2p` of either)."""
        return other.sysfs_bus_id == self.faults.get("p2p") or self.sysfs_bus_id == other.faults.get("p2p")


class Machine:
    """Everything the tools ask about: GPUs, NVSwitches, faults, versions."""

    def __init__(self):
        self.state = state.load()
        self.kept = kept = state.load(state.PERSISTENT)
        profile = profiles.load(self.state.get("profile", "none"))
        self.numa_nodes = profile["numa_nodes"]
        self.nvswitches = profile["nvswitches"]
        self.nvlink_management = profile["nvlink_management"]
        self.pcie_level = profile["pcie_level"]
        self.faults = {}
        for source in (kept.get("faults", {}), self.state.get("faults", {})):
            for bus, faults in source.items():
                self.faults.setdefault(bus, {}).update(faults)
        self.mesh = links.mesh_ends(profile["mesh"])
        devices = list(enumerate(profile["gpus"]))
        self.faulty_links = {place: self.faults.get(one["bus"], {}).get("nvlink_down", ()) for place, one in devices}
        shown = [(place, one) for place, one in devices if self._shows(one)]
        self.gpus = [Gpu(index, place, one, self) for index, (place, one) in enumerate(shown)]

    def _shows(self, device: dict) -> bool:
        """True for a GPU that is on the bus, and that the loaded module drives."""
        module = self.state.get("module")
        on_bus = "gpu_missing" not in self.faults.get(device["bus"], {})
        return on_bus and not (module and driver.refusal(device, module))

    @property
    def switched(self) -> bool:
        """True where NVSwitches join the GPUs; those of NVLink 5 are seen by their management functions alone."""
        return bool(self.nvswitches or self.nvlink_management)

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
