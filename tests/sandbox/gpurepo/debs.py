# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages to .deb files, by dpkg-deb. Two packages with the same content share one build and one inode."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

from .packages import Package

FIXED_TIME_S = "1764460800"
"""SOURCE_DATE_EPOCH: dpkg-deb's timestamps, so that the same manifest gives the same bytes."""

SECTIONS = {"main": "admin", "restricted": "restricted/admin", "universe": "universe/admin",
            "multiverse": "multiverse/admin"}


def control(package: Package, maintainer: str) -> str:
    lines = [
        "Package: %s" % package.name,
        "Version: %s" % package.version,
        "Architecture: %s" % package.arch,
        "Maintainer: %s" % maintainer,
        "Section: %s" % SECTIONS[package.component],
        "Priority: optional",
    ]
    lines += ["%s: %s" % (field, ", ".join(entries)) for field, entries in package.relations.items()]
    lines += [
        "Description: sandbox double of %s" % package.name,
        " Holds none of the vendor's code; it has the names, versions, relations and",
        " paths of the package it stands for.",
    ]
    return "\n".join(lines) + "\n"


def conffiles(package: Package) -> List[str]:
    """Every file under /etc, as debhelper has it."""
    return [entry.path for entry in package.files if entry.path.startswith("/etc/")]


def content_key(package: Package, maintainer: str) -> str:
    """Differs whenever the .deb's bytes would."""
    digest = hashlib.sha256(control(package, maintainer).encode())
    digest.update(repr((package.files, package.links, package.scripts)).encode())
    return digest.hexdigest()[:32]


def _stage(package: Package, maintainer: str, root: Path) -> None:
    def write(path: Path, data: bytes, mode: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)

    write(root / "DEBIAN/control", control(package, maintainer).encode(), 0o644)
    if conffiles(package):
        write(root / "DEBIAN/conffiles", "".join(path + "\n" for path in conffiles(package)).encode(), 0o644)
    for script, text in package.scripts:
        write(root / "DEBIAN" / script, text.encode(), 0o755)
    for entry in package.files:
        write(root / entry.path.lstrip("/"), entry.data, entry.mode)
    for path, target in package.links:
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)


def _build(package: Package, maintainer: str, store: Path) -> Path:
    key = content_key(package, maintainer)
    deb, root = store / (key + ".deb"), store / (key + ".d")
    _stage(package, maintainer, root)
    command = ["dpkg-deb", "-Znone", "--root-owner-group", "--build", str(root), str(deb)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": FIXED_TIME_S, "LC_ALL": "C"}
    done = subprocess.run(command, check=False, capture_output=True, timeout=60, env=environment)
    if done.returncode != 0:
        raise RuntimeError("dpkg-deb refused %s: %s" % (package.filename, done.stderr.decode(errors="replace").strip()))
    shutil.rmtree(root)
    return deb


def build_all(wanted: Iterable[Tuple[Package, Path]], maintainer: str, store: Path, workers: int = 2) -> int:
    """Build each package and link it into its directory. Returns how many .deb files were really built."""
    places: Dict[str, List[Path]] = {}
    packages: Dict[str, Package] = {}
    for package, directory in wanted:
        key = content_key(package, maintainer)
        packages[key] = package
        places.setdefault(key, []).append(directory / package.filename)
    store.mkdir(parents=True)
    with ThreadPoolExecutor(workers) as pool:
        debs = pool.map(lambda package: _build(package, maintainer, store), packages.values())
        built = dict(zip(packages, debs, strict=True))
    for key, paths in places.items():
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                os.link(built[key], path)
    shutil.rmtree(store)
    return len(built)
