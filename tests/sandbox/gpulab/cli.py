# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of `lab`."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any, List, Optional, Sequence

from . import hostile, hosts, inventory, lifecycle, simulator
from .cache import lock
from .errors import Interrupted, LabError, UsageError
from .podman import ADDRESS_LABEL, HOST_LABEL, LAB_LABEL, PROFILE_LABEL, containers, preflight

GPUSIM = "/usr/lib/gpulab/bin/gpusim"


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command. Exit status: 0 done, 1 failed, 2 the request was wrong, 130 interrupted."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    options = _parser().parse_args(argv)
    try:
        return int(options.run(options) or 0)
    except UsageError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print("lab: interrupted", file=sys.stderr)
        return 130


def _interrupt(*_unused: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description="Simulated GPU servers on this machine.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    up = command("up", _up, "bring up the hosts of an inventory that have the variable sandbox_image")
    up.add_argument("--fresh", action="store_true", help="make every host anew")
    down = command("down", _down, "remove the hosts, the network and the repository server of an inventory's lab")
    status = command("status", _status, "say what is up; exit status 1 unless every host is")
    for with_inventory in (up, down, status):
        with_inventory.add_argument("inventory", metavar="INVENTORY", help="an Ansible inventory, file or folder")
    command("profiles", _profiles, "list the hardware that a host can simulate")
    command("faults", _faults, "list the faults that a simulated GPU or link can have")
    reboot = command("reboot", _reboot, "restart a host")
    fault = command("fault", _fault, "make a host's simulated hardware fail")
    fault.add_argument("--gpu", type=int, metavar="N", help="the GPU, by index")
    fault.add_argument("--link", type=int, metavar="N", help="the NVLink of that GPU")
    clear = command("clear", _clear, "end all faults and hostile conditions of a host, or of the repository (repo)")
    difficult = command("hostile", _hostile, "make the system of a host, or the repository server, hard to work with")
    difficult.add_argument("--list", action="store_true", help="list the conditions")
    for with_host in (reboot, fault, clear, difficult):
        with_host.add_argument("--lab", help="the lab, where two have a host of that name")
        with_host.add_argument(
            "host",
            metavar="HOST",
            nargs="?" if with_host is difficult else None,
            help="a host's name in the inventory" + ("" if with_host in (reboot, fault) else ", or repo"),
        )
    fault.add_argument("name", metavar="NAME", help="a fault, as `lab faults` lists them")
    difficult.add_argument(
        "condition", metavar="NAME[=VALUE]", nargs="?", help="a condition; without one, name those that the host has"
    )
    return parser


def _up(options: argparse.Namespace) -> None:
    lifecycle.up(inventory.load(options.inventory), fresh=options.fresh)


def _down(options: argparse.Namespace) -> None:
    lifecycle.down(inventory.load(options.inventory))


def _status(options: argparse.Namespace) -> int:
    states = lifecycle.status(inventory.load(options.inventory))
    rows = [("HOST", "STATE", "ADDRESS", "IMAGE", "PROFILE")]
    rows += [(host.name, state, host.address, host.image, host.profile) for host, state in states]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return 0 if all(state == "up" for _host, state in states) else 1


def _profiles(_options: argparse.Namespace) -> None:
    print(simulator.listing("profiles"), end="")


def _faults(_options: argparse.Namespace) -> None:
    print(simulator.listing("faults"), end="")


def _reboot(options: argparse.Namespace) -> None:
    container = _find(options)
    with lock(f"lab-{container['labels'][LAB_LABEL]}"):
        hosts.reboot(container["name"], container["labels"][ADDRESS_LABEL])


def _fault(options: argparse.Namespace) -> None:
    # A fault may carry a value: xid=79.
    simulator.check_known("faults", [options.name.partition("=")[0]])
    container = _find(options)
    arguments: List[str] = []
    for option, value in (("--gpu", options.gpu), ("--link", options.link)):
        if value is not None:
            arguments += [option, str(value)]
    print(lifecycle.exec_in(container["name"], GPUSIM, "fault", *arguments, options.name), end="")


def _clear(options: argparse.Namespace) -> None:
    if options.host == hostile.REPO:
        hostile.clear_repo(_lab_of_repo(options))
        return
    container = _find(options)["name"]
    hostile.clear_host(container)
    print(lifecycle.exec_in(container, GPUSIM, "clear"), end="")


def _hostile(options: argparse.Namespace) -> None:
    if options.list:
        print(hostile.listing(), end="")
        return
    if not options.host:
        raise UsageError("name a host or repo, or ask for --list")
    of_repo = options.host == hostile.REPO
    if options.condition is None:
        if of_repo:
            raise UsageError("name a condition of the repository, as `lab hostile --list` lists them")
        print("".join(f"{name}\n" for name in hostile.of_host(_find(options)["name"])), end="")
        return
    condition, value = hostile.parse(options.condition, of_repo)
    if of_repo:
        lab = _lab_of_repo(options)
        hostile.set_of_repo(lab, hosts.repo_root(f"{lab}-repo"), condition, value)
    else:
        hostile.set_of_host(_find(options)["name"], condition, value)


def _lab_of_repo(options: argparse.Namespace) -> str:
    """The lab whose repository server is meant."""
    preflight()
    labs = sorted({container["labels"][LAB_LABEL] for container in containers(options.lab or "")})
    if len(labs) != 1:
        raise UsageError(f"which lab's repository? up are: {', '.join(labs) or 'none'}; choose with --lab")
    return str(labs[0])


def _find(options: argparse.Namespace) -> Any:
    """The container of a host, among the labs that are up."""
    preflight()
    ours = [container for container in containers(options.lab or "") if HOST_LABEL in container["labels"]]
    found = [container for container in ours if container["labels"][HOST_LABEL] == options.host]
    if len(found) == 1:
        return found[0]
    if found:
        labs = ", ".join(sorted(container["labels"][LAB_LABEL] for container in found))
        raise UsageError(f"host {options.host} is in several labs ({labs}); choose with --lab")
    where = f"lab {options.lab}" if options.lab else "the labs that are up"
    known = ", ".join(
        f"{container['labels'][HOST_LABEL]} ({container['labels'][LAB_LABEL]}, {container['labels'][PROFILE_LABEL]})"
        for container in ours
    )
    raise UsageError(f"no host {options.host} in {where}; hosts there: {known or 'none'}")
