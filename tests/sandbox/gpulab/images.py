# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building the images of the hosts: a bootstrapped base for each release, a small layer for each image on top.

A base is made by mmdebstrap, from the archive that this machine's own apt uses where it is one of Debian's, otherwise
from mmdebstrap's default mirror. systems.py says which base an image has, images/setup.sh what makes it one.
Only what an inventory asks for is built. An image's tag is a hash of its inputs: a changed input is a new image.
Superseded ones that nothing uses are removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence

from .cache import SANDBOX, cache_dir, digest_of, lock
from .errors import LabError
from .podman import IMAGE_LABEL, podman, podman_argv, run_options
from .process import run
from .repo import Repositories
from .systems import (
    REPOSITORY_SUITE,
    Base,
    System,
    bases_of,
    check_known,
    debian,
    known_images,
    references_first,
    system_of,
)

__all__ = ["check_known", "ensure_images", "known_images", "prune"]

PREFIX = "localhost/gpulab"
CACHE_LABEL = "gpufleet.cache"
SOURCES = SANDBOX / "images"
DEBIAN_MIRROR_VARIABLE = "GPUFLEET_DEBIAN_MIRROR"
UBUNTU_MIRROR_VARIABLE = "GPUFLEET_UBUNTU_MIRROR"
UBUNTU_KEYRING = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
MERGE_USR = 'for name in bin lib lib32 lib64 libx32 sbin; do mkdir -p $1/usr/$name; ln -s usr/$name $1/$name; done'
MERGED_BY_HOOK = ("bullseye", "focal")
"""Suites whose minimal system has /bin and /lib apart, which no installed Ubuntu has had since 19.04."""

BUILD_TIMEOUT_S = 1800.0
IMPORT_TIMEOUT_S = 600.0

APT_SETTINGS = (
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::Retries",
)
"""What this machine's apt needs to reach its archive, the hosts need as well."""


def ensure_images(wanted: Iterable[str], repositories: Repositories) -> Dict[str, str]:
    """Build what is missing and return {image name: reference}; `base`, the repository server's, is always there."""
    systems = [system_of(image, os.environ.get(UBUNTU_MIRROR_VARIABLE, "")) for image in sorted(set(wanted))]
    references: Dict[str, str] = {}
    with lock("images"):
        for name, base in bases_of(systems).items():
            bootstrap = _bootstrap(base)
            references[name] = f"{PREFIX}/{name}:{bootstrap.digest()}"
            if not _have(references[name]):
                _say(f"building image {name} (about a minute)")
                _build_base(bootstrap, references[name])
        for system in systems:
            debs = repositories.image_debs(system.image) if system.stand_in else []
            inputs = [references[system.base.name], SOURCES / "setup.sh", SOURCES / "common", *debs]
            if system.stand_in:
                inputs += [SOURCES / system.image, repositories.archive_digest()]
            references[system.image] = f"{PREFIX}/{system.image}:{digest_of(system.image, *inputs)}"
            if not _have(references[system.image]):
                _say(f"building image {system.image}")
                _build_image(system, references, debs, repositories if system.stand_in else None)
    return {**references, "base": references[debian(REPOSITORY_SUITE).name]}


def prune(references: Dict[str, str]) -> None:
    """Remove superseded versions that this cache made of the images in use; those that a container uses stay."""
    label = f"{CACHE_LABEL}={cache_dir()}"
    done = podman("images", "--filter", f"label={label}", "--format", "{{.Repository}}:{{.Tag}}")
    current = set(references.values())
    in_use = {reference.rpartition(":")[0] for reference in current}
    found = done.stdout.split()
    superseded = [one for one in found if one.rpartition(":")[0] in in_use and one not in current]
    for reference in references_first(superseded, PREFIX):
        podman("rmi", reference, check=False)


@dataclass(frozen=True)
class _Bootstrap:
    """The inputs of a base: packages, where they come from (empty: mmdebstrap's default), apt settings."""

    base: Base
    packages: Sequence[str]
    sources: Sequence[str]
    apt_settings: Sequence[str]

    def digest(self) -> str:
        texts = [self.base.suite, self.base.components, *self.packages]
        if self.base.suite in MERGED_BY_HOOK:
            texts.append(MERGE_USR)
        return digest_of(*texts, "sources", *self.sources, "apt", *self.apt_settings)


def _bootstrap(base: Base) -> _Bootstrap:
    lines = (SOURCES / "base.packages").read_text(encoding="utf-8").splitlines()
    packages = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return _Bootstrap(base=base, packages=packages, sources=_sources(base), apt_settings=_apt_settings())


