"""What the tools share: where things are, how a skip is said, how a step's command is run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterable, Sequence

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GPUFLEET_CACHE") or Path.home() / ".cache" / "gpufleet")
VENV_BIN = Path(sys.executable).parent

SKIP_PREFIX = "SKIPPED: "
"""A line that begins so is repeated by tools/suite.py in the last lines of the run."""


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def skip(reason: str) -> int:
    """Say loudly that something was not looked at. Returns the exit status: with CI=true that is a failure."""
    if is_ci():
        print("ERROR: CI=true, and this would be skipped: " + reason)
        return 1
    print(SKIP_PREFIX + reason)
    return 0


def run(command: Sequence[object], **options) -> int:
    """Run a command in the repository with the development tools first in PATH; returns its exit status."""
    environment = dict(os.environ, **options.pop("env", {}))
    environment["PATH"] = "%s:%s" % (VENV_BIN, environment["PATH"])
    options.setdefault("cwd", REPOSITORY)
    sys.stdout.flush()
    return subprocess.run([str(word) for word in command], env=environment, check=False, **options).returncode


def project_files() -> list[str]:
    """Paths of all files that belong to the project: tracked, and new ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    ).stdout
    return sorted(name for name in listed.split("\0") if name and os.path.lexists(REPOSITORY / name))


def copy_project(target: Path, leave_out: Iterable[str] = ()) -> None:
    """Make `target` equal to the project's files, without those below the folders in `leave_out`.

    Unchanged files keep their times, so that tools with caches of their own stay quick.
    """
    without = tuple(folder + "/" for folder in leave_out)
    wanted = [name for name in project_files() if not name.startswith(without)]
    present = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_symlink() or not path.is_dir()}
    for stale in present - set(wanted):
        (target / stale).unlink()
    for name in wanted:
        source, copy = REPOSITORY / name, target / name
        if source.is_symlink() or not copy.exists() or not _equal(source, copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            if copy.is_symlink() or copy.exists():
                copy.unlink()
            shutil.copy2(source, copy, follow_symlinks=False)


def _equal(one: Path, other: Path) -> bool:
    return one.stat().st_mode == other.stat().st_mode and one.read_bytes() == other.read_bytes()


def find_python(version: str) -> str | None:
    """Path of an interpreter of this version ("3.8"), from pyenv, PATH or uv; None where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [str(path / "bin" / "python") for path in sorted(pyenv.glob(version + ".*"), reverse=True)]
    candidates += [path for path in [shutil.which("python" + version)] if path]
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", "--no-python-downloads", version],
                               capture_output=True, text=True, check=False)
        candidates += found.stdout.split()
    for candidate in candidates:
        asked = subprocess.run([candidate, "-c", "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"],
                               capture_output=True, text=True, check=False)
        if asked.stdout.strip() == version:
            return candidate
    return None


def virtual_environment(name: str, python: str, requirements: Sequence[str]) -> Path:
    """A virtual environment in the cache with these pip arguments installed; made anew when any of it changes.

    Returns the path of its interpreter.
    """
    folder = CACHE / "venvs" / name
    wanted = hashlib.sha256()
    for word in [os.path.realpath(python), *requirements]:
        wanted.update(word.encode())
        if os.path.isfile(word) and word.endswith(".txt"):
            wanted.update(Path(word).read_bytes())
    stamp = folder / "stamp"
    if not (stamp.is_file() and stamp.read_text() == wanted.hexdigest()):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet",
                        "--disable-pip-version-check", *requirements], check=True)
        stamp.write_text(wanted.hexdigest())
    return folder / "bin" / "python"
