# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The format of a .deb, deb(5): an ar archive of a version, a tar file with control data and one with the files.

`dpkg-deb --build` makes the same; starting it for each of some thousand packages takes half a minute. Nothing is
compressed (the packages are tiny), everything belongs to root, and the same content gives the same bytes.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import PurePosixPath
from typing import Dict, Iterable, List, Optional, Tuple

FIXED_TIME_S = 1764460800
"""Modification time of everything in a package: 2025-11-30."""

Member = Tuple[str, bytes, int]
"""(path without a leading slash, content, mode)"""


def pack(control: Iterable[Member], files: Iterable[Member], links: Iterable[Tuple[str, str]] = ()) -> bytes:
    """The bytes of a package: members of its control archive, its files, and its links as (path, target)."""
    parts = [
        ("debian-binary", b"2.0\n"),
        ("control.tar", _tar(list(control), [])),
        ("data.tar", _tar(list(files), list(links))),
    ]
    return b"!<arch>\n" + b"".join(_ar_member(name, data) for name, data in parts)


def _ar_member(name: str, data: bytes) -> bytes:
    """A header of fixed columns: name, time, owner, group, mode (octal), size; content starts at even offsets."""
    header = "%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name, FIXED_TIME_S, 0, 0, 0o100644, len(data))
    return header.encode("ascii") + data + b"\n" * (len(data) % 2)


def _tar(files: List[Member], links: List[Tuple[str, str]]) -> bytes:
    """Members sorted by path, each directory before what is in it, as dpkg wants them."""
    entries: Dict[str, Tuple[tarfile.TarInfo, Optional[bytes]]] = {}
    for path, data, mode in files:
        entries[path] = (_info(path, tarfile.REGTYPE, mode, len(data)), data)
    for path, target in links:
        entries[path] = (_info(path, tarfile.SYMTYPE, 0o777, target=target), None)
    for path in list(entries):
        for parent in PurePosixPath(path).parents:
            entries.setdefault(str(parent), (_info(str(parent), tarfile.DIRTYPE, 0o755), None))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(entries, key=lambda path: PurePosixPath(path).parts):
            info, data = entries[path]
            archive.addfile(info, io.BytesIO(data) if data is not None else None)
    return buffer.getvalue()


def _info(path: str, kind: bytes, mode: int, size: int = 0, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo("." if path == "." else "./" + path)
    info.type, info.mode, info.size, info.linkname = kind, mode, size, target
    info.mtime, info.uname, info.gname = FIXED_TIME_S, "root", "root"
    return info