def _sources(base: Base) -> List[str]:
    """Lines of sources.list: the mirror that the environment names, or the archive that this machine itself uses."""
    variable = UBUNTU_MIRROR_VARIABLE if base.vendor == "Ubuntu" else DEBIAN_MIRROR_VARIABLE
    mirror = os.environ.get(variable)
    if mirror:
        return base.mirror_sources(mirror)
    if shutil.which("apt-get") is None:
        return []
    line = "$(REPO_URI) $(CODENAME) $(ORIGIN)"
    done = run(["apt-get", "indextargets", "--format", line, "Created-By: Packages"], check=False)
    return base.machine_sources(done.stdout)


def _apt_settings() -> List[str]:
    if shutil.which("apt-config") is None:
        return []
    done = run(["apt-config", "dump", "--no-empty", *APT_SETTINGS], check=False)
    settings = sorted(set(done.stdout.splitlines()))
    if any("::Proxy " in setting for setting in settings):
        settings.append('Acquire::http::Proxy::repo.lab "DIRECT";')
    return settings


def _build_base(bootstrap: _Bootstrap, reference: str) -> None:
    base = bootstrap.base
    if base.vendor == "Ubuntu" and not UBUNTU_KEYRING.exists():
        raise LabError(f"{base.name}: {UBUNTU_KEYRING} is missing; install ubuntu-keyring (or ubuntu-archive-keyring)")
    log = _fresh_log(base.name)
    with tempfile.TemporaryDirectory(prefix="base-", dir=cache_dir()) as folder:
        archive = Path(folder) / "base.tar"
        run(_mmdebstrap(bootstrap, archive), timeout_s=BUILD_TIMEOUT_S, log=log)
        podman("import", *_changes(base.name), str(archive), reference, timeout_s=IMPORT_TIMEOUT_S)


def _mmdebstrap(bootstrap: _Bootstrap, archive: Path) -> List[str]:
    """The command that bootstraps a base into a tar file."""
    command = ["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={','.join(bootstrap.packages)}"]
    command += [f"--components={bootstrap.base.components.replace(' ', ',')}"]
    # The package lists stay: without them check mode on a fresh host would see no package at all.
    command += ["--skip=cleanup/apt/lists"]
    if bootstrap.base.suite in MERGED_BY_HOOK:
        command += [f"--setup-hook={MERGE_USR}"]
    if bootstrap.base.vendor == "Ubuntu":
        command += [f"--keyring={UBUNTU_KEYRING}"]
    command += [f"--aptopt={setting}" for setting in ('Acquire::Languages "none";', *bootstrap.apt_settings)]
    command += [f"--dpkgopt=path-exclude=/usr/share/{what}/*" for what in ("doc", "man", "locale", "info")]
    return [*command, bootstrap.base.suite, str(archive), *bootstrap.sources]


def _build_image(
    system: System, references: Dict[str, str], debs: Sequence[Path], repositories: Optional[Repositories]
) -> None:
    image, kind = system.image, "stand-in" if system.stand_in else "genuine"
    log = _fresh_log(image)
    container = f"gpulab-build-{image}"
    with tempfile.TemporaryDirectory(prefix=f"{image}-", dir=cache_dir()) as folder:
        for deb in debs:
            shutil.copy2(deb, folder)
        volumes = [f"{SOURCES}:/mnt:ro", f"{folder}:/srv:ro"]
        if repositories:
            volumes += [f"{repositories.root}:/media:ro", f"{repositories.server.parent}:/opt:ro"]
        arguments = ["run", "--name", container, "--no-hosts", *run_options()]
        for volume in volumes:
            arguments += ["--volume", volume]
        # One left behind by a `lab` that was killed; the lock makes sure that nobody is using it.
        podman("rm", "--force", "--ignore", container)
        try:
            command = podman_argv(*arguments, references[system.base.name], "/mnt/setup.sh", image, kind)
            run(command, timeout_s=BUILD_TIMEOUT_S, log=log)
            changes = _changes(image)
            podman("commit", "--quiet", *changes, container, references[image], timeout_s=IMPORT_TIMEOUT_S)
        finally:
            podman("rm", "--force", "--ignore", container, check=False)


def _changes(image: str) -> List[str]:
    """What is written into an image beside its files: the labels that `prune` goes by."""
    return ["--change", f"LABEL {IMAGE_LABEL}={image}", "--change", f"LABEL {CACHE_LABEL}={cache_dir()}"]


def _fresh_log(image: str) -> Path:
    folder = cache_dir() / "logs"
    folder.mkdir(exist_ok=True)
    log = folder / f"image-{image}.log"
    log.write_text("", encoding="utf-8")
    return log


def _have(reference: str) -> bool:
    return podman("image", "exists", reference, check=False).rc == 0


def _say(text: str) -> None:
    print(f"lab: {text}", flush=True)
