# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the double packages do when the real dpkg installs them: modules, units, users, pins, removals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scratch_machines import ScratchMachine

from gpurepo import build
from gpurepo.__main__ import default_cache

NVIDIA = "compute/cuda/repos/ubuntu2204/x86_64"
KERNEL = "5.15.0-164-generic"

# Not containers, but as slow and as demanding.
pytestmark = pytest.mark.sandbox

# apt has no network here: the tree is at /srv/repos, and its signature is another test's business.
SOURCES = """
cat > /etc/apt/sources.list <<END
deb [trusted=yes] file:/srv/repos/{path} /
deb [trusted=yes] file:/srv/repos/ubuntu jammy main restricted multiverse
deb [trusted=yes] file:/srv/repos/ubuntu jammy-updates main restricted multiverse
END
apt-get -qq update
get() {{ apt-get -qq -y -o Dpkg::Options::=--force-confdef -o APT::Sandbox::User=root "$@" </dev/null; }}
installed() {{ dpkg-query -W -f '${{db:Status-Abbrev}}${{Package}} ${{Version}}\\n' | grep '^i' | cut -c 4- || true; }}
K={kernel}
"""


@pytest.fixture(scope="module", autouse=True)
def overlay() -> None:
    obstacle = ScratchMachine.obstacle()
    if obstacle and os.environ.get("CI") == "true":
        pytest.fail("double packages cannot be installed: " + obstacle)
    if obstacle:
        pytest.skip("double packages not installed: " + obstacle)


@pytest.fixture
def machine(tmp_path: Path):
    """Run a script on a scratch machine that has the repositories, `path` being NVIDIA's."""
    tree = build(default_cache())

    def run(script: str, path: str = NVIDIA) -> str:
        scratch = ScratchMachine(tmp_path, tree.root)
        return scratch.run(SOURCES.format(path=path, kernel=KERNEL) + script)

    return run


def after(output: str, marker: str) -> list:
    """The lines behind `echo MARKER`."""
    return output.split("\n%s\n" % marker)[1].splitlines()


def test_a_driver_is_built_for_a_kernel_with_headers_and_real_modinfo_finds_it(machine):
    output = machine("""
get install linux-image-$K linux-headers-$K nvidia-driver-pinning-580.159.03
get install nvidia-open-580 nvidia-fabricmanager
echo RESULT
modinfo -k $K -F version nvidia
modinfo -k $K -F license nvidia
modinfo -k $K -n nvidia
readlink /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
""")
    assert after(output, "RESULT") == [
        "580.159.03", "Dual MIT/GPL", "/lib/modules/5.15.0-164-generic/updates/dkms/nvidia.ko",
        "libnvidia-ml.so.580.159.03"]


def test_without_headers_nothing_is_built_and_apt_still_succeeds(machine):
    output = machine("""
get install linux-image-$K
get install nvidia-open-580
echo RESULT
find /lib/modules -name 'nvidia*.ko'
""")
    assert "kernel headers for this kernel do not seem to be installed" in output
    assert after(output, "RESULT") == []


def test_headers_that_come_later_have_the_driver_built(machine):
    output = machine("""
get install linux-image-$K
get install nvidia-open-580
get install linux-headers-generic
echo RESULT
modinfo -k $K -F version nvidia
""")
    assert after(output, "RESULT") == ["580.178.04"]


def test_a_newer_kernel_becomes_the_one_that_boots_and_has_no_driver_without_its_headers(machine):
    output = machine("""
get install linux-image-$K linux-headers-$K nvidia-open-580
get install linux-image-5.15.0-170-generic
echo RESULT
readlink /boot/vmlinuz
modinfo -k $K -F version nvidia
modinfo -k 5.15.0-170-generic -F version nvidia 2>/dev/null || echo none
get install linux-headers-5.15.0-170-generic >/dev/null 2>&1
modinfo -k 5.15.0-170-generic -F version nvidia
""")
    assert after(output, "RESULT") == ["vmlinuz-5.15.0-170-generic", "580.178.04", "none", "580.178.04"]


