# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nv-fabricmanager`: configures the NVSwitches, or says why it cannot, in the real one's words."""

import os
import sys
import time

from . import daemon, driver, gpu, nvlsm, paths, state

LOG = "/var/log/fabricmanager.log"

NOTHING_TO_DO = (
    "request to query NVSwitch device information from NVSwitch driver failed with error:"
    "WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
)
NO_DRIVER = (  # wording unconfirmed: the real text for a missing driver was not found
    "request to query NVSwitch device information from NVSwitch driver failed with error:"
    "WARNING NVSwitch driver is not loaded"
)
DEAD = "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id {bus} physical id 0 port 33"
NO_UMAD = 'Kernel module "ib_umad" has not been loaded, fabric manager cannot be started'
CONFIGURED = (
    "Successfully configured all the available NVSwitches to route GPU NVLink traffic. NVLink Peer-to-Peer support "
    "will be enabled once the GPUs are successfully registered with the NVLink fabric."
)


def main(argv) -> int:
    """Start the daemon; exit 0 when it runs, 1 with the reason on stderr and in the log."""
    argv = list(argv)
    version = driver.library_version()
    if argv[:1] == ["--lab-version"]:
        version = argv[1]
        del argv[:2]
    machine = gpu.Machine()
    version = _own_version(machine, version)
    if argv and argv[0] in ("-v", "--version"):
        print(f"Fabric Manager version is : {version}")
        return 0
    settings = _settings(argv)
    log = settings.get("LOG_FILE_NAME") or LOG
    reason = _refusal(machine, version)
    if reason:
        _log(log, "ERROR", reason)
        print(reason, file=sys.stderr)
        return 1

    def ready():
        if not machine.nvlink_management or nvlsm.start(machine):
            _configure()
        _log(log, "INFO", f"Fabric Manager version {version}", "Connected to 1 node.", CONFIGURED)
        print("Connected to 1 node.\n" + CONFIGURED, flush=True)

    if daemon.running(paths.FABRIC_PID):
        print("fabric manager is already running", file=sys.stderr)
        return 1
    return daemon.start(paths.FABRIC_PID, ready)


def refusal_of_machine(version: str) -> str:
    """Why a fabric manager of this version would not start now, "" when it would."""
    machine = gpu.Machine()
    return _refusal(machine, _own_version(machine, version))


def _own_version(machine, version: str) -> str:
    return other_version(version) if machine.has_fault("fm_version") else version


def _refusal(machine, version: str) -> str:
    """Return why it cannot run, "" when it can."""
    if not machine.loaded_version:
        return NO_DRIVER
    if version != machine.loaded_version:
        return (
            f"fabric manager NVIDIA GPU driver interface version {version} don't match with driver version "
            f"{machine.loaded_version}. Please update with matching NVIDIA driver package."
        )
    if not machine.switched or (machine.nvlink_management and not nvlsm.installed()):
        return NOTHING_TO_DO
    if machine.has_fault("mlx5_ib_missing"):
        return NO_UMAD
    if machine.has_fault("fm_dead"):
        return DEAD.format(bus="0000" + (machine.nvswitches or machine.nvlink_management)[0]["bus"].upper())
    return ""


def other_version(version: str) -> str:
    """A release of the same branch that is not this one: `580.178.04` → `580.178.05`."""
    head, _, last = version.rpartition(".")
    return f"{head}.{int(last) + 1:0{len(last)}d}"


def _configure() -> None:
    """From now on the GPUs register with the fabric. A restart of the daemon does not take them out again."""
    with state.changing() as content:
        content.setdefault("fabric_started", time.time())


def _settings(argv: list) -> dict:
    """Read `KEY=VALUE` lines of the file after -c / --config."""
    path = "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
    for option, value in zip(argv, argv[1:]):
        if option in ("-c", "--config"):
            path = value
    pairs = (line.split("=", 1) for line in paths.read(path).splitlines() if "=" in line and line[0] != "#")
    return {key.strip(): value.strip() for key, value in pairs}


def _log(path: str, level: str, *lines: str) -> None:
    stamp = time.strftime("%b %d %Y %H:%M:%S")
    target = paths.at(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "a", encoding="utf-8") as stream:
        for line in lines:
            stream.write(f"[{stamp}] [{level}] [tid {os.getpid()}] {line}\n")
