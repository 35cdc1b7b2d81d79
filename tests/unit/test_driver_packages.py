# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What packages of a driver set are called, and what a name tells. "facts N" is a section of the domain facts."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._driver_branches import BRANCHES, branch_name, version_key
from ansible_collections.gpufleet.server.plugins.module_utils._driver_packages import (
    REPOSITORY_KEYS,
    REPOSITORY_OF,
    Kernel,
    Needs,
    driver_version_of,
    is_fabric,
    is_fabric_manager,
    is_member,
    is_other_flavour,
    is_pin,
    package_set,
    prebuilt_branch_of,
    source_of,
)

KERNEL = Kernel("generic", "5.15.0-164-generic")
FABRIC, NVLINK5, IMEX = Needs(True), Needs(True, True), Needs(False, False, True)

# source, system, branch, flavour, needs, dkms -> driver, fabric, free, modules (facts 1.6, 1.7)
NAMES = [
    ("nvidia", "ubuntu", 570, "open", FABRIC, True, ("nvidia-open-570",),
     ("nvidia-fabricmanager-570", "libnvidia-nscq-570"), (), ("nvidia-dkms-570-open",)),
    ("nvidia", "ubuntu", 580, "open", FABRIC, True, ("nvidia-open-580",),
     ("nvidia-fabricmanager", "libnvidia-nscq"), (), ("nvidia-dkms-580-open",)),
    ("nvidia", "ubuntu", 580, "proprietary", Needs(), True, ("cuda-drivers-580",), (), (), ("nvidia-dkms-580",)),
    ("nvidia", "ubuntu", 590, "open", Needs(), True, ("nvidia-open",), (), (), ("nvidia-dkms-open",)),
    ("nvidia", "ubuntu", 595, "proprietary", Needs(), True, ("cuda-drivers",), (), (), ("nvidia-dkms",)),
    ("nvidia", "ubuntu", 595, "open", NVLINK5, True, ("nvidia-open",),
     ("nvidia-fabricmanager", "libnvidia-nscq", "libnvsdm"), ("nvlsm", "infiniband-diags"), ("nvidia-dkms-open",)),
    ("nvidia", "ubuntu", 620, "open", IMEX, True, ("nvidia-open",), ("nvidia-imex",), (), ("nvidia-dkms-open",)),
    ("nvidia", "debian", 580, "open", FABRIC, True, ("nvidia-open",),
     ("nvidia-fabricmanager", "libnvidia-nscq"), (), ("nvidia-kernel-open-dkms",)),
    ("nvidia", "debian", 595, "proprietary", Needs(), True, ("cuda-drivers",), (), (), ("nvidia-kernel-dkms",)),
    ("ubuntu", "ubuntu", 580, "open", FABRIC, True, ("nvidia-driver-580-server-open", "nvidia-utils-580-server"),
     ("nvidia-fabricmanager-580", "libnvidia-nscq-580"), (), ("nvidia-dkms-580-server-open",)),
    ("ubuntu", "ubuntu", 580, "proprietary", Needs(), False, ("nvidia-driver-580-server", "nvidia-utils-580-server"),
     (), ("linux-modules-nvidia-580-server-5.15.0-164-generic", "linux-modules-nvidia-580-server-generic"),
     ("linux-modules-nvidia-580-server-5.15.0-164-generic",)),
    ("ubuntu", "ubuntu", 595, "open", NVLINK5, True, ("nvidia-driver-595-server-open", "nvidia-utils-595-server"),
     ("nvidia-fabricmanager-595", "libnvidia-nscq-595", "libnvsdm-595"), ("nvlsm", "infiniband-diags"),
     ("nvidia-dkms-595-server-open",)),
]


@pytest.mark.parametrize("source, system, branch, flavour, needs, dkms, driver, fabric, free, modules", NAMES)
def test_names_follow_source_era_and_flavour(
    source, system, branch, flavour, needs, dkms, driver, fabric, free, modules
):
    found = package_set(source, system, branch, "%d.1.2" % branch, flavour, needs, KERNEL, dkms)
    assert (found.driver, found.fabric, found.free, found.modules) == (driver, fabric, free, modules)
    assert found.pin == ("nvidia-driver-pinning-%d.1.2" % branch if source == "nvidia" else None)
    assert all(is_member(name) for name in found.versioned + found.modules)


@pytest.mark.parametrize(
    "name, member",
    [
        ("nvidia-open-580", True),
        ("nvidia-open", True),
        ("cuda-drivers", True),
        ("libnvidia-compute-580", True),
        ("libnvidia-nscq", True),
        ("libnvsdm", True),
        ("nvlsm", True),
        ("libcuda1", True),
        ("nvidia-firmware-580-server-580.178.04", True),
        ("linux-modules-nvidia-580-server-open-generic", True),
        ("nvidia-imex", True),
        ("nvidia-settings", True),
        # not of the driver's version, whoever's name they carry
        ("nvidia-container-toolkit", False),
        ("nvidia-container-toolkit-base", False),
        ("libnvidia-container1", False),
        ("nvidia-cuda-toolkit", False),
        ("cuda-toolkit-13-0", False),
        ("cuda-keyring", False),
        ("datacenter-gpu-manager-4-core", False),
        ("nvidia-gds-13-0", False),
        ("nvidia-fs-dkms", False),
        ("nvidia-docker2", False),
        ("libcuda1-dev-tools", False),
        ("linux-modules-5.15.0-164-generic", False),
        ("nvidia-driver-pinning-580.178.04", False),
    ],
)
def test_only_packages_of_the_driver_belong_to_the_set(name, member):
    assert is_member(name) is member


