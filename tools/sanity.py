"""ansible-test's sanity tests: `sanity.py [--test NAME …]`.

ansible-test refuses a path with a symbolic link in it and wants …/ansible_collections/<namespace>/<name>, so the
project's files are copied to such a place. It downloads a script to bootstrap pip; where it has not been downloaded
yet, a stand-in does the same with what Python brings along (ensurepip) and the configured package index.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from common import CACHE, SKIP_PREFIX, copy_project, find_python, run, skip

NOT_THE_COLLECTION = (".ansible", "tests/bench", "tests/gpu", "tests/sandbox")
"""Programs of their own that no user gets (executable scripts, which sanity tests allow in no tests folder). ruff,
shellcheck and their own tests look at them."""

TARGET_VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
"""Pythons of the supported systems: `compile` and `import` look at modules with each that is found here."""

REQUIRED_VERSIONS = ("3.8", "3.11", "3.13")
"""Those that CI must have, as for the units."""

STAND_IN = '''\
"""Stand-in for get-pip.py: ensurepip, then pip itself. Written by gpufleet's tools/sanity.py."""
import os, subprocess, sys
environment = {key: value for key, value in os.environ.items() if key != "GET_PIP"}
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL, env=environment)
packages = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install"] + packages, env=environment))
'''


def pip_version() -> str:
    """The version of pip that this ansible-test bootstraps, from its source."""
    source = Path(find_spec("ansible_test").submodule_search_locations[0]) / "_internal" / "python_requirements.py"
    found = re.search(r"\bpip='([\d.]+)'", source.read_text())
    if not found:
        raise SystemExit("cannot find the version of pip that ansible-test bootstraps in %s" % source)
    return found.group(1)


def main(arguments: list[str]) -> int:
    script = Path.home() / ".ansible/test/cache" / ("get_pip_%s.py" % pip_version().replace(".", "_"))
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(STAND_IN)
    collection = CACHE / "sanity" / "ansible_collections" / "gpufleet" / "server"
    collection.mkdir(parents=True, exist_ok=True)
    copy_project(collection, leave_out=NOT_THE_COLLECTION)

    # ansible-test finds interpreters by name in PATH.
    links = CACHE / "sanity" / "bin"
    links.mkdir(exist_ok=True)
    status = 0
    for version in TARGET_VERSIONS:
        link, python = links / ("python" + version), find_python(version)
        link.unlink(missing_ok=True)
        if python is None:
            reason = "sanity tests `compile` and `import` on Python %s: no such interpreter here" % version
            if version in REQUIRED_VERSIONS:
                status |= skip(reason)
            else:
                print(SKIP_PREFIX + reason)
        else:
            link.symlink_to(python)
    environment = {"PATH": "%s:%s" % (links, os.environ["PATH"])}
    log = CACHE / "sanity" / "log"
    with log.open("w") as stream:
        status |= run(["ansible-test", "sanity", "--color", "no", *arguments], cwd=collection, env=environment,
                      stdout=stream, stderr=subprocess.STDOUT)
    text = log.read_text()
    print(text)
    for program in re.findall(r'^WARNING: Required program "(.*)" not found', text, re.MULTILINE):
        status |= skip("a sanity test: no program %s here" % program)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
