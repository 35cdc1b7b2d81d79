# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox's package repositories: generated from manifest/, packed, signed, served over HTTP.

    from gpurepo import build
    tree = build(cache)                  # RepoTree: root, digest, image_debs(image)

    python3 -m gpurepo build [CACHE]     # the same from a shell: prints the directory to serve
    python3 server.py ROOT PORT          # serves it; standard library only
"""

from __future__ import annotations

from .build import RepoTree, build

__all__ = ["RepoTree", "build"]
