"""Unit tests on one Python: `units.py 3.8 [pytest arguments]`.

The Python of the development tools runs them all. Others get a small environment without ansible-core: what runs on
a host must work with the host's Python alone. Modules find ansible.module_utils of the controller's ansible-core there.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from common import CACHE, REPOSITORY, find_python, run, skip, virtual_environment

OWN_VERSION = "%d.%d" % sys.version_info[:2]


def target_library() -> Path:
    """A folder for PYTHONPATH with the part of ansible-core that Ansible sends to a host."""
    installed = Path(find_spec("ansible").submodule_search_locations[0])
    package = CACHE / "venvs" / "target-library" / "ansible"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    for name in ("release.py", "module_utils"):
        link = package / name
        if not (link.is_symlink() and os.readlink(link) == str(installed / name)):
            link.unlink(missing_ok=True)
            link.symlink_to(installed / name)
    return package.parent


def main(version: str, arguments: list[str]) -> int:
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    if version == OWN_VERSION:
        python = sys.executable
    else:
        interpreter = find_python(version)
        if interpreter is None:
            return skip("units on Python %s: no such interpreter here" % version)
        pinned = REPOSITORY / "tools" / "requirements" / ("units-%s.txt" % version)
        requirements = ["--requirement", str(pinned)] if pinned.is_file() else [
            "pytest", "pytest-xdist", "hypothesis", "Jinja2", "PyYAML",
            "--constraint", str(REPOSITORY / "requirements-dev.txt"),
        ]
        python = str(virtual_environment("units-" + version, interpreter, requirements))
        environment["PYTHONPATH"] = str(target_library())
    return run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit", *arguments], env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
