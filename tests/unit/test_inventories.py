"""The example inventory names every variable a user may set, and only those: it cannot fall behind the roles."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.controller
yaml = pytest.importorskip("yaml")

REPOSITORY = Path(__file__).resolve().parents[2]
LAB = REPOSITORY / "inventories" / "lab"
ROLES = sorted(path.parents[1].name for path in (REPOSITORY / "roles").glob("*/meta/argument_specs.yml"))
WHAT_PLAYBOOKS_SET = {"report_hosts", "report_required_roles", "report_playbook", "report_stage"}


def variables_of(role):
    document = yaml.safe_load((REPOSITORY / "roles" / role / "meta" / "argument_specs.yml").read_text())
    return set(document["argument_specs"]["main"]["options"]) - WHAT_PLAYBOOKS_SET


def named_in(path):
    return set(re.findall(r"^(?:# )?([a-z]+_[a-z0-9_]*):", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_of_a_role_stands_in_its_file(role):
    assert named_in(LAB / "group_vars" / "all" / ("%s.yml" % role)) == variables_of(role)


@pytest.mark.parametrize("role", ROLES)
def test_what_is_commented_out_parses_and_holds_a_known_variable(role):
    text = (LAB / "group_vars" / "all" / ("%s.yml" % role)).read_text()
    shown = re.findall(r"^# (%s_[a-z0-9_]*:.*|  +\S.*)$" % role, text, re.MULTILINE)
    values = yaml.safe_load("\n".join(shown)) or {}
    assert set(values) <= variables_of(role)


def test_every_shared_variable_is_shown():
    from ansible_collections.gpufleet.server.plugins.plugin_utils._inventory_rules import SHARED_VARIABLES

    shown = named_in(LAB / "group_vars" / "all" / "gpufleet.yml")
    assert shown == set(SHARED_VARIABLES)


def test_every_group_is_commented():
    lines = (LAB / "hosts.yml").read_text().splitlines()
    for index, line in enumerate(lines):
        if re.match(r" {4}\w+:$", line):
            assert lines[index - 1].lstrip().startswith("#"), "group without a comment: %s" % line.strip()