def test_the_newest_cuda_toolkit_is_the_default_until_an_administrator_chooses(machine):
    output = machine("""
get install cuda-toolkit-12-9 cuda-toolkit-13-5 cuda-toolkit-13-0
echo RESULT
readlink -f /usr/local/cuda
readlink -f /usr/local/cuda-13
readlink /usr/local/cuda
update-alternatives --set cuda /usr/local/cuda-12.9 >/dev/null
/usr/local/cuda/bin/nvcc --version | grep -o 'release [0-9.]*'
get remove cuda-toolkit-12-9-config-common >/dev/null 2>&1
readlink -f /usr/local/cuda
""")
    assert after(output, "RESULT") == [
        "/usr/local/cuda-13.5", "/usr/local/cuda-13.5", "/etc/alternatives/cuda", "release 12.9",
        "/usr/local/cuda-13.5"]


def test_a_suffixed_fabric_manager_gives_way_to_the_one_without(machine):
    output = machine("""
get install nvidia-fabricmanager-535=535.309.01-1ubuntu1 libnvidia-nscq-535=535.309.01-1ubuntu1
get install nvidia-fabricmanager=580.178.04-1ubuntu1 libnvidia-nscq=580.178.04-1ubuntu1
echo RESULT
installed
grep -o -- '--lab-version [0-9.]*' /usr/bin/nv-fabricmanager
dpkg --audit
""")
    assert after(output, "RESULT") == [
        "libnvidia-nscq 580.178.04-1ubuntu1", "nvidia-fabricmanager 580.178.04-1ubuntu1", "--lab-version 580.178.04"]


def test_dcgm_comes_neither_enabled_nor_started_and_with_its_user(machine):
    output = machine("""
get install datacenter-gpu-manager-4-cuda13
echo RESULT
systemctl is-enabled nvidia-dcgm || true
getent passwd nvidia-dcgm | cut -d: -f1
""")
    assert after(output, "RESULT") == ["disabled", "nvidia-dcgm"]


def test_a_removed_driver_leaves_no_module(machine):
    output = machine("""
get install linux-image-$K linux-headers-$K nvidia-open-580
get remove nvidia-dkms-580-open
echo RESULT
find /lib/modules -name 'nvidia*'
modinfo -k $K nvidia 2>/dev/null || echo none
""")
    assert after(output, "RESULT") == ["none"]


def test_a_removed_kernel_takes_its_modules_along_and_leaves_the_boot_link_to_another(machine):
    output = machine("""
mkdir -p /boot
touch /boot/vmlinuz-5.15.0-99-generic
get install linux-image-$K linux-headers-$K nvidia-open-580
readlink /boot/vmlinuz | grep -F "$K"
get purge linux-image-$K linux-headers-$K
echo RESULT
readlink /boot/vmlinuz
ls -A /lib/modules/$K 2>/dev/null || echo gone
""")
    assert after(output, "RESULT") == ["vmlinuz-5.15.0-99-generic", "gone"]


def test_a_change_of_branch_leaves_one_version_of_everything(machine):
    output = machine("""
get install linux-image-$K linux-headers-$K nvidia-driver-pinning-580
get install nvidia-open-580 nvidia-fabricmanager libnvidia-nscq
get install nvidia-driver-pinning-595.91.07
get install nvidia-open nvidia-fabricmanager libnvidia-nscq nvidia-settings
echo RESULT
modinfo -k $K -F version nvidia
ls /usr/lib/x86_64-linux-gnu | grep -o 'libcuda.so.[0-9][0-9.]*[0-9][0-9]'
grep -c -- '--lab-version 595.91.07' /usr/bin/nvidia-smi /usr/bin/nv-fabricmanager /usr/bin/nvidia-persistenced
installed | grep -E 'nvidia|cuda' | grep -v ' 595.91.07-1ubuntu1$' || echo no other version
dpkg --audit
""")
    assert after(output, "RESULT") == [
        "595.91.07", "libcuda.so.595.91.07", "/usr/bin/nvidia-smi:1", "/usr/bin/nv-fabricmanager:1",
        "/usr/bin/nvidia-persistenced:1", "no other version"]


