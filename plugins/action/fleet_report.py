# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of `fleet_report`: collect what the roles said of every host, write it, print a line a host."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import datetime, timezone

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils import _report

VERDICTS = ("failed", "unknown", "degraded", "healthy")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("hosts", "directory", "required_roles", "fail_on", "playbook", "stage", "started"))

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        options = self._options()
        hostvars = task_vars["hostvars"]
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        finished = options["stage"] == "close"
        run = {
            "playbook": options["playbook"],
            "started": options["started"] or now,
            "ended": now if finished else None,
            "check_mode": bool(task_vars.get("ansible_check_mode", False)),
        }
        # a host of the play that takes no part in it any more: unreachable, or stopped by a task that nothing rescued
        lost = set(task_vars["ansible_play_hosts_all"]) - set(task_vars["ansible_play_hosts"])
        reports = [self._report(host, hostvars, now, run, options, host in lost) for host in options["hosts"]]
        fleet = _report.render_fleet(reports, run)
        result["files"] = [] if run["check_mode"] else _write(options["directory"], reports, fleet)
        result["verdicts"] = {report["host"]: report["verdict"] for report in reports}
        result["lines"] = _report.render_lines(reports)
        result["started"] = run["started"]
        failing = _report.failing_hosts(reports, options["fail_on"], run["check_mode"]) if finished else []
        result["failing"] = failing
        result["changed"] = False  # a report is an account of the run, not a change of a host
        return result

    def _options(self):
        validated, args = self.validate_argument_spec(
            argument_spec={
                "hosts": {"type": "list", "elements": "str", "required": True},
                "directory": {"type": "path", "default": "reports"},
                "required_roles": {"type": "list", "elements": "str", "default": []},
                "fail_on": {"type": "list", "elements": "str", "choices": list(VERDICTS), "default": []},
                "playbook": {"type": "str", "default": "playbook"},
                "stage": {"type": "str", "choices": ["open", "close"], "default": "close"},
                "started": {"type": "str", "default": ""},
            }
        )
        del validated
        return args

    @staticmethod
    def _report(host, hostvars, now, run, options, lost):
        if host not in hostvars:
            raise AnsibleActionFail("hosts: %r is not a host of this inventory" % host)
        variables = hostvars[host]
        results = variables.get("gpufleet_results")
        return _report.host_report(
            host=str(host),
            time=now,
            run=run,
            results=_plain(results) if results else None,
            reachable=not lost and bool(variables.get("gpufleet_reachable", True)),
            required_roles=options["required_roles"],
            finished=options["stage"] == "close",
        )


def _plain(value):
    """Built-in types only: facts carry Ansible's tagged and lazy ones, which must not reach a JSON file."""
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value)


def _write(directory, reports, fleet):
    """Write one JSON file a host and the page; each file is whole at any time, also when the run is killed."""
    try:
        os.makedirs(directory, exist_ok=True)
        written = []
        for report in reports:
            path = os.path.join(directory, "%s.json" % report["host"])
            _write_whole(path, json.dumps(report, indent=2, sort_keys=True) + "\n")
            written.append(path)
        path = os.path.join(directory, "fleet.md")
        _write_whole(path, fleet)
        return written + [path]
    except OSError as error:
        raise AnsibleActionFail(
            "report_dir: cannot write to %s (%s); set report_dir to a folder that you may write to" % (directory, error)
        ) from error


def _write_whole(path, text):
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".report-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
