# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For the tests of the repositories: the built tree, the tree served over HTTP, and machines that install from it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Callable, Iterator

import pytest
from scratch_machines import PaperMachine, archive_sources, source

from gpurepo import RepoTree, build
from gpurepo.__main__ import default_cache
from gpurepo.server import serve


@pytest.fixture(scope="session")
def tree() -> RepoTree:
    return build(default_cache())


@pytest.fixture(scope="session")
def url(tree: RepoTree) -> Iterator[str]:
    """The tree on a free port of this machine, served as the sandbox serves it."""
    server = serve(str(tree.root), 0, "127.0.0.1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:%d" % server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def key() -> Callable[[str], Path]:
    return lambda name: default_cache() / "keys" / (name + ".gpg")


@pytest.fixture
def machine(tmp_path: Path, url: str, key: Callable[[str], Path]) -> Callable[..., PaperMachine]:
    """A machine with one repository, `path suite…`, and apt's lists fetched."""

    def make(path: str, suites: str = "/", key_name: str = "nvidia") -> PaperMachine:
        made = PaperMachine(tmp_path / "machine", [source(url, path, suites, key(key_name))])
        made.update()
        return made

    return make


@pytest.fixture
def jammy(tmp_path: Path, url: str, key: Callable[[str], Path]) -> PaperMachine:
    """An Ubuntu 22.04 with all its pockets."""
    pockets = ("jammy", "jammy-updates", "jammy-security")
    made = PaperMachine(tmp_path / "jammy", archive_sources(url, key("ubuntu"), *pockets))
    made.update()
    return made
