# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository generator itself: it refuses a manifest it does not understand, and builds no tree twice."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Dict, List

import pytest
import yaml

from gpurepo import RepoTree, build
from gpurepo.deb import pack
from gpurepo.keys import ensure_key
from gpurepo.manifest import decode, load, merge, read
from gpurepo.packages import Expander, Package, archive_packages, docker_packages, flat_packages, nvidia_packages
from gpurepo.schema import ManifestError


def changed(edit: Callable[[dict], object]) -> dict:
    data = read()
    edit(data)
    return data


# --- manifest ------------------------------------------------------------------------------------------------------


def template(data: dict, set_name: str = "nvlsm") -> dict:
    return data["sets"][set_name][0]


@pytest.mark.parametrize(("edit", "message"), [
    (lambda data: data.update(colour="green"), "manifest: unknown key 'colour'"),
    (lambda data: template(data).update(depend=["x"]), r"manifest\.sets\.nvlsm\[0\]: unknown key 'depend'"),
    (lambda data: template(data).update(depends="x"), r"sets\.nvlsm\[0\]\.depends: expected a list, found 'x'"),
    (lambda data: template(data).update(version=1.1), r"nvlsm\[0\]\.version: expected str, found 1\.1"),
    (lambda data: template(data).update(pinned="no"), r"nvlsm\[0\]\.pinned: expected bool, found 'no'"),
    (lambda data: template(data).pop("name"), r"nvlsm\[0\]: the key 'name' is missing"),
    (lambda data: template(data).update(payloads=["dkm"]), "sets.nvlsm: nvlsm: 'dkm' is not defined"),
    (lambda data: data["payloads"]["dkms"]["postinst"][0].update(source="dkms.sh"),
     "payloads.dkms.source: 'dkms.sh' is not defined"),
    (lambda data: data["branches"]["580"].update(era="middle"), "branches.580.era: 'middle' is not defined"),
    (lambda data: data["branches"].update({595: {"era": "suffixed", "versions": []}}), "the key 595 is no text"),
    (lambda data: data["eras"]["suffixed"].update(ubuntu=["driver"]), "eras.suffixed.ubuntu: 'driver' is not"),
    (lambda data: data["nvidia"]["distributions"]["debian12"].update(branches=["999"]), "'999' is not defined"),
    (lambda data: data["nvidia"]["distributions"]["debian12"].update(cuda=["9-9"]), "'9-9' is not defined"),
    (lambda data: data["nvidia"]["distributions"]["debian12"].update(sets=["nccl"]), "'nccl' is not defined"),
    (lambda data: data["nvidia"]["distributions"]["debian12"].update(key="me"), "'me' is not defined"),
    (lambda data: data["ubuntu"]["pockets"][""].update(versions=["1.2.3"]), "version 1.2.3 is in no branch"),
    (lambda data: data.update(schema=2), "schema 2 is not 1"),
    (lambda data: data.update(sets=[]), "manifest.sets: expected a mapping"),
])
def test_a_manifest_that_is_not_understood_is_refused(edit, message):
    with pytest.raises(ManifestError, match=message):
        decode(changed(edit))


def test_no_two_files_of_the_manifest_say_the_same():
    assert merge([{"sets": {"a": []}, "schema": 1}, {"sets": {"b": []}}]) == {"sets": {"a": [], "b": []}, "schema": 1}
    with pytest.raises(ManifestError, match="sets.a is there twice"):
        merge([{"sets": {"a": []}}, {"sets": {"a": []}}])
    with pytest.raises(ManifestError, match="schema is there twice"):
        merge([{"schema": 1}, {"schema": 1}])


def needs_a_user_that_nobody_gives(data: dict) -> None:
    data["payloads"]["orphan"] = {"postinst": [{"source": "user.postinst"}]}
    template(data)["payloads"] = ["orphan"]


@pytest.mark.parametrize(("edit", "message"), [
    (lambda data: template(data).update(depends=["x (= {nothing})"]), "needs 'nothing', which has no value"),
    (needs_a_user_that_nobody_gives, "files/user.postinst needs @USER@, which has no value"),
    (lambda data: data["broken"].update(driver=["nvidia-dmks*"]), "nothing matches nvidia-dmks"),
])
def test_a_manifest_that_cannot_be_filled_in_leaves_no_tree(small, cache, edit, message):
    with pytest.raises(ManifestError, match=message):
        build(cache, small(edit))
    assert list((cache / "repos").iterdir()) == []


