# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated machines for the tests of the judgement: the simulator's own programs, started by the code under test."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from simulated_machine import PROGRAMS, Machine
from support_health import FABRIC_UP, ONE_KERNEL_LINE

from ansible_collections.gpufleet.server.plugins.module_utils._host import CommandResult, Host

VERSION = "580.178.04"


class SimulatedHost(Host):
    """Real processes for nvidia-smi; kernel log, systemd and the clock are said here."""

    def __init__(self, root: Path, kernel: str = ONE_KERNEL_LINE, unit: str = FABRIC_UP, manager: str = VERSION):
        super().__init__(str(root))
        self.said = {
            "journalctl": kernel,
            "systemctl": unit,
            "nv-fabricmanager": "Fabric Manager version is : %s\n" % manager,
            "sleep": "",
        }

    def run(self, argv, timeout_s=60.0, **options):
        if argv[0] in self.said:
            return CommandResult(tuple(argv), 0, self.said[argv[0]], "", 0.01)
        return super().run(argv, timeout_s=timeout_s, **options)


def booted(root: Path, profile: str, version: str = VERSION) -> Machine:
    """A machine with the driver loaded, persistence on and the fabric configured a minute ago."""
    machine = Machine(root, profile).install(version).boot()
    path = root / "run/gpulab/state.json"
    state = json.loads(path.read_text())
    state["fabric_started"] = time.time() - 60
    path.write_text(json.dumps(state))
    machine.smi("-pm", "1")
    return machine


def smi_program(machine: Machine) -> str:
    """Path of a program that is this machine's nvidia-smi."""
    script = machine.root / "nvidia-smi"
    script.write_text(
        "#!/bin/sh\nGPULAB_ROOT='%s' LAB_SEED=test exec '%s' '%s' --lab-version %s \"$@\"\n"
        % (machine.root, sys.executable, PROGRAMS / "nvidia-smi", machine.package)
    )
    script.chmod(0o755)
    return str(script)
