# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 -m gpurepo build [CACHE]`: build the repositories and say where they are."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from . import build


def default_cache() -> Path:
    return Path(os.environ.get("GPUFLEET_CACHE") or Path.home() / ".cache" / "gpufleet")


def main() -> None:
    parser = argparse.ArgumentParser(prog="gpurepo", description=__doc__)
    parser.add_argument("command", choices=["build"])
    parser.add_argument("cache", nargs="?", type=Path, default=default_cache())
    arguments = parser.parse_args()
    start = time.monotonic()
    tree = build(arguments.cache)
    count = sum(1 for _ in tree.root.rglob("*.deb"))
    how = "built" if tree.fresh else "from the cache"
    print("%s\n%d packages, %s in %.1f s" % (tree.root, count, how, time.monotonic() - start))


if __name__ == "__main__":
    main()
