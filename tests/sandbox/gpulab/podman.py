# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that talks to podman: what this machine needs in options, and the few questions `lab` asks."""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Sequence

from .errors import LabError
from .process import Completed, run

LAB_LABEL = "gpufleet.lab"
HOST_LABEL = "gpufleet.host"
INPUTS_LABEL = "gpufleet.inputs"
IMAGE_LABEL = "gpufleet.image"
PROFILE_LABEL = "gpufleet.profile"
ADDRESS_LABEL = "gpufleet.address"
SIMULATOR_LABEL = "gpufleet.simulator"

PODMAN_NOFILE = 1048576
"""The number of open files podman asks for by default, whatever this machine's limit is."""


def preflight() -> None:
    """Refuse early, and in plain words, where podman cannot work."""
    if os.geteuid() != 0:
        raise LabError("lab needs root (it makes containers with systemd and simulated devices); use sudo -E")
    if shutil.which("podman") is None:
        raise LabError("podman is not installed; 'make setup' installs what the sandbox needs")
    if shutil.which("iptables") is None and shutil.which("nft") is None:
        raise LabError("neither iptables nor nft is installed, podman's network needs one; 'make setup' installs it")
    if cgroup_v1() and shutil.which("runc") is None:
        raise LabError("this machine has cgroup v1, where systemd in a container needs runc; 'make setup' installs it")


def cgroup_v1() -> bool:
    """Whether the machine has the old cgroup hierarchies (no controllers file at the top)."""
    return not Path("/sys/fs/cgroup/cgroup.controllers").exists()


@lru_cache(maxsize=1)
def _global_options() -> List[str]:
    return ["--runtime", "runc"] if cgroup_v1() else []


@lru_cache(maxsize=1)
def run_options() -> List[str]:
    """Options of `podman run` that this machine, not the container, asks for.

    Podman asks for more open files than a machine may allow, and cannot raise a hard limit everywhere; where it cannot,
    the machine's own limits are named.
    """
    options = ["--stop-timeout", "0"]
    hard_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard_files != resource.RLIM_INFINITY and hard_files < PODMAN_NOFILE:
        options += ["--ulimit", f"nofile={hard_files}:{hard_files}"]
        options += ["--ulimit", "nproc=4096:4096"]
    if cgroup_v1():
        options += ["--cgroupns=private"]
    return options


def podman(*arguments: str, check: bool = True, timeout_s: float = 120.0, finish: bool = False) -> Completed:
    """Run podman; `finish` as in process.run()."""
    return run(["podman", *_global_options(), *arguments], check=check, timeout_s=timeout_s, finish=finish)


def podman_argv(*arguments: str) -> List[str]:
    """The whole command line, for callers that start it themselves."""
    return ["podman", *_global_options(), *arguments]


def containers(lab: str = "") -> List[Dict[str, Any]]:
    """Our containers (of one lab), whatever their state: name, state, labels, sorted by name."""
    label = f"{LAB_LABEL}={lab}" if lab else LAB_LABEL
    done = podman("ps", "--all", "--filter", f"label={label}", "--format", "json")
    found = []
    for entry in json.loads(done.stdout or "[]") or []:
        found.append({"name": entry["Names"][0], "state": entry["State"], "labels": entry.get("Labels") or {}})
    return sorted(found, key=lambda container: container["name"])


def exists(kind: str, name: str) -> bool:
    """Whether a container, image or network of that name is there, ours or not."""
    return podman(kind, "exists", name, check=False).rc == 0


def remove_containers(names: Sequence[str]) -> None:
    """Remove containers at once, and again: under `--restart always` a restart can race with a removal."""
    left = list(names)
    error = ""
    for attempt in range(8):
        if not left:
            return
        if attempt:
            time.sleep(0.5)
        # One that is gone is not an error (--ignore); several in one call are removed side by side.
        # Containers are made with a stop timeout of 0, so nothing is waited for.
        error = podman("rm", "--force", "--ignore", "--volumes", *left, check=False).stderr
        left = [name for name in left if exists("container", name)]
    if left:
        raise LabError(f"could not remove {', '.join(left)}: {error.strip()}")
