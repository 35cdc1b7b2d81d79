# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ..module_utils._report import failure_result

DOCUMENTATION = r"""
name: failure_result
short_description: Role result of a role whose task failed
version_added: 0.1.0
author:
  - The gpufleet authors (@gpufleet)
description:
  - Turns C(ansible_failed_task) and C(ansible_failed_result), as a rescue sees them, into the form that every role
    leaves in C(gpufleet_results).
positional: failed_result, role
options:
  _input:
    description: C(ansible_failed_task), or anything with a C(name).
    type: dict
    required: true
  failed_result:
    description: C(ansible_failed_result).
    type: dict
    required: true
  role:
    description: Name of the role that failed.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Keep what failed for the report
  ansible.builtin.set_fact:
    gpufleet_results: >-
      {{ gpufleet_results | default({})
         | combine({'base': ansible_failed_task | gpufleet.server.failure_result(ansible_failed_result, 'base')}) }}
"""

RETURN = r"""
_value:
  description: Result with the verdict C(failed) and one critical finding, C(task_failed).
  type: dict
"""


def role_failure(task, failed_result, role):
    message = failed_result.get("msg") or failed_result.get("stderr") or failed_result.get("module_stderr") or ""
    return failure_result(str(task.get("name") or "unnamed task"), str(message), str(role))


class FilterModule:
    def filters(self):
        return {"failure_result": role_failure}
