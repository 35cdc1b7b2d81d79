# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the stack matrix for toolkits: GPUs, driver, repository, gcc, default. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._stack_clash import CONFLICT, NOTE, UNKNOWN, Clash, listed, nearest_first
from ._stack_data import (
    FAMILIES,
    FORWARD_COMPATIBILITY,
    GENERATIONS,
    REPOSITORIES,
    TOOLKITS,
    Generation,
    Repository,
)
from ._stack_input import Stack, major_of, version_key
from ._stack_rules_gpu import driver_reaches, drivers_near, generations_of, named

PROPOSED = tuple(name for name in TOOLKITS if int(name.split(".")[0]) in FAMILIES)
"""Toolkits worth proposing: those whose drivers are known."""


def builds_for(toolkit: str, generation: Generation) -> bool:
    """True where the toolkit's nvcc compiles for a GPU architecture."""
    first, last = generation.first_toolkit, generation.last_major
    early = first is not None and version_key(toolkit) < version_key(first)
    return not early and (last is None or major_of(toolkit) <= last)


def architectures_of(toolkit: str) -> Tuple[str, ...]:
    """GPU architectures that a toolkit compiles for, oldest first."""
    return tuple(name for name, generation in GENERATIONS.items() if builds_for(toolkit, generation))


def toolkit_rules(stack: Stack) -> Iterator[Clash]:
    listed_ones = stack.toolkits or ((stack.default_toolkit,) if stack.default_toolkit else ())
    for toolkit in listed_ones:
        if toolkit not in TOOLKITS:
            yield Clash(
                "toolkit_unknown", UNKNOWN, "toolkit %s" % toolkit, "one of " + ", ".join(TOOLKITS),
                "toolkit %s is not in the table" % toolkit, "release-notes",
            )
        yield from _toolkit_gpu(stack, toolkit)
        yield from _toolkit_driver(stack, toolkit)
        yield from _toolkit_repository(stack, toolkit)
        yield from _toolkit_gcc(stack, toolkit)
    if stack.toolkits and stack.default_toolkit and stack.default_toolkit not in stack.toolkits:
        yield Clash(
            "default_toolkit", CONFLICT, "default toolkit %s" % stack.default_toolkit,
            "one of " + ", ".join(stack.toolkits),
            "the default toolkit %s is not among the toolkits %s" % (stack.default_toolkit, listed(stack.toolkits)),
            "rule of this collection",
            tuple({"default_toolkit": name} for name in nearest_first(
                sorted(stack.toolkits, key=version_key), stack.default_toolkit, version_key)),
        )


def toolkits_near(stack: Stack, toolkit: str) -> Tuple[Mapping[str, Any], ...]:
    """Changes of one toolkit of the stack, and of the default where it is that one, nearest first."""
    changes: List[Dict[str, Any]] = []
    for name in nearest_first(PROPOSED, toolkit, version_key):
        change: Dict[str, Any] = {}
        if toolkit in stack.toolkits:
            replaced = (name if given == toolkit else given for given in stack.toolkits)
            change["toolkits"] = tuple(dict.fromkeys(replaced))
        if stack.default_toolkit == toolkit:
            change["default_toolkit"] = name
        changes.append(change)
    return tuple(changes)


def _toolkit_gpu(stack: Stack, toolkit: str) -> Iterator[Clash]:
    for generation, gpus in generations_of(stack.gpus).items():
        if not builds_for(toolkit, generation):
            needed = (
                "toolkit %s or later" % generation.first_toolkit
                if generation.last_major is None
                else "toolkit %d.x or earlier" % generation.last_major
            )
            yield Clash(
                "toolkit_gpu", CONFLICT, "toolkit %s, %s" % (toolkit, generation.name), needed,
                "toolkit %s cannot compile for %s" % (toolkit, named(gpus, generation)),
                generation.source, toolkits_near(stack, toolkit),
            )


def _toolkit_driver(stack: Stack, toolkit: str) -> Iterator[Clash]:
    if stack.driver is None:
        return
    family, known = FAMILIES.get(major_of(toolkit)), TOOLKITS.get(toolkit)
    observed = "toolkit %s, driver %s" % (toolkit, stack.driver)
    if family is None:
        if known is not None:
            yield Clash(
                "toolkit_driver_unknown", UNKNOWN, observed,
                "a toolkit of %s" % listed("%d.x" % major for major in FAMILIES),
                "the table does not say which driver toolkit %s needs" % toolkit, "minor-version",
            )
    elif not driver_reaches(stack.driver, family.driver):
        yield Clash(
            "toolkit_driver", CONFLICT, observed,
            "driver %s or later, or %s" % (family.driver, _older_families(family.major)),
            "driver %s is too old for programs of toolkit %s: CUDA %d.x needs driver %s by minor-version compatibility"
            % (stack.driver, toolkit, family.major, family.driver),
            family.source, drivers_near(stack) + toolkits_near(stack, toolkit), _forward_compatibility(stack, toolkit),
        )
    elif known is not None and known.driver and not driver_reaches(stack.driver, known.driver):
        yield Clash(
            "toolkit_newer_than_driver", NOTE, observed, "driver %s or later for every feature" % known.driver,
            "driver %s runs programs of toolkit %s by minor-version compatibility only: new interfaces and PTX of its "
            "compiler need driver %s" % (stack.driver, toolkit, known.driver), known.source,
            advice="ship binaries for the GPUs at hand, not PTX",
        )