def test_every_version_has_the_branch_it_starts_with():
    for name, branch in load().branches.items():
        assert all(version.startswith(name + ".") for version in branch.versions)
        assert list(branch.versions) == sorted(branch.versions)


# --- relations -----------------------------------------------------------------------------------------------------


def everything_in(repository: str) -> List[Package]:
    """All packages that one machine can be offered, from the manifest alone."""
    manifest = load()
    expander = Expander(manifest, dict.fromkeys(manifest.keys, b""))
    if repository in manifest.nvidia.distributions:
        return nvidia_packages(expander, repository)
    if repository in manifest.flat:
        return flat_packages(expander, repository)
    if "~" in repository:
        return docker_packages(expander, repository)
    return [package for pocket in expander.manifest.ubuntu.pockets
            for package in archive_packages(expander, repository, pocket)]


def excludes(one: Package, other: Package) -> bool:
    """One of the two conflicts with the other's name, or with a virtual name that it provides."""

    def names(package: Package) -> set:
        return {package.name} | {entry.split(" ")[0] for entry in package.relations.get("Provides", ())}

    return bool(set(one.relations.get("Conflicts", ())) & names(other)
                or set(other.relations.get("Conflicts", ())) & names(one))


REPOSITORIES = ["ubuntu2004", "ubuntu2204", "ubuntu2404", "ubuntu2604", "debian12", "debian13",
                "focal", "jammy", "noble", "resolute", "toolkit", "debian.12~bookworm"]


@pytest.mark.parametrize("repository", REPOSITORIES)
def test_packages_that_ship_the_same_file_exclude_each_other(repository):
    """Otherwise dpkg stops in the middle of a change of branch: "trying to overwrite …"."""
    owners: Dict[str, List[Package]] = {}
    for package in everything_in(repository):
        for path in [entry.path for entry in package.files] + [path for path, _target in package.links]:
            owners.setdefault(path, []).append(package)
    clashes = {(path, one.name, other.name) for path, packages in owners.items()
               for one, other in itertools.combinations(packages, 2)
               if one.name != other.name and not excludes(one, other)}
    assert clashes == set()


@pytest.mark.parametrize("repository", REPOSITORIES)
def test_every_dependency_can_be_met_from_the_same_repository(repository):
    """No double may need a package that only a vendor's real repository has."""
    packages = everything_in(repository)
    offered = {package.name for package in packages}
    offered |= {entry.split(" ")[0] for package in packages for entry in package.relations.get("Provides", ())}
    missing = {(package.name, entry) for package in packages for entry in package.relations.get("Depends", ())
               if not any(choice.split(" ")[0] in offered for choice in entry.split(" | "))}
    assert missing == set()


# --- cache ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def keys(tmp_path_factory) -> Path:
    """Keys for all tests here: generating a pair takes longer than the small build itself."""
    directory = tmp_path_factory.mktemp("keys")
    for name, key in load().keys.items():
        ensure_key(name, key, directory)
    return directory


@pytest.fixture
def cache(tmp_path: Path, keys: Path) -> Path:
    """A cache without a tree."""
    shutil.copytree(keys, tmp_path / "cache/keys")
    return tmp_path / "cache"


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Path]:
    """A manifest file with one distribution and one version, so that a build takes a moment."""

    def write(edit: Callable[[dict], object] = lambda data: None) -> Path:
        def reduce(data: dict) -> None:
            debian = data["nvidia"]["distributions"]["debian12"]
            data["nvidia"]["distributions"] = {"debian12": {**debian, "branches": ["580"], "cuda": [], "sets": []}}
            data["branches"]["580"]["versions"] = ["580.178.04"]
            data["ubuntu"].update(releases={}, pockets={}, transitional=[])
            data["docker"]["families"] = {}
            data["broken"] = {"driver": data["broken"]["driver"]}
            edit(data)

        path = tmp_path / "manifest.yml"
        path.write_text(yaml.dump(changed(reduce), Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))
        return path

    return write


def test_an_unchanged_manifest_is_a_cache_hit_that_starts_no_tool(small, cache, monkeypatch):
    first = build(cache, small())
    monkeypatch.setenv("PATH", "/nonexistent")
    second = build(cache, small())
    assert (first.fresh, second.fresh) == (True, False)
    assert second.root == first.root


