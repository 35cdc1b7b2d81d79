"""Compile requirements-dev.txt from requirements-dev.in, without addresses of package indexes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import REPOSITORY, run

HEADER = "# The whole closure of requirements-dev.in, for Python 3.11 to 3.13. Compile with `make requirements`.\n"


def main() -> int:
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as compiled:
        rc = run(["pip-compile", "--quiet", "--upgrade", "--strip-extras", "--no-header", "--no-annotate",
                  "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host",
                  "--output-file", compiled.name, "requirements-dev.in"], stdout=subprocess.DEVNULL)
        if rc:
            return rc
        pins = [line for line in Path(compiled.name).read_text().splitlines() if re.match(r"[\w.-]+==", line)]
    (REPOSITORY / "requirements-dev.txt").write_text(HEADER + "\n".join(pins) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
