# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvlsm`, the subnet manager of NVLink 5 switches: a process that the fabric manager starts, and that ends with it."""

import os
import signal
import sys
import time

from . import paths

PROGRAM = "/opt/nvidia/nvlsm/sbin/nvlsm"
LOOK_S = 1.0
"""How often it looks whether the fabric manager still lives, in seconds."""


def installed() -> bool:
    """True when its package is."""
    return os.path.exists(paths.at(PROGRAM))


def start(machine) -> bool:
    """Start it as a child of this process; False when the fault `nvlsm_dead` keeps it from living."""
    if machine.has_fault("nvlsm_dead"):
        return False
    parent = os.getpid()
    sys.stdout.flush()
    child = os.fork()
    if child:
        paths.write(paths.NVLSM_PID, f"{child}\n")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a dead one leaves no zombie
        return True
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.closerange(3, 256)  # the pipe on which systemd's side waits is not ours to keep open
    with open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write("nvlsm")
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(0)
