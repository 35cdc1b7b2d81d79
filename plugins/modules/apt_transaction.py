#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_transaction
short_description: Install, remove and hold packages in one apt transaction, at exact versions
version_added: 0.1.0
description:
  - Asks dpkg first; apt is started only where something is left to do.
  - Everything in O(install) and O(remove) happens in one run of apt, so a set of packages is never half changed. It is
    simulated before, and refused where apt would remove a package that was not named.
  - Holds in O(unhold) are released before, those in O(hold) set afterwards. Downgrades are allowed, because the version
    is named.
options:
  install:
    description: Names of packages and their exact versions; an empty version takes what apt prefers.
    type: dict
    default: {}
  remove:
    description: Names of packages to remove in the same transaction.
    type: list
    elements: str
    default: []
  reinstall:
    description: Names of packages to unpack and configure again, in a transaction of their own.
    type: list
    elements: str
    default: []
  hold:
    description: Names of packages to put on hold; those that are not installed are passed over.
    type: list
    elements: str
    default: []
  unhold:
    description: Names of packages whose hold is released before anything else.
    type: list
    elements: str
    default: []
  allow_remove:
    description: Regular expressions of whole package names that apt may remove although O(remove) does not name them.
    type: list
    elements: str
    default: []
  configure_pending:
    description: Finish first what an interrupted dpkg left half done (C(dpkg --configure -a)).
    type: bool
    default: false
  timeout:
    description: Seconds after which apt is given up; building a kernel module takes minutes on a small machine.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Can run in check mode and returns what would be done; apt is not started then.
    support: full
  diff_mode:
    description: Shows names and versions before and after.
    support: full
author:
  - The gpufleet authors (@gpufleet)
"""

EXAMPLES = r"""
- name: Bring the driver and Fabric Manager to one version
  gpufleet.server.apt_transaction:
    install:
      nvidia-open-580: 580.178.04-1ubuntu1
      nvidia-fabricmanager: 580.178.04-1ubuntu1
    remove: [nvidia-driver-570-open]
"""

RETURN = r"""
actions:
  description: What was done (in check mode, would be done), one step an entry.
  returned: always
  type: list
  elements: str
  sample: ["install nvidia-open-580=580.178.04-1ubuntu1", "hold nvidia-open-580"]
installed:
  description: Packages that the transaction unpacked, dependencies included, and their versions.
  returned: always
  type: dict
  sample: {nvidia-open-580: 580.178.04-1ubuntu1}
removed:
  description: Packages that the transaction removed.
  returned: always
  type: list
  elements: str
  sample: [nvidia-driver-570-open]
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._apt import (
    ENVIRONMENT,
    LOCK_TIMEOUT_S,
    Simulation,
    Work,
    describe,
    forbidden_removals,
    install_argv,
    is_locked,
    parse_simulation,
    plan_work,
    reinstall_argv,
)
from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import QUERY_ARGV, parse_query
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host


class TransactionError(Exception):
    """Something the run has to stop for; the message is for a person."""


def environment():
    """What apt is started with: no questions, and the proxies that the task was given."""
    proxies = {name: os.environ[name] for name in ("http_proxy", "https_proxy", "no_proxy") if os.environ.get(name)}
    return dict(ENVIRONMENT, **proxies)


def run_or_fail(host, argv, timeout):
    result = host.run(argv, timeout_s=timeout, env=environment())
    if not result.ok:
        tail = "\n".join((result.stdout + result.stderr).strip().splitlines()[-25:])
        raise TransactionError("%s\n%s" % (result.describe(), tail))
    return result


def configure_pending(host, timeout):
    """`dpkg --configure -a` does not wait for the lock, and whoever holds it may still be at work: ask again."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        result = host.run(
            ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a"), timeout, env=environment()
        )
        if result.ok or not is_locked(result.stderr) or time.monotonic() > deadline:
            return
        time.sleep(2)


def apply(host, work, allow_remove, timeout):
    """Do the work; returns the simulation that preceded it."""
    simulation = Simulation({}, ())
    if work.configure:
        # What cannot be configured now may well be what the transaction below replaces, so that one decides.
        configure_pending(host, timeout)
    if work.unhold:
        run_or_fail(host, ("apt-mark", "unhold") + work.unhold, timeout)
    if work.install or work.remove:
        simulation = parse_simulation(run_or_fail(host, install_argv(work, simulate=True), timeout).stdout)
        forbidden = forbidden_removals(simulation, work, allow_remove)
        if forbidden:
            raise TransactionError("apt would also remove %s, which nobody asked for" % ", ".join(forbidden))
        run_or_fail(host, install_argv(work), timeout)
    elif work.configure:
        run_or_fail(host, ("apt-get", "-y", "-q", "-f", "install"), timeout)
    if work.reinstall:
        run_or_fail(host, reinstall_argv(work), timeout)
    if work.hold:
        run_or_fail(host, ("apt-mark", "hold") + work.hold, timeout)
    return simulation


def main():
    lists = {name: {"type": "list", "elements": "str", "default": []}
             for name in ("remove", "reinstall", "hold", "unhold", "allow_remove")}
    module = AnsibleModule(
        argument_spec=dict(
            lists,
            install={"type": "dict", "default": {}},
            configure_pending={"type": "bool", "default": False},
            timeout={"type": "int", "default": 3600},
        ),
        supports_check_mode=True,
    )
    options = module.params
    host = Host()
    before = parse_query(host.run(QUERY_ARGV).stdout)
    work = plan_work(
        before, options["install"], options["remove"], options["reinstall"], options["hold"], options["unhold"],
        options["configure_pending"],
    )
    result = {"changed": work.any, "actions": describe(work), "installed": {}, "removed": []}
    try:
        if work.any and not module.check_mode:
            simulation = apply(host, work, options["allow_remove"], options["timeout"])
            result.update(installed=dict(simulation.installs), removed=list(simulation.removes))
    except TransactionError as error:
        module.fail_json(msg=str(error), **result)
    result["diff"] = diff_of(before, work, result["installed"], result["removed"])
    module.exit_json(**result)


def diff_of(before, work: Work, installed, removed):
    """Package versions before and after; in check mode only what was asked for is known."""
    after = dict(work.install)
    after.update(installed)
    names = sorted(set(after) | set(removed) | set(work.remove))
    old = ["%s %s" % (name, before[name].version) for name in names if name in before and before[name].installed]
    new = ["%s %s" % (name, after[name]) for name in names if name in after]
    return {"before": "\n".join(old) + "\n", "after": "\n".join(new) + "\n"}


if __name__ == "__main__":
    main()