def test_another_pinning_package_really_changes_the_pin(machine):
    """The pin is a configuration file of two packages: dpkg must not keep the old one as if an admin had edited it."""
    output = machine("""
get install nvidia-driver-pinning-580
get install nvidia-driver-pinning-595.71.05
echo RESULT
grep Pin: /etc/apt/preferences.d/nvidia-driver-pin
apt-cache policy nvidia-fabricmanager | grep Candidate
""")
    assert after(output, "RESULT") == ["Pin: version 595.71.05-*", "  Candidate: 595.71.05-1ubuntu1"]


def test_services_come_neither_enabled_nor_started_and_with_their_user(machine):
    output = machine("""
get install nvidia-open-580 nvidia-fabricmanager
echo RESULT
systemctl is-enabled nvidia-fabricmanager nvidia-persistenced || true
getent passwd nvpd | cut -d: -f1,7
""")
    assert after(output, "RESULT") == ["disabled", "disabled", "nvpd:/usr/sbin/nologin"]


def test_the_archives_persistenced_is_static(machine):
    output = machine("""
get install nvidia-compute-utils-580-server
echo RESULT
systemctl is-enabled nvidia-persistenced
getent passwd nvidia-persistenced | cut -d: -f1
""")
    assert after(output, "RESULT") == ["static", "nvidia-persistenced"]


def test_prebuilt_modules_need_no_headers(machine):
    output = machine("""
get install linux-modules-nvidia-580-server-open-generic nvidia-headless-580-server-open
echo RESULT
modinfo -k $K -F version nvidia
modinfo -k $K -F license nvidia
modinfo -k $K -n nvidia
installed | grep -c ^nvidia-dkms || true
""")
    assert after(output, "RESULT") == [
        "580.178.04", "Dual MIT/GPL", "/lib/modules/5.15.0-164-generic/kernel/nvidia-580srv-open/nvidia.ko", "0"]


def test_a_second_configuration_changes_nothing(machine):
    output = machine("""
get install linux-image-$K linux-headers-$K nvidia-open-580 nvidia-fabricmanager
state() { find /lib/modules /etc/modprobe.d -type f -exec sha256sum {} + | sort; getent passwd; }
state > /tmp/before
get install --reinstall linux-image-$K linux-headers-$K nvidia-dkms-580-open nvidia-compute-utils-580
state > /tmp/after
echo RESULT
diff /tmp/before /tmp/after && echo same
""")
    assert after(output, "RESULT") == ["same"]


@pytest.mark.parametrize(("what", "script", "expected"), [
    ("driver", "find /lib/modules -name 'nvidia*'; ls /usr/bin/nv-fabricmanager", ["/usr/bin/nv-fabricmanager"]),
    ("fabricmanager", "modinfo -k $K -F version nvidia; ls /usr/bin/nv-fabricmanager 2>/dev/null || echo missing",
     ["580.178.04", "missing"]),
], ids=["driver", "fabricmanager"])
def test_a_broken_package_counts_as_installed_and_is_not_there(machine, what, script, expected):
    output = machine("""
get install linux-image-$K linux-headers-$K nvidia-driver-pinning-580
get install nvidia-open-580 nvidia-fabricmanager
echo RESULT
%s
installed | grep -c -e '^nvidia-dkms-580-open 580' -e '^nvidia-fabricmanager 580'
""" % script, path="broken/%s/%s" % (what, NVIDIA))
    assert after(output, "RESULT") == [*expected, "2"]


def test_the_image_packages_install_without_apt(tmp_path):
    tree = build(default_cache())
    scratch = ScratchMachine(tmp_path, tree.base)
    output = scratch.run("""
dpkg -i /srv/repos/images/ubuntu2204/*.deb
echo RESULT
ls /lib/modules
readlink /boot/vmlinuz
dpkg --audit
""")
    assert after(output, "RESULT") == [KERNEL, "vmlinuz-" + KERNEL]
