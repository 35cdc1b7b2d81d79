"""A role's variables exist once: what the specification says, the defaults hold, and the tasks use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

REPOSITORY = Path(__file__).resolve().parents[2]
ROLES = sorted(path for path in (REPOSITORY / "roles").iterdir() if path.is_dir())
TYPES = {"bool", "dict", "float", "int", "list", "path", "raw", "str"}
RUN_VARIABLES = {"gpufleet_results", "gpufleet_reachable", "gpufleet_started"}
"""Facts that roles and playbooks share."""


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None


def main_options(role):
    return load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"].get("options") or {}


def options_that_differ(defaults, options):
    """Why defaults/main.yml and the specification do not say the same."""
    for name, value in defaults.items():
        if name not in options:
            yield "%s: in the defaults, not in the specification" % name
        elif options[name].get("default") != value:
            yield "%s: default %r, specified as %r" % (name, value, options[name].get("default"))
        elif isinstance(value, bool) is not isinstance(options[name].get("default"), bool):
            yield "%s: default %r is not the specified %r" % (name, value, options[name].get("default"))
    for name, option in options.items():
        if option.get("required") and "default" in option:
            yield "%s: required, and yet it has a default" % name
        if option.get("default") is not None and name not in defaults:
            yield "%s: default specified, not in the defaults" % name


def incomplete_options(options, where=""):
    """Every option says what it means and of what type it is, inner ones too."""
    for name, option in options.items():
        if not option.get("description"):
            yield "%s%s: no description" % (where, name)
        if option.get("type") not in TYPES:
            yield "%s%s: type %r" % (where, name, option.get("type"))
        if option.get("type") == "list" and option.get("elements") not in TYPES:
            yield "%s%s: a list of what?" % (where, name)
        yield from incomplete_options(option.get("options") or {}, "%s%s." % (where, name))


def tasks_of(content):
    """All tasks of a file, those in blocks too."""
    for task in content or []:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part))


def role_tasks(role):
    for path in sorted([*role.glob("tasks/**/*.yml"), *role.glob("handlers/*.yml")]):
        for task in tasks_of(load(path)):
            yield "%s: %s" % (path.relative_to(REPOSITORY), task.get("name")), task


def as_list(value):
    return [value] if isinstance(value, str) else list(value or [])


each_role = pytest.mark.parametrize("role", [pytest.param(role, id=role.name) for role in ROLES])


@each_role
def test_a_role_has_the_files_that_every_role_has(role):
    wanted = ["README.md", "defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml"]
    assert [name for name in wanted if not (role / name).is_file()] == []


@each_role
def test_defaults_are_those_of_the_specification(role):
    assert list(options_that_differ(load(role / "defaults" / "main.yml") or {}, main_options(role))) == []


@each_role
def test_every_entry_point_and_option_is_described(role):
    for name, entry in load(role / "meta" / "argument_specs.yml")["argument_specs"].items():
        assert entry.get("short_description") and entry.get("description"), name
        assert list(incomplete_options(entry.get("options") or {})) == []


@each_role
def test_variables_carry_the_roles_prefix(role):
    public, internal = role.name + "_", re.compile(r"__%s(_\w+)?$" % role.name)
    assert [name for name in main_options(role) if not name.startswith(public)] == []
    for path in role.glob("vars/*.yml"):
        assert [name for name in load(path) or {} if not internal.match(name)] == [], path.name
    for where, task in role_tasks(role):
        if "register" in task:
            assert internal.match(task["register"]), where
        for name in task.get("ansible.builtin.set_fact") or {}:
            assert name.startswith(public) or internal.match(name) or name in RUN_VARIABLES | {"cacheable"}, where


@each_role
def test_tasks_use_no_variable_that_is_not_specified(role):
    known = set(main_options(role))
    known |= {path.stem for path in (REPOSITORY / "plugins" / "modules").glob("*.py")}
    known |= {"%s_%s" % (role.name, part) for part in ("install", "configure", "verify")}
    known |= {name for _where, task in role_tasks(role) for name in task.get("ansible.builtin.set_fact") or {}}
    word = re.compile(r"(?<![\w./-])%s_[a-z0-9_]+" % role.name)
    for path in sorted(role.rglob("*")):
        if path.is_file() and path.relative_to(role).parts[0] in ("tasks", "templates", "handlers", "vars"):
            text = "".join(line.split(" # ")[0] for line in path.read_text(encoding="utf-8").splitlines(True)
                           if not line.lstrip().startswith("#"))
            assert sorted(set(word.findall(text)) - known) == [], path.relative_to(REPOSITORY)


@each_role
def test_tags_are_the_roles_own(role):
    allowed = {role.name, "always", "never"}
    allowed |= {"%s_%s" % (role.name, part) for part in ("install", "configure", "verify")}
    for where, task in role_tasks(role):
        assert set(as_list(task.get("tags"))) <= allowed, where


@pytest.mark.parametrize(
    "defaults, options",
    [
        ({"x_a": 1}, {}),
        ({}, {"x_a": {"default": 1}}),
        ({"x_a": 1}, {"x_a": {"default": 2}}),
        ({"x_a": 1}, {"x_a": {"default": True}}),
        ({"x_a": ["a"]}, {"x_a": {"default": ["b"]}}),
        ({"x_a": 1}, {"x_a": {}}),
        ({"x_a": 1}, {"x_a": {"default": 1, "required": True}}),
    ],
)
def test_defaults_that_differ_are_told(defaults, options):
    assert list(options_that_differ(defaults, options))


@pytest.mark.parametrize(
    "options",
    [
        {"x_a": {"type": "str"}},
        {"x_a": {"type": "string", "description": "x"}},
        {"x_a": {"type": "list", "description": "x"}},
        {"x_a": {"type": "dict", "description": "x", "options": {"inner": {"type": "str"}}}},
    ],
)
def test_incomplete_options_are_told(options):
    assert list(incomplete_options(options))


def test_equal_and_complete_options_are_left_alone():
    options = {"x_a": {"type": "int", "description": "x", "default": 1},
               "x_b": {"type": "str", "description": "x", "required": True}, "x_c": {"type": "str", "description": "x"}}
    assert list(options_that_differ({"x_a": 1, "x_c": None}, options)) == []
    assert list(incomplete_options(options)) == []
