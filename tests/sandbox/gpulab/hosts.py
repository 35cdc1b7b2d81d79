# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of a lab: the repository server and the hosts, one at a time."""

from __future__ import annotations

import json
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict

from .cache import digest_of
from .errors import LabError
from .hostile import clear_repo, control_folder
from .inventory import Lab, SandboxHost
from .podman import (
    ADDRESS_LABEL,
    HOST_LABEL,
    IMAGE_LABEL,
    INPUTS_LABEL,
    LAB_LABEL,
    PROFILE_LABEL,
    SIMULATOR_LABEL,
    podman,
    remove_containers,
    run_options,
)
from .process import pause
from .repo import Repositories
from .simulator import TARGET

REPO_NAME = "repo.lab"
SSH_PORT = 22
READY_TIMEOUT_S = 180.0
POLL_S = 0.25
CRASH_RESTARTS = 2
"""A host that restarts more often than this while it is waited for does not boot."""


@dataclass(frozen=True)
class Supplies:
    """What was built for the hosts: image references by name, the simulator's copy, repositories, the public key."""

    images: Dict[str, str]
    simulator: Path
    repositories: Repositories
    public_key: str


def host_inputs(lab: Lab, host: SandboxHost, supplies: Supplies) -> str:
    """A hash of everything a host is made from; a host with another hash is made anew."""
    texts = (host.name, host.address, host.profile, supplies.images[host.image], supplies.simulator.name)
    return digest_of(*texts, supplies.public_key, lab.repo_address, *run_options())


def repo_inputs(lab: Lab, supplies: Supplies) -> str:
    """The same for the repository server."""
    root = str(supplies.repositories.root)
    return digest_of(lab.repo_address, supplies.images["base"], root, supplies.repositories.digest, "control")


def start_host(lab: Lab, host: SandboxHost, supplies: Supplies, network: str) -> None:
    """Start the container of a host on a podman network; it is not ready yet."""
    lines = ("127.0.0.1 localhost", f"{host.address} {host.name}", f"{lab.repo_address} {REPO_NAME}")
    labels = {
        LAB_LABEL: lab.name,
        HOST_LABEL: host.name,
        INPUTS_LABEL: host_inputs(lab, host, supplies),
        IMAGE_LABEL: host.image,
        PROFILE_LABEL: host.profile,
        SIMULATOR_LABEL: supplies.simulator.name,
        ADDRESS_LABEL: host.address,
    }
    arguments = ["run", "--detach", "--name", lab.container(host.name), "--hostname", host.name]
    arguments += ["--network", network, "--ip", host.address, "--no-hosts"]
    arguments += ["--systemd=always", "--privileged", "--restart", "always", *run_options()]
    arguments += [option for label in labels.items() for option in ("--label", "=".join(label))]
    arguments += ["--env", f"LAB_PROFILE={host.profile}", "--env", f"LAB_HOSTS={','.join(lines)}"]
    arguments += ["--env", f"LAB_AUTHORIZED_KEY={supplies.public_key}"]
    arguments += ["--volume", f"{supplies.simulator}:{TARGET}:ro"]
    podman(*arguments, supplies.images[host.image], f"{TARGET}/bin/lab-init", finish=True)


def start_repo(lab: Lab, supplies: Supplies, network: str) -> None:
    """Start the lab's repository server on a podman network."""
    labels = {LAB_LABEL: lab.name, INPUTS_LABEL: repo_inputs(lab, supplies), ADDRESS_LABEL: lab.repo_address}
    arguments = ["run", "--detach", "--name", lab.repo_container, "--hostname", "repo", "--restart", "always"]
    arguments += ["--network", network, "--ip", lab.repo_address, "--no-hosts", *run_options()]
    arguments += [option for label in labels.items() for option in ("--label", "=".join(label))]
    arguments += ["--volume", f"{supplies.repositories.root}:/media:ro"]
    arguments += ["--volume", f"{supplies.repositories.server.parent}:/opt:ro"]
    clear_repo(lab.name)
    arguments += ["--volume", f"{control_folder(lab.name)}:/srv:ro"]
    podman(*arguments, supplies.images["base"], "python3", "/opt/server.py", "/media", "80", "/srv", finish=True)


def repo_root(container: str) -> Path:
    """The tree that a repository server serves."""
    for mount in inspect(container)["Mounts"]:
        if mount["Destination"] == "/media":
            return Path(mount["Source"])
    raise LabError(f"{container}: serves no repositories")


def wait_for_host(container: str, address: str) -> None:
    """Wait until sshd greets; a host that keeps crashing, or takes too long, is an error with its last words."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    polls = 0
    # Podman counts the reboots of the host's whole life; only those of this wait are crashes.
    restarts = int(inspect(container)["RestartCount"])
    while not greets(address):
        polls += 1
        if time.monotonic() > deadline:
            raise LabError(f"{container}: no ssh on {address} within {READY_TIMEOUT_S:.0f} s\n{last_words(container)}")
        if polls % 20 == 0 and int(inspect(container)["RestartCount"]) - restarts > CRASH_RESTARTS:
            raise LabError(f"{container}: does not boot, it restarts again and again\n{last_words(container)}")
        pause(POLL_S)


def wait_for_port(container: str, address: str, port: int) -> None:
    """Wait until something listens there."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not _connects(address, port):
        if time.monotonic() > deadline:
            raise LabError(f"{container}: nothing listens on {address}:{port}\n{last_words(container)}")
        pause(POLL_S)


def greets(address: str) -> bool:
    """Whether an ssh server answers; a listening socket alone may still belong to a host that shuts down."""
    try:
        with socket.create_connection((address, SSH_PORT), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def boot_id(container: str) -> str:
    """The boot id that the host shows; "" while it has none."""
    return podman("exec", container, "cat", "/proc/sys/kernel/random/boot_id", check=False).stdout.strip()


def reboot(container: str, address: str) -> None:
    """Restart a host as its own `systemctl reboot` would, and wait until it is back under another boot id."""
    before = boot_id(container)
    # The command is cut off by the very restart it asks for, so its exit status says nothing.
    podman("exec", container, "systemctl", "reboot", check=False, timeout_s=60)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while boot_id(container) in ("", before):
        if time.monotonic() > deadline:
            raise LabError(f"{container}: did not restart within {READY_TIMEOUT_S:.0f} s\n{last_words(container)}")
        pause(POLL_S)
    wait_for_host(container, address)


def inspect(container: str) -> Dict[str, Any]:
    """What podman knows about one container."""
    found: Dict[str, Any] = json.loads(podman("container", "inspect", container).stdout)[0]
    return found


def last_words(container: str) -> str:
    """The end of what the host's first process wrote, without terminal colours."""
    done = podman("logs", "--tail", "20", container, check=False)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout + done.stderr)
    return "\n".join("  " + line.rstrip() for line in text.splitlines() if line.strip())


def remove(container: str) -> None:
    """Remove one container."""
    remove_containers([container])
