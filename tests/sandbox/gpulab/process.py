# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting commands: with a time limit, with their output in the error, and never left behind on an interrupt.

Commands run in a session of their own, so that Ctrl-C reaches `lab` alone, which then ends them in order; podman killed
halfway leaves containers half made.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Optional, Sequence, Set

from .errors import Interrupted, LabError

DEFAULT_TIMEOUT_S = 120.0
GRACE_S = 20.0
"""How long an ended command may clean up after itself (mmdebstrap unmounts its /proc) before it is killed."""


@dataclass
class _Running:
    """The commands that run now, in all threads, and whether new ones may still start."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    processes: Set["subprocess.Popen[str]"] = field(default_factory=set)
    stopping: bool = False


_RUNNING = _Running()


@dataclass(frozen=True)
class Completed:
    """A finished command: exit status and what it wrote."""

    argv: Sequence[str]
    rc: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    check: bool = True,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    env: Optional[Mapping[str, str]] = None,
    log: Optional[Path] = None,
    finish: bool = False,
) -> Completed:
    """Run a command without a shell and return what it wrote.

    With ``check`` a non-zero exit status is a LabError that ends with the command's last lines. With ``log`` standard
    output and error go to that file (for long builds) and the error names it. With ``finish`` an interrupt waits for
    the command instead of ending it: for short ones that leave a mess when they are cut off.
    """
    merged = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    with _RUNNING.lock:
        if _RUNNING.stopping:
            raise Interrupted
        sink = log.open("a", encoding="utf-8") if log else subprocess.PIPE
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT if log else subprocess.PIPE,
                text=True,
                errors="replace",
                env=merged,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise LabError(f"{argv[0]} is not installed; 'make setup' installs what the sandbox needs") from None
        finally:
            if log:
                sink.close()
        if not finish:
            _RUNNING.processes.add(process)
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        raise LabError(f"{_shown(argv)}: no answer within {timeout_s:.0f} s, ended") from None
    except BaseException:
        if not (finish and _finishes(process, timeout_s)):
            _end(process)
        raise
    finally:
        with _RUNNING.lock:
            _RUNNING.processes.discard(process)
    if _RUNNING.stopping and process.returncode:
        raise Interrupted
    done = Completed(argv=argv, rc=process.returncode, stdout=stdout or "", stderr=stderr or "")
    if check and done.rc != 0:
        raise LabError(f"{_shown(argv)} failed (exit status {done.rc}):\n{_last_lines(done, log)}")
    return done


def stop_all() -> None:
    """End every running command and refuse new ones; the threads that wait for them get Interrupted."""
    with _RUNNING.lock:
        _RUNNING.stopping = True
        processes = list(_RUNNING.processes)
    for process in processes:
        _signal(process, signal.SIGTERM)


def allow_again() -> None:
    """After stop_all(): the clean-up needs commands of its own."""
    with _RUNNING.lock:
        _RUNNING.stopping = False


def pause(seconds: float) -> None:
    """Sleep between two looks, unless everything is to stop."""
    if _RUNNING.stopping:
        raise Interrupted
    time.sleep(seconds)


def _finishes(process: "subprocess.Popen[str]", timeout_s: float) -> bool:
    try:
        process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: "subprocess.Popen[str]") -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.communicate()


def _signal(process: "subprocess.Popen[str]", number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 160 else text[:157] + "..."


def _last_lines(done: Completed, log: Optional[Path]) -> str:
    if log:
        text = log.read_text(encoding="utf-8", errors="replace")
    else:
        text = done.stdout + done.stderr
    lines = [line for line in text.splitlines() if line.strip()][-15:]
    if log:
        lines.append(f"(all of it: {log})")
    return "\n".join("  " + line for line in lines)
