#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module base_plan: one look at the base system, and what role base has to do about it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: base_plan
short_description: Look at the base system of a GPU server and plan what is missing
version_added: 0.1.0
author: The gpufleet authors (@gpufleet)
description:
  - Reads the operating system, kernels, dpkg's states, settings in force and who set them, in one round trip, and says
    which files, packages and steps lead to the declared state. Changes nothing.
  - V(leave), 0, false or an empty list leaves a matter to the operator; what an operator set in another file of the
    same kind stands and is told as a finding.
  - apt is asked only about packages that are missing, because opening its cache takes seconds.
options:
  phase:
    description:
      - V(plan) before anything is changed. What is not in force yet is unproven.
      - V(prove) after the changes. What is not in force then is a critical finding.
    type: str
    choices: [plan, prove]
    default: plan
  carried_findings:
    description: Findings of the plan, of which the proof repeats what was mended.
    type: list
    elements: dict
    default: []
  packages:
    description: Packages that should be installed.
    type: list
    elements: str
    default: []
  kernel_headers:
    description: Whether the headers of the kernel that will boot should be installed.
    type: bool
    default: false
  apt_lock_timeout_s:
    description: Seconds for which apt waits for another apt.
    type: int
    default: 0
  needrestart:
    description: V(list) restarts nothing, V(protect) keeps only what jobs run under from being restarted.
    type: str
    choices: [list, protect, leave]
    default: leave
  unattended_upgrades_keep_out:
    description: Python patterns for beginnings of package names that unattended upgrades leave alone.
    type: list
    elements: str
    default: []
  limits_memlock:
    description: Limit of locked memory, in KiB, V(unlimited) or V(leave).
    type: str
    default: leave
  limits_nofile:
    description: Limit of open files.
    type: int
    default: 0
  sysctl:
    description: Kernel settings by key; a null value leaves a key alone.
    type: dict
    default: {}
  numa_balancing:
    description: Whether the kernel moves pages between NUMA nodes by itself.
    type: str
    choices: [enabled, disabled, leave]
    default: leave
  thp:
    description: Transparent huge pages.
    type: str
    choices: [always, madvise, never, leave]
    default: leave
  time_sync:
    description: V(auto) keeps the time daemon that is there and takes systemd-timesyncd where there is none.
    type: str
    choices: [auto, chrony, systemd-timesyncd, leave]
    default: leave
  ntp_servers:
    description: Time servers; empty keeps the distribution's.
    type: list
    elements: str
    default: []
  journal_storage:
    description: Whether the journal is kept on disk or in memory.
    type: str
    choices: [persistent, volatile, leave]
    default: leave
  journal_max_use_mb:
    description: Space for the journal in MiB.
    type: int
    default: 0
  apt_mirror:
    description: Mirror of the distribution's archive. C({distribution}) stands for V(ubuntu) or V(debian).
    type: str
    default: ''
  apt_security_mirror:
    description: Mirror of the security archive, where it is not the same.
    type: str
    default: ''
  apt_components:
    description: Components of the mirror; all that GPU servers need where empty.
    type: list
    elements: str
    default: []
  apt_stock_sources:
    description: Whether the distribution's own sources stay beside the mirror or are set aside.
    type: str
    choices: [keep, disable]
    default: keep
  http_proxy:
    description: Proxy of apt for http.
    type: str
    default: ''
  https_proxy:
    description: Proxy of apt for https.
    type: str
    default: ''
  no_proxy:
    description: Host names that are reached without a proxy.
    type: list
    elements: str
    default: []
  daemon_reexec_ok:
    description: Whether systemd may be re-executed to take over new limits. V(auto) means while no container runs.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
attributes:
  check_mode:
    description: Changes nothing, in check mode or without.
    support: full
  diff_mode:
    description: Changes nothing, so that there is nothing to show.
    support: none
  platform:
    description: Systems that the module is made for; any other one is refused in RV(plan).
    support: full
    platforms: debian
"""

EXAMPLES = r"""
- name: Look at the machine and plan
  gpufleet.server.base_plan:
    kernel_headers: true
    limits_memlock: unlimited
    thp: madvise
  register: base