def _older_families(major: int) -> str:
    older = [family for family in FAMILIES.values() if family.major < major]
    if not older:
        return "no older toolkit"
    return "toolkit %d.x with driver %s or later" % (older[-1].major, older[-1].driver)


def _forward_compatibility(stack: Stack, toolkit: str) -> str:
    """Advice on cuda-compat; nothing where a GPU is known not to be a data-centre one, or cannot run the toolkit."""
    kinds = {gpu.datacenter for gpu in stack.gpus}
    if False in kinds or any(not builds_for(toolkit, generation) for generation in generations_of(stack.gpus)):
        return ""
    package = FORWARD_COMPATIBILITY % toolkit.replace(".", "-")
    only = "" if kinds == {True} else ", where every GPU is a data-centre model"
    return "install %s (forward compatibility, data-centre GPUs only)%s" % (package, only)


def repositories_of(os: str, os_version: str) -> Tuple[Repository, ...]:
    return tuple(one for one in REPOSITORIES if (one.os, one.os_version) == (os, os_version))


def toolkits_offered(os: str, os_version: str) -> Dict[str, Tuple[str, ...]]:
    """What can be had on a system, by origin (``nvidia``, ``archive``)."""
    return {one.origin: one.toolkits for one in repositories_of(os, os_version)}


def _toolkit_repository(stack: Stack, toolkit: str) -> Iterator[Clash]:
    if stack.os is None or stack.os_version is None:
        return
    system = "%s %s" % (stack.os, stack.os_version)
    repositories = repositories_of(stack.os, stack.os_version)
    if not repositories:
        known = dict.fromkeys("%s %s" % (one.os, one.os_version) for one in REPOSITORIES)
        yield Clash(
            "system_unknown", UNKNOWN, system, "one of " + ", ".join(known),
            "%s is not in the table: whether it has toolkit %s is not known" % (system, toolkit), "cuda-repo",
        )
        return
    having = [one for one in repositories if toolkit in one.toolkits]
    perhaps = [one for one in repositories if toolkit in one.unconfirmed]
    read = [one for one in having if stack.architecture is None or stack.architecture in one.read_on]
    if read:
        if all(one.origin == "archive" for one in read):
            yield _archive_only(system, toolkit, read[0])
    elif having or perhaps:
        where = " on %s" % stack.architecture if having else ""
        yield Clash(
            "toolkit_repository_unconfirmed", UNKNOWN, "toolkit %s, %s" % (toolkit, system), _offer_text(repositories),
            "nobody has confirmed that a repository of %s has toolkit %s%s" % (system, toolkit, where),
            (having or perhaps)[0].source, advice="ask `apt-cache policy %s`" % package_of(toolkit),
        )
    else:
        yield Clash(
            "toolkit_repository", CONFLICT, "toolkit %s, %s" % (toolkit, system), _offer_text(repositories),
            "no repository of %s has toolkit %s" % (system, toolkit), repositories[0].source,
            toolkits_near(stack, toolkit),
        )


def package_of(toolkit: str) -> str:
    """``cuda-toolkit-12-8``"""
    return "cuda-toolkit-" + toolkit.replace(".", "-")


def _archive_only(system: str, toolkit: str, repository: Repository) -> Clash:
    return Clash(
        "toolkit_archive_only", NOTE, "toolkit %s, %s" % (toolkit, system),
        "%s of NVIDIA's repository" % package_of(toolkit),
        "toolkit %s of %s comes from the distribution's archive alone: it lives in /usr, not in /usr/local/cuda-%s, "
        "and not beside another of its kind" % (toolkit, system, toolkit), repository.source,
    )


def _offer_text(repositories: Tuple[Repository, ...]) -> str:
    titles = {"nvidia": "NVIDIA's repository has", "archive": "the archive has"}
    return "; ".join("%s %s" % (titles[one.origin], ", ".join(one.toolkits)) for one in repositories)


def _toolkit_gcc(stack: Stack, toolkit: str) -> Iterator[Clash]:
    known = TOOLKITS.get(toolkit)
    if stack.gcc is None or known is None:
        return
    observed = "toolkit %s, gcc %d" % (toolkit, stack.gcc)
    if known.gcc_max is None:
        yield Clash("toolkit_gcc_unknown", UNKNOWN, observed, "a toolkit whose limit is known",
                    "the table does not say which gcc toolkit %s accepts" % toolkit, known.source)
    elif stack.gcc > known.gcc_max:
        yield Clash(
            "toolkit_gcc", CONFLICT, observed, "gcc %d or older" % known.gcc_max,
            "nvcc of toolkit %s refuses gcc %d: it accepts gcc up to %d" % (toolkit, stack.gcc, known.gcc_max),
            known.source, ({"gcc": gcc_for(stack)},) + toolkits_near(stack, toolkit),
            "install gcc-%d beside the system's and call `nvcc -ccbin gcc-%d`" % (known.gcc_max, known.gcc_max),
        )


def gcc_for(stack: Stack) -> Optional[int]:
    """The newest gcc that every known toolkit of the stack accepts."""
    limits = [TOOLKITS[name].gcc_max for name in stack.toolkits + ((stack.default_toolkit or ""),) if name in TOOLKITS]
    return min((limit for limit in limits if limit is not None), default=None)
