"""Run the checks and tests: `suite.py check|test|full [--only NAME…] [--list]`.

Quiet on success: one line per step. A failed step prints its whole log. The last lines name everything that was
skipped, and count the tests.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Sequence

from common import CACHE, REPOSITORY, VENV_BIN, project_files

LOGS = REPOSITORY / "build" / "logs"
PYTHON = sys.executable
OWN_PYTHON = "%d.%d" % sys.version_info[:2]
UNIT_PYTHONS = sorted({"3.8", "3.11", "3.13", OWN_PYTHON}, key=lambda version: int(version.split(".")[1]))

FULL_FUZZ_EXAMPLES = "4600"
"""Of each property in test_health_fuzz.py, which says how many that is in all: more than 20,000."""
FULL_TIMEOUT_S = 7200

PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|skipped|error|xfailed|xpassed)")
PYTEST_CLOSING = re.compile(r"^[=│| ]*(?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed|deselected|warnings?)"
                            r"(?:, )?)+ in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    name: str
    command: Sequence[str]
    timeout_s: int = 600


@dataclass(frozen=True)
class Outcome:
    step: Step
    rc: int
    seconds: float
    log: str

    @property
    def skips(self) -> list[str]:
        return [line.strip() for line in self.log.splitlines() if line.startswith("SKIPPED")]

    def counts(self) -> dict[str, int]:
        """Tests by outcome. A step that is no pytest run counts as one test."""
        found: dict[str, int] = {}
        for closing in PYTEST_CLOSING.finditer(self.log):
            for number, word in PYTEST_COUNT.findall(closing.group()):
                found[word] = found.get(word, 0) + int(number)
        if not found:
            word = "failed" if self.rc else "skipped" if self.skips else "passed"
            found[word] = 1
        elif self.rc and not found.get("failed") and not found.get("error"):
            found["failed"] = 1
        return found


def tool(name: str, *arguments: str) -> list[str]:
    return [PYTHON, str(REPOSITORY / "tools" / name), *arguments]


def pytest(*arguments: str) -> list[str]:
    return [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


def shell_scripts() -> list[str]:
    """Project files that a POSIX shell or bash runs, told by their first line. A template of one is no script yet."""
    found = []
    for name in project_files():
        path = REPOSITORY / name
        if path.is_file() and not path.is_symlink() and path.suffix != ".j2":
            with path.open("rb") as stream:
                if re.match(rb"#!(/usr)?/bin/(env )?(ba|da)?sh\b", stream.readline(80)):
                    found.append(name)
    return found


def check_steps() -> list[Step]:
    """Long ones first: two run at a time."""
    units = [Step("units-" + version, tool("units.py", version)) for version in UNIT_PYTHONS]
    return [
        Step("sanity", tool("sanity.py"), 900),
        Step("artifact", tool("artifact.py", "import"), 900),
        Step("ansible-lint", ["ansible-lint", "--offline", "-q", "--nocolor"]),
        *units,
        Step("syntax", tool("syntax.py")),
        Step("syntax-next", tool("syntax.py", "--next")),
        Step("antsibull-docs", ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "--validate-collection-refs",
                                "self", "--disallow-unknown-collection-refs", "."]),
        Step("changelog", ["antsibull-changelog", "lint"]),
        Step("yamllint", ["yamllint", "--strict", "."]),
        Step("ruff", ["ruff", "check", "--quiet", "."]),
        Step("shellcheck", ["shellcheck", "--external-sources", *shell_scripts()]),
    ]


def test_steps() -> list[Step]:
    """One after another: each has the machine, and the sandbox, to itself."""
    scenarios = sorted(path.parent.name for path in REPOSITORY.glob("molecule/*/molecule.yml"))
    return [
        Step("installed", tool("artifact.py", "install")),
        Step("sandbox", pytest("tests/sandbox", "-m", "sandbox"), 1800),
        *(Step("molecule-" + name, tool("scenario.py", name), 1500) for name in scenarios),
    ]


class Runner:
    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, step: Step) -> None:
        if self._stopped:
            return
        environment = dict(
            os.environ, PATH="%s:%s" % (VENV_BIN, os.environ["PATH"]), PYTHONDONTWRITEBYTECODE="1",
            ANSIBLE_NOCOLOR="1", NO_COLOR="1", COLUMNS="160",
        )
        log = LOGS / (step.name + ".log")
        started = time.monotonic()
        with log.open("wb") as stream:
            process = subprocess.Popen(step.command, cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
            with self._lock:
                self._running.add(process)
            try:
                rc = process.wait(step.timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
                rc = 124
                stream.write(b"\nENDED: no result within %d s\n" % step.timeout_s)
        with self._lock:
            self._running.discard(process)
        self._report(Outcome(step, rc, time.monotonic() - started, log.read_text(errors="replace")))

    def _report(self, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes.append(outcome)
            if outcome.rc and not self._stopped:
                print("---- %s: log ----\n%s" % (outcome.step.name, outcome.log.rstrip()))
            print("%-6s %-24s %7.1f s" % ("FAILED" if outcome.rc else "ok", outcome.step.name, outcome.seconds),
                  flush=True)

    def stop(self) -> None:
        """End what runs, as on Ctrl-C."""
        self._stopped = True
        with self._lock:
            for process in self._running:
                _end(process)


def _end(process: subprocess.Popen) -> None:
    """SIGTERM to the whole group first, so that a step can take its containers down."""
    for number, patience_s in ((signal.SIGTERM, 30), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def summarize(outcomes: list[Outcome], seconds: float) -> int:
    """The last lines: skips by name, failures by name, and a closing line with the number of tests."""
    failed = [outcome.step.name for outcome in outcomes if outcome.rc]
    total: dict[str, int] = {}
    print()
    for outcome in outcomes:
        for word, number in outcome.counts().items():
            total[word] = total.get(word, 0) + number
        for line in outcome.skips:
            print("!!! %s: %s" % (outcome.step.name, line))
    if failed:
        print("FAILED steps: %s (logs in build/logs)" % ", ".join(failed))
    order = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
    counts = ", ".join("%d %s" % (total[word], word) for word in order if total.get(word))
    print("=" * 20 + " %s in %.2fs " % (counts or "no tests ran", seconds) + "=" * 20)
    return 1 if failed or not outcomes else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=["check", "test", "full"])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these steps alone")
    parser.add_argument("--list", action="store_true", help="print the names of the steps")
    options = parser.parse_args()

    together, alone = check_steps(), []
    if options.suite != "check":
        together.append(Step("sandbox-units", pytest("tests/sandbox", "-m", "not sandbox")))
        alone = test_steps()
    if options.suite == "full":
        os.environ.setdefault("GPUFLEET_FUZZ_EXAMPLES", FULL_FUZZ_EXAMPLES)
        os.environ.setdefault("GPUFLEET_ALL_SYSTEMS", "1")
        together, alone = ([replace(step, timeout_s=FULL_TIMEOUT_S) for step in steps] for steps in (together, alone))
    if options.only:
        unknown = set(options.only) - {step.name for step in together + alone}
        if unknown:
            parser.error("no such step: %s" % ", ".join(sorted(unknown)))
        together, alone = ([step for step in steps if step.name in options.only] for steps in (together, alone))
    if options.list:
        print("\n".join(step.name for step in [*together, *alone]))
        return 0

    LOGS.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    runner = Runner()
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(143))
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            try:
                list(pool.map(runner.run, together))
            except BaseException:
                runner.stop()
                raise
        for step in alone:
            runner.run(step)
    except (KeyboardInterrupt, SystemExit):
        runner.stop()
        print("stopped")
        return 130
    return summarize(runner.outcomes, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
