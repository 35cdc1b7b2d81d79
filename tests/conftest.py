"""What every test run needs: the collection under its real name, and skips that are not overlooked.

`ansible_collections.gpufleet.server` is bound to this clone without a collection loader, because module_utils are
tested on the hosts' Python (3.8) where no ansible-core for controllers exists. There, `tools/units.py` offers modules
the ansible.module_utils of the controller's ansible-core: the same code that Ansible sends to a host.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("GPUFLEET_CORPUS") or REPOSITORY.parent / "shared" / "corpus")


def _bind(name: str, folder: Path) -> None:
    """Make `name` a package that is searched in `folder`, and an attribute of its parent."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    parent, _dot, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


for _name in ("ansible_collections", "ansible_collections.gpufleet"):
    _bind(_name, REPOSITORY / ".ansible" / "collections" / Path(*_name.split(".")))
_bind("ansible_collections.gpufleet.server", REPOSITORY)

HAS_CONTROLLER = bool(importlib.util.find_spec("ansible") and importlib.util.find_spec("ansible.plugins"))


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if item.get_closest_marker("corpus") and not CORPUS.is_dir():
            item.add_marker(pytest.mark.skip(reason="no corpus of recorded outputs at %s" % CORPUS))
        if item.get_closest_marker("controller") and not HAS_CONTROLLER:
            item.add_marker(pytest.mark.skip(reason="needs ansible-core for controllers"))


def pytest_terminal_summary(terminalreporter) -> None:
    """Name every reason for a skip in the last lines, with its count."""
    reasons = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        longrepr = report.longrepr
        text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        reasons[text[len("Skipped: "):] if text.startswith("Skipped: ") else text] += 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line("SKIPPED %d: %s" % (count, reason), yellow=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The recorded outputs. A test that asks for it carries the marker `corpus`."""
    return CORPUS
