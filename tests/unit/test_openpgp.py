# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of real keys. The keys in data_openpgp were made with GnuPG 2.2 for these tests, and the fingerprints
below are what GnuPG itself prints for them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._openpgp import (
    OpenPgpError,
    normal_fingerprint,
    primary_fingerprints,
    to_armour,
    to_binary,
)

DATA = Path(__file__).parent / "data_openpgp"
RSA = (DATA / "rsa2048-with-subkey.asc").read_bytes()
ED25519 = (DATA / "ed25519.asc").read_bytes()
RSA_FINGERPRINT = "86EE34245EDC7D2A10716C7F865C23813CE23C87"
ED25519_FINGERPRINT = "A7BC19D15FFB5E4898D791C6766BE19CCE3AA512"


@pytest.mark.parametrize("data, fingerprint", [(RSA, RSA_FINGERPRINT), (ED25519, ED25519_FINGERPRINT)])
@pytest.mark.parametrize("form", [bytes, to_binary], ids=["armoured", "binary"])
def test_the_fingerprint_is_gnupgs(data, fingerprint, form):
    assert primary_fingerprints(form(data)) == (fingerprint,)


def test_a_subkey_is_no_key_of_its_own():
    assert len(primary_fingerprints(RSA)) == 1


def test_all_primary_keys_of_a_file_are_found():
    both = (RSA_FINGERPRINT, ED25519_FINGERPRINT)
    assert primary_fingerprints(RSA + ED25519) == both
    assert primary_fingerprints(to_binary(RSA) + to_binary(ED25519)) == both


def test_the_new_packet_format_is_read_as_well():
    old = to_binary(ED25519)
    length, body = old[1], old[2:2 + old[1]]  # 0x98: old format, tag 6, one byte of length
    assert old[0] == 0x98
    rest = old[2 + length:]
    one = bytes([0xC6, length]) + body + rest
    five = bytes([0xC6, 0xFF]) + length.to_bytes(4, "big") + body + rest
    assert primary_fingerprints(one) == primary_fingerprints(five) == (ED25519_FINGERPRINT,)


@pytest.mark.parametrize("data", [RSA, ED25519])
def test_armour_goes_on_and_off_without_loss(data):
    binary = to_binary(data)
    assert to_binary(to_armour(binary)) == binary
    assert to_armour(data) == data
    assert to_binary(binary) == binary
    # GnuPG's own checksum line: the same CRC
    assert to_armour(binary).splitlines()[-2] == data.strip().splitlines()[-2]


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "no public key"),
        (b"<html>404</html>", "not OpenPGP"),
        (RSA[:600], "no end line"),
        (to_binary(RSA)[:200], "cut short"),
        (RSA.replace(b"ulU+i", b"ulU+j"), "checksum"),
        (ED25519.replace(b"mDMEaw", b"!!!!!!"), "base64"),
        (bytes([0xC6, 0x01, 0x03]), "version 3"),
        (bytes([0xC6, 0x01, 0x06]), "version 6"),
        (bytes([0xCB, 0x01, 0x62]), "type 11"),
        (bytes([0xC6, 0xE3]) + b"x" * 20, "length"),
        (bytes([0xC6]), "length"),
    ],
)
def test_what_is_no_key_is_refused_with_the_reason(data, words):
    with pytest.raises(OpenPgpError, match=words):
        primary_fingerprints(data)


def test_a_private_key_packet_is_refused():
    with pytest.raises(OpenPgpError, match="type 5"):
        primary_fingerprints(bytes([0xC5, 0x01, 0x04]))


@pytest.mark.parametrize(
    "text",
    [
        "86EE34245EDC7D2A10716C7F865C23813CE23C87",
        "86ee34245edc7d2a10716c7f865c23813ce23c87",
        "0x86EE34245EDC7D2A10716C7F865C23813CE23C87",
        "86EE 3424 5EDC 7D2A 1071  6C7F 865C 2381 3CE2 3C87",
    ],
)
def test_fingerprints_are_understood_as_people_write_them(text):
    assert normal_fingerprint(text) == RSA_FINGERPRINT


@pytest.mark.parametrize("text", ["", "3CE23C87", "865C23813CE23C87", RSA_FINGERPRINT + "0", "G" * 40])
def test_short_ids_are_no_fingerprints(text):
    with pytest.raises(OpenPgpError):
        normal_fingerprint(text)


def test_armour_without_a_checksum_is_accepted():
    lines = RSA.strip().splitlines()
    assert primary_fingerprints(b"\n".join(lines[:-2] + lines[-1:])) == (RSA_FINGERPRINT,)


def test_armour_with_headers_and_windows_line_ends_is_accepted():
    text = RSA.replace(b"BLOCK-----\n\n", b"BLOCK-----\nVersion: GnuPG v2\nComment: x\n\n", 1).replace(b"\n", b"\r\n")
    assert primary_fingerprints(text) == (RSA_FINGERPRINT,)
    assert base64.b64encode(to_binary(text)) == base64.b64encode(to_binary(RSA))
