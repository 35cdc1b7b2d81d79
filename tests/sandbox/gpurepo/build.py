# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`build(cache)`: the whole tree of repositories, from the cache or built anew when any input has changed.

A tree lies in CACHE/repos/DIGEST: `www` is what the repository server serves, `images` what stand-in images hold.
The digest covers every file of this package and the keys, so a tree never has to be refreshed in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from . import debs, index, keys, packages
from .manifest import HERE, load
from .schema import Manifest

KEPT_TREES = 4
"""The tree in use and those used before it: a lab that was started earlier still serves its own."""

CUDA_PATH = "compute/cuda/repos"


@dataclass(frozen=True)
class RepoTree:
    """A built tree. `root` is served at http://repo.lab/; `fresh` says that this call built it."""

    base: Path
    digest: str
    fresh: bool = False

    @property
    def root(self) -> Path:
        return self.base / "www"

    def image_debs(self, image: str) -> List[Path]:
        """The packages that an image needs before its first role run; none for a genuine image."""
        return sorted((self.base / "images" / image).glob("*.deb"))


def input_digest(manifest_path: Path, fingerprints: List[str]) -> str:
    """One hash over all that decides the tree's content: this package's files, the manifest and the keys."""
    digest = hashlib.sha256()
    inputs = [path for path in sorted(HERE.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    for path in [path for path in inputs if path.name != "manifest.yml"] + [manifest_path]:
        name = "manifest.yml" if path == manifest_path else str(path.relative_to(HERE))
        digest.update(("%s\0%s\0" % (name, hashlib.sha256(path.read_bytes()).hexdigest())).encode())
    digest.update("\0".join(fingerprints).encode())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Directory modes go into packages: they must not depend on who builds."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def build(cache: Path, manifest_path: Optional[Path] = None) -> RepoTree:
    """The tree for the present inputs. Safe to call from several processes at once."""
    cache = Path(cache)
    manifest_path = manifest_path or HERE / "manifest.yml"
    repos = cache / "repos"
    with _locked(cache / "repos.lock"), _umask(0o022):
        manifest = load(manifest_path)
        signing = {name: keys.ensure_key(name, key, cache / "keys") for name, key in manifest.keys.items()}
        digest = input_digest(manifest_path, [key.fingerprint for key in signing.values()])
        base = repos / digest
        fresh = not base.is_dir()
        if fresh:
            repos.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=".building-", dir=repos))
            try:
                _fill(manifest, signing, work)
                work.chmod(0o755)
                work.rename(base)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        os.utime(base)
        _prune(repos, base)
    return RepoTree(base, digest, fresh)


def _prune(repos: Path, current: Path) -> None:
    """Keep the newest trees by last use; what a killed build left behind goes too (the lock is ours)."""
    trees = [path for path in repos.iterdir() if path.is_dir()]
    old = sorted((path for path in trees if path != current and not path.name.startswith(".")),
                 key=lambda path: path.stat().st_mtime, reverse=True)
    unfinished = [path for path in trees if path.name.startswith(".building-")]
    for path in old[KEPT_TREES - 1:] + unfinished:
        shutil.rmtree(path, ignore_errors=True)


@dataclass
class _Layout:
    """What goes where: packages by directory, and the indexes to write over them."""

    wanted: List[Tuple[packages.Package, Path]]
    flat: Dict[Path, Dict[str, str]]
    suites: Dict[Tuple[Path, str], Dict[str, str]]


def _layout(manifest: Manifest, expander: packages.Expander, work: Path) -> _Layout:
    layout = _Layout([], {}, {})
    nvidia = manifest.nvidia
    for name in nvidia.distributions:
        whole = packages.nvidia_packages(expander, name)
        variants = {Path(): whole}
        for what, patterns in manifest.broken.items():
            variants[Path("broken") / what] = packages.broken_packages(whole, patterns)
        for prefix, content in variants.items():
            directory = work / "www" / prefix / CUDA_PATH / name / "x86_64"
            layout.wanted += [(package, directory) for package in content]
            layout.flat[directory] = {"Origin": nvidia.origin, "Label": nvidia.label, "Architectures": "amd64"}
    archive = manifest.ubuntu
    for release_name, release in archive.releases.items():
        for pocket in archive.pockets:
            suite = release_name + pocket
            for package in packages.archive_packages(expander, release_name, pocket):
                layout.wanted.append((package, work / "www/ubuntu/pool" / package.component / suite))
            layout.suites[work / "www/ubuntu", suite] = {
                "Origin": archive.origin, "Label": archive.origin, "Codename": release_name,
                "Version": release.version, "Architectures": "amd64"}
        image = packages.image_packages(expander, release_name)
        layout.wanted += [(package, work / "images" / release.image) for package in image]
    return layout


def _fill(manifest: Manifest, signing: Dict[str, keys.SigningKey], work: Path) -> None:
    expander = packages.Expander(manifest, {name: key.binary.read_bytes() for name, key in signing.items()})
    layout = _layout(manifest, expander, work)
    debs.build_all(layout.wanted, manifest.maintainer, work / "store")

    nvidia_key = signing[manifest.nvidia.key]
    with ThreadPoolExecutor(2) as pool:
        flat = pool.map(lambda item: index.index_flat(*item), layout.flat.items())
        suites = pool.map(
            lambda item: index.index_suite(*item[0], manifest.ubuntu.components, item[1]), layout.suites.items()
        )
        nvidia_releases, ubuntu_releases = list(flat), list(suites)
    keys.sign_releases(nvidia_key, nvidia_releases)
    keys.sign_releases(signing[manifest.ubuntu.key], ubuntu_releases)
    for directory in layout.flat:
        shutil.copyfile(nvidia_key.armoured, directory / manifest.nvidia.key_file)
