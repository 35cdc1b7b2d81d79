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
    simulated before, and refused where apt would remove a package that was not named, or where /boot has too little
    space left for a kernel or an initramfs that the packages bring.
  - Waits for another apt, and tries again what passes by itself, such as a mirror that answers 503.
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
  lock_timeout:
    description: Seconds to wait for another apt.
    type: int
    default: 600
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
    Simulation,
    Work,
    describe,
    environment_of,
    fix_argv,
    forbidden_removals,
    install_argv,
    is_locked,
    parse_simulation,
    plan_work,
    reinstall_argv,
)
from ansible_collections.gpufleet.server.plugins.module_utils._apt_problems import explain
from ansible_collections.gpufleet.server.plugins.module_utils._apt_run import UPDATE_ARGV, run_apt
from ansible_collections.gpufleet.server.plugins.module_utils._boot_space import shortage
from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import QUERY_ARGV, parse_query
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host

BOOT = "/boot"


class TransactionError(Exception):
    """Something the run has to stop for; the message is for a person."""


class Apt:
    """apt and dpkg on this machine; every failure is a TransactionError. Times are in seconds."""

    def __init__(self, timeout, lock_timeout):
        self.host = Host()
        self.environment = environment_of(os.environ)
        self.timeout = timeout
        self.lock_timeout = lock_timeout

    def get(self, argv):
        """Run apt-get. Where a package could not be fetched, the lists may be those of an earlier day."""
        run = run_apt(
            self.host,
            argv,
            self.timeout,
            self.lock_timeout,
            self.environment,
            time.sleep,
            time.monotonic,
            before_retry=lambda: self.host.run(UPDATE_ARGV, self.timeout, env=self.environment),
        )
        return self.checked(run.result, explain([problem for problem in run.problems if problem.kind != "other"]))

    def mark(self, how, names):
        return self.checked(self.host.run(("apt-mark", how) + names, self.timeout, env=self.environment))

    def configure_pending(self):
        """`dpkg --configure -a` does not wait for the lock, and whoever holds it may still be at work: ask again.

        What cannot be configured now may well be what the transaction replaces, so its exit status decides nothing.
        """
        deadline = time.monotonic() + self.lock_timeout
        argv = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
        while True:
            result = self.host.run(argv, self.timeout, env=self.environment)
            if result.ok or not is_locked(result.stderr) or time.monotonic() > deadline:
                return
            time.sleep(2)

    @staticmethod
    def checked(result, meaning=""):
        if not result.ok:
            tail = "\n".join((result.stdout + result.stderr).strip().splitlines()[-25:])
            raise TransactionError("\n".join(part for part in (meaning, result.describe(), tail) if part))
        return result


def boot_shortage(simulation):
    """What /boot lacks for what would be unpacked; None where that is enough."""
    try:
        with os.scandir(BOOT) as entries:
            files = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries if entry.is_file()}
        status = os.statvfs(BOOT)
    except OSError:
        return None
    return shortage(simulation.installs, files, status.f_bavail * status.f_frsize)


def change_packages(apt, work, allow_remove):
    """The transaction itself; returns the simulation that preceded it."""
    argv = install_argv(work, simulate=True, lock_timeout_s=apt.lock_timeout)
    simulation = parse_simulation(apt.get(argv).stdout)
    forbidden = forbidden_removals(simulation, work, allow_remove)
    if forbidden:
        raise TransactionError("apt would also remove %s, which nobody asked for" % ", ".join(forbidden))
    too_little = boot_shortage(simulation)
    if too_little:
        raise TransactionError(too_little)
    apt.get(install_argv(work, lock_timeout_s=apt.lock_timeout))
    return simulation


def apply(apt, work, allow_remove):
    """Do the work; returns the simulation that preceded it. Where it is refused, holds are as they were before."""
    simulation = Simulation({}, ())
    if work.configure:
        apt.configure_pending()
    if work.unhold:
        apt.mark("unhold", work.unhold)
    if work.install or work.remove:
        try:
            simulation = change_packages(apt, work, allow_remove)
        except TransactionError:
            if work.unhold:
                apt.mark("hold", work.unhold)
            raise
    elif work.configure:
        apt.get(fix_argv(apt.lock_timeout))
    if work.reinstall:
        apt.get(reinstall_argv(work, apt.lock_timeout))
    if work.hold:
        apt.mark("hold", work.hold)
    return simulation


def main():
    lists = {name: {"type": "list", "elements": "str", "default": []}
             for name in ("remove", "reinstall", "hold", "unhold", "allow_remove")}
    module = AnsibleModule(
        argument_spec=dict(
            lists,
            install={"type": "dict", "default": {}},
            configure_pending={"type": "bool", "default": False},
            lock_timeout={"type": "int", "default": 600},
            timeout={"type": "int", "default": 3600},
        ),
        supports_check_mode=True,
    )
    options = module.params
    apt = Apt(options["timeout"], options["lock_timeout"])
    before = parse_query(apt.host.run(QUERY_ARGV).stdout)
    work = plan_work(
        before, options["install"], options["remove"], options["reinstall"], options["hold"], options["unhold"],
        options["configure_pending"],
    )
    result = {"changed": work.any, "actions": describe(work), "installed": {}, "removed": []}
    try:
        if work.any and not module.check_mode:
            simulation = apply(apt, work, options["allow_remove"])
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
