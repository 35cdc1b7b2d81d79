# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine as the product's live observation sees it: its files, and answers to the commands that it runs.

Nothing is started and nobody waits: systemd, the journal and pgrep answer from what the simulator knows.
"""

from __future__ import annotations

import json
import subprocess

from simulated_machine import Machine

from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._host import CommandResult, Host
from ansible_collections.gpufleet.server.plugins.module_utils._observe import Questions, observe

NVLSM = "opt/nvidia/nvlsm/sbin/nvlsm"
KERNEL_EPOCH = 1790000000
"""Seconds since 1970 of the first line of the kernel log, one second a line."""


class SimulatedHost(Host):
    """`Host` over a machine in a folder."""

    def __init__(self, machine: Machine):
        super().__init__(str(machine.root))
        self.machine = machine

    def run(self, argv, timeout_s=60.0, max_bytes=None, env=None, stdin=None) -> CommandResult:
        """Answer as the machine would; what it does not have is `command not found`."""
        argv = list(argv)
        answer = getattr(self, "_" + argv[0].rsplit("/", 1)[-1].replace("-", "_"), None)
        if answer is None:
            return CommandResult(tuple(argv), None, "", "", 0.0, missing=True)
        code, text = answer(*argv[1:])
        return CommandResult(tuple(argv), code, text, "", timeout_s if code is None else 0.0, timed_out=code is None)

    def _nvidia_smi(self, *arguments):
        if self._has("hang"):
            return None, ""
        answer = self.machine.smi(*arguments)
        return answer.rc, answer.text

    def _journalctl(self, *arguments):
        if "-u" in arguments:
            return 0, self._fabric_manager()[1]
        lines = self.machine.state()["kernel_log"]
        return 0, "".join(f"{KERNEL_EPOCH + n}.000000 host kernel: {line}\n" for n, line in enumerate(lines))

    def _systemctl(self, *_arguments):
        alive = self._fabric_manager()[0]
        state = ("active", "running", "success") if alive else ("failed", "failed", "exit-code")
        return 0, "LoadState=loaded\nActiveState={}\nSubState={}\nResult={}\nNRestarts=0\n".format(*state)

    def _nv_fabricmanager(self, *arguments):
        answer = self.machine.call("nv-fabricmanager", "--lab-version", self.machine.package, *arguments)
        return answer.rc, answer.text

    def _fabric_manager(self):
        """Whether it lives, and what it says when it is started now; a start that would succeed is not made."""
        refusal = self.machine.fabric_refusal()
        return not refusal, refusal

    def _pgrep(self, *_arguments):
        return (1 if self._has("nvlsm_dead") or not self._fabric_manager()[0] else 0), ""

    def _sleep(self, *_arguments):
        return 0, ""

    def _has(self, fault: str) -> bool:
        return fault in self.machine.state()["faults"].get("machine", {})


def running(root, profile: str, version: str = "580.178.04") -> Machine:
    """A machine as it is after a good boot: driver, persistence mode, fabric manager and nvlsm up."""
    machine = Machine(root, profile)
    machine.install(version, "NVIDIA" if profile == "v100-8" else "Dual MIT/GPL")
    machine.write(NVLSM, b"")
    machine.write("proc/uptime", b"86400.00 600000.00\n")
    return start(machine)


def start(machine: Machine) -> Machine:
    """Boot it; what the units would start is up, as far as its faults let it."""
    machine.boot()
    machine.smi("-pm", "1")
    if not machine.fabric_refusal() and not SimulatedHost(machine)._has("nvlsm_dead"):
        change_state(machine, fabric_started=1)
    return machine


def change_state(machine: Machine, **values) -> None:
    """Set what the simulator remembers until the next boot."""
    path = machine.root / "run/gpulab/state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def judged(machine: Machine, expected_gpus: int):
    """What the product says of the machine, as `gpu-health check` asks."""
    return judge(observe(SimulatedHost(machine), Questions()), expected_gpus=expected_gpus)


def copied(machine: Machine, root) -> Machine:
    """The same machine in another folder: quicker than to boot one."""
    subprocess.run(["cp", "-a", str(machine.root), str(root)], check=True)
    twin = Machine(root, machine.profile)
    twin.package = machine.package
    return twin
