# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that use a GPU. The simulator is told of them (`gpusim process`); one that has ended uses nothing."""

from . import state


def add(one, pid: int, name: str, memory_mib: int) -> dict:
    """Note that the process uses the GPU until it ends; return the entry."""
    entry = {"pid": pid, "name": name, "memory_mib": memory_mib}
    with state.changing() as content:
        content.setdefault("processes", {}).setdefault(one.uuid, []).append(entry)
    return entry


def alive(pid: int) -> bool:
    """True when a process of that number runs (whoever owns it). A dead one that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False
