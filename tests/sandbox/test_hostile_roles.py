# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role makes of each hostile condition: it gets over it, or it stops in words with nothing half changed."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import hostile_lab
import pytest
from hostile_lab import HOST, Play, hostile, lab, role, ssh

pytestmark = [pytest.mark.sandbox, pytest.mark.controller]

KEYRING = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
HEADERS = "linux-headers-5.15.0-164-generic"
CHECK_DATES = "/etc/apt/apt.conf.d/zz-check-date"
BY_HAND = "/etc/apt/sources.list.d/by-hand.list"


@pytest.fixture(scope="module", autouse=True)
def hosts() -> Iterator[None]:
    lab("up", str(hostile_lab.INVENTORY), "--fresh")
    yield
    lab("down", str(hostile_lab.INVENTORY))


@pytest.fixture(autouse=True)
def work_for_apt(hosts: None) -> Iterator[None]:
    """Each test begins with a package missing that comes from the sandbox's repository, and leaves no condition on."""
    ssh("dpkg --purge linux-headers-generic %s > /dev/null 2>&1; apt-get clean" % HEADERS)
    yield
    hostile_lab.clear()
    ssh("rm -f %s %s" % (CHECK_DATES, BY_HAND))


def forget_lists() -> None:
    """As on a host that never read them: apt has nothing of an earlier day to go on with."""
    ssh("rm -f /var/lib/apt/lists/repo.lab*")


def installed(name: str) -> bool:
    return " ok installed" in ssh("dpkg-query -W -f '${Status}' %s 2> /dev/null || true" % name)


def assert_gets_over(play: Play) -> None:
    assert play.rc == 0, play.output
    assert installed(HEADERS)
    assert ssh("dpkg --audit") == ""


def assert_stops(play: Play, *words: str) -> None:
    """Every word is in the message; packages are as they were."""
    assert (play.rc, play.failed) == (2, 1), play.output
    text = " ".join(play.output.split())
    for word in words:
        assert word in text, play.output
    assert not installed(HEADERS)
    assert ssh("dpkg --audit") == ""


# --- the repository ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["http-503=8", "http-404=6", "truncated=3", "slow=40000"])
def test_a_repository_that_answers_badly_for_a_while_is_asked_again(condition: str, tmp_path: Path):
    forget_lists()
    hostile("repo", condition)
    assert_gets_over(role("base", tmp_path))


def test_a_repository_that_does_not_answer_is_named_and_its_old_lists_are_used(tmp_path: Path):
    hostile("repo", "rotated-key")
    play = role("base", tmp_path)
    assert_gets_over(play)
    assert "apt_source_not_read" in play.output and "NO_PUBKEY" in play.output
    assert "verdict: degraded" in play.output


def test_a_repository_under_an_unknown_key_is_a_stop_where_there_is_nothing_older(tmp_path: Path):
    forget_lists()
    hostile("repo", "rotated-key")
    assert_stops(role("base", tmp_path), "NO_PUBKEY", "http://repo.lab/ubuntu jammy", "changed the key")


def test_a_clock_that_is_behind_is_named(tmp_path: Path):
    ssh("echo 'Acquire::Check-Date \"true\";' > " + CHECK_DATES)
    hostile("repo", "dated-ahead=6")
    words = ("is not valid yet (invalid for another 5h", "The clock of this host is behind", "timedatectl set-ntp true")
    assert_stops(role("base", tmp_path), *words)


def test_an_expired_key_is_named_with_what_to_do(tmp_path: Path):
    forget_lists()
    hostile(HOST, "expired-key=" + KEYRING)
    assert_stops(role("base", tmp_path), "EXPKEYSIG", "has expired", "remove that keyring file")


# --- the host ------------------------------------------------------------------------------------------------------


def test_another_apt_is_waited_for(tmp_path: Path):
    hostile(HOST, "apt-lock=15")
    assert_gets_over(role("base", tmp_path))


