# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest ELF files that kmod and ldconfig take for what they claim to be.

`kernel_module` is an ELF64 relocatable object: real `modinfo` reads its version and licence, real `depmod` indexes
it. `shared_library` is an ELF64 shared object with a soname and nothing else, so that ldconfig does not complain
about it or remove the links that the package ships. Neither holds any code.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import List, Mapping, Sequence, Tuple

EM_X86_64 = 62
ET_REL, ET_DYN = 1, 3
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_DYNAMIC = 1, 2, 3, 6
SHF_ALLOC = 2
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME = 0, 5, 6, 10, 11, 14
HEADER_BYTES, SECTION_BYTES, PROGRAM_BYTES, SYMBOL_BYTES = 64, 64, 56, 24


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    data: bytes
    flags: int = 0
    link: int = 0
    info: int = 0
    entry_bytes: int = 0


def _pad(data: bytes, alignment: int = 8) -> bytes:
    return data + b"\0" * (-len(data) % alignment)


def _strings(names: Sequence[str]) -> Tuple[bytes, List[int]]:
    """A string table and the offset of each name in it; offset 0 is the empty name."""
    table, offsets = b"\0", []
    for name in names:
        offsets.append(len(table))
        table += name.encode("ascii") + b"\0"
    return table, offsets


def _header(kind: int, program_headers: int, section_offset: int, section_count: int) -> bytes:
    identity = b"\x7fELF" + bytes([2, 1, 1, 0]) + b"\0" * 8
    return identity + struct.pack(
        "<HHIQQQIHHHHHH",
        kind,
        EM_X86_64,
        1,
        0,
        HEADER_BYTES if program_headers else 0,
        section_offset,
        0,
        HEADER_BYTES,
        PROGRAM_BYTES if program_headers else 0,
        program_headers,
        SECTION_BYTES if section_count else 0,
        section_count,
        section_count - 1 if section_count else 0,
    )


def kernel_module(name: str, info: Mapping[str, str]) -> bytes:
    """A relocatable object whose .modinfo section holds `info` (`version`, `license`, `depends`, …)."""
    modinfo = b"".join(("%s=%s" % pair).encode("ascii") + b"\0" for pair in [*info.items(), ("name", name)])
    sections = [
        _Section(".modinfo", SHT_PROGBITS, modinfo, flags=SHF_ALLOC),
        _Section(".symtab", SHT_SYMTAB, b"\0" * SYMBOL_BYTES, link=3, info=1, entry_bytes=SYMBOL_BYTES),
        _Section(".strtab", SHT_STRTAB, b"\0"),
    ]
    names, offsets = _strings([section.name for section in sections] + [".shstrtab"])
    sections.append(_Section(".shstrtab", SHT_STRTAB, names))

    body, table = b"", [b"\0" * SECTION_BYTES]
    for section, name_offset in zip(sections, offsets, strict=True):
        table.append(
            struct.pack(
                "<IIQQQQIIQQ",
                name_offset,
                section.kind,
                section.flags,
                0,
                HEADER_BYTES + len(body),
                len(section.data),
                section.link,
                section.info,
                8 if section.kind == SHT_SYMTAB else 1,
                section.entry_bytes,
            )
        )
        body += _pad(section.data)
    return _header(ET_REL, 0, HEADER_BYTES + len(body), len(table)) + body + b"".join(table)


def shared_library(soname: str) -> bytes:
    """A shared object with that soname; one loadable segment covers the whole file, at address 0."""
    strings, (soname_offset,) = _strings([soname])
    strings = _pad(strings)
    symbols = b"\0" * SYMBOL_BYTES
    strings_at = HEADER_BYTES + 2 * PROGRAM_BYTES
    symbols_at = strings_at + len(strings)
    dynamic_at = symbols_at + len(symbols)
    entries = [
        (DT_SONAME, soname_offset),
        (DT_STRTAB, strings_at),
        (DT_SYMTAB, symbols_at),
        (DT_STRSZ, len(strings)),
        (DT_SYMENT, SYMBOL_BYTES),
        (DT_NULL, 0),
    ]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    end = dynamic_at + len(dynamic)

    def program(kind: int, offset: int, size: int, alignment: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, 4, offset, offset, offset, size, size, alignment)

    programs = program(PT_LOAD, 0, end, 0x1000) + program(PT_DYNAMIC, dynamic_at, len(dynamic), 8)
    return _header(ET_DYN, 2, 0, 0) + programs + strings + symbols + dynamic
