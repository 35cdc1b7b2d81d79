"""What the tools that write a page of docs/ from the code share."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Callable

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "gpufleet_module_utils"


def load(name: str):
    """A file of module_utils, without a collection loader."""
    if PACKAGE not in sys.modules:
        package = types.ModuleType(PACKAGE)
        package.__path__ = [str(REPOSITORY / "plugins" / "module_utils")]
        sys.modules[PACKAGE] = package
    return __import__("%s.%s" % (PACKAGE, name), fromlist=["*"])


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return "| %s |" % " | ".join(cell.replace("|", "\\|") for cell in cells)


def write_or_check(page: Path, render: Callable[[], str]) -> int:
    """Write a page; with `--check` as the only argument, only compare it. Returns the exit status."""
    text = render()
    if sys.argv[1:] == ["--check"]:
        if page.is_file() and page.read_text(encoding="utf-8") == text:
            return 0
        print("%s is not what the code says: run `make docs`" % page.relative_to(REPOSITORY))
        return 1
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")
    print("wrote %s" % page.relative_to(REPOSITORY))
    return 0
