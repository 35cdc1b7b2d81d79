# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to happen to a list of configuration files. Pure: the module observes and applies.

One call for all files of a role: a round trip costs more than reading twenty small files.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

_MODE = re.compile(r"^0?[0-7]{3,4}$")


class ConfigFilesError(Exception):
    """An option that makes no sense; its text names the file and what is allowed."""


@dataclass(frozen=True)
class WantedFile:
    """One file as it should be. `content` is None where the file should not be. `mode` is permission bits."""

    path: str
    content: Optional[bytes]
    mode: int
    owner: str
    group: str
    validate: Tuple[str, ...] = ()
    show_diff: bool = True

    @property
    def present(self) -> bool:
        return self.content is not None


@dataclass(frozen=True)
class ObservedFile:
    """One path as it is. `kind`: absent, file, link, folder or other. `content` only of a file."""

    kind: str
    content: Optional[bytes] = None
    mode: Optional[int] = None
    owner: Optional[str] = None
    group: Optional[str] = None
    target: Optional[str] = None


@dataclass(frozen=True)
class Change:
    """What to do with one path: ``write`` (whole file with attributes), ``attributes`` or ``remove``."""

    wanted: WantedFile
    action: str
    text: str
    diff: Dict[str, str] = field(default_factory=dict)


# -- options -----------------------------------------------------------------------------------------------------------


def parse_wanted(items: Sequence[Mapping[str, Any]]) -> List[WantedFile]:
    """Module option `files` to :class:`WantedFile`; raises :class:`ConfigFilesError`."""
    wanted = [_parse_one(item) for item in items]
    seen = set()
    for item in wanted:
        if item.path in seen:
            raise ConfigFilesError("%s is listed twice; list every path once" % item.path)
        seen.add(item.path)
    return wanted


def _parse_one(item: Mapping[str, Any]) -> WantedFile:
    path = str(item["path"])
    if not path.startswith("/") or path.endswith("/") or posixpath.normpath(path) != path:
        raise ConfigFilesError("%r is not an absolute, normalised path of a file" % path)
    return WantedFile(
        path=path,
        content=_content(path, item),
        mode=_mode(path, item.get("mode", "0644")),
        owner=str(item.get("owner") or "root"),
        group=str(item.get("group") or "root"),
        validate=_validate(path, item.get("validate") or ()),
        show_diff=item.get("show_diff") is not False,
    )


def _content(path: str, item: Mapping[str, Any]) -> Optional[bytes]:
    text, encoded = item.get("content"), item.get("content_b64")
    if item.get("state", "present") == "absent":
        return None
    if (text is None) == (encoded is None):
        raise ConfigFilesError("%s: state present needs exactly one of content and content_b64" % path)
    if text is not None:
        return text.encode("utf-8")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigFilesError("%s: content_b64 is not valid base64" % path) from None


def _mode(path: str, mode: Any) -> int:
    """An unquoted 0644 in YAML arrives as the number 420: refused, because 420 would also be a valid mode."""
    if not isinstance(mode, str) or not _MODE.match(mode):
        raise ConfigFilesError("%s: mode %r is not a quoted octal string such as '0644'" % (path, mode))
    return int(mode, 8)


def _validate(path: str, argv: Sequence[Any]) -> Tuple[str, ...]:
    words = tuple(str(word) for word in argv)
    if words and not any("%s" in word for word in words[1:]):
        raise ConfigFilesError("%s: validate has no argument with %%s, where the file's name goes" % path)
    return words


def validate_argv(wanted: WantedFile, temporary: str) -> List[str]:
    return [wanted.validate[0]] + [word.replace("%s", temporary) for word in wanted.validate[1:]]


# -- plan --------------------------------------------------------------------------------------------------------------


def plan_files(wanted: Sequence[WantedFile], observed: Mapping[str, ObservedFile]) -> List[Change]:
    """Changes in the order of `wanted`; none where all is as it should be."""
    changes = (_plan_one(item, observed[item.path]) for item in wanted)
    return [change for change in changes if change is not None]


def _plan_one(wanted: WantedFile, seen: ObservedFile) -> Optional[Change]:
    if seen.kind in ("folder", "other"):
        if not wanted.present and seen.kind == "other":
            return Change(wanted, "remove", "remove %s" % wanted.path, _diff(wanted, seen))
        raise ConfigFilesError("%s is a %s here; it is neither replaced nor removed" % (wanted.path, _KINDS[seen.kind]))
    if not wanted.present:
        if seen.kind == "absent":
            return None
        return Change(wanted, "remove", "remove %s" % wanted.path, _diff(wanted, seen))
    if seen.kind == "absent":
        return Change(wanted, "write", "create %s" % wanted.path, _diff(wanted, seen))
    if seen.kind == "link":
        text = "replace the link %s -> %s by a file" % (wanted.path, seen.target)
        return Change(wanted, "write", text, _diff(wanted, seen))
    differences = _attribute_differences(wanted, seen)
    if seen.content != wanted.content:
        text = "change %s (%s)" % (wanted.path, ", ".join(["content"] + differences))
        return Change(wanted, "write", text, _diff(wanted, seen))
    if differences:
        text = "change %s (%s)" % (wanted.path, ", ".join(differences))
        return Change(wanted, "attributes", text, _diff(wanted, seen))
    return None


_KINDS = {"folder": "folder", "other": "device, pipe or socket"}


def _attribute_differences(wanted: WantedFile, seen: ObservedFile) -> List[str]:
    pairs = (
        ("mode", "%04o" % (seen.mode or 0), "%04o" % wanted.mode),
        ("owner", seen.owner, wanted.owner),
        ("group", seen.group, wanted.group),
    )
    return ["%s %s -> %s" % (name, before, after) for name, before, after in pairs if before != after]


# -- diff --------------------------------------------------------------------------------------------------------------


def _diff(wanted: WantedFile, seen: ObservedFile) -> Dict[str, str]:
    """One entry of Ansible's diff list; attributes are lines of the header, so that they show without content."""
    if not wanted.show_diff:
        hidden = "(content not shown)\n"
        before = hidden if seen.kind == "file" else ""
        after = "(new content not shown)\n" if wanted.present and seen.content != wanted.content else before
    else:
        before = _text(seen.content) if seen.kind == "file" else ""
        after = _text(wanted.content) if wanted.present else ""
    return {
        "before": before,
        "after": after,
        "before_header": _header(wanted.path, seen),
        "after_header": (
            "%s (%04o %s:%s)" % (wanted.path, wanted.mode, wanted.owner, wanted.group)
            if wanted.present
            else "%s (absent)" % wanted.path
        ),
    }


def _header(path: str, seen: ObservedFile) -> str:
    if seen.kind == "file":
        return "%s (%04o %s:%s)" % (path, seen.mode or 0, seen.owner, seen.group)
    return "%s (%s)" % (path, "link to %s" % seen.target if seen.kind == "link" else seen.kind)


def _text(content: Optional[bytes]) -> str:
    if content is None:
        return ""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return "(%d bytes that are not text)\n" % len(content)
    return text if "\x00" not in text else "(%d bytes that are not text)\n" % len(content)
