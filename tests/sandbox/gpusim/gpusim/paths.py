# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things are: the one place that knows `GPULAB_ROOT`."""

import os

ROOT = os.environ.get("GPULAB_ROOT", "/")
"""`/` inside a sandbox host; a temporary folder in the simulator's own tests."""

VOLATILE = "/run/gpulab"
"""What a reboot forgets: loaded module, faults of the running system, power limits."""

PERSISTENT = "/var/lib/gpulab"
"""What a reboot keeps: broken links, a dead fabric manager, the log of setter calls."""

PERSISTENCED_PID = "/run/nvidia-persistenced/nvidia-persistenced.pid"
FABRIC_PID = "/run/nvidia-fabricmanager/nv-fabricmanager.pid"
NVLSM_PID = "/run/nvidia-fabricmanager/nvlsm.pid"
KMSG_FIFO = "/run/lab/kmsg"


def at(path: str) -> str:
    """Return `path`, an absolute path of the simulated machine, as a path of this process."""
    return os.path.join(ROOT, path.lstrip("/"))


def on_machine() -> bool:
    """True inside a sandbox host, where trees are mounted over the kernel's own; False under `GPULAB_ROOT`."""
    return os.path.realpath(ROOT) == "/"


def read(path: str, default: str = "") -> str:
    """Return the text of `path` without surrounding white space, or `default` when it cannot be read."""
    try:
        with open(at(path), encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return default


def write(path: str, content, mode: int = 0o644) -> None:
    """Write `content` (text or bytes) to `path`, making its folders."""
    target = at(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(target, mode)
