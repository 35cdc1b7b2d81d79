"""What the tests of every scenario share: playbooks run again, and the sandbox's own commands.

Testinfra's fixture `host` walks over all sandbox hosts of the scenario's inventory; a file narrows that with
`testinfra_hosts = ["gpu01"]` (hosts or groups). The tests also run by hand while the hosts are up:
`pytest molecule/<scenario>/tests`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("GPUFLEET_CACHE") or Path.home() / ".cache" / "gpufleet")
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


@functools.lru_cache(maxsize=None)
def read_inventory(folder: Path) -> dict:
    """`ansible-inventory --list` of a scenario: groups by name, variables below _meta.hostvars."""
    listed = subprocess.run(["ansible-inventory", "-i", str(folder / "inventory"), "--list"], capture_output=True,
                            text=True, check=True, cwd=REPOSITORY)
    return json.loads(listed.stdout)


def members(inventory: dict, name: str) -> list[str]:
    """Hosts of a group, or the host of that name itself."""
    if name in inventory["_meta"]["hostvars"]:
        return [name]
    group = inventory[name]
    found = list(group.get("hosts", []))
    for child in group.get("children", []):
        found += members(inventory, child) if child in inventory else []
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc) -> None:
    """Tell testinfra to reach the hosts as the sandbox says: over ssh, with the lab's own configuration.

    Its own reading of inventories does not resolve the templates in them.
    """
    module = metafunc.module
    if "_testinfra_host" not in metafunc.fixturenames or getattr(module, "__hosts_are_resolved", False):
        return
    inventory = read_inventory(Path(module.__file__).parents[1])
    names = {}
    for pattern in getattr(module, "testinfra_hosts", ["all"]):
        for host in members(inventory, pattern.split("://")[-1]):
            variables = inventory["_meta"]["hostvars"][host]
            if "sandbox_image" in variables:
                names[host] = "ssh://%s?ssh_config=%s/ssh/config-%s" % (host, CACHE, variables["sandbox_lab"])
    assert names, "%s: no sandbox host to test" % module.__file__
    module.testinfra_hosts = list(names.values())
    module.__hosts_are_resolved = True


def run_play(folder: Path, *arguments: str) -> Play:
    """Run `ansible-playbook -i <the scenario's inventory> ARGUMENTS` from the repository."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_FORCE_COLOR": "false"}
    done = subprocess.run(
        ["ansible-playbook", "-i", str(folder / "inventory"), *arguments],
        cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=PLAY_TIMEOUT_S, check=False,
    )
    recap = {}
    for match in RECAP.finditer(done.stdout):
        counts = match.groupdict()
        host = counts.pop("host")
        recap[host] = {key: int(value) for key, value in counts.items()}
    return Play(done.returncode, done.stdout, recap)


@pytest.fixture(scope="module")
def scenario(request) -> Path:
    """The folder of the scenario."""
    return request.path.parents[1]


@pytest.fixture(scope="module")
def play(scenario: Path) -> Callable[..., Play]:
    """`play("playbooks/health.yml", "--check")`: any playbook on the scenario's hosts; the exit status is yours."""
    return functools.partial(run_play, scenario)


@pytest.fixture(scope="module")
def converge(scenario: Path) -> Callable[..., Play]:
    """`converge("-e", "x=1")`: the scenario's own playbook once more, e.g. after a drift. rc 0 is required."""

    def run(*arguments: str) -> Play:
        result = run_play(scenario, str(scenario / "converge.yml"), *arguments)
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
