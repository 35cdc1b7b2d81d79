# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images that only `make test-full` needs, as running hosts: what they are, and what can be installed on them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from gpulab.cache import SANDBOX, cache_dir

VARIABLE = "GPUFLEET_ALL_SYSTEMS"

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.controller,
    pytest.mark.skipif(VARIABLE not in os.environ, reason="images of all systems: make test-full, or %s=1" % VARIABLE),
]

LAB = "images"
SYSTEMS = ("debian13", "ubuntu2004", "ubuntu2604")


def lab(*arguments: str) -> None:
    done = subprocess.run([str(SANDBOX / "lab"), *arguments], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def ssh(host: str, command: str) -> str:
    """What a command printed on a host."""
    argv = ["ssh", "-F", str(cache_dir() / "ssh" / ("config-" + LAB)), host, command]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One host of each system, named after it."""
    inventory: Path = tmp_path_factory.mktemp("images") / "hosts.yml"
    lines = ["all:", "  vars: {sandbox_lab: %s, sandbox_subnet: 10.203.52.0/24}" % LAB, "  hosts:"]
    lines += ["    %s: {ansible_host: 10.203.52.%d, sandbox_image: %s, sandbox_profile: dgx-h100-8}" % (name, at, name)
              for at, name in enumerate(SYSTEMS, start=11)]
    inventory.write_text("\n".join(lines) + "\n")
    lab("up", str(inventory))
    yield
    lab("down", str(inventory))


@pytest.mark.parametrize(("host", "identity", "python"), [
    ("debian13", "debian 13 trixie", "Python 3.13"),
    ("ubuntu2004", "ubuntu 20.04 focal", "Python 3.9"),
    ("ubuntu2604", "ubuntu 26.04 resolute", "Python 3.13"),
])
def test_a_host_is_what_its_image_says_and_every_unit_of_it_runs(host, identity, python):
    assert ssh(host, '. /etc/os-release; echo "$ID $VERSION_ID $VERSION_CODENAME"') == identity
    assert ssh(host, "python3 --version").startswith(python)
    assert ssh(host, "systemctl is-system-running --wait; systemctl --failed --no-legend") == "running"
    assert ssh(host, "lspci -d 10de::0302 | wc -l") == "8"


@pytest.mark.parametrize(("host", "base"), [("ubuntu2004", "Debian 11"), ("ubuntu2604", "Debian 13")])
def test_a_stand_in_names_what_it_really_is(host, base):
    assert base in ssh(host, "cat /etc/gpulab-standin")


@pytest.mark.parametrize("host", SYSTEMS)
def test_a_host_comes_back_from_a_reboot(host):
    before = ssh(host, "cat /proc/sys/kernel/random/boot_id")
    lab("reboot", "--lab", LAB, host)
    assert ssh(host, "cat /proc/sys/kernel/random/boot_id") != before
    assert ssh(host, "systemctl is-system-running --wait") == "running"


@pytest.mark.parametrize(("host", "kernel"), [("ubuntu2004", "5.4.0-216-generic"), ("ubuntu2604", "7.0.0-14-generic")])
def test_a_stand_in_sees_its_kernel_where_programs_look_for_it(host, kernel):
    """Packages have it in /usr/lib/modules; an old Debian has /lib apart from that."""
    assert ssh(host, "ls /lib/modules") == kernel
    assert ssh(host, "readlink /boot/vmlinuz") == "vmlinuz-" + kernel


def test_debians_own_driver_and_cuda_are_within_reach():
    policy = ssh("debian13", "apt-cache policy nvidia-driver nvidia-open-kernel-dkms nvidia-cuda-toolkit")
    candidates = [line.split()[1] for line in policy.splitlines() if "Candidate:" in line]
    assert [candidate.split(".")[0] for candidate in candidates] == ["550", "550", "12"]
    plan = ssh("debian13", "apt-get -qs --no-install-recommends install nvidia-driver nvidia-open-kernel-dkms")
    assert "Inst nvidia-open-kernel-dkms (550." in plan


@pytest.mark.parametrize("host", ["ubuntu2004", "ubuntu2604"])
def test_a_stand_in_has_no_nvidia_package_of_debian(host):
    policy = ssh(host, "apt-cache policy nvidia-driver nvidia-smi")
    assert "Candidate: 5" not in policy


def test_a_genuine_kernel_can_be_installed_beside_another_without_harm():
    install = "DEBIAN_FRONTEND=noninteractive apt-get -qq --no-install-recommends install "
    older = ssh("debian13", "apt-cache search --names-only '^linux-image-[0-9.]+[+]deb13-cloud-amd64$'"
                            " | cut -d' ' -f1 | sort -V | head -n 1")
    ssh("debian13", install + older)
    ssh("debian13", install + "linux-image-cloud-amd64 linux-headers-cloud-amd64")
    assert len(ssh("debian13", "ls -d /boot/vmlinuz-*").split()) == 2
    assert ssh("debian13", "dpkg --audit") == ""
    lab("reboot", "--lab", LAB, "debian13")
    assert ssh("debian13", "systemctl is-system-running --wait") == "running"
    newest = ssh("debian13", "ls /lib/modules | sort -V | tail -n 1")
    assert ssh("debian13", "readlink -f /lib/modules/%s/build" % newest).endswith("linux-headers-" + newest)
