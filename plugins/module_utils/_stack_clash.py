# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule of the stack matrix finds: a `Clash`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Sequence, Tuple

CONFLICT, UNKNOWN, NOTE = "critical", "warning", "info"
"""It cannot work; the table cannot tell; it works, with a limit. Severities of a finding."""


@dataclass(frozen=True)
class Clash:
    """Two parties of a stack that do not fit, or what the table does not know of them.

    `candidates`: changes that may help, each a mapping of fields of `Stack` to new values, nearest first within one
    field. `advice`: what else helps, in words.
    """

    id: str
    severity: str
    observed: str
    expected: str
    message: str
    source: str
    candidates: Tuple[Mapping[str, Any], ...] = ()
    advice: str = ""


def nearest_first(names: Sequence[str], given: str, order: Any) -> List[str]:
    """`names`, which ascend, by their distance from `given` in steps; of two as near the newer one first."""
    place = sum(1 for name in names if order(name) < order(given))
    known = given in names

    def distance(index: int) -> Tuple[int, int]:
        above = index - place if known else index - place + 1
        return (above, 0) if index >= place else (place - index, 1)

    return [names[index] for index in sorted(range(len(names)), key=distance) if names[index] != given]


def listed(names: Iterable[Any]) -> str:
    """``a, b and c`` for a sentence."""
    words = [str(name) for name in names]
    return words[0] if len(words) == 1 else "%s and %s" % (", ".join(words[:-1]), words[-1]) if words else "nothing"
