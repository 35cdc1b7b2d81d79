# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's driver branches: data with its sources. The one place to edit when NVIDIA publishes a release.

Reviewed 2026-11-30 against NVIDIA's data-centre driver pages (releases.json), the product-security bulletins 5747,
5821 and 5861, and the "CUDA toolkit, driver and architecture matrix". An end of life is the last day of the month that
NVIDIA names; where two of its pages disagree the earlier one stands here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

REVIEWED = "2026-11-30"

PRE_TURING = ("maxwell", "pascal", "volta")
"""No GSP: these run the proprietary modules only, and no branch after 580 knows them."""

OPEN_ONLY = ("blackwell",)
"""These run the open modules only (the proprietary ones load and then find no device)."""


@dataclass(frozen=True)
class Branch:
    """`kind`: lts, production, new_feature. `eol`: ISO date. `floor`: first version with all known fixes, None where
    NVIDIA publishes none any more. `gone`: architectures that an earlier branch was the last to support."""

    name: str
    kind: str
    newest: str
    eol: str
    floor: Optional[str]
    gone: Tuple[str, ...]
    first_blackwell: bool
    flavours: Tuple[str, ...] = ("open", "proprietary")

    @property
    def number(self) -> int:
        return int(self.name)


_KEPLER = ("kepler",)
_OLD = _KEPLER + PRE_TURING
_OPEN = ("open",)

BRANCHES: Dict[str, Branch] = {
    branch.name: branch
    for branch in (
        # name, kind, newest seen, end of life, security floor, dropped architectures, knows Blackwell, flavours
        Branch("535", "lts", "535.309.01", "2026-06-30", None, _KEPLER, False),
        Branch("550", "production", "550.163.01", "2025-06-30", None, _KEPLER, False),
        Branch("570", "production", "570.211.01", "2026-02-28", None, _KEPLER, True),
        Branch("575", "new_feature", "575.57.08", "2026-01-31", None, _KEPLER, True),
        Branch("580", "lts", "580.178.04", "2028-06-30", "580.178.04", _KEPLER, True),
        Branch("590", "new_feature", "590.48.01", "2026-11-30", None, _OLD, True),
        Branch("595", "production", "595.91.07", "2027-03-31", "595.91.07", _OLD, True),
        Branch("610", "new_feature", "610.57.04", "2026-08-31", "610.57.04", _OLD, True),
        Branch("615", "new_feature", "615.71.09", "2026-12-31", "615.71.09", _OLD, True, _OPEN),
        Branch("620", "lts", "620.70.06", "2029-09-30", None, _OLD, True, _OPEN),
    )
}

NO_KNOWN_FLAW = ("620",)
"""Branches without a floor because no bulletin names them yet; the others without one get no fixes any more."""


def branch_name(version: str) -> str:
    """``580.178.04`` → ``580``."""
    return version.split(".", 1)[0]


def version_key(version: str) -> Tuple[int, ...]:
    """Order of driver versions: ``580.178.04`` after ``580.95.05``. Not Debian's order, which also has revisions."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
