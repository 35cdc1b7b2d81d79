# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key that opens the hosts, and one ssh configuration per lab for Ansible, testinfra and people."""

from __future__ import annotations

from pathlib import Path

from .cache import cache_dir, lock
from .inventory import Lab
from .process import run

SOCKET_PATH_MAX = 107
"""Linux's limit; ssh refuses to connect at all when ControlPath is longer."""
CONTROL_PATH_GROWTH = 38 + 17
"""What ssh adds: %C becomes 40 characters, and a temporary suffix follows."""


def ensure_key() -> str:
    """Make the key pair once per cache and return the public half."""
    folder = _folder()
    private = folder / "id_ed25519"
    with lock("ssh-key"):
        if not private.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpulab", "-f", str(private)])
    return private.with_suffix(".pub").read_text(encoding="ascii").strip()


def config_path(lab: str) -> Path:
    """Where the ssh configuration of a lab is."""
    return _folder() / f"config-{lab}"


def write_config(lab: Lab) -> None:
    """Write the lab's ssh configuration: aliases by name, and the options that hold for its addresses too."""
    lines = ["# Written by `lab up`; removed by `lab down`.", ""]
    for host in lab.hosts:
        lines += [f"Host {host.name}", f"    HostName {host.address}", ""]
    lines += [
        "Host *",
        "    User root",
        f'    IdentityFile "{_folder() / "id_ed25519"}"',
        "    IdentitiesOnly yes",
        "    # A host that is made anew has a new key; it is on this machine's own bridge.",
        "    StrictHostKeyChecking no",
        "    UserKnownHostsFile /dev/null",
        "    GlobalKnownHostsFile /dev/null",
        "    LogLevel ERROR",
        "    ConnectTimeout 10",
        "    # A removed host sends nothing any more, not even a reset.",
        "    ServerAliveInterval 5",
        "    ServerAliveCountMax 3",
    ]
    control_path = f"{_folder()}/cp-%C"
    if len(control_path) + CONTROL_PATH_GROWTH <= SOCKET_PATH_MAX:
        lines += [f'    ControlPath "{control_path}"']
    partial = config_path(lab.name).with_suffix(".partial")
    partial.write_text("\n".join([*lines, ""]), encoding="utf-8")
    partial.rename(config_path(lab.name))


def remove_config(lab: str) -> None:
    """The lab is gone."""
    config_path(lab).unlink(missing_ok=True)


def _folder() -> Path:
    folder = cache_dir() / "ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
