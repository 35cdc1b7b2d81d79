# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's sources in both of their forms, and where two of them clash. Pure (sources.list(5)).

Two sources of one repository and suite with different `Signed-By` stop apt altogether, not just for that repository:
"Conflicting values set for option Signed-By". One with and one without the option clash as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Tuple

_ONE_LINE = re.compile(r"^(?P<type>deb|deb-src)\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)")


@dataclass(frozen=True)
class Source:
    """One repository and suite as one file names it; `signed_by` is empty where the file does not say."""

    path: str
    uri: str
    suite: str
    signed_by: str


@dataclass(frozen=True)
class Clash:
    """One repository and suite that several files name with different keys."""

    uri: str
    suite: str
    sources: Tuple[Source, ...]

    @property
    def text(self) -> str:
        named = ", ".join("%s (%s)" % (source.path, source.signed_by or "no Signed-By") for source in self.sources)
        return "%s %s is signed by different keys, which stops apt: %s" % (self.uri, self.suite, named)


def parse_sources(path: str, text: str) -> List[Source]:
    """Active sources of a file; its name's ending decides which form it has, as with apt. Never raises."""
    return _parse_stanzas(path, text) if path.endswith(".sources") else _parse_lines(path, text)


def _parse_lines(path: str, text: str) -> List[Source]:
    sources = []
    for line in text.splitlines():
        match = _ONE_LINE.match(line.split("#", 1)[0].strip())
        if match:
            options = dict(word.partition("=")[::2] for word in (match.group("options") or "").split())
            signed = {name.lower(): value for name, value in options.items()}.get("signed-by", "")
            sources.append(Source(path, normal_uri(match.group("uri")), match.group("suite"), signed))
    return sources


def _parse_stanzas(path: str, text: str) -> List[Source]:
    sources = []
    for stanza in re.split(r"\n\s*\n", text):
        fields = _fields_of(stanza)
        if fields.get("enabled", "yes").strip().lower() in ("no", "false", "0", "off"):
            continue
        signed = fields.get("signed-by", "").strip()
        if "BEGIN PGP" in signed:
            signed = "an embedded key"
        for uri in fields.get("uris", "").split():
            sources.extend(Source(path, normal_uri(uri), suite, signed) for suite in fields.get("suites", "").split())
    return sources


def _fields_of(stanza: str) -> Dict[str, str]:
    fields: Dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t"):
            if name:
                fields[name] += "\n" + line.strip()
        elif ":" in line:
            key, _colon, value = line.partition(":")
            name = key.strip().lower()
            fields[name] = value.strip()
    return fields


def normal_uri(uri: str) -> str:
    """With one slash at its end: apt takes both spellings for the same repository."""
    return uri.rstrip("/") + "/"


def parse_all(texts: Mapping[str, str]) -> List[Source]:
    """Of files by path, in the order in which apt reads them."""
    return [source for path in sorted(texts) for source in parse_sources(path, texts[path])]


def find_clashes(sources: Iterable[Source]) -> List[Clash]:
    """Repositories that would stop apt, each with one source per key."""
    by_place: Dict[Tuple[str, str], Dict[str, Source]] = {}
    for source in sources:
        by_place.setdefault((source.uri, source.suite), {}).setdefault(source.signed_by, source)
    return [
        Clash(uri, suite, tuple(sorted(found.values(), key=lambda source: source.path)))
        for (uri, suite), found in sorted(by_place.items())
        if len(found) > 1
    ]
