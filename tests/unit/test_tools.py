"""The runner of checks tells the truth: what failed, what was skipped, how many tests there were."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.skip("the tools run on Python 3.11 and later", allow_module_level=True)

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import common  # noqa: E402
import suite  # noqa: E402
import units  # noqa: E402


@pytest.fixture
def runner(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "LOGS", tmp_path)
    return suite.Runner()


def outcome(log, rc=0):
    return suite.Outcome(suite.Step("x", ["true"]), rc, 1.0, log)


@pytest.mark.parametrize(
    "log, rc, counts",
    [
        ("12 passed in 0.11s", 0, {"passed": 12}),
        ("== 2 failed, 7 passed, 1 skipped in 3.20s ==", 1, {"failed": 2, "passed": 7, "skipped": 1}),
        ("1 failed, 1 error in 0.5s", 1, {"failed": 1, "error": 1}),
        ("  │ 4 passed in 1.0s\n  │ 8 passed, 3 deselected in 2.00s (0:00:02)", 0, {"passed": 12}),
        ("All checks passed!", 0, {"passed": 1}),
        ("E501 Line too long", 1, {"failed": 1}),
        ("SKIPPED: no such interpreter here", 0, {"skipped": 1}),
        # Tests passed, and yet the step failed: that must be seen in the count too.
        ("12 passed in 0.11s", 2, {"passed": 12, "failed": 1}),
        ("no tests ran in 0.01s", 5, {"failed": 1}),
        ("we passed in 1.0s", 0, {"passed": 1}),
    ],
)
def test_tests_are_counted(log, rc, counts):
    assert outcome(log, rc).counts() == counts


def test_a_good_step_is_one_line(runner, capsys):
    runner.run(suite.Step("good", [sys.executable, "-c", "print('chatter')"]))
    output = capsys.readouterr().out
    assert output.startswith("ok ") and "good" in output and "chatter" not in output


def test_a_failed_step_prints_its_log(runner, capsys):
    runner.run(suite.Step("bad", [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"]))
    output = capsys.readouterr().out
    assert "the reason" in output and "FAILED bad" in output
    assert runner.outcomes[0].rc == 3


def test_a_step_that_hangs_is_ended_with_its_children(runner, tmp_path):
    beat = tmp_path / "beat"
    child = "import time, pathlib\nwhile True: pathlib.Path(%r).touch(); time.sleep(0.05)" % str(beat)
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', %r])" % child
    runner.run(suite.Step("hangs", [sys.executable, "-c", parent], timeout_s=2))
    assert runner.outcomes[0].rc == 124
    before = beat.stat().st_mtime
    time.sleep(0.3)
    assert beat.stat().st_mtime == before


def test_the_last_lines_name_skips_and_failures(capsys):
    logs = ["SKIPPED: no Python 3.8\n", "3 passed in 1.0s\nSKIPPED 2: no corpus\n"]
    assert suite.summarize([*map(outcome, logs), outcome("", 1)], 12.5) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "!!! x: SKIPPED: no Python 3.8" in lines and "!!! x: SKIPPED 2: no corpus" in lines
    assert lines[-2].startswith("FAILED steps: x")
    assert lines[-1].strip("= ") == "1 failed, 3 passed, 1 skipped in 12.50s"


def test_a_run_of_nothing_is_no_success():
    assert suite.summarize([], 0.0) == 1


@pytest.mark.parametrize("ci, rc", [("", 0), ("false", 0), ("true", 1), ("1", 1)])
def test_a_missing_interpreter_is_a_loud_skip_and_an_error_in_ci(monkeypatch, capsys, ci, rc):
    monkeypatch.setenv("CI", ci)
    assert units.main("3.99", []) == rc
    assert ("ERROR" if rc else common.SKIP_PREFIX) in capsys.readouterr().out


def test_every_scenario_of_the_project_is_a_step():
    scenarios = {path.parent.name for path in TOOLS.parent.glob("molecule/*/molecule.yml")}
    assert {"molecule-" + name for name in scenarios} <= {step.name for step in suite.test_steps()}
    assert "default" in scenarios


def test_shell_scripts_are_found_by_their_first_line():
    found = suite.shell_scripts()
    assert {"tools/setup", ".ci/run", "tests/sandbox/lab"} <= set(found)
    assert [name for name in found if name.endswith((".py", ".j2"))] == []


def machine(tmp_path, commands, **scripts):
    """A PATH with these commands of the real machine, and stand-ins for others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in commands:
        (folder / name).symlink_to(shutil.which(name))
    for name, body in scripts.items():
        (folder / name.replace("_", "-")).write_text("#!/bin/sh\n%s\n" % body)
        (folder / name.replace("_", "-")).chmod(0o755)
    return {"PATH": str(folder), "HOME": str(tmp_path), "GPUFLEET_VENV": str(tmp_path / "venv")}


def set_up(environment):
    command = ["/bin/sh", str(TOOLS / "setup")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


BASICS = ("dirname", "sort", "cat", "cut", "sha256sum", "mktemp", "rm", "grep")


def test_set_up_tells_somebody_who_is_not_root_what_to_do(tmp_path):
    done = set_up(machine(tmp_path, BASICS, id="echo 1000", apt_cache=":"))
    assert done.returncode == 1
    assert "as root run: apt-get install" in done.stderr and "mmdebstrap" in done.stderr


def test_set_up_shows_why_apt_failed(tmp_path):
    done = set_up(machine(tmp_path, BASICS, id="echo 0", apt_cache=":", apt_get="echo no space left; exit 1"))
    assert done.returncode == 1
    assert "no space left" in done.stderr and "could not install" in done.stderr


def test_set_up_removes_nothing_that_is_no_virtual_environment(tmp_path):
    valuable = tmp_path / "venv" / "valuable"
    valuable.parent.mkdir()
    valuable.write_text("x")
    present = """podman runc mmdebstrap dpkg_deb apt_ftparchive gpg ssh ssh_keygen make git ip sysctl iptables
        nft""".split()
    environment = machine(tmp_path, BASICS, id="echo 1000", **dict.fromkeys(present, ":"))
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    done = set_up(environment)
    assert done.returncode == 1 and "no virtual environment" in done.stderr
    assert valuable.exists()
