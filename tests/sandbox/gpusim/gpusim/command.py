# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `gpusim`: start the machine, break it, mend it, look at it."""

import argparse
import json
import os
import sys


def main(argv) -> int:
    """Run one command; return the exit status (2 for a wrong argument)."""
    arguments = _parser().parse_args(argv)
    from . import faults, mounts, profiles

    try:
        return arguments.run(arguments)
    except (faults.BadFault, profiles.UnknownProfile, mounts.MountFailed) as error:
        print(f"gpusim: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpusim", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    boot = commands.add_parser("boot", help="what the machine does when it starts; called by lab-init")
    boot.add_argument("--profile", default=os.environ.get("LAB_PROFILE") or "none", help="default: $LAB_PROFILE, none")
    boot.set_defaults(run=_boot)
    fault = commands.add_parser("fault", help="break something; `gpusim faults` lists what")
    fault.add_argument("--gpu", type=int, metavar="N", help="index of the GPU, default 0")
    fault.add_argument("--link", type=int, metavar="N", help="NVLink number, for nvlink_down; default all")
    fault.add_argument("name")
    fault.set_defaults(run=_fault)
    process = commands.add_parser("process", help="say that a running process uses a GPU, until it ends")
    process.add_argument("--gpu", type=int, metavar="N", default=0, help="index of the GPU, default 0")
    process.add_argument("--memory", type=int, metavar="MIB", default=512, help="GPU memory it holds, default 512")
    process.add_argument("--name", default="python3")
    process.add_argument("pid", type=int)
    process.set_defaults(run=_process)
    commands.add_parser("clear", help="mend everything").set_defaults(run=_clear)
    commands.add_parser("state", help="print what the machine remembers, as JSON").set_defaults(run=_state)
    commands.add_parser("faults", help="list the faults").set_defaults(run=_faults)
    commands.add_parser("profiles", help="list the machines").set_defaults(run=_profiles)
    return parser


def _boot(arguments) -> int:
    from . import boot

    print(json.dumps(boot.boot(arguments.profile)))
    return 0


def _fault(arguments) -> int:
    from . import faults

    print(json.dumps(faults.set_fault(arguments.name, arguments.gpu, arguments.link)))
    return 0


def _process(arguments) -> int:
    from . import faults, gpu, processes

    gpus = gpu.Machine().gpus
    if not 0 <= arguments.gpu < len(gpus):
        raise faults.BadFault(f"--gpu {arguments.gpu}: this machine has {len(gpus)} GPUs")
    print(json.dumps(processes.add(gpus[arguments.gpu], arguments.pid, arguments.name, arguments.memory)))
    return 0


def _clear(_arguments) -> int:
    from . import faults

    faults.clear()
    return 0


def _state(_arguments) -> int:
    from . import driver, gpu, state

    machine = gpu.Machine()
    gpus = [
        {
            "index": one.index,
            "uuid": one.uuid,
            "bus_id": one.bus_id,
            "persistence": one.persistence,
            "power_limit_w": one.power_limit_w,
            "fabric_state": one.fabric_state,
            "lost": one.lost,
            "links_down": one.down_links,
        }
        for one in machine.gpus
    ]
    print(
        json.dumps(
            {
                "profile": machine.state.get("profile", "none"),
                "boots": state.load(state.PERSISTENT).get("boots", 0),
                "kernel": machine.state.get("kernel"),
                "module": machine.state.get("module", {}),
                "library_version": driver.library_version(),
                "faults": machine.faults,
                "gpus": gpus,
                "kernel_log": machine.state.get("kernel_log", []),
                "calls": state.calls(),
            },
            indent=1,
            sort_keys=True,
        )
    )
    return 0


def _faults(_arguments) -> int:
    from . import faults

    for name, fault in faults.TABLE.items():
        words = "|".join(fault.values) or ("N" if fault.number else "")
        print(f"{name:<15} {f'({name}={words}) ' if words else ''}{fault.what} [{fault.reboot}]")
    return 0


def _profiles(_arguments) -> int:
    from . import profiles

    for name in profiles.names():
        print(f"{name:<12} {profiles.load(name)['description']}")
    return 0
