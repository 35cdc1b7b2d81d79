# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the command gpu-health: one file that any python3 runs, of the files in module_utils that it needs.

The bytes depend on the sources alone: names sorted, one fixed time. The lookup of the role and `make gpu-health` call
the same function.
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Dict, List

COLLECTION = Path(__file__).resolve().parents[2]
MODULE_UTILS = COLLECTION / "plugins" / "module_utils"
MAIN = COLLECTION / "roles" / "gpu_health" / "files" / "gpu_health_main.py"
PACKAGE = "gpu_health"
ENTRY = "_gpu_health_cli"
INTERPRETER = b"#!/usr/bin/python3\n"

_RELATIVE = re.compile(r"^\s*from \.(_\w+) import", re.MULTILINE)
_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


def needed_modules(entry: str = ENTRY) -> List[str]:
    """Names of the module_utils files that `entry` imports, directly or not, sorted."""
    found: Dict[str, bool] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = True
        waiting.extend(_RELATIVE.findall(_source(name).decode("utf-8")))
    return sorted(found)


def _source(name: str) -> bytes:
    return (MODULE_UTILS / (name + ".py")).read_bytes()


def build_archive() -> bytes:
    """The zipapp, executable as it is."""
    files = {"__main__.py": MAIN.read_bytes(), PACKAGE + "/__init__.py": b""}
    for name in needed_modules():
        files["%s/%s.py" % (PACKAGE, name)] = _source(name)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    return INTERPRETER + buffer.getvalue()
