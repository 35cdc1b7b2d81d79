# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of docs/sandbox.md work as they are printed, in their order, from a fresh clone."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from gpulab.cache import SANDBOX

pytestmark = [pytest.mark.sandbox, pytest.mark.controller]

REPOSITORY = SANDBOX.parents[1]
PAGE = (REPOSITORY / "docs/sandbox.md").read_text(encoding="utf-8")
OVERLAY = "inventories/mine-simulated/hosts.yml"
TIMEOUT_S = 1500


def blocks(language: str) -> List[str]:
    """The texts of the page's code blocks in a language."""
    return re.findall(r"^```%s\n(.*?)^```$" % language, PAGE, re.MULTILINE | re.DOTALL)


def commands() -> List[Tuple[str, int]]:
    """(command, exit status that the page promises) in order."""
    found = []
    for line in "".join(blocks("console")).splitlines():
        command, _hash, status = line.partition("  # exit status ")
        found.append((command, int(status or 0)))
    return found


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """What is committed, as a user gets it."""
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(folder)], check=True)
    yield folder
    if (folder / OVERLAY).exists():
        subprocess.run(["tests/sandbox/lab", "down", str(folder / OVERLAY)], cwd=folder, check=True, timeout=300)


def test_every_command_of_the_page_ends_as_it_says(clone: Path):
    (overlay,) = blocks("yaml")
    script = []
    for command, status in commands():
        script.append("echo + %s\nstatus=0\n%s || status=$?\n" % (shlex.quote(command), command))
        script.append('[ "$status" -eq %d ] || { echo "exit status $status, not %d"; exit 1; }\n' % (status, status))
        if command.startswith("cp -r inventories/sandbox"):
            script.append("cat > %s << 'END'\n%sEND\n" % (OVERLAY, overlay))
    done = subprocess.run(["bash", "-u"], cwd=clone, input="".join(script), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "gpu01  healthy   8 GPU(s) judged healthy: NVIDIA H100" in done.stdout
    assert "gpu01  failed    GPU 3 (00000000:61:00.0): the GPU is lost" in done.stdout
    assert "gpu02  healthy   8 GPU(s) judged healthy: NVIDIA A100" in done.stdout