@pytest.mark.parametrize(
    "text, version",
    [
        ("580.178.04-1ubuntu1", "580.178.04"),
        ("580.178.04-0ubuntu0.22.04.1", "580.178.04"),
        ("595.84-1", "595.84"),
        ("1:580.178.04-1", "580.178.04"),
        ("5.15.0-164.174+580.178.04", None),
        ("2025.10.11-1", None),
        ("", None),
    ],
)
def test_the_drivers_version_is_read_from_the_packages(text, version):
    assert driver_version_of(text) == version


@pytest.mark.parametrize(
    "name, version, source",
    [
        ("nvidia-open-580", "580.178.04-1ubuntu1", "nvidia"),
        ("cuda-drivers", "595.91.07-1ubuntu1", "nvidia"),
        ("nvidia-fabricmanager", "580.178.04-1ubuntu1", "nvidia"),
        ("libnvidia-nscq", "595.91.07-1", "nvidia"),
        ("nvidia-driver-580-server-open", "580.178.04-0ubuntu0.22.04.1", "ubuntu"),
        ("nvidia-fabricmanager-580", "580.178.04-0ubuntu0.22.04.1", "ubuntu"),
        ("nvidia-firmware-580-server-580.178.04", "580.178.04-0ubuntu0.22.04.1", "ubuntu"),
        ("linux-modules-nvidia-580-server-open-generic", "5.15.0-164.174", "ubuntu"),
        # both have it below 580 (facts 1.6, 1.7)
        ("nvidia-fabricmanager-570", "570.211.01-1", None),
        ("libnvidia-compute-580", "580.178.04-1ubuntu1", None),
        ("nvidia-modprobe", "580.178.04-1ubuntu1", None),
        ("nvlsm", "2025.10.11-1", None),
    ],
)
def test_a_name_tells_its_source_where_only_one_has_it(name, version, source):
    assert source_of(name, version) == source


@pytest.mark.parametrize(
    "name, flavour, source, other",
    [
        ("cuda-drivers-580", "open", "nvidia", True),
        ("nvidia-driver-580", "open", "nvidia", True),
        ("nvidia-dkms-580", "open", "nvidia", True),
        ("nvidia-dkms", "open", "nvidia", True),
        ("nvidia-kernel-dkms", "open", "nvidia", True),
        ("nvidia-dkms-580-server", "open", "ubuntu", True),
        ("linux-modules-nvidia-580-server-generic", "open", "ubuntu", True),
        ("linux-modules-nvidia-580-server-open-generic", "open", "ubuntu", False),
        ("nvidia-open-580", "open", "nvidia", False),
        ("nvidia-driver-580-open", "open", "nvidia", False),
        ("nvidia-kernel-common-580", "open", "nvidia", False),
        ("nvidia-driver", "open", "nvidia", False),
        ("nvidia-open-580", "proprietary", "nvidia", True),
        ("nvidia-driver-580-open", "proprietary", "nvidia", True),
        ("nvidia-dkms-open", "proprietary", "nvidia", True),
        ("nvidia-kernel-open-dkms", "proprietary", "nvidia", True),
        ("nvidia-kernel-source-580-server-open", "proprietary", "ubuntu", True),
        ("linux-modules-nvidia-580-server-open-generic", "proprietary", "ubuntu", True),
        ("cuda-drivers-580", "proprietary", "nvidia", False),
        ("nvidia-utils-580-server", "proprietary", "ubuntu", False),
    ],
)
def test_packages_of_the_other_flavour_are_known(name, flavour, source, other):
    assert is_other_flavour(name, flavour, source) is other


def test_small_questions_about_names():
    assert is_pin("nvidia-driver-pinning-595") and not is_pin("nvidia-driver-595")
    assert is_fabric("nvlsm") and is_fabric("libnvidia-nscq-580") and not is_fabric("nvidia-fabricmanager-dev")
    assert is_fabric_manager("nvidia-fabricmanager-580") and not is_fabric_manager("libnvidia-nscq")
    assert prebuilt_branch_of("linux-objects-nvidia-595-server-5.15.0-164-generic") == "595"
    assert prebuilt_branch_of("nvidia-dkms-580") is None


# -- the branch table --------------------------------------------------------------------------------------------------


def test_the_branch_table_is_whole():
    for name, branch in BRANCHES.items():
        assert branch_name(branch.newest) == name == branch.name
        assert branch.floor is None or branch_name(branch.floor) == name
        assert branch.floor is None or version_key(branch.floor) <= version_key(branch.newest)
        assert branch.kind in ("lts", "production", "new_feature")
        assert len(branch.eol) == 10


def test_every_repository_has_a_key():
    assert set(REPOSITORY_OF.values()) == set(REPOSITORY_KEYS)
    assert all(len(fingerprint) == 40 for _file, fingerprint in REPOSITORY_KEYS.values())


def test_driver_versions_are_ordered_by_their_numbers():
    # facts 1.1: 580.95.05 came before 580.126.09
    assert version_key("580.95.05") < version_key("580.126.09") < version_key("580.178.04") < version_key("595.84")
