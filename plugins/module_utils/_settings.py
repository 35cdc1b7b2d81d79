# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings in files of other owners: apt.conf, ini-like, sysctl and limits files. Pure.

A role leaves alone what an operator set in another file of the same kind; for that it has to read these files as
their programs do. Sources: apt.conf(5), systemd.syntax(7), sysctl.d(5), limits.conf(5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, List, Tuple


@dataclass(frozen=True)
class Setting:
    """One setting in one file. `key`: lower case for apt, ``Section/Key`` for ini files, ``domain item`` for limits."""

    path: str
    key: str
    value: str


# -- apt.conf ----------------------------------------------------------------------------------------------------------

_APT_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>//[^\n]*|\#(?!clear\b|include\b)[^\n]*|/\*.*?\*/)
  | (?P<string>"[^"\n]*")
  | (?P<mark>[{};])
  | (?P<word>(?:(?!//|/\*)[^\s"{};])+)
    """,
    re.VERBOSE | re.DOTALL,
)


def parse_apt_conf(path: str, text: str) -> List[Setting]:
    """Settings with their full names in lower case; members of lists have the list's name. Never raises."""
    settings: List[Setting] = []
    scopes: List[str] = []
    words: List[Tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _APT_TOKEN.match(text, position)
        if match is None:
            position += 1
            continue
        position = match.end()
        kind, token = match.lastgroup, match.group()
        if kind in ("string", "word"):
            words.append((kind, token.strip('"')))
        elif kind == "mark":
            name = "".join(text for kind, text in words if kind == "word")
            if token == "{":
                scopes.append(name)
            elif token == "}":
                scopes = scopes[:-1]
            elif words:
                values = [text for kind, text in words if kind == "string"]
                full = "::".join(scope for scope in [*scopes, name.rstrip(":")] if scope)
                settings.append(Setting(path, full.lower(), values[0] if values else ""))
            words = []
    return settings


# -- ini files of systemd ----------------------------------------------------------------------------------------------


def parse_ini(path: str, text: str) -> List[Setting]:
    """Assignments as ``Section/Key``; comments (``#``, ``;``) and lines of another form are left out."""
    settings, section = [], ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif "=" in line:
            key, _equals, value = line.partition("=")
            settings.append(Setting(path, "%s/%s" % (section, key.strip()), value.strip()))
    return settings


# -- sysctl ------------------------------------------------------------------------------------------------------------


def sysctl_key(key: str) -> str:
    """One spelling for a key: with dots, except where a name itself has dots (then slashes are kept)."""
    key = key.strip().lstrip("-")
    if "/" in key and ("." not in key or key.index("/") < key.index(".")):
        parts = key.split("/")
        return key if any("." in part for part in parts) else ".".join(parts)
    return key


def sysctl_path(key: str) -> str:
    """Where the kernel shows a key. ``net.ipv4.conf.eth0/1.forwarding`` has a dot in a name: written as a slash."""
    first = next((char for char in key if char in "./"), ".")
    if first == "/":
        return "/proc/sys/" + key
    return "/proc/sys/" + key.replace(".", "\0").replace("/", ".").replace("\0", "/")


def sysctl_value(value: object) -> str:
    """Values that differ in blanks alone are equal, as in ``4096<tab>87380``."""
    if isinstance(value, bool):
        value = int(value)
    return " ".join(str(value).split())


def parse_sysctl(path: str, text: str) -> List[Setting]:
    settings = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;" or "=" not in line:
            continue
        key, _equals, value = line.partition("=")
        settings.append(Setting(path, sysctl_key(key), sysctl_value(value)))
    return settings


# -- limits ------------------------------------------------------------------------------------------------------------


def parse_limits(path: str, text: str) -> List[Setting]:
    """Entries as ``domain item``; the value keeps its type, e.g. ``hard 65536``."""
    settings = []
    for raw in text.splitlines():
        words = raw.split("#", 1)[0].split()
        if len(words) == 4:
            domain, kind, item, value = words
            settings.append(Setting(path, "%s %s" % (domain, item), "%s %s" % (kind, value)))
    return settings


def settings_of(settings: Iterable[Setting], key: str) -> List[Setting]:
    return [setting for setting in settings if setting.key == key]