def test_another_apt_is_not_waited_for_for_ever(tmp_path: Path):
    hostile(HOST, "apt-lock=300")
    play = role("base", tmp_path, base_apt_lock_timeout_s=5)
    assert play.rc == 2, play.output
    assert "is held by process" in " ".join(play.output.split())
    assert not installed(HEADERS)


def test_what_a_killed_dpkg_left_is_finished_and_told(tmp_path: Path):
    hostile(HOST, "dpkg-interrupted")
    play = role("base", tmp_path)
    assert_gets_over(play)
    assert installed("gpulab-interrupted")
    assert "dpkg was interrupted: gpulab-interrupted" in play.output


def test_a_full_boot_is_a_stop_before_anything_is_unpacked(tmp_path: Path):
    hostile(HOST, "boot-full")
    assert_stops(role("base", tmp_path), "/boot has 0 MiB left", "Nothing was installed", "5.15.0-164-generic")


def test_two_keys_for_the_archive_are_a_stop_that_names_both_files(tmp_path: Path):
    hostile(HOST, "signed-by-clash=archive")
    play = role("base", tmp_path)
    files = ("sources.list.d/gpulab-by-hand.list (/etc/apt/keyrings/ubuntu.gpg)", "sources.list.d/ubuntu")
    assert_stops(play, "http://repo.lab/ubuntu/ jammy", *files, "Keep one of these sources", "Nothing was changed")
    assert play.changed == 0


def test_a_mirror_that_would_clash_is_refused_before_apt_stops_working(tmp_path: Path):
    ssh("mv /etc/apt/sources.list.d/ubuntu* /root/")
    ssh("echo 'deb [signed-by=/etc/apt/keyrings/a.gpg] http://repo.lab/ubuntu jammy-security main' > " + BY_HAND)
    try:
        play = role("base", tmp_path, base_apt_mirror="http://repo.lab/ubuntu")
    finally:
        ssh("mv /root/ubuntu* /etc/apt/sources.list.d/ && rm " + BY_HAND)
    assert_stops(play, "by-hand.list", "gpufleet-mirror.sources", "Nothing was changed")
    ssh("apt-get check")


def test_needrestart_neither_asks_nor_restarts(tmp_path: Path):
    hostile(HOST, "needrestart")
    running = ssh("systemctl show -p MainPID --value gpulab-stale")
    # without pipelining ssh gives a terminal, at which needrestart would ask
    assert_gets_over(role("base", tmp_path, pipelining=False))
    assert ssh("systemctl show -p MainPID --value gpulab-stale") == running


# --- the driver ----------------------------------------------------------------------------------------------------


def test_a_file_of_somebody_else_with_nvidias_repository_under_another_key_is_left_and_named(tmp_path: Path):
    hostile(HOST, "signed-by-clash=mixed")
    play = role("nvidia_driver", tmp_path)
    assert_stops(play, "/etc/apt/sources.list.d/gpulab-mixed.list", "another key", "holds other sources too")
    assert play.changed == 0


def test_the_driver_stops_at_a_full_boot_with_nothing_unpacked(tmp_path: Path):
    hostile(HOST, "boot-full")
    assert_stops(role("nvidia_driver", tmp_path), "/boot has 0 MiB left", "Nothing was installed")
    assert ssh("dpkg-query -W -f '${Package} ' 'nvidia-*' 'libnvidia-*' 2> /dev/null || true") == ""


def test_two_files_that_have_only_nvidias_repository_go_and_its_key_is_asked_for_again(tmp_path: Path):
    hostile(HOST, "signed-by-clash=nvidia")
    hostile("repo", "http-503=2")
    play = role("nvidia_driver", tmp_path, nvidia_driver_source="nvidia", nvidia_driver_reboot_ok=False)
    assert play.rc == 0, play.output
    assert ssh("ls /etc/apt/sources.list.d | grep gpulab || true") == ""
    assert installed("nvidia-fabricmanager")
