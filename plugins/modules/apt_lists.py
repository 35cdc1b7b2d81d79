#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_lists
short_description: Read apt's package lists, and say plainly why one could not be read
version_added: 0.1.0
description:
  - Runs C(apt-get update). Waits for another apt, and tries again what passes by itself, such as a mirror that answers
    503 or is in the middle of an update.
  - apt ends with success where it could not read a source and goes on with the lists of an earlier day. This module
    tells of such a source, and fails where it is one of O(required).
options:
  required:
    description: Addresses of repositories without whose present lists there is no point in going on.
    type: list
    elements: str
    default: []
  lock_timeout:
    description: Seconds to wait for another apt.
    type: int
    default: 600
  timeout:
    description: Seconds for one try.
    type: int
    default: 300
attributes:
  check_mode:
    description: Can run in check mode; reads nothing then.
    support: full
  diff_mode:
    description: Lists are too long to show.
    support: none
author:
  - The gpufleet authors (@gpufleet)
"""

EXAMPLES = r"""
- name: Read the lists, of which those of the CUDA repository matter
  gpufleet.server.apt_lists:
    required: [https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64]
"""

RETURN = r"""
findings:
  description: One for each source that could not be read, where the run can go on.
  returned: success
  type: list
  elements: dict
  sample: []
tries:
  description: How often the lists were asked for; 0 in check mode.
  returned: always
  type: int
  sample: 1
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._apt import environment_of
from ansible_collections.gpufleet.server.plugins.module_utils._apt_problems import (
    explain,
    remedy_of,
    standing,
)
from ansible_collections.gpufleet.server.plugins.module_utils._apt_run import UPDATE_ARGV, run_apt
from ansible_collections.gpufleet.server.plugins.module_utils._findings import finding
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host

LISTS = "/var/lib/apt/lists"


def seen_lists():
    """Names, sizes and times of the lists, to tell whether any changed."""
    with os.scandir(LISTS) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.is_file() and "_" in entry.name]
    return sorted((name, status.st_size, status.st_mtime_ns) for name, status in files)


def findings_of(problems):
    return [
        finding(
            "apt_source_not_read",
            "warning",
            "apt could not read %s and uses what it read earlier: %s" % (problem.source or "a source", problem.text),
            observed=problem.kind,
            remedy=remedy_of(problem),
            source=problem.source or None,
        )
        for problem in problems
    ]


def main():
    module = AnsibleModule(
        argument_spec={
            "required": {"type": "list", "elements": "str", "default": []},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    options = module.params
    if module.check_mode:
        module.exit_json(changed=False, findings=[], tries=0)
    before = seen_lists()
    run = run_apt(
        Host(), UPDATE_ARGV, options["timeout"], options["lock_timeout"], environment_of(os.environ), time.sleep,
        time.monotonic,
    )
    stopping = standing(run.problems, options["required"])
    if stopping or not run.result.ok:
        text = explain(stopping) if stopping else run.result.describe()
        module.fail_json(msg="apt could not read its sources (tried %d times): %s" % (run.tries, text), tries=run.tries)
    module.exit_json(changed=seen_lists() != before, findings=findings_of(run.problems), tries=run.tries)


if __name__ == "__main__":
    main()
