# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Indexes over directories of .deb files, by apt-ftparchive: Packages, Packages.gz, Release (signed by keys.py)."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import List, Mapping


def _ftparchive(directory: Path, *arguments: str) -> bytes:
    command = ["apt-ftparchive", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, timeout=300, cwd=directory)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr.decode(errors="replace").strip()))
    return done.stdout


def _write_packages(directory: Path, data: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "Packages").write_bytes(data)
    (directory / "Packages.gz").write_bytes(gzip.compress(data, mtime=0))


def _write_release(directory: Path, fields: Mapping[str, str]) -> Path:
    options: List[str] = []
    for name, value in fields.items():
        options += ["-o", "APT::FTPArchive::Release::%s=%s" % (name, value)]
    text = _ftparchive(directory, *options, "release", ".")
    release = directory / "Release"
    release.write_bytes(text)
    return release


def index_flat(directory: Path, fields: Mapping[str, str]) -> Path:
    """A flat repository (`Suites: /`): the index lies beside the packages. Returns its Release file."""
    _write_packages(directory, _ftparchive(directory, "packages", "."))
    return _write_release(directory, fields)


def index_suite(archive: Path, suite: str, fields: Mapping[str, str]) -> Path:
    """`dists/SUITE` over `pool/COMPONENT/SUITE` for each of the field Components. Returns the suite's Release file."""
    dist = archive / "dists" / suite
    for component in fields["Components"].split():
        pool = "pool/%s/%s" % (component, suite)
        found = (archive / pool).is_dir()
        data = _ftparchive(archive, "--arch", "amd64", "packages", pool) if found else b""
        _write_packages(dist / component / "binary-amd64", data)
    return _write_release(dist, {**fields, "Suite": suite})
