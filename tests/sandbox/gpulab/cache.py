"""Where built things are kept, how they are named, and how several `lab` processes share them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Iterator, Union

SANDBOX = Path(__file__).resolve().parent.parent
"""The folder tests/sandbox: the sources of everything that is cached."""

DIGEST_CHARS = 16
_IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def cache_dir() -> Path:
    """$GPUFLEET_CACHE, by default ~/.cache/gpufleet; made when missing."""
    root = Path(os.environ.get("GPUFLEET_CACHE") or Path.home() / ".cache" / "gpufleet")
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the lock `name` against other processes; released by the kernel when this one dies."""
    folder = cache_dir() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.lock").open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


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
