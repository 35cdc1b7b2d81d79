# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for what an inventory may say, checked on the controller before any host is touched."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

SHARED_VARIABLES: Dict[str, Dict[str, Any]] = {
    "gpufleet_nvidia_repo_url": {"type": "str"},
    "gpufleet_apt_mirror": {"type": "str"},
    "gpufleet_http_proxy": {"type": "str"},
    "gpufleet_https_proxy": {"type": "str"},
    "gpufleet_no_proxy": {"type": "str"},
}
"""Values that several roles share; the roles' own variables default to them."""

RUN_VARIABLES = frozenset(("gpufleet_results", "gpufleet_reachable"))
"""Facts that the playbooks themselves set; an inventory may not."""

MANAGED_GROUPS = ("gpu_servers", "cpu_only")

SPEC_KEYS = ("type", "elements", "choices", "options", "required", "apply_defaults")


@dataclass(frozen=True)
class Problem:
    """One thing wrong: `where` it is (a host, or the inventory), and words that name variable, value and allowed."""

    where: str
    text: str


def check_groups(groups: Mapping[str, Sequence[str]]) -> List[Problem]:
    """An inventory must have hosts to manage, and a host is a GPU server or CPU only, in these two groups."""
    if any(groups.get(name) for name in MANAGED_GROUPS):
        return []
    have = sorted(name for name in groups if name not in ("all", "ungrouped"))
    return [
        Problem(
            "inventory",
            "no host in group gpu_servers (or cpu_only), so there is nothing to set up. Groups with hosts found: %s. "
            "Put your GPU machines into a group named gpu_servers, as inventories/lab shows"
            % (", ".join(name for name in have if groups[name]) or "none"),
        )
    ]


def check_connection(host: str, variables: Mapping[str, Any], local_names: Iterable[str]) -> List[Problem]:
    """The machine that the playbook runs from is never changed, so a managed host may not be it."""
    connection = variables.get("ansible_connection")
    address = str(variables.get("ansible_host") or host)
    if connection not in ("local", "ansible.builtin.local") and address not in set(local_names):
        return []
    return [
        Problem(
            host,
            "ansible_connection=%s, ansible_host=%s: this is the machine that the playbook runs from, which is never "
            "changed or rebooted. Run it from another machine over ssh" % (connection or "ssh", address),
        )
    ]


def check_variables(host: str, variables: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> List[Problem]:
    """Every variable with a role's prefix must be one of that role's, of its type and among its choices.

    `variables` holds the host's variables, templated; `specs` maps a role to the options of its argument_specs.
    """
    problems = []
    options_of = {role: specs[role] for role in specs}
    known = {name for options in options_of.values() for name in options}
    for name in sorted(variables):
        prefix = owner_of(name, list(specs))
        if prefix and name not in known:
            problems.append(_unknown(host, name, variables[name], known, prefix))
        if name.startswith("gpufleet_") and name not in SHARED_VARIABLES and name not in RUN_VARIABLES:
            problems.append(_unknown(host, name, variables[name], set(SHARED_VARIABLES), "gpufleet"))
    for options in list(options_of.values()) + [SHARED_VARIABLES]:
        given = {name: variables[name] for name in options if name in variables}
        problems.extend(Problem(host, text) for text in type_errors(given, options))
    return problems


def owner_of(name: str, roles: Sequence[str]) -> str:
    """The role whose prefix a variable has; of `gpu_health` and `gpu_health_x`, the longest wins; '' where none."""
    matching = [role for role in roles if name.startswith(role + "_")]
    return max(matching, key=len) if matching else ""


def type_errors(given: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Errors of type, choice and sub-option, one variable at a time so that each message carries its value."""
    errors = []
    for name in sorted(given):
        value = given[name]
        if value is None:
            continue  # declared and left empty: the role's default holds
        spec = {name: _argument(options[name])}
        result = ArgumentSpecValidator(spec).validate({name: value})
        errors.extend(
            "%s = %r: %s%s" % (name, value, message, _allowed(options[name])) for message in result.error_messages
        )
    return errors


def _argument(option: Mapping[str, Any]) -> Dict[str, Any]:
    """argument_specs entry to argument spec: without documentation, defaults and `required` (roles check those)."""
    spec = {key: option[key] for key in SPEC_KEYS if key in option and key != "required"}
    if "options" in spec:
        spec["options"] = {
            name: dict(_argument(sub), required=bool(sub.get("required", False)))
            for name, sub in spec["options"].items()
        }
    return spec


def _allowed(option: Mapping[str, Any]) -> str:
    if option.get("choices"):
        return " (allowed: %s)" % ", ".join(str(choice) for choice in option["choices"])
    kind = option.get("type", "str")
    if option.get("elements"):
        kind = "%s of %s" % (kind, option["elements"])
    return " (allowed: %s)" % kind


def _unknown(host: str, name: str, value: Any, known: Iterable[str], owner: str) -> Problem:
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    mine = sorted(item for item in known if item.startswith(owner + "_"))
    hint = "Did you mean %s?" % " or ".join(near) if near else "Variables of %s: %s" % (owner, ", ".join(mine))
    return Problem(host, "%s = %r: no such variable of %s. %s" % (name, value, owner, hint))


def merge_problems(problems: Iterable[Problem]) -> List[Tuple[str, List[str]]]:
    """Same text, many hosts: one entry, with the hosts that it holds for."""
    hosts: Dict[str, List[str]] = {}
    for problem in problems:
        where = hosts.setdefault(problem.text, [])
        if problem.where not in where:
            where.append(problem.where)
    return list(hosts.items())
