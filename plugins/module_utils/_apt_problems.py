# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt complains about: what passes by itself, what another apt causes, what a person has to mend. Pure.

apt-get update ends with status 0 when it could not read a source and took the lists of an earlier day, so its exit
status alone proves nothing; its lines ``E:`` and ``W:`` do. Wordings are those of apt 2.0 to 3.0 and dpkg 1.19 to 1.22
in the C locale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `kind` is one of `_KINDS` or ``other``; `source` is the address or file it is about.

    `fatal`: apt gave up, as against having gone on with the lists of an earlier day.
    """

    kind: str
    text: str
    source: str = ""
    fatal: bool = True

    @property
    def transient(self) -> bool:
        """Worth another try after a moment."""
        return self.kind in ("fetch", "missing", "damaged")


_KINDS: Sequence[Tuple[str, str]] = (
    ("locked", r"(?:Could not get lock|Unable to lock directory) (?P<source>[^\s.]+)"),
    ("locked", r"Unable to acquire the dpkg frontend lock \((?P<source>[^)]+)\)"),
    ("locked", r"dpkg frontend lock (?:is|was) locked by another process"),
    ("interrupted", r"dpkg was interrupted"),
    ("clash", r"Conflicting values set for option Signed-By regarding source (?P<source>\S+)"),
    ("key_missing", r"(?:GPG error: (?P<source>\S+)|Failed to fetch (?P<url>\S+)).*NO_PUBKEY"),
    ("key_expired", r"(?:GPG error: (?P<source>\S+)|Failed to fetch (?P<url>\S+)).*EXPKEYSIG"),
    ("damaged", r"(?:GPG error: (?P<source>\S+)|Failed to fetch (?P<url>\S+)).*(?:BADSIG|data and signature failed)"),
    ("damaged", r"Failed to fetch (?P<url>\S+).*(?:Hash Sum mismatch|unexpected size|Clearsigned file isn't valid)"),
    ("clock", r"Release file for (?P<url>\S+) is not valid yet \(invalid for another (?P<time>[^)]+)\)"),
    ("expired", r"Release file for (?P<url>\S+) is expired \(invalid since (?P<time>[^)]+)\)"),
    ("space", r"(?:No space left on device|You don't have enough free space in (?P<source>\S+)|not enough space)"),
    ("missing", r"Failed to fetch (?P<url>\S+)\s+404"),
    ("missing", r"The repository '(?P<source>\S+).*' (?:does not have|no longer has) a Release file"),
    ("unsigned", r"The repository '(?P<source>\S+).*' is (?:not signed|no longer signed)"),
    ("fetch", r"Failed to fetch (?P<url>\S+)"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_LINE = re.compile(r"^(?P<mark>[EW]): (?P<text>.*\S)\s*$|^dpkg: error: (?P<dpkg>.*\S)\s*$", re.MULTILINE)
_FOLLOWERS = re.compile(
    r"^(?:Some index files failed to download|The list of sources could not be read|Unable to fetch some archives"
    r"|Unable to lock directory|Unable to acquire the dpkg frontend lock)"
)
"""Lines that only repeat that the line before them went wrong."""
_CAUSES = ("key_missing", "key_expired", "damaged")

_REMEDIES = {
    "locked": "Another apt or dpkg is still at work: wait for it, or see who it is with fuser -v /var/lib/dpkg/lock*.",
    "interrupted": "Run dpkg --configure -a on the host.",
    "clash": "Two sources name this repository with different keys: keep one of them, remove the other.",
    "key_missing": "The repository is signed with a key that its keyring on this host does not hold: its owner changed "
    "the key, or the mirror is not what it says. Fetch the owner's new key from where you trust it.",
    "key_expired": "The key in this host's keyring has expired: remove that keyring file and run again, or fetch the "
    "owner's prolonged key from where you trust it.",
    "damaged": "What was fetched is incomplete or not what was signed: a proxy or a mirror in the middle of an update. "
    "Run again later, or name another mirror.",
    "clock": "The clock of this host is behind: set it (timedatectl set-ntp true) and run again.",
    "expired": "The mirror no longer follows its origin, or the clock of this host is ahead. Name another mirror.",
    "space": "Free some space there and run again.",
    "missing": "The address does not exist, or its mirror is in the middle of an update. See whether it is right.",
    "unsigned": "Without a valid signature apt takes nothing from there.",
    "fetch": "See whether this host reaches the address: name server, proxy, firewall.",
    "other": "See the whole output of apt on the host.",
}


def parse_problems(text: str) -> Tuple[Problem, ...]:
    """Of the output of apt-get or dpkg, in its order, each once."""
    found: List[Problem] = []
    for match in _LINE.finditer(text):
        words = match.group("text") or match.group("dpkg")
        fatal = match.group("mark") != "W"
        problem = _problem_of(words, fatal)
        if _FOLLOWERS.match(words) and (found or not fatal):
            continue
        if problem.kind == "other" and not fatal:
            continue
        known = [one for one in found if _same(one, problem)]
        if known and problem.fatal and not known[0].fatal:
            found[found.index(known[0])] = Problem(known[0].kind, known[0].text, known[0].source, True)
        elif not known:
            found.append(problem)
    return tuple(problem for problem in found if not _repeats(problem, found))


def _repeats(problem: Problem, found: Sequence[Problem]) -> bool:
    """That a source is not signed, where it is known why it could not be read. apt says it before or after."""
    return problem.kind == "unsigned" and any(
        other.kind != "unsigned" and other.source.rstrip("/") == problem.source.rstrip("/") for other in found
    )


def _problem_of(words: str, fatal: bool) -> Problem:
    for kind, pattern in _PATTERNS:
        match = pattern.search(words)
        if match:
            groups = match.groupdict()
            source = groups.get("source") or _base_of(groups.get("url") or "")
            return Problem(kind, words, source, fatal)
    return Problem("other", words, "", fatal)


def _base_of(url: str) -> str:
    """The address as a source names it, without what apt appends."""
    return re.sub(r"/(?:dists/.*|InRelease|Release|Release\.gpg|Packages\S*|by-hash/.*)$", "", url)


def _same(one: Problem, other: Problem) -> bool:
    """apt says the same of every suite, and that a source is not signed after it said why."""
    if one.source.rstrip("/") != other.source.rstrip("/"):
        return False
    return one.kind == other.kind or (one.kind in _CAUSES and other.kind in ("unsigned", "fetch"))


def concerns(problem: Problem, required: Iterable[str]) -> bool:
    """Is the problem about one of the addresses that a run cannot do without?"""
    source = problem.source.rstrip("/") + "/"
    addresses = [address.rstrip("/") + "/" for address in required if address]
    return bool(problem.source) and any(
        source.startswith(address) or address.startswith(source) for address in addresses
    )


def standing(problems: Iterable[Problem], required: Iterable[str]) -> Tuple[Problem, ...]:
    """Those that a run has to stop for: apt gave up, or the lists of a required source stayed those of yesterday."""
    addresses = tuple(required)
    return tuple(problem for problem in problems if problem.fatal or concerns(problem, addresses))


def is_busy(problems: Sequence[Problem]) -> bool:
    """Is another apt at work? Then nothing else that was said counts."""
    return any(problem.kind == "locked" for problem in problems)


def may_pass(problems: Sequence[Problem]) -> bool:
    """Is there anything that another try may mend, and nothing fatal that it cannot?"""
    fatal = [problem for problem in problems if problem.fatal]
    return any(problem.transient for problem in problems) and all(problem.transient for problem in fatal)


def explain(problems: Sequence[Problem], limit: int = 3) -> str:
    """What was found and what to do, for a person."""
    parts = ["%s. %s" % (problem.text.rstrip("."), remedy_of(problem)) for problem in problems[:limit]]
    if len(problems) > limit:
        parts.append("%d more of the kind." % (len(problems) - limit))
    return " ".join(parts)


def remedy_of(problem: Problem) -> str:
    return _REMEDIES[problem.kind]


def retry_delay_s(attempt: int) -> Optional[float]:
    """Seconds before try number `attempt` + 1, the first being 1; None where it was the last."""
    delays = (2.0, 5.0, 15.0)
    return delays[attempt - 1] if attempt <= len(delays) else None
