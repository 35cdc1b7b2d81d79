# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Systems that the collection manages, and how a refusal of any other one reads. Pure."""

from __future__ import annotations

from typing import Mapping, Optional

SUPPORTED = {"ubuntu": ("20.04", "22.04", "24.04", "26.04"), "debian": ("12", "13")}
ARCHITECTURES = ("amd64", "arm64")


def allowed_text() -> str:
    return "Ubuntu %s, Debian %s, on %s" % (
        ", ".join(SUPPORTED["ubuntu"]),
        ", ".join(SUPPORTED["debian"]),
        " or ".join(ARCHITECTURES),
    )


def refusal_of(os_release: Mapping[str, str], arch: str) -> Optional[str]:
    """Why this machine is not managed, or None. `arch` is dpkg's name; the text has what was found and is allowed."""
    name, version = os_release.get("ID", ""), os_release.get("VERSION_ID", "")
    known = version in SUPPORTED.get(name, ())
    if known and arch in ARCHITECTURES:
        return None
    found = os_release.get("PRETTY_NAME") or ("%s %s" % (name, version)).strip() or "a system without /etc/os-release"
    return "found %s on %s; allowed are %s" % (found, arch or "an unknown architecture", allowed_text())
