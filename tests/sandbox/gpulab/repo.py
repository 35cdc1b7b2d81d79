# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The generated package repositories (package gpurepo) and the container that serves them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, List

from .cache import SANDBOX, cache_dir, digest_of, lock


@dataclass(frozen=True)
class Repositories:
    """A built repository tree: what to serve, its hash, and the packages that belong into an image."""

    root: Path
    digest: str
    tree: Any = field(repr=False, compare=False)
    server: Path = SANDBOX / "gpurepo" / "server.py"

    def image_debs(self, image: str) -> List[Path]:
        """Packages that an image of that name has installed."""
        return sorted(self.tree.image_debs(image))

    def archive_digest(self) -> str:
        """A hash of what is baked into stand-ins: the indexes of Ubuntu's archive, whatever else is in the tree."""
        texts = [path.read_text(encoding="utf-8") for path in sorted((self.root / "ubuntu").rglob("Packages"))]
        return digest_of(*texts)


def ensure_repositories() -> Repositories:
    """Build the repositories when their manifest changed; otherwise return the cached tree."""
    import gpurepo

    with lock("repositories"):
        tree = gpurepo.build(cache_dir())
    return Repositories(root=Path(tree.root), digest=tree.digest, tree=tree)
