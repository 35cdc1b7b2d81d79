# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/stack.md is what the tables say, and its example does what it says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


def test_page_is_fresh(repository):
    tool = repository / "tools" / "generate_stack_docs.py"
    if not tool.is_file():
        pytest.skip("not a clone: no tools")
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.controller
def test_example_answers_as_the_page_says(repository, tmp_path):
    page = (repository / "docs" / "stack.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (answer,) = re.findall(r"It answers:\n\n```\n(.*?)\n```", page, re.DOTALL)
    play = tmp_path / "example.yml"
    play.write_text(example, encoding="utf-8")
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(play)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    said = " ".join(done.stdout.split())
    assert len(answer.splitlines()) == 2
    for line in answer.splitlines():
        assert line in said
    assert "failed=1" in done.stdout and "Assertion failed" in done.stdout
