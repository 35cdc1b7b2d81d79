# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulated machine remembers: two JSON files and a log of calls.

Readers take no lock: a file is replaced by renaming, so they see the old or the new one. Writers hold a lock over
read, change and rename, because eight `nvidia-smi` may run at once.
"""

import fcntl
import json
import os
import time

from . import paths

VOLATILE = paths.VOLATILE + "/state.json"
PERSISTENT = paths.PERSISTENT + "/state.json"
CALLS = paths.PERSISTENT + "/calls.jsonl"


def load(path: str = VOLATILE) -> dict:
    """Return the content of a state file, `{}` when it does not exist yet."""
    try:
        with open(paths.at(path), encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return {}


class changing:
    """Give the content of a state file; what the block made of it is stored when the block ends without an error."""

    def __init__(self, path: str = VOLATILE):
        self.path = path
        self.target = paths.at(path)

    def __enter__(self) -> dict:
        os.makedirs(os.path.dirname(self.target), exist_ok=True)
        self.lock = open(self.target + ".lock", "a", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.content = load(self.path)
        return self.content

    def __exit__(self, kind, _error, _traceback) -> None:
        try:
            if kind is None:
                temporary = f"{self.target}.{os.getpid()}"
                with open(temporary, "w", encoding="utf-8") as stream:
                    json.dump(self.content, stream, indent=1, sort_keys=True)
                os.rename(temporary, self.target)
        finally:
            self.lock.close()


def record_call(tool: str, argv, effect: dict) -> None:
    """Append one call that changed something, so that a test can prove what a role really did."""
    entry = {"time": time.time(), "boot": load(PERSISTENT).get("boots", 0), "tool": tool, "argv": list(argv)}
    line = json.dumps({**entry, **effect}, sort_keys=True) + "\n"
    target = paths.at(CALLS)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "a", encoding="utf-8") as stream:
        stream.write(line)


def calls() -> list:
    """Return every recorded call, oldest first."""
    return [json.loads(line) for line in paths.read(CALLS).splitlines()]
