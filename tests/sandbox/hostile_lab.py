# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab of test_hostile*.py, and what its tests do with it. Not a test itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpulab.cache import SANDBOX, cache_dir

REPOSITORY = SANDBOX.parents[1]
INVENTORY = SANDBOX / "inventory-hostile.yml"
LAB = "hostile"
HOST = "gpu01"
CUDA = "http://repo.lab/compute/cuda/repos"

DATES_CHECKED = "-o Acquire::Check-Date=true"
"""apt's default; a machine whose own apt has it off hands that on to the hosts."""


def lab(*arguments: str) -> str:
    """Run `lab`; what it wrote."""
    done = subprocess.run([str(SANDBOX / "lab"), *arguments], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hostile(target: str, condition: str) -> None:
    lab("hostile", "--lab", LAB, target, condition)


def clear() -> None:
    """All conditions of the repository and of the host are over."""
    lab("clear", "--lab", LAB, "repo")
    lab("clear", "--lab", LAB, HOST)


@dataclass(frozen=True)
class Answer:
    rc: int
    output: str


def try_ssh(command: str, *options: str, timeout_s: int = 120) -> Answer:
    """Run a command on the host; its exit status is yours."""
    config = str(cache_dir() / "ssh" / ("config-" + LAB))
    done = subprocess.run(
        ["ssh", "-F", config, *options, HOST, "export LC_ALL=C; " + command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Answer(done.returncode, done.stdout)


def ssh(command: str) -> str:
    answer = try_ssh(command)
    assert answer.rc == 0, answer.output
    return answer.output.strip()


def update(*options: str) -> Answer:
    """`apt-get update` of the sandbox's own repositories, from nothing."""
    only_ours = "-o Dir::Etc::sourcelist=/dev/null -o APT::Get::List-Cleanup=false"
    return try_ssh("rm -f /var/lib/apt/lists/repo.lab*; apt-get -q %s %s update" % (only_ours, " ".join(options)))


@dataclass(frozen=True)
class Play(Answer):
    changed: int
    failed: int


def role(name: str, folder: Path, pipelining: bool = True, **variables: object) -> Play:
    """Run one role on the host. The playbook shows the role's result; `folder` is for the playbook."""
    fingerprint = (cache_dir() / "keys" / "nvidia.fpr").read_text().strip()
    values = {
        "gpufleet_nvidia_repo_url": CUDA,
        "nvidia_driver_key_fingerprints": [fingerprint],
        "base_limits_memlock": "4096",
        "base_limits_nofile": 16384,
        "base_packages": ["ca-certificates", "kmod", "pciutils"],
        **variables,
    }
    tasks = [{"ansible.builtin.debug": {"var": "gpufleet_results"}, "name": "Show the result"}]
    play = {
        "name": name,
        "hosts": HOST,
        "gather_facts": False,
        "become": True,
        "vars": values,
        "roles": [{"role": "gpufleet.server." + name}],
        "post_tasks": tasks,
    }
    book = folder / (name + ".yml")
    book.write_text(json.dumps([play]))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "ANSIBLE_FORCE_COLOR": "false",
        "ANSIBLE_PIPELINING": str(pipelining),
    }
    command = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [command, "-i", str(INVENTORY), str(book)],
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    recap = re.search(r"changed=(\d+)\s+unreachable=\d+\s+failed=(\d+)", done.stdout)
    assert recap, done.stdout
    return Play(done.returncode, done.stdout, int(recap.group(1)), int(recap.group(2)))
