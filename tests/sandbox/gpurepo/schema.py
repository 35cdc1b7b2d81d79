# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shapes of the manifest, as frozen dataclasses. They are its documentation; its comments say what values mean."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

Strings = Tuple[str, ...]


PROPRIETARY = "NVIDIA"
"""The `license` of a template's row that is about the proprietary modules."""


class ManifestError(Exception):
    """What is wrong with the manifest, and where: `sets.kernel[0]: unknown key 'depend'`."""


@dataclass(frozen=True)
class Key:
    name: str
    email: str


@dataclass(frozen=True)
class Branch:
    era: str
    versions: Strings
    open_only: bool = False


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit, and the version of the driver that its metapackages bring; "": they bring none."""

    version: str
    driver: str = ""


@dataclass(frozen=True)
class FileSpec:
    """One file of a package; its content is `text`, a `source` from files/, or a public `key`."""

    path: str
    text: Optional[str] = None
    source: Optional[str] = None
    key: Optional[str] = None
    mode: str = "0644"


@dataclass(frozen=True)
class LibrarySpec:
    """`STEM.VERSION` and a link of the soname's name to it, in the library directory."""

    stem: str
    soname: str


@dataclass(frozen=True)
class ModulesSpec:
    """The driver's kernel modules, in `directory`; `kernel` is the release they are built for, where fixed."""

    directory: str
    license: str
    kernel: str = ""


@dataclass(frozen=True)
class ScriptPart:
    source: str
    values: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Payload:
    files: Tuple[FileSpec, ...] = ()
    links: Mapping[str, str] = dataclasses.field(default_factory=dict)
    libraries: Tuple[LibrarySpec, ...] = ()
    modules: Tuple[ModulesSpec, ...] = ()
    postinst: Tuple[ScriptPart, ...] = ()
    prerm: Tuple[ScriptPart, ...] = ()
    postrm: Tuple[ScriptPart, ...] = ()


@dataclass(frozen=True)
class Template:
    """A package, or several alike: one per row of `each`, and per kernel where `per_kernel`.

    One that `follows_kernel` is a metapackage of the newest kernel; `pinned` ones carry the driver's version.
    """

    name: str
    version: str = "{dv}"
    arch: str = "amd64"
    component: str = "main"
    each: Tuple[Mapping[str, str], ...] = ()
    per_kernel: bool = False
    follows_kernel: bool = False
    proprietary: bool = False
    family: str = ""
    supersedes: Strings = ()
    depends: Strings = ()
    recommends: Strings = ()
    provides: Strings = ()
    payloads: Strings = ()
    pinned: bool = True


@dataclass(frozen=True)
class Distribution:
    family: str
    revision: str
    branches: Strings
    cuda: Strings
    sets: Strings
    key: str
    key_file: str
    keyring_pin: str


@dataclass(frozen=True)
class NvidiaRepository:
    origin: str
    label: str
    always: Strings
    pinning: str
    cuda: str
    old_key: str
    old_key_file: str
    distributions: Mapping[str, Distribution]


@dataclass(frozen=True)
class FlatRepository:
    path: str
    key: str
    key_file: str
    origin: str
    sets: Strings


@dataclass(frozen=True)
class DockerRepository:
    """`families` go from the folder of a family of systems to {codename: the end of its versions}."""

    key: str
    origin: str
    component: str
    sets: Strings
    families: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Kernel:
    """`5.15.0-164`, its packages' version `….174`, and the last part of its metapackages' version."""

    abi: str
    upload: str
    meta: str

    @property
    def release(self) -> str:
        return self.abi + "-generic"

    @property
    def version(self) -> str:
        return "%s.%s" % (self.abi, self.upload)

    @property
    def meta_version(self) -> str:
        return "%s.%s" % (self.abi.replace("-", "."), self.meta)


@dataclass(frozen=True)
class Release:
    image: str
    version: str
    revision: str
    kernels: Tuple[Kernel, ...]
    next_kernels: Tuple[Kernel, ...]
    branches: Strings
    toolkits: Mapping[str, str]


@dataclass(frozen=True)
class Pocket:
    """`next_kernels`: what is needed to boot those; `follow`: the metapackages that move a host to them."""

    versions: Strings
    desktop: Strings = ()
    kernels: bool = False
    next_kernels: bool = False
    follow: bool = False
    toolkits: bool = False
    transitional: bool = False


@dataclass(frozen=True)
class Transition:
    old: str
    new: str
    sets: Strings
    releases: Strings = ()


@dataclass(frozen=True)
class UbuntuArchive:
    key: str
    origin: str
    components: Strings
    image_packages: Strings
    image_sets: Strings
    kernel_sets: Strings
    toolkit_sets: Strings
    releases: Mapping[str, Release]
    pockets: Mapping[str, Pocket]
    transitional: Tuple[Transition, ...]


@dataclass(frozen=True)
class Manifest:
    schema: int
    maintainer: str
    host: str
    library_dir: str
    keys: Mapping[str, Key]
    branches: Mapping[str, Branch]
    eras: Mapping[str, Mapping[str, Strings]]
    cuda: Mapping[str, Toolkit]
    nvidia: NvidiaRepository
    ubuntu: UbuntuArchive
    flat: Mapping[str, FlatRepository]
    docker: DockerRepository
    broken: Mapping[str, Strings]
    payloads: Mapping[str, Payload]
    sets: Mapping[str, Tuple[Template, ...]]

    def branch_of(self, version: str) -> str:
        """`580.178.04` → `580`; a version that no branch lists is an error."""
        for name, branch in self.branches.items():
            if version in branch.versions:
                return name
        raise ManifestError("version %s is in no branch" % version)

    def suffixed_branches(self) -> Strings:
        return tuple(name for name, branch in self.branches.items() if branch.era.startswith("suffixed"))