def test_a_changed_manifest_gives_another_tree_under_the_same_keys(small, cache):
    first = build(cache, small())
    fingerprint = (cache / "keys/nvidia.fpr").read_text()
    second = build(cache, small(lambda data: template(data).update(version="2025.10.12-1")))
    assert second.digest != first.digest
    assert [deb.name for deb in second.root.glob("compute/**/nvlsm_*")] == ["nvlsm_2025.10.12-1_amd64.deb"]
    assert (cache / "keys/nvidia.fpr").read_text() == fingerprint


def test_another_key_gives_another_tree(small, cache):
    first = build(cache, small())
    (cache / "keys/nvidia.fpr").unlink()
    assert build(cache, small()).digest != first.digest


def test_the_same_manifest_gives_the_same_packages(small, cache, keys, tmp_path):
    def content(tree: RepoTree) -> dict:
        return {path.name: path.read_bytes() for path in tree.root.rglob("*.deb")}

    shutil.copytree(keys, tmp_path / "other/keys")
    assert content(build(cache, small())) == content(build(tmp_path / "other", small()))


def test_builders_at_the_same_time_build_once(small, cache):
    manifest = small()
    trees: List[RepoTree] = []
    threads = [threading.Thread(target=lambda: trees.append(build(cache, manifest))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tree.fresh for tree in trees) == [False, False, True]


def test_old_trees_and_what_a_killed_build_left_behind_are_removed(small, cache, monkeypatch):
    # By its module's name: the package's attribute `build` is the function.
    monkeypatch.setattr(sys.modules["gpurepo.build"], "KEPT_TREES", 2)
    unfinished = cache / "repos/.building-killed"
    unfinished.mkdir(parents=True)
    trees = [build(cache, small(lambda data, v=v: template(data).update(version=v)))
             for v in "123"]
    left = sorted(path.name for path in (cache / "repos").iterdir())
    assert left == sorted(tree.digest for tree in trees[-2:])


def test_a_build_that_fails_leaves_no_tree(small, cache, monkeypatch):
    monkeypatch.setattr("gpurepo.index.index_flat", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build(cache, small())
    assert list((cache / "repos").iterdir()) == []


def test_secret_keys_are_readable_by_their_owner_only(small, cache):
    build(cache, small())
    assert {path.stat().st_mode & 0o777 for path in (cache / "keys").glob("*.secret.asc")} == {0o600}


# --- packages ------------------------------------------------------------------------------------------------------


def test_the_real_dpkg_reads_a_package_that_was_packed_here(tmp_path):
    path = tmp_path / "x.deb"
    control = b"Package: x\nVersion: 1\nArchitecture: all\nMaintainer: n <n@n>\nDescription: d\n"
    files = [("usr/bin/x", b"odd", 0o755), ("etc/x.conf", b"a\n", 0o644), ("usr/share/x" + "y" * 100, b"", 0o600)]
    path.write_bytes(pack([("control", control, 0o644)], files, [("usr/bin/y", "x")]))

    def dpkg_deb(*arguments: str) -> str:
        return subprocess.run(["dpkg-deb", *arguments], check=True, capture_output=True, text=True).stdout

    assert dpkg_deb("--field", str(path), "Package", "Version") == "Package: x\nVersion: 1\n"
    listed = [(line.split()[0], line.split()[1], line.split(maxsplit=5)[5])
              for line in dpkg_deb("--contents", str(path)).splitlines()]
    assert listed == [
        ("drwxr-xr-x", "root/root", "./"),
        ("drwxr-xr-x", "root/root", "./etc/"),
        ("-rw-r--r--", "root/root", "./etc/x.conf"),
        ("drwxr-xr-x", "root/root", "./usr/"),
        ("drwxr-xr-x", "root/root", "./usr/bin/"),
        ("-rwxr-xr-x", "root/root", "./usr/bin/x"),
        ("lrwxrwxrwx", "root/root", "./usr/bin/y -> x"),
        ("drwxr-xr-x", "root/root", "./usr/share/"),
        ("-rw-------", "root/root", "./usr/share/x" + "y" * 100),
    ]
    dpkg_deb("--extract", str(path), str(tmp_path / "out"))
    assert (tmp_path / "out/usr/bin/y").read_bytes() == b"odd"
