"""Settings in files of other owners are read as their programs read them."""

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._settings import (
    parse_apt_conf,
    parse_ini,
    parse_limits,
    parse_sysctl,
    sysctl_key,
    sysctl_path,
    sysctl_value,
)


@pytest.mark.parametrize(
    "text, expected",
    [
        ('DPkg::Lock::Timeout "60";', [("dpkg::lock::timeout", "60")]),
        ('DPkg { Lock { Timeout "60"; }; };', [("dpkg::lock::timeout", "60")]),
        ("Acquire::Retries 3;", [("acquire::retries3", "")]),
        ('// DPkg::Lock::Timeout "60";\n', []),
        ('# DPkg::Lock::Timeout "60";\n', []),
        ('/* DPkg::Lock::Timeout "60";\n */', []),
        ('Acquire::http::Proxy "http://proxy:3128/";', [("acquire::http::proxy", "http://proxy:3128/")]),
        (
            'Unattended-Upgrade::Package-Blacklist {\n  "nvidia-"; // "old";\n  "linux-";\n};',
            [("unattended-upgrade::package-blacklist", "nvidia-"), ("unattended-upgrade::package-blacklist", "linux-")],
        ),
        ('DPkg::Post-Invoke:: "true";', [("dpkg::post-invoke", "true")]),
        (
            'APT { Periodic { Enable "1"; } }\nAPT::Get::Purge "1";',
            [("apt::periodic::enable", "1"), ("apt::get::purge", "1")],
        ),
        ('"unterminated', []),
        ("}}}} ;;; {", []),
    ],
    ids=[
        "flat",
        "nested",
        "unquoted",
        "slashes",
        "hash",
        "block-comment",
        "url-is-no-comment",
        "list",
        "appending",
        "closed-scopes",
        "unterminated",
        "nonsense",
    ],
)
def test_apt_conf(text, expected):
    assert [(setting.key, setting.value) for setting in parse_apt_conf("/x", text)] == expected


def test_ini_has_sections_and_no_comments():
    text = "#Storage=auto\n[Journal]\n;Storage=none\nStorage = volatile\nSystemMaxUse=1G\nnonsense\n"
    settings = parse_ini("/etc/systemd/journald.conf", text)
    assert [(setting.key, setting.value) for setting in settings] == [
        ("Journal/Storage", "volatile"),
        ("Journal/SystemMaxUse", "1G"),
    ]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("vm.swappiness = 1", ("vm.swappiness", "1")),
        ("-vm/swappiness=1", ("vm.swappiness", "1")),
        ("net.ipv4.tcp_rmem=4096\t87380  6291456", ("net.ipv4.tcp_rmem", "4096 87380 6291456")),
        ("# vm.swappiness = 1", None),
        ("; vm.swappiness = 1", None),
        ("vm.swappiness", None),
    ],
)
def test_sysctl_lines(line, expected):
    settings = parse_sysctl("/etc/sysctl.conf", line + "\n")
    assert [(setting.key, setting.value) for setting in settings] == ([expected] if expected else [])


@pytest.mark.parametrize(
    "key, path",
    [
        ("vm.swappiness", "/proc/sys/vm/swappiness"),
        ("net.ipv4.conf.eth0/1.forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
        ("net/ipv4/conf/eth0.1/forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
    ],
)
def test_where_the_kernel_shows_a_key(key, path):
    assert sysctl_path(sysctl_key(key)) == path


@pytest.mark.parametrize("value, text", [(10, "10"), (True, "1"), (False, "0"), (" 1  2 ", "1 2"), ("x", "x")])
def test_values_compare_without_their_blanks(value, text):
    assert sysctl_value(value) == text


def test_limits_lines():
    text = "* soft nofile 65536 # for all\n#root - nofile 1\n@gpu hard memlock unlimited\n* nofile\n"
    settings = parse_limits("/etc/security/limits.conf", text)
    assert [(setting.key, setting.value) for setting in settings] == [
        ("* nofile", "soft 65536"),
        ("@gpu memlock", "hard unlimited"),
    ]
