# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the stack matrix for PyTorch and TensorFlow wheels. Pure.

Wheels bring their own CUDA: they meet the driver, the GPUs and the Python of a stack, never its toolkits.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from ._stack_clash import CONFLICT, UNKNOWN, Clash, nearest_first
from ._stack_data import FAMILIES
from ._stack_data_frameworks import ARM64_FIRST_DEFAULT, TENSORFLOW, TORCH, TORCH_BUILDS, Build, Release
from ._stack_input import Stack, major_of, version_key
from ._stack_rules_gpu import driver_reaches, drivers_near, generations_of, named


def torch_build(name: str, torch: Optional[str]) -> Optional[Build]:
    """The wheels ``cu128`` of torch ``2.9``; of the newest torch where none is given; None where unknown."""
    entries = [
        build for build in TORCH_BUILDS
        if build.name == name and (torch is None or version_key(build.first) <= version_key(torch))
    ]
    return entries[-1] if entries else None


def torch_rules(stack: Stack) -> Iterator[Clash]:
    if stack.torch is None and stack.torch_cuda is None:
        return
    release = TORCH.get(stack.torch or "")
    if stack.torch is not None and release is None:
        yield Clash(
            "torch_unknown", UNKNOWN, "torch %s" % stack.torch, "one of " + ", ".join(TORCH),
            "torch %s is not in the table" % stack.torch, "pypi",
        )
    if release is not None:
        yield from _torch_release(stack, release)
    name = stack.torch_cuda or (release.default if release else None)
    if name is None:
        return
    build = torch_build(name, stack.torch if release else None)
    title = "torch %s+%s" % (stack.torch, name) if stack.torch else "torch %s" % name
    if build is None:
        if release is None or name in _builds_of(release):
            yield Clash(
                "torch_build_unknown", UNKNOWN, title, "one of " + ", ".join(_build_names()),
                "the table does not know the build %s of torch" % name, "pytorch-release",
            )
        return
    yield from _torch_gpu(stack, title, build)
    yield from _wheel_driver(stack, "torch_driver", title, build.cuda, build.source, _torch_changes(stack))
    if stack.architecture == "arm64" and not _arm64_wheel(stack, release, build):
        yield Clash(
            "torch_arm64_unconfirmed", UNKNOWN, title + ", arm64", "a build of an index with wheels for arm64",
            "nobody has confirmed that %s has a CUDA wheel for arm64 where pip looks for it" % title, build.source,
            advice="take a build cu126 or newer from the index of that build",
        )


def _arm64_wheel(stack: Stack, release: Optional[Release], build: Build) -> bool:
    """The default comes from the package index, whose arm64 wheel became a CUDA one late; others from their own."""
    if stack.torch_cuda is None and release is not None:
        return version_key(release.name) >= version_key(ARM64_FIRST_DEFAULT)
    return build.arm64


def _builds_of(release: Release) -> Tuple[str, ...]:
    return (release.default, *release.builds, *release.unconfirmed)


def _build_names() -> Tuple[str, ...]:
    return tuple(dict.fromkeys(build.name for build in TORCH_BUILDS))


def _torch_release(stack: Stack, release: Release) -> Iterator[Clash]:
    if stack.torch_cuda is not None and stack.torch_cuda not in (release.default, *release.builds):
        unsure = stack.torch_cuda in release.unconfirmed
        yield Clash(
            "torch_build_unconfirmed" if unsure else "torch_build", UNKNOWN if unsure else CONFLICT,
            "torch %s, %s" % (release.name, stack.torch_cuda),
            "one of " + ", ".join((release.default, *release.builds)),
            ("nobody has confirmed that torch %s has a build %s" if unsure else "torch %s has no build %s")
            % (release.name, stack.torch_cuda),
            release.source, _torch_changes(stack),
        )
    if stack.python is not None:
        yield from _python(stack, "torch", release.name, release.python, release.unconfirmed_python, release.source,
                           _torch_changes(stack))


