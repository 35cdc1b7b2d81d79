# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of OpenPGP public keys, and ASCII armour, with nothing but the standard library (RFC 4880). Pure.

Target machines have no gpg, and apt trusts whatever key file it is given; so a download is trusted only when every
primary key in it has a fingerprint that the inventory names.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Iterator, List, Tuple

PUBLIC_KEY = 6
_TAGS_OF_A_KEY = (2, 6, 12, 13, 14, 17)
"""Signature, public key, trust, user id, public subkey, user attribute: what a public key block is made of."""
_BEGIN = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
_END = b"-----END PGP PUBLIC KEY BLOCK-----"


class OpenPgpError(ValueError):
    """The data is no OpenPGP public key; the message tells why."""


def normal_fingerprint(text: str) -> str:
    """``eb69 3b30 …`` or ``0xEB693B30…`` → 40 upper-case hex digits. Raises OpenPgpError for anything else."""
    plain = "".join(text.split()).upper()
    plain = plain[2:] if plain.startswith("0X") else plain
    if len(plain) != 40 or any(char not in "0123456789ABCDEF" for char in plain):
        raise OpenPgpError("'%s' is not a fingerprint of 40 hexadecimal digits" % text)
    return plain


def primary_fingerprints(data: bytes) -> Tuple[str, ...]:
    """Fingerprints of all primary keys in a key file, armoured or binary; at least one."""
    found = [_fingerprint(body) for tag, body in _packets(to_binary(data)) if tag == PUBLIC_KEY]
    if not found:
        raise OpenPgpError("there is no public key in it")
    return tuple(found)


def to_binary(data: bytes) -> bytes:
    """Take the armour off; binary data stays as it is. The armour's checksum is verified where there is one."""
    if _BEGIN not in data:
        return data
    blocks = []
    for part in data.split(_BEGIN)[1:]:
        body, end, _rest = part.partition(_END)
        if not end:
            raise OpenPgpError("the armour has no end line: the download was cut short")
        blocks.append(_unarmour(body))
    return b"".join(blocks)


def to_armour(data: bytes) -> bytes:
    """ASCII armour of binary keys; armoured data stays as it is."""
    if _BEGIN in data:
        return data
    text = base64.b64encode(data)
    lines = [text[start:start + 64] for start in range(0, len(text), 64)]
    checksum = b"=" + base64.b64encode(_crc24(data).to_bytes(3, "big"))
    return b"\n".join([_BEGIN, b""] + lines + [checksum, _END, b""])


def _unarmour(body: bytes) -> bytes:
    lines = [line.strip() for line in body.replace(b"\r\n", b"\n").split(b"\n")]
    blank = lines.index(b"", 1) if b"" in lines[1:] else 0
    text: List[bytes] = []
    checksum = None
    for line in lines[blank:]:
        if line.startswith(b"=") and len(line) == 5:
            checksum = line[1:]
        elif line and b":" not in line:
            text.append(line)
    try:
        data = base64.b64decode(b"".join(text), validate=True)
        expected = int.from_bytes(base64.b64decode(checksum, validate=True), "big") if checksum else None
    except binascii.Error as error:
        raise OpenPgpError("the armour is not base64: %s" % error) from error
    if expected is not None and _crc24(data) != expected:
        raise OpenPgpError("the armour's checksum is wrong: the download was damaged")
    return data


def _crc24(data: bytes) -> int:
    """RFC 4880, section 6.1."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _bit in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc & 0xFFFFFF


def _packets(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """(tag, body) of each packet: old and new format, no partial lengths (a key has none)."""
    position = 0
    while position < len(data):
        first = data[position]
        if not first & 0x80:
            raise OpenPgpError("it is not OpenPGP data")
        if first & 0x40:
            tag = first & 0x3F
            length, position = _new_length(data, position + 1)
        else:
            tag = (first >> 2) & 0x0F
            size = {0: 1, 1: 2, 2: 4}.get(first & 3)
            if size is None or position + 1 + size > len(data):
                raise OpenPgpError("a packet's length cannot be read")
            length = int.from_bytes(data[position + 1:position + 1 + size], "big")
            position += 1 + size
        if tag not in _TAGS_OF_A_KEY:
            raise OpenPgpError("a packet of type %d does not belong into a public key" % tag)
        if position + length > len(data):
            raise OpenPgpError("the last packet is cut short")
        yield tag, data[position:position + length]
        position += length


def _new_length(data: bytes, position: int) -> Tuple[int, int]:
    """Length and the position after it, of the new packet format (RFC 4880, section 4.2.2)."""
    try:
        first = data[position]
        if first < 192:
            return first, position + 1
        if first < 224:
            return ((first - 192) << 8) + data[position + 1] + 192, position + 2
    except IndexError as error:
        raise OpenPgpError("a packet's length cannot be read") from error
    if first == 255 and position + 5 <= len(data):
        return int.from_bytes(data[position + 1:position + 5], "big"), position + 5
    raise OpenPgpError("a packet's length cannot be read")


def _fingerprint(body: bytes) -> str:
    """SHA-1 over 0x99, the length in two bytes and the packet (RFC 4880, section 12.2)."""
    if not body or body[0] != 4:
        raise OpenPgpError("the key has version %s; only version 4 is understood" % (body[0] if body else "none"))
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()
