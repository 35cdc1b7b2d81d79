"""dpkg's and apt's answers, and the order of Debian versions."""

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import (
    QUERY_FORMAT,
    Package,
    broken_packages,
    compare_versions,
    parse_policy,
    parse_query,
    version_key,
)


def line(name, arch="amd64", version="1.0-1", want="install", state="installed", flag="ok"):
    return "\t".join((name, arch, version, want, state, flag)) + "\n"


@pytest.mark.parametrize(
    "fields, installed, held, broken",
    [
        ({}, True, False, False),
        ({"want": "hold"}, True, True, False),
        ({"want": "deinstall", "state": "config-files"}, False, False, False),
        ({"want": "hold", "state": "not-installed", "version": ""}, False, True, False),
        ({"state": "half-configured"}, False, False, True),
        ({"state": "unpacked"}, False, False, True),
        ({"state": "half-installed", "flag": "reinstreq"}, False, False, True),
        ({"flag": "reinstreq"}, False, False, True),
        ({"state": "triggers-pending"}, False, False, True),
    ],
    ids=[
        "installed",
        "held",
        "removed-config-left",
        "held-but-absent",
        "half-configured",
        "unpacked",
        "half-installed",
        "reinstall-required",
        "triggers-pending",
    ],
)
def test_a_state_is_read(fields, installed, held, broken):
    package = parse_query(line("nvidia-open", **fields))["nvidia-open"]
    assert (package.installed, package.held, package.broken) == (installed, held, broken)


def test_the_installed_architecture_has_the_plain_name():
    text = line("libc6", arch="i386", state="not-installed", version="") + line("libc6", version="2.35-0ubuntu3")
    packages = parse_query(text)
    assert packages["libc6"].arch == "amd64"
    assert packages["libc6:i386"].state == "not-installed"


def test_lines_of_another_form_are_left_out():
    packages = parse_query("dpkg-query: no packages found\n\n" + line("kmod") + "half\ta line\n")
    assert list(packages) == ["kmod"]


def test_the_format_has_one_field_for_each_that_is_parsed():
    assert QUERY_FORMAT.count("${") == 6


def test_broken_packages_are_named_once_and_sorted():
    text = line("zlib1g", state="unpacked") + line("acl", state="half-configured") + line("kmod")
    assert broken_packages(parse_query(text)) == ["acl", "zlib1g"]


POLICY = """\
linux-headers-generic:
  Installed: (none)
  Candidate: 5.15.0.164.158
  Version table:
     5.15.0.164.158 500
        500 http://archive.ubuntu.com/ubuntu jammy-updates/main amd64 Packages
     5.15.0.25.27 500
        500 http://archive.ubuntu.com/ubuntu jammy/main amd64 Packages
nvidia-open:
  Installed: 580.159.03-1ubuntu1
  Candidate: 580.178.04-1ubuntu1
  Version table:
     595.91.07-1ubuntu1 -1
        600 http://repo.lab/compute/cuda/repos/ubuntu2204/x86_64  Packages
     580.178.04-1ubuntu1 1000
        600 http://repo.lab/compute/cuda/repos/ubuntu2204/x86_64  Packages
 *** 580.159.03-1ubuntu1 100
        100 /var/lib/dpkg/status
linux-headers-9.9.9-1-generic:
  Installed: (none)
  Candidate: (none)
  Version table:
"""


def test_policy_tells_installed_candidate_and_versions():
    policy = parse_policy(POLICY)
    assert policy["linux-headers-generic"].installed is None
    assert policy["linux-headers-generic"].candidate == "5.15.0.164.158"
    assert policy["linux-headers-9.9.9-1-generic"].candidate is None
    assert policy["nvidia-open"].installed == "580.159.03-1ubuntu1"
    assert policy["nvidia-open"].candidate == "580.178.04-1ubuntu1"
    assert policy["nvidia-open"].versions == (
        ("595.91.07-1ubuntu1", -1),
        ("580.178.04-1ubuntu1", 1000),
        ("580.159.03-1ubuntu1", 100),
    )


def test_a_name_that_apt_does_not_know_is_absent():
    assert "nvidia-closed" not in parse_policy(POLICY)
    assert parse_policy("") == {}


@pytest.mark.parametrize(
    "lower, higher",
    [
        ("580.159.03-1ubuntu1", "580.178.04-1ubuntu1"),
        ("580.178.04-1", "580.178.04-1ubuntu1"),
        ("580.178.04-0ubuntu0.22.04.1", "580.178.04-1ubuntu1"),
        ("580.95.05-1", "580.178.04-1"),
        ("9.0", "10.0"),
        ("1.0~rc1-1", "1.0-1"),
        ("1.0~~", "1.0~"),
        ("1.0", "1.0a"),
        ("1.0a", "1.0+b1"),
        ("2.0-1", "1:1.0-1"),
        ("5.15.0-91-generic", "5.15.0-164-generic"),
        ("6.12.9+bpo-amd64", "6.12.57+deb13-amd64"),
        ("1.0-1", "1.0-1.1"),
        ("1.0", "1.0-1"),
    ],
)
def test_versions_are_ordered_as_dpkg_orders_them(lower, higher):
    assert compare_versions(lower, higher) == -1
    assert compare_versions(higher, lower) == 1


@pytest.mark.parametrize("left, right", [("1.0-1", "1.0-1"), ("0:1.0", "1.0"), ("1.01", "1.1"), ("1.0-0", "1.0")])
def test_versions_that_are_equal_to_dpkg(left, right):
    assert compare_versions(left, right) == 0


def test_versions_sort_by_key():
    assert max(["580.95.05-1", "595.91.07-1", "580.178.04-1"], key=version_key) == "595.91.07-1"


def test_packages_are_plain_data():
    assert parse_query(line("kmod"))["kmod"] == Package("kmod", "1.0-1", "amd64", "install", "installed")
