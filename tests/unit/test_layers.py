"""Data flows one way, and the pure layer stays pure (docs/architecture.md).

The rules read source text, so that the tables below can show each of them a file that breaks it.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
PREFIX = "ansible_collections.gpufleet.server.plugins."
MAIN_LINES = 40
HEADER = "# SPDX-License-Identifier: GPL-3.0-or-later"

EDGE = "_host.py"
"""The one file of module_utils that opens files and starts commands."""

PURE_LIBRARY = frozenset(
    """__future__ abc argparse base64 binascii bisect codecs collections configparser copy csv dataclasses datetime
    decimal difflib enum fnmatch fractions functools hashlib heapq html io ipaddress itertools json math numbers
    operator posixpath re shlex statistics string struct textwrap types typing unicodedata urllib xml zipfile
    zlib""".split()
)
"""Standard modules that compute and nothing else. Others (os, subprocess, time, socket, logging) look at the world."""

IMPURE_CALLS = frozenset("open exec eval compile input print __import__ breakpoint".split())
IMPURE_ATTRIBUTES = {
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "io": {"open", "open_code", "FileIO"},
    "codecs": {"open"},
    "posixpath": {"exists", "lexists", "isfile", "isdir", "islink", "ismount", "realpath", "expanduser", "abspath",
                  "getmtime", "getsize"},
    "urllib": {"request"},
}
"""What the modules above offer beside computing."""

COMMAND_LIBRARY = frozenset("subprocess pty multiprocessing asyncio".split())
COMMAND_ATTRIBUTES = {"os": {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"}}


def imports(tree: ast.AST):
    """(line, dotted name) of everything imported; relative names keep their dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, base + ("" if base.endswith(".") or not base else ".") + alias.name