"""

RETURN = r"""
plan:
  description: What leads to the declared state.
  returned: success
  type: dict
  contains:
    refusal:
      description: Why this machine is not managed; null where it is.
      type: str
      sample: null
      returned: success
    files:
      description: Files for module M(gpufleet.server.config_files).
      type: list
      elements: dict
      returned: success
      sample: [{"path": "/etc/sysctl.d/90-gpufleet.conf", "content": "vm.swappiness = 10\n", "show_diff": true}]
    packages:
      description: Packages that are missing.
      type: list
      elements: str
      returned: success
      sample: [linux-headers-generic]
    required_sources:
      description: Addresses of mirrors that the inventory names, for module M(gpufleet.server.apt_lists).
      type: list
      elements: str
      returned: success
      sample: ["http://mirror.example.org/ubuntu"]
    steps:
      description: Steps that the role has to take, in order.
      type: list
      elements: str
      returned: success
      sample: [install_packages, reexec_systemd]
    pending:
      description: Sentences about what is not in force yet.
      type: list
      elements: str
      returned: success
      sample: ["vm.swappiness is 60 instead of 10"]
    time_daemon:
      description: Unit that keeps or will keep the clock.
      type: str
      returned: success
      sample: systemd-timesyncd
    kernel:
      description: Release of the kernel that will boot; null where nothing tells.
      type: str
      returned: success
      sample: 5.15.0-164-generic
result:
  description: The role's entry in C(gpufleet_results).
  returned: success
  type: dict
  sample: {"verdict": "healthy", "changed": false, "findings": [], "proven": [], "unproven": [], "versions": {}}
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._base_apt import missing_packages
from ansible_collections.gpufleet.server.plugins.module_utils._base_desired import (
    BaseError,
    desired_of,
    sysctl_keys,
)
from ansible_collections.gpufleet.server.plugins.module_utils._base_plan import plan_and_result
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host
from ansible_collections.gpufleet.server.plugins.module_utils._observe_base import (
    observe_base,
    with_candidates,
)

STRINGS = {"type": "list", "elements": "str", "default": []}
TEXT = {"type": "str", "default": ""}

DESIRED = {
    "packages": STRINGS,
    "kernel_headers": {"type": "bool", "default": False},
    "apt_lock_timeout_s": {"type": "int", "default": 0},
    "needrestart": {"type": "str", "choices": ["list", "protect", "leave"], "default": "leave"},
    "unattended_upgrades_keep_out": STRINGS,
    "limits_memlock": {"type": "str", "default": "leave"},
    "limits_nofile": {"type": "int", "default": 0},
    "sysctl": {"type": "dict", "default": {}},
    "numa_balancing": {"type": "str", "choices": ["enabled", "disabled", "leave"], "default": "leave"},
    "thp": {"type": "str", "choices": ["always", "madvise", "never", "leave"], "default": "leave"},
    "time_sync": {"type": "str", "choices": ["auto", "chrony", "systemd-timesyncd", "leave"], "default": "leave"},
    "ntp_servers": STRINGS,
    "journal_storage": {"type": "str", "choices": ["persistent", "volatile", "leave"], "default": "leave"},
    "journal_max_use_mb": {"type": "int", "default": 0},
    "apt_mirror": TEXT,
    "apt_security_mirror": TEXT,
    "apt_components": STRINGS,
    "apt_stock_sources": {"type": "str", "choices": ["keep", "disable"], "default": "keep"},
    "http_proxy": TEXT,
    "https_proxy": TEXT,
    "no_proxy": STRINGS,
    "daemon_reexec_ok": {"type": "str", "choices": ["auto", "true", "false"], "default": "auto"},
}
PHASE = {
    "phase": {"type": "str", "choices": ["plan", "prove"], "default": "plan"},
    "carried_findings": {"type": "list", "elements": "dict", "default": []},
}


class QuietModule(AnsibleModule):
    """A proxy's password has no place in the target's system log, where every start is written with its options."""

    def log(self, msg, log_args=None):
        super().log(msg.split(" with ")[0])


def main() -> None:
    module = QuietModule(argument_spec={**DESIRED, **PHASE}, supports_check_mode=True)
    options = module.params
    host = Host()
    try:
        desired = desired_of({name: options[name] for name in DESIRED})
        facts = observe_base(host, time.time() - time.monotonic(), sysctl_keys(desired))
        facts = with_candidates(host, facts, missing_packages(desired, facts))
        plan, result = plan_and_result(
            desired,
            facts,
            check_mode=module.check_mode,
            prove=options["phase"] == "prove",
            carried=options["carried_findings"],
        )
    except BaseError as error:
        module.fail_json(msg=str(error), invocation={"module_args": {}})
    module.exit_json(changed=False, plan=plan, result=result, invocation={"module_args": {"phase": options["phase"]}})


if __name__ == "__main__":
    main()
