# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a broken tool prints: the beginning of the answer, then noise."""


def spoil(text: str) -> bytes:
    """Cut the answer at two fifths and overwrite a piece of what is left, so that nothing parses as a whole."""
    data = text.encode()
    kept = bytearray(data[: len(data) * 2 // 5])
    middle = len(kept) // 2
    kept[middle : middle + 12] = b"\x00\xff\xfe<<&\x1b[%s\x07\x80"
    return bytes(kept)
