# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a whole lab up and down: in order, a few hosts at a time, and back to nothing when it goes wrong."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, Dict, List, Tuple

from . import hostile, hosts, images, inotify, network, simulator, ssh
from .cache import lock, lock_if_free
from .errors import LabError
from .inventory import Lab, SandboxHost
from .podman import INPUTS_LABEL, LAB_LABEL, SIMULATOR_LABEL, containers, exists, podman, preflight, remove_containers
from .process import allow_again, stop_all
from .repo import ensure_repositories

PARALLEL_STARTS = 4
"""More at once only makes each boot slower on a small machine."""

IN_HOST_TIME = 'if [ -e /proc/1/ns/time ]; then set -- nsenter --target 1 --time "$@"; fi; exec "$@"'
"""`podman exec` does not enter the time namespace that lab-init made; kernel log lines carry the host's own uptime."""

SUPPLIES = "supplies"
"""The lock that a `lab up` shares while it uses images and copies, and that pruning needs alone."""


def up(lab: Lab, fresh: bool = False) -> None:
    """Bring a lab up; what is already as wanted stays. With `fresh` every host is made anew.

    Whatever goes wrong, or when interrupted: what this call started is removed again, and nothing else.
    """
    preflight()
    images.check_known(host.image for host in lab.hosts)
    simulator.check_known("profiles", [host.profile for host in lab.hosts])
    started = time.monotonic()
    with lock(f"lab-{lab.name}"):
        with lock(SUPPLIES, shared=True):
            _refuse_foreign(lab)
            supplies = _gather_supplies(lab)
            made: List[str] = []
            try:
                changed = _bring_up(lab, supplies, fresh, made)
            except BaseException:
                _undo(lab, made)
                raise
        _prune(supplies)
    say(f"{lab.name}: {len(lab.hosts)} hosts up, {changed} of them started now ({time.monotonic() - started:.0f} s)")


def down(lab: Lab) -> None:
    """Remove a lab: its containers, its network, its ssh configuration. Caches stay."""
    preflight()
    with lock(f"lab-{lab.name}"):
        found = containers(lab.name)
        _remove_lab(lab.name)
    say(f"{lab.name}: {'down' if found else 'was not up'}")


def status(lab: Lab) -> List[Tuple[SandboxHost, str]]:
    """(host, state) for each host of the inventory: up, booting, missing, or podman's word for anything else."""
    preflight()
    found = {container["name"]: container for container in containers(lab.name)}
    states = []
    for host in lab.hosts:
        state = found.get(lab.container(host.name), {}).get("state", "missing")
        if state == "running":
            state = "up" if hosts.greets(host.address) else "booting"
        states.append((host, state))
    return states


def _gather_supplies(lab: Lab) -> hosts.Supplies:
    """Build, or find in the caches, everything the hosts are made from."""
    public_key = ssh.ensure_key()
    repositories = ensure_repositories()
    references = images.ensure_images([host.image for host in lab.hosts], repositories)
    return hosts.Supplies(references, simulator.ensure_copy(), repositories, public_key)


def _prune(supplies: hosts.Supplies) -> None:
    """Remove superseded supplies, unless another `lab up` may just be about to use some."""
    with lock_if_free(SUPPLIES) as free:
        if free:
            images.prune(supplies.images)
            used = {container["labels"].get(SIMULATOR_LABEL, "") for container in containers()}
            simulator.prune({*used, supplies.simulator.name})


def _bring_up(lab: Lab, supplies: hosts.Supplies, fresh: bool, made: List[str]) -> int:
    """Start what is missing or outdated; names of what is made are added to `made` before it is. Returns how many."""
    inotify.raise_limit()
    present = {container["name"]: container for container in containers(lab.name)}
    wanted = {lab.repo_container: hosts.repo_inputs(lab, supplies)}
    wanted.update({lab.container(host.name): hosts.host_inputs(lab, host, supplies) for host in lab.hosts})
    stale = [
        name
        for name, container in present.items()
        if fresh or container["labels"].get(INPUTS_LABEL) != wanted.get(name) or container["state"] != "running"
    ]
    if stale:
        say(f"{lab.name}: removing {', '.join(stale)} (outdated, stopped, not in the inventory, or --fresh)")
        remove_containers(stale)
    net = network.ensure_network(lab)
    ssh.write_config(lab)
    kept = set(present) - set(stale)
    if lab.repo_container not in kept:
        made.append(lab.repo_container)
        hosts.start_repo(lab, supplies, net)
    hosts.wait_for_port(lab.repo_container, lab.repo_address, 80)
    missing = [host for host in lab.hosts if lab.container(host.name) not in kept]
    if missing:
        say(f"{lab.name}: starting {len(missing)} hosts")
    made.extend(lab.container(host.name) for host in missing)
    _in_parallel(lab, missing, supplies, net)
    return len(missing)


def _in_parallel(lab: Lab, missing: List[SandboxHost], supplies: hosts.Supplies, net: str) -> None:
    """Start hosts and check those that are already there, a few at a time; the first error ends the rest."""

    def one(host: SandboxHost) -> None:
        if host in missing:
            hosts.start_host(lab, host, supplies, net)
        hosts.wait_for_host(lab.container(host.name), host.address)

    with ThreadPoolExecutor(max_workers=PARALLEL_STARTS) as pool:
        futures: List[Future[None]] = [pool.submit(one, host) for host in lab.hosts]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            stop_all()
            raise


def _undo(lab: Lab, made: List[str]) -> None:
    """Remove what this call made, and the lab's remains if nothing of it is left."""
    allow_again()
    say(f"{lab.name}: removing what was started")
    remove_containers(made)
    if not containers(lab.name):
        _remove_lab(lab.name)


def _remove_lab(name: str) -> None:
    found = containers(name)
    remove_containers([container["name"] for container in found])
    network.remove_network(name)
    ssh.remove_config(name)
    hostile.forget(name)
    if not containers():
        inotify.put_back()


def _refuse_foreign(lab: Lab) -> None:
    """A container of that name which is not ours must not be touched, nor be in the way halfway through."""
    for name in [lab.repo_container, *(lab.container(host.name) for host in lab.hosts)]:
        if exists("container", name):
            labels: Dict[str, Any] = hosts.inspect(name)["Config"].get("Labels") or {}
            if labels.get(LAB_LABEL) != lab.name:
                raise LabError(f"a container {name} exists that this tool did not make; rename sandbox_lab or the host")


def exec_in(container: str, *command: str) -> str:
    """Run a command in a host and return what it printed; its failure is an error in its own words."""
    done = podman("exec", container, "sh", "-c", IN_HOST_TIME, "sh", *command, check=False)
    if done.rc != 0:
        raise LabError((done.stderr or done.stdout).strip() or f"{' '.join(command)}: exit status {done.rc}")
    return done.stdout


def say(text: str) -> None:
    """Progress for the person who waits."""
    print(f"lab: {text}", flush=True)
