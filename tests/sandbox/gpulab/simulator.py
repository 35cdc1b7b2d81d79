# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU simulator (package gpusim): its copy for the hosts, and what it can simulate."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import List, Set, Tuple

from .cache import SANDBOX, cache_dir, digest_of, files_below, lock
from .errors import UsageError
from .process import run

SOURCE = SANDBOX / "gpusim"
TARGET = "/usr/lib/gpulab"
"""Where the hosts see it, read-only."""


def ensure_copy() -> Path:
    """A copy of the simulator by its hash, so that an edit never changes a host that is already running."""
    folder = cache_dir() / "simulator"
    folder.mkdir(exist_ok=True)
    copy = folder / digest_of(SOURCE)
    with lock("simulator"):
        if not copy.exists():
            partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder))
            for path in files_below(SOURCE):
                target = partial / path.relative_to(SOURCE)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target, follow_symlinks=False)
            partial.chmod(0o755)
            partial.rename(copy)
    return copy


def prune(used: Set[str]) -> None:
    """Remove copies that no host mounts; `used` are the names of those that are."""
    for copy in (cache_dir() / "simulator").iterdir():
        if copy.name not in used:
            shutil.rmtree(copy, ignore_errors=True)


def listing(kind: str) -> str:
    """What `gpusim profiles` or `gpusim faults` prints: a name a line, then what it is."""
    return run([sys.executable, "-B", str(SOURCE / "bin" / "gpusim"), kind]).stdout


def names(kind: str) -> Tuple[str, ...]:
    """The names of `listing(kind)`."""
    return tuple(line.split()[0] for line in listing(kind).splitlines() if line.strip())


def check_known(kind: str, wanted: List[str]) -> None:
    """Refuse a profile or fault that the simulator does not know, naming those that it does."""
    known = names(kind)
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise UsageError(f"unknown {kind[:-1]} {', '.join(unknown)}; known: {', '.join(known)}")
