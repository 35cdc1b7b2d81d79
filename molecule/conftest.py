"""What the tests of every scenario share: playbooks run again, and the sandbox's own commands.

`molecule verify` runs the tests; testinfra's `host` fixture then walks over all hosts of the scenario's inventory
(narrow it in a file with `testinfra_hosts = ["ansible://gpu01"]`). MOLECULE_SCENARIO_DIRECTORY tells the scenario.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PLAY_TIMEOUT_S = 600
RECAP = re.compile(
    r"^(?P<host>\S+)\s+: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s+unreachable=(?P<unreachable>\d+)"
    r"\s+failed=(?P<failed>\d+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Play:
    """How a run of ansible-playbook ended. `recap` maps host → {ok, changed, unreachable, failed}."""

    rc: int
    output: str
    recap: dict[str, dict[str, int]]

    def changed(self, host: str) -> int:
        return self.recap[host]["changed"]


def run_play(*arguments: str, scenario: Path | None = None) -> Play:
    """Run `ansible-playbook -i <the scenario's inventory> ARGUMENTS` from the repository."""
    folder = scenario or Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
    environment = {**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_FORCE_COLOR": "false"}
    done = subprocess.run(
        ["ansible-playbook", "-i", str(folder / "inventory"), *arguments],
        cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=PLAY_TIMEOUT_S, check=False,
    )
    recap = {}
    for match in RECAP.finditer(done.stdout):
        counts = match.groupdict()
        recap[counts.pop("host")] = {key: int(value) for key, value in counts.items()}
    return Play(done.returncode, done.stdout, recap)


@pytest.fixture(scope="session")
def scenario() -> Path:
    return Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])


@pytest.fixture(scope="session")
def play() -> Callable[..., Play]:
    """`play("molecule/base/converge.yml", "--check", "--diff")`: any playbook on the scenario's hosts."""
    return run_play


@pytest.fixture(scope="session")
def converge(scenario: Path) -> Callable[..., Play]:
    """`converge("-e", "x=1")`: the scenario's own playbook once more, e.g. after a drift. rc 0 is required."""

    def run(*arguments: str) -> Play:
        result = run_play(str(scenario / "converge.yml"), *arguments)
        assert result.rc == 0, result.output
        return result

    return run


@pytest.fixture(scope="session")
def lab() -> Callable[..., str]:
    """`lab("fault", "gpu01", "--gpu", "3", "lost")`: the sandbox's command; returns its stdout."""

    def run(*arguments: str) -> str:
        done = subprocess.run([str(REPOSITORY / "tests/sandbox/lab"), *arguments], capture_output=True, text=True,
                              timeout=PLAY_TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
