# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each hostile condition is real: apt, dpkg and needrestart themselves fail on it as they do elsewhere."""

from __future__ import annotations

import time
from typing import Iterator

import hostile_lab
import pytest
from hostile_lab import DATES_CHECKED, HOST, hostile, lab, ssh, try_ssh, update

pytestmark = [pytest.mark.sandbox, pytest.mark.controller]

KEYRING = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
TRIES_OF_APT = 4
RELEASES = 3
"""Each of the three suites is asked for at once, by one connection."""


@pytest.fixture(scope="module", autouse=True)
def hosts() -> Iterator[None]:
    lab("up", str(hostile_lab.INVENTORY))
    yield
    lab("down", str(hostile_lab.INVENTORY))


@pytest.fixture(autouse=True)
def cleared(hosts: None) -> Iterator[None]:
    yield
    hostile_lab.clear()
    assert lab("hostile", "--lab", hostile_lab.LAB, HOST) == ""


def test_a_server_that_answers_503_for_long_is_given_up_and_later_answers():
    hostile("repo", "http-503=%d" % (TRIES_OF_APT * RELEASES * 2))
    assert "Failed to fetch http://repo.lab/ubuntu/dists/jammy/InRelease  503" in update().output
    hostile("repo", "http-503=0")
    assert "W:" not in update().output


def test_a_file_that_is_not_there_is_not_asked_for_again_by_apt():
    hostile("repo", "http-404=%d" % (2 * RELEASES))
    assert "does not have a Release file" in update().output
    assert "W:" not in update().output


def test_a_file_that_ends_halfway_does_not_match_its_signature():
    hostile("repo", "truncated=%d" % RELEASES)
    failed = update()
    assert failed.rc == 100 and "is not signed" in failed.output
    assert "W:" not in update().output


def test_a_slow_server_takes_its_time():
    hostile("repo", "slow=20000")
    started = time.monotonic()
    assert update().rc == 0
    assert time.monotonic() - started > 2


def test_a_rotated_key_is_unknown_and_apt_goes_on_with_yesterdays_lists():
    assert update().rc == 0
    hostile("repo", "rotated-key")
    stale = try_ssh("apt-get -q update -o Dir::Etc::sourcelist=/dev/null")
    assert (stale.rc, "NO_PUBKEY" in stale.output) == (0, True)
    assert "previous index files will be used" in stale.output
    assert update().rc == 100


def test_releases_from_the_future_are_what_a_clock_that_is_behind_sees():
    hostile("repo", "dated-ahead=6")
    failed = update(DATES_CHECKED)
    assert failed.rc == 100 and "is not valid yet (invalid for another 5h 5" in failed.output
    assert "GPG error" not in failed.output


def test_another_apt_keeps_dpkg_and_apt_waiting():
    hostile(HOST, "apt-lock=4")
    for command in ("apt-get -q update", "apt-get -qy install hello", "dpkg --configure -a"):
        assert "lock" in try_ssh(command).output
    time.sleep(4)
    ssh("dpkg --configure -a")


def test_a_killed_dpkg_keeps_apt_from_working():
    hostile(HOST, "dpkg-interrupted")
    assert "dpkg was interrupted, you must manually run" in try_ssh("apt-get -qy install hello").output
    assert "only half configured" in ssh("dpkg --audit")


def test_boot_has_no_space_left_and_gets_it_back():
    names = ssh("ls /boot")
    hostile(HOST, "boot-full")
    assert "No space left on device" in try_ssh("head -c 64k /dev/zero > /boot/more").output
    hostile(HOST, "boot-full=2048")
    ssh("head -c 1024k /dev/zero > /boot/more")
    lab("clear", "--lab", hostile_lab.LAB, HOST)
    assert ssh("ls /boot") == names


@pytest.mark.parametrize(
    "which, repository",
    [("archive", "http://repo.lab/ubuntu/ jammy"), ("nvidia", hostile_lab.CUDA + "/ubuntu2204/x86_64/ /")],
)
def test_two_keys_for_one_repository_stop_apt(which, repository):
    hostile(HOST, "signed-by-clash=" + which)
    for command in ("apt-get -q update", "apt-get -qy install hello"):
        failed = try_ssh(command)
        assert failed.rc == 100
        assert "Conflicting values set for option Signed-By regarding source " + repository in failed.output


def test_an_expired_key_is_no_key():
    hostile(HOST, "expired-key=" + KEYRING)
    failed = update()
    assert failed.rc == 100 and "EXPKEYSIG" in failed.output
    hostile_lab.clear()
    assert "W:" not in update().output


def test_needrestart_asks_at_a_terminal_and_waits():
    hostile(HOST, "needrestart")
    assert "NEEDRESTART-SVC: gpulab-stale.service" in ssh("needrestart -b")
    asked = try_ssh("timeout 6 needrestart", "-tt")
    assert "Which services should be restarted?" in asked.output
    assert asked.rc == 124
