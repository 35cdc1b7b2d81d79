# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Become a daemon the old way: the caller returns when the daemon is ready, as systemd's Type=forking expects."""

import os
import signal
import sys
import time

from . import gpu, paths


def start(pid_file: str, ready, drop=None) -> int:
    """Fork; the child writes `pid_file`, calls `ready()`, and lives until a signal. Return the parent's exit status.

    `drop()` gives up root in the child, after the files have been written. SIGTERM and SIGINT end the child with 0,
    SIGUSR1 (a fault) with 1.
    """
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            return 0 if pipe.read() == b"ready" else 1
    os.close(reading)
    os.setsid()
    if os.fork():  # the daemon itself is nobody's session leader
        os._exit(0)
    os.chdir("/")
    paths.write(pid_file, f"{os.getpid()}\n")
    if drop:
        drop()
    _await_signals(pid_file, lambda: _tell(writing, ready))
    return 0  # not reached: the handlers exit


def _tell(writing: int, ready) -> None:
    ready()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.write(writing, b"ready")
    os.close(writing)


def _await_signals(pid_file: str, begin) -> None:
    def end(number, _frame):
        try:
            os.unlink(paths.at(pid_file))
        except OSError:
            pass  # the folder belongs to root, and root was given up: systemd removes the file
        os._exit(1 if number == signal.SIGUSR1 else 0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    begin()
    sys.stdout.flush()
    while True:
        time.sleep(3600)


def running(pid_file: str) -> bool:
    """True when the process of `pid_file` lives."""
    pid = paths.read(pid_file)
    return pid.isdigit() and gpu.alive(int(pid))