def _torch_changes(stack: Stack) -> Tuple[Mapping[str, Any], ...]:
    """Other builds of this release, then other releases, each with the same and with other builds. Nearest first."""
    builds = [name for name in _build_names() if name != stack.torch_cuda]
    asked = stack.torch_cuda or ""
    near = nearest_first(builds, asked, lambda name: int(name[2:])) if asked else builds[::-1]
    changes = [{"torch_cuda": name} for name in near]
    for name in nearest_first(tuple(TORCH), stack.torch, version_key) if stack.torch else ():
        changes += [{"torch": name}, *({"torch": name, "torch_cuda": build} for build in near)]
    return tuple(changes)


def _torch_gpu(stack: Stack, title: str, build: Build) -> Iterator[Clash]:
    for generation, gpus in generations_of(stack.gpus).items():
        who = named(gpus, generation)
        if build.architectures is None or generation.name in build.unconfirmed:
            yield Clash(
                "torch_gpu_unknown", UNKNOWN, "%s, %s" % (title, generation.name), "a build whose kernels are known",
                "nobody has said whether %s has kernels for %s" % (title, who), build.source,
            )
        elif generation.name not in build.architectures:
            yield Clash(
                "torch_gpu", CONFLICT, "%s, %s" % (title, generation.name), "a build with %s" % generation.name,
                "%s has no kernels for %s; it has those for %s" % (title, who, _range(build.architectures)),
                build.source, _torch_changes(stack),
            )


def _range(architectures: Tuple[str, ...]) -> str:
    return "%s to %s" % (architectures[0], architectures[-1])


def _wheel_driver(
    stack: Stack, clash_id: str, title: str, cuda: str, source: str, changes: Tuple[Mapping[str, Any], ...]
) -> Iterator[Clash]:
    family = FAMILIES[major_of(cuda)]
    if stack.driver is not None and not driver_reaches(stack.driver, family.driver):
        yield Clash(
            clash_id, CONFLICT, "%s, driver %s" % (title, stack.driver), "driver %s or later" % family.driver,
            "driver %s is too old for %s: its CUDA %s needs driver %s" % (stack.driver, title, cuda, family.driver),
            "%s; %s" % (source, family.source), drivers_near(stack) + changes,
        )


def _python(
    stack: Stack, field: str, name: str, limits: Tuple[str, str], unsure: Tuple[str, ...], source: str,
    changes: Tuple[Mapping[str, Any], ...],
) -> Iterator[Clash]:
    python = stack.python or ""
    observed, expected = "%s %s, Python %s" % (field, name, python), "Python %s to %s" % limits
    if python in unsure:
        yield Clash(
            field + "_python_unconfirmed", UNKNOWN, observed, expected,
            "nobody has confirmed that %s %s has wheels for Python %s" % (field, name, python), source,
        )
    elif not version_key(limits[0]) <= version_key(python) <= version_key(limits[1]):
        nearest = limits[0] if version_key(python) < version_key(limits[0]) else limits[1]
        yield Clash(
            field + "_python", CONFLICT, observed, expected,
            "%s %s has no wheels for Python %s, only for %s to %s" % (field, name, python, *limits), source,
            ({"python": nearest},) + changes,
        )


def tensorflow_rules(stack: Stack) -> Iterator[Clash]:
    if stack.tensorflow is None:
        return
    release = TENSORFLOW.get(stack.tensorflow)
    title = "tensorflow %s" % stack.tensorflow
    if release is None:
        yield Clash(
            "tensorflow_unknown", UNKNOWN, title, "one of " + ", ".join(TENSORFLOW),
            "%s is not in the table" % title, "pypi",
        )
        return
    changes: Tuple[Dict[str, Any], ...] = tuple(
        {"tensorflow": name} for name in nearest_first(tuple(TENSORFLOW), release.name, version_key))
    if stack.python is not None:
        yield from _python(stack, "tensorflow", release.name, release.python, (), release.source, changes)
    yield from _wheel_driver(stack, "tensorflow_driver", title, release.cuda, release.source, changes)
    for generation, gpus in generations_of(stack.gpus).items():
        if generation.name not in release.architectures:
            yield Clash(
                "tensorflow_gpu", CONFLICT, "%s, %s" % (title, generation.name), "a release with %s" % generation.name,
                "%s has no kernels built for %s; it has those for %s"
                % (title, named(gpus, generation), _range(release.architectures)), release.source, changes,
            )
