# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg and apt say about packages, and the order of Debian versions. Pure.

Asking dpkg takes milliseconds, asking apt seconds (it opens its whole cache): roles decide from dpkg's answer whether
apt has anything to do. Sources: dpkg-query(1), deb-version(7), apt-cache(8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

QUERY_FORMAT = (
    "${Package}\\t${Architecture}\\t${Version}\\t${db:Status-Want}\\t${db:Status-Status}\\t${db:Status-Eflag}\\n"
)
QUERY_ARGV = ("dpkg-query", "-W", "-f", QUERY_FORMAT)
"""Append name patterns to ask for a part; exit status 1 then only says that some pattern matched nothing."""

BROKEN_STATES = frozenset(
    ("unpacked", "half-configured", "half-installed", "triggers-awaited", "triggers-pending", "triggers-awaiting")
)
"""States that a package is left in when dpkg was interrupted."""


@dataclass(frozen=True)
class Package:
    """One package as dpkg knows it. `version` is empty where it was never installed."""

    name: str
    version: str
    arch: str
    want: str
    state: str
    error: bool = False

    @property
    def installed(self) -> bool:
        return self.state == "installed" and not self.error

    @property
    def held(self) -> bool:
        return self.want == "hold"

    @property
    def broken(self) -> bool:
        return self.error or self.state in BROKEN_STATES


@dataclass(frozen=True)
class Policy:
    """One package as apt sees it. None stands for apt's `(none)`; `versions` are (version, priority), best first."""

    name: str
    installed: Optional[str]
    candidate: Optional[str]
    versions: Tuple[Tuple[str, int], ...] = ()


# -- parsers -----------------------------------------------------------------------------------------------------------


def parse_query(text: str) -> Dict[str, Package]:
    """Packages by name, from the output of `QUERY_ARGV`.

    Where one name exists for several architectures, the installed one has the plain name, and every one is also
    found as ``name:arch``. Lines of another form are left out.
    """
    by_name: Dict[str, List[Package]] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 6 or not fields[0]:
            continue
        name, arch, version, want, state, flag = (field.strip() for field in fields)
        package = Package(name, version, arch, want, state, error=flag not in ("", "ok"))
        by_name.setdefault(name, []).append(package)
    packages: Dict[str, Package] = {}
    for name, found in by_name.items():
        packages[name] = max(found, key=lambda package: package.state == "installed")
        if len(found) > 1:
            packages.update({"%s:%s" % (name, package.arch): package for package in found})
    return packages


def parse_policy(text: str) -> Dict[str, Policy]:
    """Answers of `apt-cache policy NAME…` (C locale) by name; a name that apt does not know is absent."""
    answers: Dict[str, Policy] = {}
    for name, lines in _policy_blocks(text):
        installed = candidate = None
        versions: List[Tuple[str, int]] = []
        for line in lines:
            words = line.split()
            if words[0] == "Installed:":
                installed = _none_or(words)
            elif words[0] == "Candidate:":
                candidate = _none_or(words)
            elif line.startswith((" *** ", "     ")) and not line.startswith("      ") and len(words) >= 2:
                words = [word for word in words if word != "***"]
                if len(words) >= 2 and words[1].lstrip("-").isdigit():
                    versions.append((words[0], int(words[1])))
        answers[name] = Policy(name, installed, candidate, tuple(versions))
    return answers


def _policy_blocks(text: str) -> Iterable[Tuple[str, List[str]]]:
    name, lines = None, []  # type: Optional[str], List[str]
    for line in text.splitlines():
        if not line.strip():
            continue
        if not line.startswith(" "):
            if name is not None:
                yield name, lines
            name, lines = (line.strip()[:-1] if line.rstrip().endswith(":") else None), []
        else:
            lines.append(line)
    if name is not None:
        yield name, lines


def _none_or(words: List[str]) -> Optional[str]:
    return None if len(words) < 2 or words[1] == "(none)" else words[1]


def broken_packages(packages: Mapping[str, Package]) -> List[str]:
    """Sorted names of packages that an interrupted dpkg left behind."""
    return sorted({package.name for package in packages.values() if package.broken})


# -- versions ----------------------------------------------------------------------------------------------------------


def split_version(version: str) -> Tuple[int, str, str]:
    """``[epoch:]upstream[-revision]`` as (epoch, upstream, revision); an epoch that is no number counts as 0."""
    epoch_text, colon, rest = version.partition(":")
    if not colon or not epoch_text.isdigit():
        epoch_text, rest = "0", version
    upstream, dash, revision = rest.rpartition("-")
    return int(epoch_text), (upstream if dash else rest), (revision if dash else "")


def compare_versions(left: str, right: str) -> int:
    """-1, 0 or 1 in Debian's order: ``~`` sorts before the end, letters before other characters."""
    left_epoch, left_upstream, left_revision = split_version(left)
    right_epoch, right_upstream, right_revision = split_version(right)
    if left_epoch != right_epoch:
        return -1 if left_epoch < right_epoch else 1
    return _compare_part(left_upstream, right_upstream) or _compare_part(left_revision, right_revision)


version_key = cmp_to_key(compare_versions)


def _compare_part(left: str, right: str) -> int:
    """Compare by turns a run of non-digits and a run of digits, until one differs."""
    while left or right:
        left_text, left = _take(left, digits=False)
        right_text, right = _take(right, digits=False)
        if left_text != right_text:
            for index in range(max(len(left_text), len(right_text)) + 1):
                order = _order(left_text, index) - _order(right_text, index)
                if order:
                    return -1 if order < 0 else 1
        left_number, left = _take(left, digits=True)
        right_number, right = _take(right, digits=True)
        difference = int(left_number or 0) - int(right_number or 0)
        if difference:
            return -1 if difference < 0 else 1
    return 0


def _take(text: str, digits: bool) -> Tuple[str, str]:
    end = 0
    while end < len(text) and (text[end] in "0123456789") == digits:
        end += 1
    return text[:end], text[end:]


def _order(text: str, index: int) -> int:
    if index >= len(text):
        return 0
    char = text[index]
    if char == "~":
        return -1
    return ord(char) if char.isalpha() else ord(char) + 256
