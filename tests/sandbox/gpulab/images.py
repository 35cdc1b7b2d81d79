# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building the images of the hosts: one bootstrapped base, a small layer for each distribution on top.

The base is made by mmdebstrap from the archive that this machine's own apt uses when it is a Debian one, otherwise from
mmdebstrap's default mirror. `debian12` is that, genuine; the `ubuntu*` images are stand-ins (see images/setup.sh).
An image's tag is a hash of its inputs: a changed input is a new image. Superseded ones that nothing uses are removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Sequence

from .cache import SANDBOX, cache_dir, digest_of, lock
from .errors import UsageError
from .podman import IMAGE_LABEL, podman, podman_argv, run_options
from .process import run
from .repo import Repositories

PREFIX = "localhost/gpulab"
CACHE_LABEL = "gpufleet.cache"
SUITE = "bookworm"
COMPONENTS = "main contrib non-free non-free-firmware"
SOURCES = SANDBOX / "images"
MIRROR_VARIABLE = "GPUFLEET_DEBIAN_MIRROR"
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


def known_images() -> List[str]:
    """The names that `sandbox_image` may have."""
    return ["debian12", *sorted(path.name for path in SOURCES.glob("ubuntu*") if path.is_dir())]


def check_known(wanted: Iterable[str]) -> None:
    """Refuse an image that cannot be built, naming those that can."""
    unknown = sorted(set(wanted) - set(known_images()))
    if unknown:
        raise UsageError(f"unknown sandbox_image {', '.join(unknown)}; known: {', '.join(known_images())}")


def ensure_images(wanted: Iterable[str], repositories: Repositories) -> Dict[str, str]:
    """Build what is missing and return {image name: reference}; `base` is always among them."""
    bootstrap = _bootstrap()
    references = {"base": f"{PREFIX}/base:{bootstrap.digest()}"}
    with lock("images"):
        if not _have(references["base"]):
            _say("building image base (about a minute)")
            _build_base(bootstrap, references["base"])
        for image in sorted(set(wanted)):
            debs = repositories.image_debs(image)
            stand_in = (SOURCES / image).is_dir()
            inputs = [references["base"], SOURCES / "setup.sh", SOURCES / "common", *debs]
            if stand_in:
                inputs += [SOURCES / image, repositories.archive_digest()]
            references[image] = f"{PREFIX}/{image}:{digest_of(image, *inputs)}"
            if not _have(references[image]):
                _say(f"building image {image}")
                _build_image(image, references, debs, repositories if stand_in else None)
    return references


def prune(references: Dict[str, str]) -> None:
    """Remove superseded versions that this cache made of the images in use; those that a container uses stay."""
    label = f"{CACHE_LABEL}={cache_dir()}"
    done = podman("images", "--filter", f"label={label}", "--format", "{{.Repository}}:{{.Tag}}")
    current = set(references.values())
    superseded = []
    for reference in done.stdout.split():
        image = reference.removeprefix(f"{PREFIX}/").partition(":")[0]
        if reference.startswith(f"{PREFIX}/") and image in references and reference not in current:
            superseded.append(reference)
    for reference in sorted(superseded, key=lambda reference: reference.startswith(f"{PREFIX}/base:")):
        podman("rmi", reference, check=False)


@dataclass(frozen=True)
class _Bootstrap:
    """The inputs of the base image: packages, where they come from (empty: mmdebstrap's default), apt settings."""

    packages: Sequence[str]
    sources: Sequence[str]
    apt_settings: Sequence[str]

    def digest(self) -> str:
        return digest_of(SUITE, COMPONENTS, *self.packages, "sources", *self.sources, "apt", *self.apt_settings)


def _bootstrap() -> _Bootstrap:
    lines = (SOURCES / "base.packages").read_text(encoding="utf-8").splitlines()
    packages = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return _Bootstrap(packages=packages, sources=_sources(), apt_settings=_apt_settings())


def _sources() -> List[str]:
    """Lines of sources.list for the archive this machine itself is configured to use, if it offers the suite."""
    mirror = os.environ.get(MIRROR_VARIABLE)
    if mirror:
        return [f"deb {mirror} {suite} {COMPONENTS}" for suite in (SUITE, f"{SUITE}-updates")]
    if shutil.which("apt-get") is None:
        return []
    line = "$(REPO_URI) $(CODENAME) $(ORIGIN)"
    done = run(["apt-get", "indextargets", "--format", line, "Created-By: Packages"], check=False)
    found = {}
    for entry in done.stdout.splitlines():
        fields = entry.split()
        if len(fields) == 3 and fields[2] == "Debian" and fields[0].startswith(("http:", "https:")):
            found.setdefault(fields[1], fields[0])
    if SUITE not in found:
        return []
    wanted = (SUITE, f"{SUITE}-updates", f"{SUITE}-security")
    return [f"deb {found[suite]} {suite} {COMPONENTS}" for suite in wanted if suite in found]


def _apt_settings() -> List[str]:
    if shutil.which("apt-config") is None:
        return []
    done = run(["apt-config", "dump", "--no-empty", *APT_SETTINGS], check=False)
    settings = sorted(set(done.stdout.splitlines()))
    if any("::Proxy " in setting for setting in settings):
        settings.append('Acquire::http::Proxy::repo.lab "DIRECT";')
    return settings


def _build_base(bootstrap: _Bootstrap, reference: str) -> None:
    log = _fresh_log("base")
    with tempfile.TemporaryDirectory(prefix="base-", dir=cache_dir()) as folder:
        archive = Path(folder) / "base.tar"
        command = ["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={','.join(bootstrap.packages)}"]
        command += [f"--components={COMPONENTS.replace(' ', ',')}"]
        # The package lists stay: without them check mode on a fresh host would see no package at all.
        command += ["--skip=cleanup/apt/lists"]
        command += [f"--aptopt={setting}" for setting in ('Acquire::Languages "none";', *bootstrap.apt_settings)]
        command += [f"--dpkgopt=path-exclude=/usr/share/{what}/*" for what in ("doc", "man", "locale", "info")]
        run([*command, SUITE, str(archive), *bootstrap.sources], timeout_s=BUILD_TIMEOUT_S, log=log)
        podman("import", *_changes("base"), str(archive), reference, timeout_s=IMPORT_TIMEOUT_S)


def _build_image(
    image: str, references: Dict[str, str], debs: Sequence[Path], repositories: "Repositories | None"
) -> None:
    log = _fresh_log(image)
    reference = references[image]
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
            command = podman_argv(*arguments, references["base"], "/mnt/setup.sh", image)
            run(command, timeout_s=BUILD_TIMEOUT_S, log=log)
            podman("commit", "--quiet", *_changes(image), container, reference, timeout_s=IMPORT_TIMEOUT_S)
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
