"""A host of the sandbox is an ordinary machine: systemd in charge, nothing failed, packages to be had."""

from __future__ import annotations

import re


def test_systemd_is_up_and_no_unit_failed(host):
    assert host.check_output("systemctl is-system-running --wait") == "running"
    assert host.check_output("systemctl list-units --failed --plain --no-legend") == ""


def test_apt_knows_packages(host):
    assert re.search(r"Candidate: \d", host.check_output("apt-cache policy chrony"))
    assert host.run("dpkg --audit").stdout == ""


def test_a_host_without_gpus_shows_none(host):
    assert "NVIDIA" not in host.check_output("lspci")
