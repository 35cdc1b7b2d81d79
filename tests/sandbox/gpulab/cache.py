# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where built things are kept, how they are named, and how several `lab` processes share them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Iterator, TextIO, Union

SANDBOX = Path(__file__).resolve().parent.parent
"""The folder tests/sandbox: the sources of everything that is cached."""

LOCKS = Path("/run/gpulab/locks")
"""Not in the cache: podman's containers, images and networks are the whole machine's, whatever cache is used."""

DIGEST_CHARS = 16
_IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def cache_dir() -> Path:
    """$GPUFLEET_CACHE, by default ~/.cache/gpufleet; made when missing."""
    root = Path(os.environ.get("GPUFLEET_CACHE") or Path.home() / ".cache" / "gpufleet")
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


@contextlib.contextmanager
def lock(name: str, shared: bool = False) -> Iterator[None]:
    """Hold the lock `name` against other processes of this machine; the kernel releases it when this one dies."""
    with _lock_file(name) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def lock_if_free(name: str) -> Iterator[bool]:
    """The same without waiting; yields whether the lock is held."""
    with _lock_file(name) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _lock_file(name: str) -> TextIO:
    LOCKS.mkdir(parents=True, exist_ok=True)
    return (LOCKS / f"{name}.lock").open("w", encoding="utf-8")


def digest_of(*parts: Union[str, Path]) -> str:
    """A hash over texts, files and folders (names, contents, modes); 16 hexadecimal digits."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            for path in [part] if part.is_file() else files_below(part):
                total.update(f"{path.relative_to(part)}\0{path.lstat().st_mode:o}\0".encode())
                total.update(os.readlink(path).encode() if path.is_symlink() else path.read_bytes())
        else:
            total.update(part.encode())
        total.update(b"\0\0")
    return total.hexdigest()[:DIGEST_CHARS]


def files_below(folder: Path) -> list[Path]:
    """All files and links below a folder, sorted, without what tools leave behind."""
    return sorted(
        path
        for path in folder.rglob("*")
        if (path.is_symlink() or path.is_file()) and not _IGNORED.intersection(path.relative_to(folder).parts)
    )
