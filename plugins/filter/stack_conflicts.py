# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ..module_utils._stack_input import StackError
from ..module_utils._stack_matrix import conflicts

DOCUMENTATION = r"""
name: stack_conflicts
short_description: Whether CUDA toolkits, driver, GPUs, system, libraries and wheels fit together
version_added: 0.1.0
author:
  - The gpufleet authors (@gpufleet)
description:
  - Judges a software stack around CUDA and names each conflict with the nearest combination that works. It looks at
    nothing but its input, so it serves declared values on the controller and observed ones alike.
  - What is not given is not judged. What the table does not know is a warning, neither passed nor refused.
  - Versions are text. Write them in quotes, because YAML makes a number of C(12.10).
options:
  _input:
    description:
      - A mapping of any of the keys below. A key that is null or empty counts as not given.
      - C(os) and C(os_version), for example V(ubuntu) and V(24.04), and C(architecture) (V(amd64) or V(arm64), also as
        V(x86_64), V(aarch64), V(sbsa)).
      - C(gpus), a list of architectures (V(kepler) to V(blackwell)) or of model names as C(nvidia-smi) prints them.
      - C(driver), a branch such as V(580) or a version such as V(580.178.04).
      - C(toolkits), a list such as V(["11.8", "13.0"]), and C(default_toolkit).
      - C(cudnn) and C(nccl), a version, with the CUDA of the build if known, for example V(2.28.3-1+cuda12.9).
      - C(gcc), C(python), C(torch), C(torch_cuda) (V(cu128) or V(12.8)) and C(tensorflow). A torch without
        C(torch_cuda) is the wheel of the Python package index.
    type: dict
    required: true
seealso:
  - name: Which parts of a CUDA stack fit together
    description: The tables, and an example playbook.
    link: https://github.com/gpufleet/server/blob/main/docs/stack.md
"""

EXAMPLES = r"""
- name: Refuse a stack that cannot work
  ansible.builtin.assert:
    that: stack_problems | length == 0
    fail_msg: "{{ stack_problems | map(attribute='message') | join('; ') }}"
  vars:
    stack_problems: >-
      {{ {'gpus': ['V100'], 'driver': '580', 'toolkits': ['12.9']}
         | gpufleet.server.stack_conflicts | selectattr('severity', 'eq', 'critical') }}

- name: Show what would work instead
  ansible.builtin.debug:
    msg: "{{ {'driver': '535', 'toolkits': ['13.0']} | gpufleet.server.stack_conflicts
             | map(attribute='nearest') }}"  # [[{'driver': '580'}, {'toolkits': ['12.9']}]]
"""

RETURN = r"""
_value:
  description:
    - Findings, the worst first; an empty list where all that was given fits and is known.
    - Each has C(id), C(severity), C(message), C(observed), C(expected), C(remedy), C(source), and C(gpu) and C(link),
      which are null.
    - C(severity) is V(critical) for what cannot work, V(warning) for what the table does not know, V(info) for what
      works with a limit.
    - C(nearest) is a list of mappings of input keys to new values. Each of them alone resolves the conflict.
  type: list
  elements: dict
"""


def stack_conflicts(stack):
    try:
        return conflicts(stack)
    except StackError as error:
        raise AnsibleFilterError("stack_conflicts: %s" % error) from error


class FilterModule:
    def filters(self):
        return {"stack_conflicts": stack_conflicts}
