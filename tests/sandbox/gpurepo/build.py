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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from . import debs, index, keys, packages
from .manifest import HERE, MANIFEST_DIR, load
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
    inputs = {str(path.relative_to(HERE)): path for path in HERE.rglob("*")
              if path.is_file() and "__pycache__" not in path.parts}
    if manifest_path != MANIFEST_DIR:
        inputs = {name: path for name, path in inputs.items() if MANIFEST_DIR not in path.parents}
        inputs["manifest"] = manifest_path
    for name, path in sorted(inputs.items()):
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
    manifest_path = manifest_path or MANIFEST_DIR
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
    """What goes where: packages by directory, the indexes to write over them, and public keys to serve as files.

    `flat` and `suites` go from a place to (signing key, fields of the Release file); a suite's place has a name.
    """

    wanted: List[Tuple[packages.Package, Path]] = field(default_factory=list)
    flat: Dict[Path, Tuple[str, Dict[str, str]]] = field(default_factory=dict)
    suites: Dict[Tuple[Path, str], Tuple[str, Dict[str, str]]] = field(default_factory=dict)
    key_files: Dict[Path, str] = field(default_factory=dict)

    def add_flat(self, directory: Path, content: Sequence[packages.Package], key: str, **fields: str) -> None:
        self.wanted += [(package, directory) for package in content]
        self.flat[directory] = (key, {**fields, "Architectures": "amd64"})

    def add_suite(
        self, archive: Path, suite: str, content: Sequence[packages.Package], key: str, **fields: str
    ) -> None:
        self.wanted += [(package, archive / "pool" / package.component / suite) for package in content]
        self.suites[archive, suite] = (key, {**fields, "Architectures": "amd64"})


def _layout(manifest: Manifest, expander: packages.Expander, work: Path) -> _Layout:
    layout = _Layout()
    _lay_out_nvidia(layout, manifest, expander, work / "www")
    for name, repository in manifest.flat.items():
        content = packages.flat_packages(expander, name)
        layout.add_flat(work / "www" / repository.path, content, repository.key, Origin=repository.origin)
        layout.key_files[work / "www" / repository.key_file] = repository.key
    for family, suites in manifest.docker.families.items():
        archive = work / "www/linux" / family
        for suite, tag in suites.items():
            content = packages.docker_packages(expander, tag)
            layout.add_suite(archive, suite, content, manifest.docker.key, Origin=manifest.docker.origin,
                             Label=manifest.docker.origin, Codename=suite, Components=manifest.docker.component)
        layout.key_files[archive / "gpg"] = manifest.docker.key
    _lay_out_ubuntu(layout, manifest, expander, work)
    return layout


def _lay_out_nvidia(layout: _Layout, manifest: Manifest, expander: packages.Expander, www: Path) -> None:
    """Each distribution's repository, and its variants: with packages that are broken, and signed with the old key."""
    nvidia = manifest.nvidia
    for name, distribution in nvidia.distributions.items():
        whole = packages.nvidia_packages(expander, name)
        variants = {Path(): (whole, distribution.key), Path("old-key"): (whole, nvidia.old_key)}
        for what, patterns in manifest.broken.items():
            variants[Path("broken") / what] = (packages.broken_packages(whole, patterns), distribution.key)
        for prefix, (content, key) in variants.items():
            directory = www / prefix / CUDA_PATH / name / "x86_64"
            layout.add_flat(directory, content, key, Origin=nvidia.origin, Label=nvidia.label)
            layout.key_files[directory / distribution.key_file] = distribution.key
            layout.key_files[directory / nvidia.old_key_file] = nvidia.old_key


def _lay_out_ubuntu(layout: _Layout, manifest: Manifest, expander: packages.Expander, work: Path) -> None:
    archive = manifest.ubuntu
    for release_name, release in archive.releases.items():
        for pocket in archive.pockets:
            content = packages.archive_packages(expander, release_name, pocket)
            layout.add_suite(work / "www/ubuntu", release_name + pocket, content, archive.key, Origin=archive.origin,
                             Label=archive.origin, Codename=release_name, Version=release.version,
                             Components=" ".join(archive.components))
        image = packages.image_packages(expander, release_name)
        layout.wanted += [(package, work / "images" / release.image) for package in image]


def _fill(manifest: Manifest, signing: Dict[str, keys.SigningKey], work: Path) -> None:
    expander = packages.Expander(manifest, {name: key.binary.read_bytes() for name, key in signing.items()})
    layout = _layout(manifest, expander, work)
    debs.build_all(layout.wanted, manifest.maintainer, work / "store")

    releases: Dict[str, List[Path]] = {}
    with ThreadPoolExecutor(2) as pool:
        flat = pool.map(lambda item: index.index_flat(item[0], item[1][1]), layout.flat.items())
        suites = pool.map(lambda item: index.index_suite(*item[0], item[1][1]), layout.suites.items())
        wanted = [key for key, _fields in [*layout.flat.values(), *layout.suites.values()]]
        for key, release in zip(wanted, [*flat, *suites], strict=True):
            releases.setdefault(key, []).append(release)
    for key, signed in releases.items():
        keys.sign_releases(signing[key], signed)
    for path, key in layout.key_files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(signing[key].armoured, path)
