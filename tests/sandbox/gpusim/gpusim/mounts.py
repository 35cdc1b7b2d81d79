# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a tree of ours over one of the kernel's. Only on the simulated machine, never under `GPULAB_ROOT`."""

import os
import subprocess

from . import paths


class MountFailed(Exception):
    """The mount command's own words."""


def bind(source: str, target: str) -> None:
    """Show `source` in place of `target` (/sys/bus/pci/devices, /proc/driver)."""
    _mount(target, "mount", "--bind", source, target)


def overlay(source: str, target: str) -> None:
    """Show the entries of `source` beside those of `target` (/sys/module)."""
    _mount(target, "mount", "-t", "overlay", "-o", f"lowerdir={source}:{target}", "gpulab", target)


def overlay_writable(folder: str, target: str) -> None:
    """Show the entries of `folder`/upper in `target`, and keep there what is written to any of its files."""
    os.makedirs(f"{folder}/work", exist_ok=True)
    options = f"lowerdir={target},upperdir={folder}/upper,workdir={folder}/work"
    _mount(target, "mount", "-t", "overlay", "-o", options, "gpulab", target)


def _mount(target: str, *command: str) -> None:
    while _is_mounted(target):  # a second `gpusim boot` without a restart replaces, it does not pile up
        _run("umount", target)
    _run(*command)


def _is_mounted(target: str) -> bool:
    return any(line.split()[4] == target for line in paths.read("/proc/self/mountinfo").splitlines())


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise MountFailed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
