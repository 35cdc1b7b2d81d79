# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of `validate_inventory`: reads the roles' argument_specs and the hosts' variables, no more."""

from __future__ import annotations

import os

import yaml
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ..plugin_utils import _inventory_rules as rules

ROLES = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "roles")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("roles_path",))

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        validated, options = self.validate_argument_spec(argument_spec={"roles_path": {"type": "path"}})
        del validated
        specs = load_specs(options["roles_path"] or ROLES)
        groups = {name: [str(host) for host in hosts] for name, hosts in task_vars["groups"].items()}
        problems = rules.check_groups(groups)
        managed = sorted({host for name in rules.MANAGED_GROUPS for host in groups.get(name, [])})
        for host in managed:
            try:
                variables = self._variables(task_vars["hostvars"][host], specs)
            except AnsibleError as error:
                problems.append(rules.Problem(host, str(error)))
                continue
            problems.extend(rules.check_connection(host, variables, LOCAL_NAMES))
            problems.extend(rules.check_variables(host, variables, specs))
        result["changed"] = False
        result["hosts"] = managed
        result["problems"] = ["%s: %s" % (", ".join(hosts), text) for text, hosts in rules.merge_problems(problems)]
        if result["problems"]:
            result["failed"] = True
            result["msg"] = "The inventory cannot be used; nothing was changed. " + " | ".join(result["problems"])
        return result

    @staticmethod
    def _variables(hostvars, specs):
        """The host's variables that the rules look at, templated: roles' prefixes, shared names, the connection."""
        names = [
            name
            for name in hostvars
            if name.startswith("gpufleet_")
            or name in ("ansible_connection", "ansible_host")
            or rules.owner_of(name, list(specs))
        ]
        return {str(name): hostvars[name] for name in names}


def load_specs(path):
    """Options of every role's entry point `main`: role → variable → argument_specs entry."""
    specs = {}
    for role in sorted(os.listdir(path)):
        file = os.path.join(path, role, "meta", "argument_specs.yml")
        if os.path.exists(file):
            with open(file, encoding="utf-8") as handle:
                document = yaml.safe_load(handle)
            specs[role] = document["argument_specs"]["main"].get("options") or {}
    return specs
