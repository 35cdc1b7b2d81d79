#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_report
short_description: Write one verdict per host, as JSON and as a page that a person reads
version_added: 0.1.0
description:
  - Collects the fact C(gpufleet_results) of every host, gives each host one verdict, and writes
    C(DIRECTORY/HOST.json) for every host and C(DIRECTORY/fleet.md) for all of them.
  - A host that could not be reached, that gave no result, or whose run is not over is C(unknown), never C(healthy).
  - Runs on the controller and opens no connection. In check mode nothing is written.
options:
  hosts:
    description: Names of the hosts to report.
    type: list
    elements: str
    required: true
  directory:
    description: Folder on the controller, relative to where the command was started; made where it is missing.
    type: path
    default: reports
  required_roles:
    description: Roles without whose result a host is C(unknown).
    type: list
    elements: str
    default: []
  fail_on:
    description:
      - Verdicts that count as a failure of the run; such hosts are returned in RV(failing).
      - In check mode only hosts on which the run did not get through, since a machine is judged as it is before the
        changes.
    type: list
    elements: str
    choices: [failed, unknown, degraded, healthy]
    default: []
  playbook:
    description: Name that the report carries.
    type: str
    default: playbook
  stage:
    description:
      - V(open) at the start of a run says C(unknown) of every host, so that an interrupted run leaves no old verdict.
      - V(close) at its end says what was found.
    type: str
    choices: [open, close]
    default: close
  started:
    description: Time of the start, as RV(started) of the V(open) stage returned it; the present time where empty.
    type: str
    default: ''
attributes:
  check_mode:
    description: Can run in check mode and returns the same keys; writes no file then.
    support: full
  diff_mode:
    description: Changes nothing on a host, so that there is nothing to show.
    support: none
author:
  - The gpufleet authors (@gpufleet)
"""

EXAMPLES = r"""
- name: Report every host of the play
  gpufleet.server.fleet_report:
    hosts: "{{ ansible_play_hosts_all }}"
    required_roles: [gpu_health]
  run_once: true
  register: fleet
"""

RETURN = r"""
verdicts:
  description: Verdict of each host.
  returned: always
  type: dict
  sample: {gpu01: healthy, gpu02: failed}
lines:
  description: One line a host, for a person.
  returned: always
  type: list
  elements: str
  sample: ["gpu01  healthy   8 of 8 GPUs healthy"]
failing:
  description: Hosts that make the run a failure by O(fail_on); empty in stage V(open).
  returned: always
  type: list
  elements: str
  sample: [gpu02]
files:
  description: Files that were written on the controller.
  returned: always
  type: list
  elements: str
  sample: [/home/ops/reports/gpu01.json, /home/ops/reports/fleet.md]
started:
  description: Start of the run in UTC, to be handed to the stage V(close).
  returned: always
  type: str
  sample: "2026-11-30T09:00:00Z"
"""
