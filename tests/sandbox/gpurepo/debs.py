# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages to .deb files. Two packages with the same content share one build and one inode."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

from . import deb
from .packages import Package

SECTIONS = {"restricted": "restricted/admin", "universe": "universe/admin",
            "multiverse": "multiverse/admin"}


def control(package: Package, maintainer: str) -> str:
    lines = [
        "Package: %s" % package.name,
        "Version: %s" % package.version,
        "Architecture: %s" % package.arch,
        "Maintainer: %s" % maintainer,
        "Section: %s" % SECTIONS.get(package.component, "admin"),
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


def packed(package: Package, maintainer: str) -> bytes:
    """The bytes of the .deb."""
    members = [("control", control(package, maintainer).encode(), 0o644)]
    if conffiles(package):
        members.append(("conffiles", "".join(path + "\n" for path in conffiles(package)).encode(), 0o644))
    members += [(script, text.encode(), 0o755) for script, text in package.scripts]
    files = [(entry.path.lstrip("/"), entry.data, entry.mode) for entry in package.files]
    return deb.pack(members, files, [(path.lstrip("/"), target) for path, target in package.links])


def build_all(wanted: Iterable[Tuple[Package, Path]], maintainer: str, store: Path) -> int:
    """Build each package and link it into its directory. Returns how many .deb files were really built."""
    places: Dict[str, List[Path]] = {}
    packages: Dict[str, Package] = {}
    for package, directory in wanted:
        key = content_key(package, maintainer)
        packages[key] = package
        places.setdefault(key, []).append(directory / package.filename)
    store.mkdir(parents=True)
    for key, package in packages.items():
        built = store / (key + ".deb")
        built.write_bytes(packed(package, maintainer))
        for path in places[key]:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                os.link(built, path)
    shutil.rmtree(store)
    return len(packages)
