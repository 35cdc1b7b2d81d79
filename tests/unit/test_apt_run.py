# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long apt is waited for and how often it is tried again; the waiting itself is only counted."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._apt_run import run_apt
from ansible_collections.gpufleet.server.plugins.module_utils._host import CommandResult

GOOD = (0, "Reading package lists...\n")
BUSY = (100, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n")
DOWN = (0, "W: Failed to fetch http://repo/dists/jammy/InRelease  503  Service Unavailable\n")
BROKEN = (100, "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.\n")


class FakeHost:
    """Answers in turn, the last one for ever."""

    def __init__(self, answers):
        self.answers = list(answers)

    def run(self, argv, timeout_s, env):
        rc, text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return CommandResult(argv, rc, "", text, 0.0)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def sleep(self, seconds):
        self.now += seconds

    def __call__(self):
        return self.now


def run(answers, lock_timeout_s=60, before_retry=None):
    clock = Clock()
    ended = run_apt(FakeHost(answers), ("apt-get",), 10, lock_timeout_s, {}, clock.sleep, clock, before_retry)
    return ended, clock.now - 1000.0


@pytest.mark.parametrize(
    "answers, rc, tries, kinds, waited_s",
    [
        ([GOOD], 0, 1, [], 0),
        ([BUSY, BUSY, GOOD], 0, 1, [], 10),
        ([BUSY], 100, 1, ["locked"], 60),
        ([DOWN, GOOD], 0, 2, [], 2),
        ([DOWN, DOWN, DOWN, GOOD], 0, 4, [], 22),
        ([DOWN], 0, 4, ["fetch"], 22),
        ([DOWN, BUSY, GOOD], 0, 2, [], 7),
        ([BROKEN], 100, 1, ["interrupted"], 0),
    ],
    ids=["well", "busy", "busy-for-ever", "down-once", "down-three-times", "down-for-ever", "down-then-busy", "broken"],
)
def test_what_passes_is_waited_for_and_nothing_else(answers, rc, tries, kinds, waited_s):
    ended, waited = run(answers)
    assert (ended.result.rc, ended.tries, [problem.kind for problem in ended.problems]) == (rc, tries, kinds)
    assert waited == waited_s


def test_the_lists_are_read_before_another_try_and_not_before_the_first():
    calls = []
    run([DOWN, DOWN, GOOD], before_retry=lambda: calls.append(1))
    assert len(calls) == 2
