"""What the simulated machine remembers: two JSON files and a log of calls.

Readers take no lock: a file is replaced by renaming, so they see the old or the new one. Writers hold a lock over
read, change and rename, because eight `nvidia-smi` may run at once.
"""

import contextlib
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


@contextlib.contextmanager
def changing(path: str = VOLATILE):
    """Yield the content of a state file; what the block made of it is stored when the block ends without an error."""
    target = paths.at(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target + ".lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content = load(path)
        yield content
        temporary = f"{target}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1, sort_keys=True)
        os.rename(temporary, target)


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
