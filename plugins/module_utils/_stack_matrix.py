# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does this stack fit together? `conflicts(stack)` names each conflict and the nearest combination that works. Pure.

The data are in `_stack_data` and `_stack_data_frameworks`; what a stack may hold is in `_stack_input`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from ._findings import Finding, finding, sort_findings
from ._stack_clash import CONFLICT, UNKNOWN, Clash
from ._stack_input import Library, Stack, parse_stack
from ._stack_rules_framework import tensorflow_rules, torch_rules
from ._stack_rules_gpu import gpu_rules
from ._stack_rules_library import library_rules
from ._stack_rules_toolkit import toolkit_rules

FOLLOWING = 3
"""How many changes may follow from one: cuDNN, NCCL and gcc from a toolkit."""

RULES = (gpu_rules, toolkit_rules, library_rules, torch_rules, tensorflow_rules)


def conflicts(stack: Mapping[str, Any]) -> List[Finding]:
    """Findings about a stack, worst first; an empty list where all that is given fits and is known.

    Each is a finding of this collection (``id, severity, gpu, link, observed, expected, message, remedy, source``) and
    has ``nearest``: a list of mappings of stack keys to new values, each of which resolves this conflict without making
    another. Severity ``critical``: it cannot work. ``warning``: the table does not know. ``info``: it works, with a
    limit. Raises `StackError` for a stack that cannot be read.
    """
    parsed = parse_stack(stack)
    clashes = judge(parsed)
    return sort_findings(_finding(parsed, clash, clashes) for clash in clashes)


@lru_cache(maxsize=512)
def judge(stack: Stack) -> Tuple[Clash, ...]:
    """All clashes of a stack, by rule. Kept, because several conflicts of a stack try the same changes."""
    return tuple(clash for rule in RULES for clash in rule(stack))


def _finding(stack: Stack, clash: Clash, clashes: Tuple[Clash, ...]) -> Finding:
    ways: List[Mapping[str, Any]] = []
    if clash.severity == CONFLICT:
        ways = nearest_changes(stack, clash, clashes) or linked_changes(stack, clash, clashes)
    record = finding(
        clash.id, clash.severity, clash.message, clash.observed, clash.expected, _remedy(clash, ways), clash.source
    )
    record["nearest"] = [{key: _value(value) for key, value in way.items()} for way in ways]
    return record


def nearest_changes(stack: Stack, clash: Clash, clashes: Tuple[Clash, ...]) -> List[Mapping[str, Any]]:
    """The nearest change of each field that resolves a clash and makes no new one; of fewer fields first."""
    before = Counter(one.id for one in clashes)
    found: Dict[Tuple[str, ...], Mapping[str, Any]] = {}
    for change in clash.candidates:
        fields = tuple(change)
        covered = any(set(done) <= set(fields) for done in found)
        if not covered and _helps(before, clash, judge(replace(stack, **change))):
            found[fields] = change
    return list(found.values())


def linked_changes(stack: Stack, clash: Clash, clashes: Tuple[Clash, ...]) -> List[Mapping[str, Any]]:
    """Another toolkit with the changes that follow from it, where none alone helps: cuDNN that is built for it."""
    before = Counter(one.id for one in clashes)
    for change in clash.candidates:
        if not {"toolkits", "default_toolkit"} & set(change):
            continue
        merged, state = dict(change), replace(stack, **change)
        for _step in range(FOLLOWING + 1):
            now = judge(state)
            counted = Counter(one.id for one in now)
            if counted[clash.id] >= before[clash.id]:
                break
            if _helps(before, clash, now):
                return [merged]
            new = next((one for one in now if one.severity == CONFLICT and counted[one.id] > before[one.id]), None)
            ways = nearest_changes(state, new, now) if new else []
            following = next((way for way in ways if not set(way) & set(merged)), None)
            if following is None:
                break
            merged.update(following)
            state = replace(state, **following)
    return []


def _helps(before: "Counter", clash: Clash, after: Iterable[Clash]) -> bool:
    """True where fewer clashes of this kind remain, and of no kind that refuses or doubts there are more."""
    counted = Counter(one.id for one in after if one.severity in (CONFLICT, UNKNOWN))
    return counted[clash.id] < before[clash.id] and all(number <= before[name] for name, number in counted.items())


def _remedy(clash: Clash, ways: List[Mapping[str, Any]]) -> str:
    texts = [" and ".join("%s %s" % (_title(key), _words(value)) for key, value in way.items()) for way in ways]
    if clash.severity != CONFLICT:
        return clash.advice
    steps = (["use " + ", or ".join(texts)] if texts else []) + ([clash.advice] if clash.advice else [])
    return "; or ".join(steps) or "no change of one part helps: %s is needed" % clash.expected


def _title(key: str) -> str:
    return {"cudnn": "cuDNN", "nccl": "NCCL", "python": "Python"}.get(key, key.replace("_", " "))


def _words(value: Any) -> str:
    plain = _value(value)
    return ", ".join(plain) if isinstance(plain, list) else str(plain)


def _value(value: Any) -> Any:
    """A value as a stack would have it: text and lists."""
    if isinstance(value, Library):
        return value.version + ("+cuda%d" % value.cuda if value.cuda is not None else "")
    return list(value) if isinstance(value, tuple) else str(value)
