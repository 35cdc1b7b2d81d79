# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One apt transaction: what is left to do, the command line, and what a simulation says."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._apt import (
    describe,
    forbidden_removals,
    install_argv,
    is_locked,
    parse_simulation,
    plan_work,
    reinstall_argv,
)
from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import Package

HAVE = {
    "held": Package("held", "1-1", "amd64", "hold", "installed"),
    "free": Package("free", "1-1", "amd64", "install", "installed"),
    "broken": Package("broken", "1-1", "amd64", "install", "half-configured"),
    "purged": Package("purged", "", "amd64", "unknown", "not-installed"),
    "removed": Package("removed", "1-1", "amd64", "deinstall", "config-files"),
}


@pytest.mark.parametrize(
    "request_, expected",
    [
        ({"install": {"free": "1-1"}}, {}),
        ({"install": {"free": ""}}, {}),
        ({"install": {"free": "2-1"}}, {"install": {"free": "2-1"}}),
        ({"install": {"broken": "1-1"}}, {"install": {"broken": "1-1"}}),
        ({"install": {"removed": ""}}, {"install": {"removed": ""}}),
        ({"install": {"unknown": "1-1"}}, {"install": {"unknown": "1-1"}}),
        ({"remove": ["free", "purged", "removed", "unknown"]}, {"remove": ("free",)}),
        ({"remove": ["broken"]}, {"remove": ("broken",)}),
        ({"hold": ["free", "held", "unknown"]}, {"hold": ("free",)}),
        ({"unhold": ["free", "held", "unknown"]}, {"unhold": ("held",)}),
        ({"reinstall": ["free"]}, {"reinstall": ("free",)}),
        ({"configure": True}, {"configure": True}),
    ],
)
def test_only_what_is_not_so_yet_is_left(request_, expected):
    asked = dict({"install": {}}, **request_)
    work = plan_work(HAVE, **asked)
    found = {name: getattr(work, name) for name in ("install", "remove", "reinstall", "hold", "unhold", "configure")}
    assert {name: value for name, value in found.items() if value} == expected
    assert work.any is bool(expected)
    assert bool(describe(work)) is bool(expected)


def test_install_and_removal_are_one_command():
    argv = install_argv(plan_work(HAVE, {"new": "2-1", "any": ""}, remove=["free"]))
    assert argv[0] == "apt-get"
    assert argv[-4:] == ["install", "any", "new=2-1", "free-"]
    for option in ("--allow-downgrades", "--allow-change-held-packages", "--no-install-recommends"):
        assert option in argv
    assert "DPkg::Lock::Timeout=600" in argv
    assert "-s" not in argv and "-s" in install_argv(plan_work(HAVE, {"new": ""}), simulate=True)
    assert reinstall_argv(plan_work(HAVE, {}, reinstall=["free"]))[-3:] == ["install", "--reinstall", "free"]


# apt 2.6, `apt-get -s install`
SIMULATED = """\
Reading package lists...
The following packages will be REMOVED:
  nvidia-driver-570-open nvidia-dkms-570-open bystander
Remv nvidia-driver-570-open [570.211.01-1ubuntu1]
Remv nvidia-dkms-570-open [570.211.01-1ubuntu1]
Remv bystander:i386 [1.0-1]
Inst libnvidia-compute [580.1-1] (595.91.07-1ubuntu1 NVIDIA:NVIDIA CUDA [amd64]) []
Inst nvidia-open (595.91.07-1ubuntu1 NVIDIA:NVIDIA CUDA [amd64])
Conf nvidia-open (595.91.07-1ubuntu1 NVIDIA:NVIDIA CUDA [amd64])
"""


def test_a_simulation_tells_what_comes_and_what_goes():
    found = parse_simulation(SIMULATED)
    assert found.installs == {"libnvidia-compute": "595.91.07-1ubuntu1", "nvidia-open": "595.91.07-1ubuntu1"}
    assert found.removes == ("nvidia-driver-570-open", "nvidia-dkms-570-open", "bystander:i386")


def test_a_removal_that_nobody_asked_for_is_forbidden():
    have = {name: Package(name, "570.211.01-1ubuntu1", "amd64", "install", "installed")
            for name in ("nvidia-driver-570-open", "nvidia-dkms-570-open")}
    work = plan_work(have, {}, remove=["nvidia-driver-570-open"])
    simulation = parse_simulation(SIMULATED)
    assert forbidden_removals(simulation, work, ()) == ("bystander:i386", "nvidia-dkms-570-open")
    assert forbidden_removals(simulation, work, ("nvidia-dkms-.*",)) == ("bystander:i386",)
    # a pattern is for a whole name
    assert "bystander:i386" in forbidden_removals(simulation, work, ("by",))


@pytest.mark.parametrize(
    "message, locked",
    [
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 4711", True),
        ("dpkg: error: dpkg status database is locked by another process", True),
        ("dpkg: error processing package nvidia-dkms-580-open (--configure)", False),
        ("", False),
    ],
)
def test_somebody_elses_lock_is_recognised(message, locked):
    assert is_locked(message) is locked
