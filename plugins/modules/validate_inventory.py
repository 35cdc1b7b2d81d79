#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: validate_inventory
short_description: Refuse an inventory that cannot be meant, before any host is touched
version_added: 0.1.0
description:
  - Looks at every host of the groups C(gpu_servers) and C(cpu_only).
  - A variable with a role's prefix must be one of that role's variables, of its type and among its choices.
  - There must be a host in one of the two groups, and none of them may be the machine that the playbook runs from.
  - Runs on the controller and opens no connection.
options:
  roles_path:
    description: Folder with the roles whose argument specifications hold; that of this collection by default.
    type: path
attributes:
  check_mode:
    description: Changes nothing, in check mode or without.
    support: full
  diff_mode:
    description: Changes nothing, so that there is nothing to show.
    support: none
author:
  - The gpufleet authors (@gpufleet)
"""

EXAMPLES = r"""
- name: Stop before anything is changed if a variable is misspelt
  gpufleet.server.validate_inventory:
  run_once: true
"""

RETURN = r"""
hosts:
  description: Hosts that were looked at.
  returned: always
  type: list
  elements: str
  sample: [gpu01, gpu02]
problems:
  description: What is wrong, each with the hosts that it holds for; any makes the task fail.
  returned: always
  type: list
  elements: str
  sample: ["gpu01: base_ntp = true: no such variable of base. Did you mean base_time_sync?"]
"""
