# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines for the tests of the judgement: recorded folders replayed as commands, and simulated ones."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from ansible_collections.gpufleet.server.plugins.module_utils._host import CommandResult, Host

SMI = "/opt/stub/nvidia-smi"
ONE_KERNEL_LINE = "1732000000.123456 node kernel: Linux version 6.8.0-90-generic\n"
FABRIC_UP = "LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=0\nResult=success\n"


class ScriptedHost(Host):
    """A machine whose commands answer from a table of (pattern of the command line, answer); anything else is missing.

    An answer is (exit status, stdout), or None for a command that does not end in time. `asked` keeps what was asked.
    """

    def __init__(self, root: str, answers) -> None:
        super().__init__(root)
        self.answers = [(re.compile(pattern), answer) for pattern, answer in answers]
        self.asked: List[str] = []

    def run(self, argv, timeout_s=60.0, max_bytes=0, env=None, stdin=None):
        line = " ".join(argv)
        self.asked.append(line)
        for pattern, answer in self.answers:
            if pattern.search(line):
                if answer is None:
                    return CommandResult(tuple(argv), None, "", "", timeout_s, timed_out=True)
                return CommandResult(tuple(argv), answer[0], answer[1], "", 0.01)
        return CommandResult(tuple(argv), None, "", "", 0.0, missing=True)


def read_recording(path: Path) -> str:
    """As the command reads it: UTF-8, with a mark for what is none, line ends kept."""
    return path.read_bytes().decode("utf-8", "replace")


def folder_recordings(folder: Path) -> List[Tuple[str, str]]:
    return [(path.name, read_recording(path)) for path in sorted(folder.iterdir()) if path.is_file()]


def replay(folder: Path, root: str) -> ScriptedHost:
    """A machine whose nvidia-smi answers with a folder's outputs and exit statuses, whatever its options in detail."""
    status: Mapping[str, Mapping] = json.loads(read_recording(folder / "rc.json"))

    def answer(name: str):
        return status[name]["rc"], read_recording(folder / name)

    smi = re.escape(SMI)
    return ScriptedHost(
        root,
        [
            (smi + r" -q -x", answer("smi-q.xml")),
            (smi + r" -L", answer("smi-L.txt")),
            (smi + r" nvlink -s", answer("nvlink-s.txt")),
            (smi + r" nvlink -e", answer("nvlink-e.txt")),
            (smi + r" topo -m", answer("topo-m.txt")),
            (smi + r" --query-gpu", answer("query.csv")),
            (r"^sleep", (0, "")),
            (r"^journalctl", (0, ONE_KERNEL_LINE)),
        ],
    )


def index_rows(corpus: Path, part: str) -> List[Dict[str, str]]:
    """Rows of one INDEX.tsv; empty where the corpus is not there."""
    path = corpus / part / "INDEX.tsv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def expected_of(row: Mapping[str, str]) -> Optional[int]:
    return None if row["expected"] == "-" else int(row["expected"])


def verdicts_of(row: Mapping[str, str]) -> List[str]:
    return row["accept"].split("|")
