"""What role nvidia_driver did, seen on the machine: modules, packages, holds, daemons, and apt's own mind."""

from __future__ import annotations

import re

import pytest

VERSION = "580.178.04"
GPUS = 8


@pytest.fixture
def source(host):
    """Which source the host was given: NVIDIA's repository has a key of ours, Ubuntu's archive needs none."""
    return "nvidia" if host.file("/etc/apt/sources.list.d/gpufleet-nvidia.sources").exists else "ubuntu"


def driver_packages(host):
    """name -> (hold or install, version) of installed packages of the driver set."""
    listing = host.check_output("dpkg-query -W -f '${db:Status-Want} ${db:Status-Status} ${Package} ${Version}\\n'")
    rows = [line.split() for line in listing.splitlines()]
    return {
        name: (want, version)
        for want, state, name, version in (row for row in rows if len(row) == 4)
        if state == "installed" and re.match(r"(lib)?nvidia-|linux-modules-nvidia|libnvsdm", name)
        and not name.startswith("nvidia-driver-pinning")
    }


def test_the_open_module_is_loaded(host):
    assert host.file("/sys/module/nvidia/version").content_string.strip() == VERSION
    assert "Open Kernel Module" in host.file("/proc/driver/nvidia/version").content_string


def test_the_kernel_that_will_boot_has_the_module(host):
    kernel = host.check_output("ls /boot/vmlinuz-* | sort -V | tail -n 1").rpartition("vmlinuz-")[2]
    assert host.check_output("modinfo -k %s -F version nvidia", kernel) == VERSION
    assert host.check_output("modinfo -k %s -F license nvidia", kernel) == "Dual MIT/GPL"


def test_every_gpu_of_the_bus_answers_with_the_version(host):
    answer = host.check_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader").split()
    assert answer == [VERSION] * GPUS
    assert len(host.check_output("lspci -Dn -d 10de::0302").splitlines()) == GPUS


def test_all_packages_are_of_one_version_and_on_hold(host):
    packages = driver_packages(host)
    assert len(packages) > 10
    assert {want for want, _version in packages.values()} == {"hold"}
    others = {name: version for name, (_want, version) in packages.items() if VERSION not in version}
    assert others == {}


def test_an_upgrade_would_leave_the_driver_alone(host):
    assert "nvidia" not in host.check_output("apt-get -s dist-upgrade | grep -E '^(Inst|Remv)' || true")


def test_the_pin_and_the_preferences_let_apt_choose_no_other_version(host, source):
    """Without holds: the pins alone have to do it."""
    name = {"nvidia": "nvidia-fabricmanager", "ubuntu": "nvidia-fabricmanager-580"}[source]
    candidate = re.search(r"Candidate: (\S+)", host.check_output("apt-cache policy %s", name)).group(1)
    assert candidate.startswith(VERSION + "-")
    assert host.package("nvidia-driver-pinning-" + VERSION).is_installed is (source == "nvidia")


def test_the_key_is_the_sandboxs_and_nothing_else_names_the_repository(host, source):
    assert host.file("/etc/apt/keyrings/gpufleet-nvidia.gpg").exists is (source == "nvidia")
    named = host.check_output("grep -rl compute/cuda /etc/apt/sources.list.d/ || true").split()
    assert named == (["/etc/apt/sources.list.d/gpufleet-nvidia.sources"] if source == "nvidia" else [])


def test_fabric_manager_is_of_the_drivers_version_and_runs(host):
    unit = host.service("nvidia-fabricmanager")
    assert unit.is_running and unit.is_enabled
    assert VERSION in host.check_output("nv-fabricmanager --version")


def test_persistence_mode_is_on_and_comes_back_at_boot(host):
    unit = host.service("nvidia-persistenced")
    assert unit.is_running and unit.is_enabled
    modes = host.check_output("nvidia-smi --query-gpu=persistence_mode --format=csv,noheader").split()
    assert modes == ["Enabled"] * GPUS


def test_nouveau_is_kept_out(host):
    assert "blacklist nouveau" in host.file("/etc/modprobe.d/gpufleet-nvidia.conf").content_string
