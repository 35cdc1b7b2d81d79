"""Run molecule scenarios: `scenario.py NAME… [--keep]`.

A scenario without tests would pass without having proved anything, so it is refused.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time

from common import REPOSITORY, run


def run_scenario(name: str, keep: bool) -> int:
    folder = REPOSITORY / "molecule" / name
    if not (folder / "molecule.yml").is_file():
        print("no scenario %s; there is: %s" % (
            name, ", ".join(sorted(path.parent.name for path in REPOSITORY.glob("molecule/*/molecule.yml")))))
        return 2
    if not list(folder.glob("tests/test_*.py")):
        print("scenario %s has no tests/test_*.py: it would prove nothing" % name)
        return 2
    destroy = "never" if keep else "always"
    started = time.monotonic()
    try:
        # molecule remembers hosts that were removed behind its back and would not make them again
        run(["molecule", "reset", "--scenario-name", name])
        rc = run(["molecule", "test", "--scenario-name", name, "--destroy", destroy, "--no-command-borders"])
    except BaseException:
        # Interrupted: molecule may be gone before it has removed the hosts.
        subprocess.run([str(REPOSITORY / "tests/sandbox/lab"), "down", str(folder / "inventory")], check=False)
        raise
    print("scenario %s: exit status %d after %.0f s" % (name, rc, time.monotonic() - started))
    return rc


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--keep", action="store_true", help="leave the hosts running, to look at them")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(143))
    results = [run_scenario(name, options.keep) for name in options.names]
    return max(results)


if __name__ == "__main__":
    sys.exit(main())
