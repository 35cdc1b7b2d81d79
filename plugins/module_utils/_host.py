# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only file of module_utils that touches the machine: it opens files and starts commands.

Everything else here is pure and is handed a :class:`Host`, so that a test can hand in a fake one. A command always
has a time limit, the C locale, no shell and a bound on its output. A hang is a result, not an exception: a process
stuck in uninterruptible sleep ignores SIGKILL, so it is left behind instead of being waited for.
"""

from __future__ import annotations

import glob
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence

DEFAULT_TIMEOUT_S = 60.0
"""`nvidia-smi` can hang for minutes on a sick GPU; a healthy one answers in a few seconds."""

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""Bound on what is kept of one stream; `nvidia-smi -q -x` of 16 GPUs is under 1 MiB."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class CommandResult:
    """What a command did. `rc` is None where there is none: not found, or not ended in time."""

    argv: Sequence[str]
    rc: Optional[int]
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False
    missing: bool = False
    truncated: bool = False

    @property
    def ok(self) -> bool:
        return self.rc == 0 and not self.truncated

    def describe(self) -> str:
        """One line for a person: the command and how it ended."""
        command = " ".join(self.argv)
        if self.missing:
            return "%s: command not found" % command
        if self.timed_out:
            return "%s: no answer within %.0f s" % (command, self.seconds)
        return "%s: exit status %s" % (command, self.rc)


class Host:
    """The machine that this code runs on. `root` moves every path that is read, for tests."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def path(self, path: str) -> str:
        return path if self.root == "/" else os.path.join(self.root, path.lstrip("/"))

    # -- files -----------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str, max_bytes: int = MAX_OUTPUT_BYTES) -> Optional[bytes]:
        """Content of a file, or None where it cannot be read (absent, no permission, an I/O error of sysfs)."""
        try:
            with open(self.path(path), "rb", buffering=0) as handle:
                return _read_pieces(handle, max_bytes)
        except OSError:
            return None

    def read_text(self, path: str, max_bytes: int = MAX_OUTPUT_BYTES) -> Optional[str]:
        data = self.read_bytes(path, max_bytes)
        return None if data is None else data.decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def list_dir(self, path: str) -> List[str]:
        """Sorted names in a folder; empty where there is no such folder."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def glob(self, pattern: str) -> List[str]:
        """Sorted paths that match, as seen from the machine's own root."""
        found = sorted(glob.glob(self.path(pattern)))
        if self.root == "/":
            return found
        return ["/" + os.path.relpath(path, self.root) for path in found]

    def real_path(self, path: str) -> str:
        real = os.path.realpath(self.path(path))
        if self.root == "/":
            return real
        return "/" + os.path.relpath(real, os.path.realpath(self.root))

    # -- commands --------------------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_bytes: int = MAX_OUTPUT_BYTES,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
    ) -> CommandResult:
        """Run a command; never raises for what the command does, and never waits past `timeout_s` seconds."""
        started = time.monotonic()
        environment = {
            "PATH": SYSTEM_PATH,
            "LC_ALL": "C",
            "LANG": "C",
            "HOME": os.environ.get("HOME", "/root"),
        }
        environment.update(env or {})
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except (FileNotFoundError, NotADirectoryError):
            return CommandResult(tuple(argv), None, "", "", 0.0, missing=True)
        except OSError as error:
            return CommandResult(tuple(argv), 126, "", str(error), time.monotonic() - started)
        if stdin is not None:
            _feed(process, stdin)
        streams, timed_out, truncated = _read_until(process, started + timeout_s, max_bytes)
        if timed_out or truncated:
            _kill_group(process)
        rc = process.poll()
        return CommandResult(
            argv=tuple(argv),
            rc=None if timed_out else rc,
            stdout=streams["stdout"].decode("utf-8", "replace"),
            stderr=streams["stderr"].decode("utf-8", "replace"),
            seconds=time.monotonic() - started,
            timed_out=timed_out,
            truncated=truncated,
        )


def _read_pieces(handle, max_bytes: int) -> bytes:
    """At most `max_bytes`, in small pieces: files of /proc/sys refuse a read with a buffer of megabytes."""
    pieces = []
    left = max_bytes
    while left > 0:
        piece = handle.read(min(left, 65536))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _feed(process: subprocess.Popen, text: str) -> None:
    try:
        process.stdin.write(text.encode("utf-8"))
        process.stdin.close()
    except OSError:
        pass  # the command went away without reading; its exit status tells


def _read_until(process: subprocess.Popen, deadline: float, max_bytes: int):
    """Read both streams until they close and the process ends, the deadline passes or the bound is reached."""
    streams: Dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    truncated = False
    with selectors.DefaultSelector() as selector:
        for name in streams:
            pipe = getattr(process, name)
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, name)
        while selector.get_map() and not truncated:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            for key, _events in selector.select(left):
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                buffer = streams[key.data]
                buffer += chunk[: max_bytes - len(buffer)]
                truncated = truncated or len(buffer) >= max_bytes
    process.stdout.close()
    process.stderr.close()
    try:
        process.wait(timeout=1.0 if truncated else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return streams, not truncated, truncated
    return streams, False, truncated


def _kill_group(process: subprocess.Popen) -> None:
    """SIGKILL to the command and its children, then a short wait: one in uninterruptible sleep stays behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        return
    try:
        process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        pass
