# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the stack matrix for GPUs and drivers. Pure: each takes a `Stack` and yields `Clash`es."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from ._driver_branches import BRANCHES, NO_KNOWN_FLAW, OPEN_ONLY, PRE_TURING
from ._stack_clash import CONFLICT, UNKNOWN, Clash, listed, nearest_first
from ._stack_data import GENERATIONS, Generation
from ._stack_input import Gpu, Stack, major_of, version_key

MAINTAINED = tuple(name for name, branch in BRANCHES.items() if branch.floor or name in NO_KNOWN_FLAW)
"""Driver branches that still get fixes: the ones worth proposing."""


def gpu_rules(stack: Stack) -> Iterator[Clash]:
    for gpu in stack.gpus:
        if gpu.architecture is None:
            yield Clash(
                "gpu_unknown", UNKNOWN, gpu.name, "an architecture or a known model",
                "GPU %s is not in the table, so nothing is said about it" % gpu.name, "arch-matrix",
                advice="name its architecture: " + ", ".join(GENERATIONS),
            )
    yield from _mixed(stack)
    if stack.driver is None:
        return
    newest = max(BRANCHES.values(), key=lambda branch: branch.number)
    if major_of(stack.driver) > newest.number:
        yield Clash(
            "driver_unknown", UNKNOWN, "driver %s" % stack.driver, "branch %s or older" % newest.name,
            "driver branch %d is newer than the table, which ends at %s" % (major_of(stack.driver), newest.name),
            "driver branches",
        )
    for generation, gpus in generations_of(stack.gpus).items():
        need = driver_limits(generation)
        if not _within(major_of(stack.driver), generation):
            yield Clash(
                "driver_gpu", CONFLICT, "driver %s, %s" % (stack.driver, generation.name), need,
                "driver %s does not support %s" % (stack.driver, named(gpus, generation)),
                generation.source, drivers_near(stack, generation.last_driver),
            )


def generations_of(gpus: Tuple[Gpu, ...]) -> Dict[Generation, List[str]]:
    """The known generations of the GPUs, each with the names they were given by."""
    found: Dict[Generation, List[str]] = {}
    for gpu in gpus:
        if gpu.architecture is not None:
            found.setdefault(GENERATIONS[gpu.architecture], []).append(gpu.name)
    return found


def named(gpus: List[str], generation: Generation) -> str:
    """``V100 (volta)``; ``volta`` where that is all that was given."""
    return generation.name if gpus == [generation.name] else "%s (%s)" % (listed(gpus), generation.name)


def _mixed(stack: Stack) -> Iterator[Clash]:
    """One machine loads one driver, of one flavour."""
    generations = list(generations_of(stack.gpus))
    first = max((one.first_driver or 0 for one in generations), default=0)
    last = min((one.last_driver or 9999 for one in generations), default=9999)
    names = {one.name for one in generations}
    flavours = names & set(PRE_TURING) and names & set(OPEN_ONLY)
    if first <= last and not flavours:
        return
    why = (
        "%s needs the proprietary kernel modules and %s the open ones"
        % (listed(sorted(names & set(PRE_TURING))), listed(sorted(names & set(OPEN_ONLY))))
        if flavours
        else "the newest needs driver %d or later, the oldest driver %d or earlier" % (first, last)
    )
    yield Clash(
        "gpus_mixed", CONFLICT, ", ".join(gpu.name for gpu in stack.gpus), "GPUs that one driver supports",
        "no driver runs %s in one machine: %s" % (listed(gpu.name for gpu in stack.gpus), why), "arch-matrix",
        advice="put these GPUs into different machines",
    )


def _within(branch: int, generation: Generation) -> bool:
    first, last = generation.first_driver, generation.last_driver
    return (first is None or branch >= first) and (last is None or branch <= last)


def driver_limits(generation: Generation) -> str:
    """``driver 580 or earlier`` for volta."""
    if generation.last_driver is not None:
        return "driver %d or earlier" % generation.last_driver
    return "driver %s or later" % generation.first_driver if generation.first_driver else "any driver"


def drivers_near(stack: Stack, last: Optional[int] = None) -> Tuple[Mapping[str, str], ...]:
    """Changes of the driver, the nearest maintained branch first; a last branch that gets no fixes comes last."""
    names = nearest_first(MAINTAINED, str(major_of(stack.driver)), int) if stack.driver else list(MAINTAINED)
    if last is not None and str(last) not in names:
        names.append(str(last))
    return tuple({"driver": name} for name in names)


def driver_reaches(driver: str, minimum: str) -> bool:
    """True where a driver is at least `minimum`. A branch without a version counts as its newest version."""
    given, needed = version_key(driver), version_key(minimum)
    return given[0] >= needed[0] if len(given) == 1 else given >= needed