def attribute_uses(tree: ast.AST, table):
    """Uses of `name.attribute` that the table lists, whether spelled so or imported by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            # `datetime.now` and `datetime.datetime.now` alike: the last name before the attribute.
            owner = getattr(node.value, "id", None) or getattr(node.value, "attr", None)
            if node.attr in table.get(owner, ()):
                yield node.lineno, "%s.%s" % (owner, node.attr)
    for line, name in imports(tree):
        for owner, attributes in table.items():
            if name in {"%s.%s" % (owner, attribute) for attribute in attributes}:
                yield line, name


def breaches_of_pure_file(source: str):
    """Why this is not a pure file of module_utils."""
    tree = ast.parse(source)
    for line, name in imports(tree):
        if name.startswith("."):
            if name.startswith(".."):
                yield line, "%s: from above module_utils" % name
        elif name.split(".")[0] not in PURE_LIBRARY:
            yield line, "imports %s" % name
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield node.lineno, "calls %s()" % node.func.id
    for line, use in attribute_uses(tree, IMPURE_ATTRIBUTES):
        yield line, "uses %s" % use


def breaches_of_edge(source: str):
    """Why this does not run on a bare Python: the edge may look at the world, but only with the standard library."""
    for line, name in imports(ast.parse(source)):
        if name.startswith("..") or name.split(".")[0] in ("ansible", "ansible_collections", "yaml", "six"):
            yield line, "imports %s" % name


def breaches_of_module(source: str):
    """Why this module is not thin hands: options → observe → plan → apply → exit."""
    tree = ast.parse(source)
    for line, name in imports(tree):
        top = name.split(".")[0]
        if top in COMMAND_LIBRARY:
            yield line, "imports %s: commands are _host.py's" % name
        elif name.startswith("ansible.") and not name.startswith("ansible.module_utils."):
            yield line, "imports %s: not on the host" % name
        elif top == "ansible_collections" and not name.startswith(PREFIX + "module_utils."):
            yield line, "imports %s: arrows go to module_utils only" % name
        elif name.startswith(".") and not name.startswith("..module_utils"):
            yield line, "imports %s: arrows go to module_utils only" % name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "run_command":
            yield node.lineno, "run_command has no time limit: commands are _host.py's"
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            length = node.end_lineno - node.lineno + 1
            if length > MAIN_LINES:
                yield node.lineno, "main() has %d lines, %d are allowed" % (length, MAIN_LINES)
    for line, use in attribute_uses(tree, COMMAND_ATTRIBUTES):
        yield line, "uses %s" % use


def is_documentation_only(tree: ast.Module) -> bool:
    """A module that an action plugin of the same name implements holds its documentation and no code."""
    return not any(isinstance(node, (ast.FunctionDef, ast.Import)) for node in tree.body)


def named(folder):
    return [pytest.param(path, id=path.name) for path in sorted((PLUGINS / folder).glob("*.py"))]


@pytest.mark.parametrize("path", [param for param in named("module_utils") if param.id != EDGE])
def test_module_utils_are_pure(path):
    assert list(breaches_of_pure_file(path.read_text(encoding="utf-8"))) == []


def test_the_edge_needs_only_the_standard_library():
    assert list(breaches_of_edge((PLUGINS / "module_utils" / EDGE).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", named("modules"))
def test_modules_are_thin(path):
    source = path.read_text(encoding="utf-8")
    assert list(breaches_of_module(source)) == []
    tree = ast.parse(source)
    if is_documentation_only(tree):
        assert (PLUGINS / "action" / path.name).is_file(), "neither a module nor the face of an action plugin"
    else:
        assert "main" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", named("module_utils"))
def test_module_utils_are_private(path):
    assert path.name.startswith("_")


def test_module_utils_do_not_import_in_circles():
    uses = {}
    for path in (PLUGINS / "module_utils").glob("*.py"):
        names = [name for _line, name in imports(ast.parse(path.read_text(encoding="utf-8"))) if name.startswith("._")]
        uses[path.stem] = {name.lstrip(".").split(".")[0] for name in names}
    done, path_down = set(), []

    def visit(name):
        assert name not in path_down, "%s: imports in a circle" % " → ".join([*path_down, name])
        if name not in done:
            path_down.append(name)
            for used in sorted(uses[name]):
                visit(used)
            done.add(path_down.pop())

    for name in sorted(uses):
        visit(name)
    assert done == set(uses)


@pytest.mark.parametrize("path", [param for folder in ("module_utils", "modules") for param in named(folder)])
def test_what_runs_on_a_host_is_python_3_8(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(PLUGINS))) for path in sorted(PLUGINS.rglob("*.py"))]
)
def test_every_plugin_file_carries_its_licence(path):
    head = path.read_text(encoding="utf-8").splitlines()[:6]
    assert HEADER in head


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "import os",
        "from os import path",
        "import time",
        "import socket",
        "import logging",
        "from pathlib import Path",
        "from ansible.module_utils.basic import AnsibleModule",
        "from ansible_collections.gpufleet.server.plugins.module_utils._host import Host",
        "from ..modules import gpu_info",
        "text = open('/proc/cmdline').read()",
        "def f():\n    return __import__('os')",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now()",
        "import io\nio.open('/etc/passwd')",
        "import posixpath\nposixpath.exists('/etc/passwd')",
        "from posixpath import exists",
        "import urllib.request",
        "print('x')",
    ],
)
def test_an_impure_file_is_told(source):
    assert list(breaches_of_pure_file(source))


@pytest.mark.parametrize(
    "source",
    [
        "from ._host import Host\nimport re\nimport json",
        "from dataclasses import dataclass\nfrom typing import Optional",
        "import posixpath\nposixpath.join('/etc', 'x')",
        "def describe(host):\n    return host.open",
    ],
)
def test_a_pure_file_is_left_alone(source):
    assert list(breaches_of_pure_file(source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "from subprocess import run",
        "def f(module):\n    module.run_command(['true'])",
        "import os\nos.system('true')",
        "from os import popen",
        "from ansible.plugins.action import ActionBase",
        "from ansible_collections.gpufleet.server.plugins.modules import gpu_info",
        "from ansible_collections.community.general.plugins.module_utils import x",
        "def main():\n" + "    pass\n" * MAIN_LINES,
    ],
)
def test_a_thick_module_is_told(source):
    assert list(breaches_of_module(source))


@pytest.mark.parametrize(
    "source",
    [
        "from ansible.module_utils.basic import AnsibleModule",
        "from ansible_collections.gpufleet.server.plugins.module_utils._host import Host",
        "from ..module_utils._host import Host",
        "def main():\n" + "    pass\n" * (MAIN_LINES - 1),
    ],
)
def test_a_thin_module_is_left_alone(source):
    assert list(breaches_of_module(source)) == []


@pytest.mark.parametrize("source", ["import yaml", "from ansible.module_utils import six", "from ..modules import x"])
def test_an_edge_with_more_than_the_standard_library_is_told(source):
    assert list(breaches_of_edge(source))
