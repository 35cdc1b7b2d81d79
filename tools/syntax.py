"""Syntax check of every playbook, with both example inventories: `syntax.py [--next]`.

`--next` uses the newest supported ansible-core, which needs a newer Python than ours, in an environment of its own.
"""

from __future__ import annotations

import sys

from common import REPOSITORY, VENV_BIN, find_python, run, skip, virtual_environment

NEXT_PYTHON = "3.12"
NEXT_REQUIREMENTS = REPOSITORY / "tools" / "requirements" / "ansible-core-next.txt"


def main(arguments: list[str]) -> int:
    command = VENV_BIN / "ansible-playbook"
    if "--next" in arguments:
        python = find_python(NEXT_PYTHON)
        if python is None:
            return skip("syntax check under the next ansible-core: no Python %s here" % NEXT_PYTHON)
        environment = virtual_environment("ansible-core-next", python, ["--requirement", str(NEXT_REQUIREMENTS)])
        command = environment.parent / "ansible-playbook"
        run([command, "--version"])
    playbooks = ["site.yml", *sorted(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("playbooks/*.yml"))]
    # The link in the clone only: an installed release elsewhere must not be what is checked.
    own = {"ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".ansible" / "collections")}
    failed = 0
    for inventory in ("inventories/lab", "inventories/sandbox"):
        for words in (playbooks, ["gpufleet.server.site"]):
            failed |= run([command, "--syntax-check", "-i", inventory, *words], env=own)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
