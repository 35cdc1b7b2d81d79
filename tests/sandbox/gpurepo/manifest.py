# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest as typed data: `load(path)` reads the files of manifest/ and refuses what it does not know.

A misspelt key would otherwise quietly leave out a conflict or a file, and a test built on it would prove nothing.
"""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

import yaml

from .schema import Manifest, ManifestError

SCHEMA = 1
HERE = Path(__file__).resolve().parent
FILES_DIR = HERE / "files"
MANIFEST_DIR = HERE / "manifest"

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same loader written in C, ten times faster, where PyYAML was built with it."""


def _decode(kind: Any, value: Any, where: str) -> Any:
    """`value` (from YAML) as `kind`, a type of the dataclasses above."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return None if value is None else _decode(arguments[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ManifestError("%s: expected a list, found %r" % (where, value))
        return tuple(_decode(arguments[0], item, "%s[%d]" % (where, i)) for i, item in enumerate(value))
    if dataclasses.is_dataclass(kind) or origin is not None:
        if not isinstance(value, dict):
            raise ManifestError("%s: expected a mapping, found %r" % (where, value))
        for key in value:
            if not isinstance(key, str):
                raise ManifestError("%s: the key %r is no text; quote it" % (where, key))
    if origin is not None:
        return {key: _decode(arguments[1], item, "%s.%s" % (where, key)) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _decode_fields(kind, value, where)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ManifestError("%s: expected %s, found %r" % (where, kind.__name__, value))
    return value


def _decode_fields(kind: Any, value: Mapping[str, Any], where: str) -> Any:
    types = typing.get_type_hints(kind)
    known = {field.name: field for field in dataclasses.fields(kind)}
    for key in value:
        if key not in known:
            raise ManifestError("%s: unknown key %r; known are %s" % (where, key, ", ".join(sorted(known))))
    for name, field in known.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in value:
            raise ManifestError("%s: the key %r is missing" % (where, name))
    return kind(**{key: _decode(types[key], item, "%s.%s" % (where, key)) for key, item in value.items()})


def _refer(name: str, known: Mapping[str, Any], where: str) -> None:
    if name not in known:
        raise ManifestError("%s: %r is not defined; defined are %s" % (where, name, ", ".join(sorted(known))))


def _check_references(manifest: Manifest) -> None:
    """Every name that points at another part of the manifest, or at a file of files/, must lead somewhere."""
    for name, branch in manifest.branches.items():
        _refer(branch.era, manifest.eras, "branches.%s.era" % name)
    for era, families in manifest.eras.items():
        for family, sets in families.items():
            for set_name in sets:
                _refer(set_name, manifest.sets, "eras.%s.%s" % (era, family))
    for name, distribution in manifest.nvidia.distributions.items():
        where = "nvidia.distributions.%s" % name
        for branch_name in distribution.branches:
            _refer(branch_name, manifest.branches, where + ".branches")
        for toolkit in distribution.cuda:
            _refer(toolkit, manifest.cuda, where + ".cuda")
        for set_name in distribution.sets:
            _refer(set_name, manifest.sets, where + ".sets")
        _refer(distribution.key, manifest.keys, where + ".key")
    for pocket in manifest.ubuntu.pockets.values():
        for version in pocket.versions:
            manifest.branch_of(version)
    for transition in manifest.ubuntu.transitional:
        _refer(transition.new, manifest.branches, "ubuntu.transitional")


def _check_payloads(manifest: Manifest) -> None:
    """Likewise for what templates install, down to the files of files/."""
    for name, templates in manifest.sets.items():
        for template in templates:
            for payload_name in template.payloads:
                _refer(payload_name, manifest.payloads, "sets.%s: %s" % (name, template.name))
    sources = {path.name: path for path in FILES_DIR.iterdir()}
    for name, payload in manifest.payloads.items():
        for part in [*payload.files, *payload.postinst, *payload.prerm, *payload.postrm]:
            if part.source and "{" not in part.source:
                _refer(part.source, sources, "payloads.%s.source" % name)


def merge(documents: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """One document of several: their sets and payloads together, every other key from the one that has it."""
    merged: Dict[str, Any] = {}
    for document in documents:
        for key, value in document.items():
            if key in ("sets", "payloads"):
                known = merged.setdefault(key, {})
                for name in value:
                    if name in known:
                        raise ManifestError("%s.%s is there twice" % (key, name))
                known.update(value)
            elif key in merged:
                raise ManifestError("%s is there twice" % key)
            else:
                merged[key] = value
    return merged


def read(path: Path = MANIFEST_DIR) -> Dict[str, Any]:
    """The manifest as YAML has it, from a folder of files or from one file."""
    files = sorted(path.glob("*.yml")) if path.is_dir() else [path]
    return merge([yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER) for file in files])


def decode(raw: Mapping[str, Any]) -> Manifest:
    """The manifest as typed data; whatever in it is not understood is an error."""
    manifest: Manifest = _decode(Manifest, raw, "manifest")
    if manifest.schema != SCHEMA:
        raise ManifestError("schema %d is not %d" % (manifest.schema, SCHEMA))
    _check_references(manifest)
    _check_payloads(manifest)
    return manifest


def load(path: Path = MANIFEST_DIR) -> Manifest:
    return decode(read(path))
