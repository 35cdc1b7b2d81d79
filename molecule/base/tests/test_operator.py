"""What an operator set stands, what is left to them is left, and a system that is not supported is not touched."""

from __future__ import annotations

import json

testinfra_hosts = ["debian12"]

OWN = "/etc/sysctl.d/90-gpufleet.conf"
THEIRS = "/etc/sysctl.d/50-operator.conf"
JOURNALD = "/etc/systemd/journald.conf.d/90-gpufleet.conf"
NEEDRESTART = "/etc/needrestart/conf.d/90-gpufleet.conf"
APT = "/etc/apt/apt.conf.d/90gpufleet"

LEFT = {"base_journal_storage": "leave", "base_journal_max_use_mb": 0, "base_needrestart": "leave"}


def test_what_an_operator_set_or_is_left_stands_until_they_say_otherwise(host, converge):
    host.check_output("echo 'net.core.somaxconn = 1024' > %s && sysctl -q -p %s", THEIRS, THEIRS)
    told = converge("--limit", "debian12", "-e", json.dumps(LEFT))
    assert "base_operator_setting" in told.output and THEIRS in told.output
    assert host.check_output("cat /proc/sys/net/core/somaxconn") == "1024"
    assert host.file(THEIRS).content_string == "net.core.somaxconn = 1024\n"
    for path in (OWN, JOURNALD, NEEDRESTART):
        assert not host.file(path).exists
    assert host.file(APT).exists

    host.check_output("rm %s", THEIRS)
    converge("--limit", "debian12")
    assert host.check_output("cat /proc/sys/net/core/somaxconn") == "8192"
    for path in (OWN, JOURNALD, NEEDRESTART):
        assert host.file(path).exists


def test_an_unsupported_system_is_refused_before_anything_is_changed(host, play, scenario):
    real = host.file("/etc/os-release").content_string
    older = real.replace('VERSION_ID="12"', 'VERSION_ID="11"').replace("12 (", "11 (")
    host.check_output("rm /etc/os-release && printf %%s %s > /etc/os-release && mv %s /root/aside", older, APT)
    try:
        refused = play(str(scenario / "converge.yml"), "--limit", "debian12")
        assert not host.file(APT).exists
    finally:
        host.check_output("ln -sf ../usr/lib/os-release /etc/os-release && mv /root/aside %s", APT)
    assert refused.rc != 0
    assert refused.changed("debian12") == 0
    for text in ("debian12: found", "GNU/Linux 11", "Ubuntu 20.04, 22.04, 24.04, 26.04, Debian 12, 13"):
        assert text in refused.output
