# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge of this collection looks at simulated machines: healthy ones are healthy, each fault is named.

Both sides follow the real tool's recordings on their own; here they meet.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from simulated_machine import Machine

COMMANDS = {
    "smi-q.xml": ("-q", "-x"),
    "smi-L.txt": ("-L",),
    "nvlink-s.txt": ("nvlink", "-s"),
    "nvlink-e.txt": ("nvlink", "-e"),
    "nvlink-c.txt": ("nvlink", "-c"),
    "topo-m.txt": ("topo", "-m"),
}


@pytest.fixture(scope="module")
def gpu_health(tmp_path_factory, repository):
    """The program, built from this clone."""
    target = tmp_path_factory.mktemp("build") / "gpu-health"
    subprocess.run([sys.executable, str(repository / "tools" / "build_gpu_health.py"), str(target)], check=True)
    return target


def judged(gpu_health, machine) -> dict:
    """Record the machine as a folder and return the judgement of it."""
    folder = machine.root / "recording"
    folder.mkdir()
    codes = {}
    for name, arguments in COMMANDS.items():
        answer = machine.smi(*arguments)
        (folder / name).write_bytes(answer.raw)
        command = ["nvidia-smi", *arguments]
        codes[name] = {"cmd": command, "rc": answer.rc, "stderr": "", "stdout_bytes": len(answer.raw)}
    (folder / "rc.json").write_text(json.dumps(codes))
    command = [sys.executable, str(gpu_health), "judge", "--json", "--expected-gpus", "8", str(folder)]
    return json.loads(subprocess.run(command, capture_output=True, check=False).stdout)


def running(tmp_path, profile, version) -> Machine:
    """A machine with persistence mode on and the fabric up."""
    machine = Machine(tmp_path, profile).install(version).boot()
    machine.smi("-pm", "1")
    state = tmp_path / "run/gpulab/state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "fabric_started": 1}))
    return machine


@pytest.mark.parametrize("version", ["535.261.03", "550.163.01", "580.178.04", "595.91.07"])
@pytest.mark.parametrize("profile", ["dgx-h100-8", "hgx-a100-8"])
def test_a_machine_without_faults_is_healthy(gpu_health, tmp_path, profile, version):
    report = judged(gpu_health, running(tmp_path, profile, version))
    assert (report["verdict"], report["findings"]) == ("healthy", [])


@pytest.mark.parametrize(
    "fault, bus_id, link",
    [
        (("--gpu", "3", "lost"), "00000000:61:00.0", None),
        (("--gpu", "2", "--link", "5", "nvlink_down"), "00000000:52:00.0", 5),
        (("--gpu", "7", "nvlink_down"), "00000000:DF:00.0", None),
    ],
)
def test_a_fault_is_judged_failed_and_placed(gpu_health, tmp_path, fault, bus_id, link):
    machine = running(tmp_path, "dgx-h100-8", "580.178.04")
    machine.fault(*fault)
    report = judged(gpu_health, machine)
    assert report["verdict"] == "failed"
    places = {(found["gpu"]["pci_bus_id"], found["link"]) for found in report["findings"] if found["gpu"]}
    assert places == {(bus_id, link)}


def test_garbage_is_never_healthy(gpu_health, tmp_path):
    machine = running(tmp_path, "hgx-a100-8", "580.178.04")
    machine.fault("garbage")
    assert judged(gpu_health, machine)["verdict"] in ("unknown", "failed")


def test_a_fabric_that_never_completes_is_judged_failed(gpu_health, tmp_path):
    machine = Machine(tmp_path).install("580.178.04").boot()
    assert judged(gpu_health, machine)["verdict"] == "failed"
