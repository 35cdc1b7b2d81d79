# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt said, in its own words (apt 2.6 against the sandbox's repositories), and what a run makes of it."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._apt_problems import (
    concerns,
    explain,
    is_busy,
    may_pass,
    parse_problems,
    standing,
)

STALE = "W: Some index files failed to download. They have been ignored, or old ones used instead.\n"
UNKNOWN = "the public key is not available: NO_PUBKEY A92DE5810A4CE010\n"
EXPIRED = "The following signatures were invalid: EXPKEYSIG 01AB54C898A427AF Example <a@example.org>\n"

ROWS = {
    "503": (
        "W: Failed to fetch http://repo/ubuntu/dists/jammy/InRelease  503  Service Unavailable [IP: 10.0.0.2 80]\n"
        + STALE,
        [("fetch", "http://repo/ubuntu", False)],
    ),
    "503-nothing-older": (
        "E: The repository 'http://repo/ubuntu jammy InRelease' is not signed.\n"
        "E: Failed to fetch http://repo/ubuntu/dists/jammy/InRelease  503  Service Unavailable [IP: 10.0.0.2 80]\n",
        [("fetch", "http://repo/ubuntu", True)],
    ),
    "no-name": (
        "W: Failed to fetch http://nowhere/ubuntu/dists/jammy/InRelease  Could not resolve 'nowhere'\n" + STALE,
        [("fetch", "http://nowhere/ubuntu", False)],
    ),
    "404": (
        "E: The repository 'http://repo/ubuntu jammy Release' does not have a Release file.\n",
        [("missing", "http://repo/ubuntu", True)],
    ),
    "404-package": (
        "E: Failed to fetch http://repo/pool/a_1_all.deb  404  Not Found [IP: 10.0.0.2 80]\n"
        "E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?\n",
        [("missing", "http://repo/pool/a_1_all.deb", True)],
    ),
    "size": (
        "E: Failed to fetch http://repo/pool/a_1_all.deb  File has unexpected size (250 != 500). Mirror sync in "
        "progress? [IP: 10.0.0.2 80]\n",
        [("damaged", "http://repo/pool/a_1_all.deb", True)],
    ),
    "hash": (
        "E: Failed to fetch http://repo/pool/a_1_all.deb  Hash Sum mismatch\n",
        [("damaged", "http://repo/pool/a_1_all.deb", True)],
    ),
    "cut-short": (
        "W: GPG error: http://repo/ubuntu jammy InRelease: Splitting up /x_InRelease "
        "into data and signature failed\n"
        "E: The repository 'http://repo/ubuntu jammy InRelease' is not signed.\n",
        [("damaged", "http://repo/ubuntu", True)],
    ),
    "bad-signature": (
        "W: GPG error: http://repo/ubuntu jammy Release: The following signatures were invalid: BADSIG "
        "01AB54C898A427AF Example\nE: The repository 'http://repo/ubuntu jammy Release' is not signed.\n",
        [("damaged", "http://repo/ubuntu", True)],
    ),
    "key-changed": (
        "W: GPG error: http://repo/ubuntu jammy InRelease: "
        + UNKNOWN
        + "E: The repository 'http://repo/ubuntu jammy InRelease' is not signed.\n",
        [("key_missing", "http://repo/ubuntu", True)],
    ),
    "key-changed-old-lists": (
        "W: An error occurred during the signature verification. The repository is not updated "
        "and the previous index files will be used. GPG error: http://repo/ubuntu jammy InRelease: "
        + UNKNOWN
        + "W: Failed to fetch http://repo/ubuntu/dists/jammy/InRelease  "
        + UNKNOWN
        + STALE,
        [("key_missing", "http://repo/ubuntu", False)],
    ),
    "key-expired": (
        "W: GPG error: http://repo/ubuntu jammy InRelease: "
        + EXPIRED
        + "E: The repository 'http://repo/ubuntu jammy InRelease' is not signed.\n",
        [("key_expired", "http://repo/ubuntu", True)],
    ),
    "unsigned": (
        "E: The repository 'http://repo/x ./ Release' is not signed.\n",
        [("unsigned", "http://repo/x", True)],
    ),
    "clock": (
        "E: Release file for http://repo/ubuntu/dists/jammy/InRelease is not valid yet (invalid for another 5h "
        "59min 49s). Updates for this repository will not be applied.\n",
        [("clock", "http://repo/ubuntu", True)],
    ),
    "mirror-stands-still": (
        "E: Release file for http://repo/debian/dists/sid/InRelease is expired (invalid since 9d). "
        "Updates for this repository will not be applied.\n",
        [("expired", "http://repo/debian", True)],
    ),
    "clash": (
        "E: Conflicting values set for option Signed-By regarding source http://repo/ubuntu/ jammy: /a.gpg != "
        "/b.gpg\nE: The list of sources could not be read.\n",
        [("clash", "http://repo/ubuntu/", True)],
    ),
    "lists-lock": (
        "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1400 (python3)\n"
        "E: Unable to lock directory /var/lib/apt/lists/\n",
        [("locked", "/var/lib/apt/lists/lock", True)],
    ),
    "frontend-lock": (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1400 (python3)\n"
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process "
        "using it?\n",
        [("locked", "/var/lib/dpkg/lock-frontend", True)],
    ),
    "dpkg-lock": (
        "dpkg: error: dpkg frontend lock was locked by another process with pid 1400\n",
        [("locked", "", True)],
    ),
    "interrupted": (
        "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. \n",
        [("interrupted", "", True)],
    ),
    "disk": (
        "E: You don't have enough free space in /var/cache/apt/archives/.\n",
        [("space", "/var/cache/apt/archives/.", True)],
    ),
    "other": ("E: Unable to locate package nonesuch\n", [("other", "", True)]),
    "harmless": (
        "W: Target Packages (main/binary-amd64/Packages) is configured multiple times\nN: Ignoring file\n",
        [],
    ),
    "well": ("Hit:1 http://repo/ubuntu jammy InRelease\nReading package lists...\n", []),
}


