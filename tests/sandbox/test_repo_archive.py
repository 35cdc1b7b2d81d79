# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ubuntu's archive as the real apt sees it: transitional packages, desktop builds, and a kernel that is yet to boot."""

from __future__ import annotations

from typing import Callable

import pytest
from scratch_machines import CommandFailed, PaperMachine, archive_sources

NEXT_KERNELS = {
    # release: what an image has, what can be installed beside it, the metapackage's version of the former
    "focal": ("5.4.0-216-generic", "5.4.0-218-generic", "5.4.0.216.208"),
    "jammy": ("5.15.0-164-generic", "5.15.0-170-generic", "5.15.0.164.163"),
    "noble": ("6.8.0-90-generic", "6.8.0-96-generic", "6.8.0.90.90"),
    "resolute": ("7.0.0-14-generic", "7.0.0-22-generic", "7.0.0.14.14"),
}


@pytest.fixture
def ubuntu(tmp_path, url, key) -> Callable[..., PaperMachine]:
    """An Ubuntu with its usual pockets and, where asked for, others."""

    def make(release: str, *more: str) -> PaperMachine:
        suites = [release, release + "-updates", release + "-security", *[release + pocket for pocket in more]]
        made = PaperMachine(tmp_path / release, archive_sources(url, key("ubuntu"), *suites))
        made.update()
        return made

    return make


# --- branches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "branches"), [
    ("focal", {"535", "570", "580"}),
    ("jammy", {"535", "570", "580", "595"}),
    ("noble", {"535", "570", "580", "595"}),
    ("resolute", {"580", "595"}),
])
def test_each_release_has_the_branches_of_its_time(ubuntu, release, branches):
    machine = ubuntu(release)
    names = machine.must("apt-cache", "search", "--names-only", "^nvidia-firmware-[0-9]+-server-").splitlines()
    assert {name.split("-")[2] for name in names} == branches


@pytest.mark.parametrize(("old", "new", "version"), [
    ("nvidia-driver-550-server", "nvidia-driver-580-server", "580.178.04"),
    ("nvidia-driver-565-server-open", "nvidia-driver-580-server-open", "580.178.04"),
    ("nvidia-headless-570-server-open", "nvidia-headless-580-server-open", "580.178.04"),
    ("nvidia-driver-590-server", "nvidia-driver-595-server", "595.91.07"),
    ("nvidia-fabricmanager-590", "nvidia-fabricmanager-595", "595.91.07"),
])
def test_a_transitional_package_brings_the_next_branch(ubuntu, old, new, version):
    machine = ubuntu("noble")
    machine.install(old)
    assert new in machine.installed
    # The check "is 570 installed?" passes while 580 runs: only the version tells.
    assert machine.installed[old].startswith(version + "-")
    assert machine.versions_installed("^(nvidia-kernel-common|%s$)" % new) == [version]


@pytest.mark.parametrize(("release", "is_transitional"), [("jammy", False), ("resolute", True)])
def test_on_2604_even_the_fabric_manager_of_535_means_580(ubuntu, release, is_transitional):
    machine = ubuntu(release)
    version = "580.178.04" if is_transitional else "535.309.01"
    assert machine.candidate("nvidia-fabricmanager-535").startswith(version + "-")
    machine.install("nvidia-fabricmanager-535")
    assert ("nvidia-fabricmanager-580" in machine.installed) == is_transitional


# --- builds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["", "-open"])
def test_the_desktop_build_is_another_set_of_packages_and_excludes_the_servers(ubuntu, tail):
    machine = ubuntu("noble")
    machine.install("nvidia-driver-580" + tail)
    assert "nvidia-utils-580" in machine.installed
    machine.install("nvidia-driver-580-server" + tail)
    left = [name for name in machine.installed if not name.startswith("nvidia-firmware-")]
    assert all("-server" in name for name in left)


def test_fabric_manager_needs_the_server_build(ubuntu):
    machine = ubuntu("noble")
    machine.install("nvidia-driver-580")
    machine.install("nvidia-fabricmanager-580")
    assert "nvidia-driver-580" not in machine.installed
    assert "nvidia-kernel-common-580-server" in machine.installed


def test_the_archives_and_the_vendors_packages_of_one_name_are_told_apart_by_revision(ubuntu, url, key):
    machine = ubuntu("noble")
    vendor = "deb [signed-by=%s] %s/compute/cuda/repos/ubuntu2404/x86_64/ /" % (key("nvidia"), url)
    machine.set_sources([*machine.sources, vendor])
    machine.update()
    assert machine.versions("libnvidia-compute-580")[:3] == [
        "580.178.04-1ubuntu1", "580.178.04-0ubuntu0.24.04.1", "580.178.04-0ubuntu0.24.04.1"]


# --- kernels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", list(NEXT_KERNELS))
def test_a_plain_upgrade_keeps_the_kernel(ubuntu, release):
    running, following, meta_version = NEXT_KERNELS[release]
    machine = ubuntu(release)
    machine.install("linux-generic")
    machine.apt("upgrade", "--with-new-pkgs")
    assert machine.installed["linux-image-generic"] == meta_version
    assert "linux-image-" + running in machine.installed
    assert "linux-image-" + following not in machine.installed


@pytest.mark.parametrize("release", list(NEXT_KERNELS))
def test_a_newer_kernel_can_be_installed_beside_the_running_one(ubuntu, release):
    running, following, _meta_version = NEXT_KERNELS[release]
    machine = ubuntu(release)
    machine.install("linux-image-generic")
    machine.install("linux-image-" + following, "linux-headers-" + following)
    assert {"linux-image-" + running, "linux-image-" + following, "linux-headers-" + following} <= set(
        machine.installed)


@pytest.mark.parametrize("release", list(NEXT_KERNELS))
def test_the_proposed_pocket_moves_a_machine_to_the_newer_kernel_and_its_modules_along(ubuntu, release):
    _running, following, _meta_version = NEXT_KERNELS[release]
    prebuilt = "linux-modules-nvidia-580-server-open-"
    machine = ubuntu(release, "-proposed")
    machine.install("linux-image-generic", prebuilt + "generic", "nvidia-headless-580-server-open")
    assert {"linux-image-" + following, prebuilt + following} <= set(machine.installed)
    assert "nvidia-dkms-580-server-open" not in machine.installed


@pytest.mark.parametrize("name", ["linux-modules-nvidia-580-server-open-", "linux-modules-nvidia-580-server-",
                                  "linux-modules-nvidia-580-open-", "linux-modules-nvidia-595-server-open-"])
def test_prebuilt_modules_exist_for_each_kernel_and_each_build(ubuntu, name):
    machine = ubuntu("noble")
    for kernel in NEXT_KERNELS["noble"][:2]:
        version = "595.91.07" if "595" in name else "580.178.04"
        assert machine.candidate(name + kernel).endswith("+" + version)


def test_an_old_kernel_has_no_prebuilt_modules(ubuntu):
    with pytest.raises(CommandFailed):
        ubuntu("noble").install("linux-modules-nvidia-580-server-open-6.8.0-40-generic")


def test_prebuilt_modules_bring_the_kernel_that_they_are_made_for(ubuntu):
    """So a host can get a newer kernel by its driver alone, and boot it next."""
    machine = ubuntu("noble")
    machine.install("linux-modules-nvidia-580-server-open-6.8.0-96-generic")
    assert "linux-image-6.8.0-96-generic" in machine.installed