@pytest.mark.parametrize("text, expected", ROWS.values(), ids=ROWS)
def test_a_problem_is_told_by_what_apt_says(text, expected):
    found = parse_problems(text)
    assert [(problem.kind, problem.source, problem.fatal) for problem in found] == expected


def test_the_same_of_three_suites_is_one_problem_and_of_two_repositories_two():
    text = "".join(
        "W: GPG error: http://repo/%s InRelease: %s" % (name, UNKNOWN)
        for name in ("ubuntu jammy", "ubuntu jammy-updates", "cuda /")
    )
    assert [problem.source for problem in parse_problems(text)] == ["http://repo/ubuntu", "http://repo/cuda"]


@pytest.mark.parametrize(
    "name, passes, busy",
    [
        ("503", True, False),
        ("503-nothing-older", True, False),
        ("404", True, False),
        ("size", True, False),
        ("cut-short", True, False),
        ("key-changed", False, False),
        ("clock", False, False),
        ("clash", False, False),
        ("interrupted", False, False),
        ("frontend-lock", False, True),
        ("dpkg-lock", False, True),
        ("well", False, False),
    ],
)
def test_what_is_worth_another_try(name, passes, busy):
    found = parse_problems(ROWS[name][0])
    assert (may_pass(found), is_busy(found)) == (passes, busy)


def test_another_try_is_no_use_where_something_else_is_wrong_for_good():
    assert not may_pass(parse_problems(ROWS["503"][0] + ROWS["clock"][0]))


@pytest.mark.parametrize(
    "required, stops",
    [
        ([], False),
        (["http://repo/ubuntu"], True),
        (["http://repo/ubuntu/"], True),
        (["http://repo/cuda"], False),
        (["http://repo/ubuntu-ports"], False),
        ([""], False),
    ],
)
def test_old_lists_stop_a_run_only_where_it_needs_the_new_ones(required, stops):
    found = parse_problems(ROWS["503"][0])
    assert bool(standing(found, required)) is stops
    assert concerns(found[0], required) is stops


def test_what_apt_gave_up_for_stops_a_run_in_any_case():
    assert standing(parse_problems(ROWS["key-changed"][0]), [])


@pytest.mark.parametrize(
    "name, words",
    [
        ("clock", "The clock of this host is behind"),
        ("key-changed", "changed the key"),
        ("key-expired", "remove that keyring file"),
        ("clash", "keep one of them"),
        ("disk", "Free some space"),
        ("frontend-lock", "1400 (python3)"),
    ],
)
def test_an_explanation_has_what_was_found_and_what_to_do(name, words):
    found = parse_problems(ROWS[name][0])
    assert words in explain(found)
    assert found[0].text.rstrip(".") in explain(found)
