# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the planner chooses for a machine and a wish. Expected values are written by hand from the facts that each row
names: "facts N" is a section of the project's domain facts, as gathered from NVIDIA's and Ubuntu's documents."""

from __future__ import annotations

import pytest
from support_driver import (
    A100,
    B200,
    GB200,
    GB300,
    H100,
    H200,
    L40S,
    OFFERED,
    P100,
    RTX_PRO_6000,
    SWITCH_A100,
    SWITCH_H100,
    T4,
    V100,
    bare,
    offers,
    pci,
    policy,
    wishes,
)

from ansible_collections.gpufleet.server.plugins.module_utils._driver_choice import branch_findings, choose_driver
from ansible_collections.gpufleet.server.plugins.module_utils._driver_facts import DriverPlanError
from ansible_collections.gpufleet.server.plugins.module_utils._driver_plan import plan_driver

# machine, wishes -> branch, version, flavour, driver metapackage, fabric packages
CHOICES = [
    # facts 0.6: default branch is 580, its newest 580.178.04; 1.3: Turing and newer take the open modules
    ("hgx-h100 default", pci((H100,) * 8, (SWITCH_H100,) * 4), {}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ("nvidia-fabricmanager", "libnvidia-nscq")),
    # facts 2.1: HGX A100 has Fabric Manager; 1.6: unsuffixed from 580
    ("hgx-a100 default", pci((A100,) * 8, (SWITCH_A100,) * 6), {}, "24.04",
     "580", "580.178.04", "open", "nvidia-open-580", ("nvidia-fabricmanager", "libnvidia-nscq")),
    ("hgx-h200 default", pci((H200,) * 8, (SWITCH_H100,) * 4), {}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ("nvidia-fabricmanager", "libnvidia-nscq")),
    # facts 2.1: PCIe cards and 4-GPU boards without a switch have none
    ("l40s no fabric", pci((L40S,) * 4), {}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ()),
    ("redstone a100 no fabric", pci((A100,) * 4), {}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ()),
    ("t4", pci((T4,)), {}, "20.04", "580", "580.178.04", "open", "nvidia-open-580", ()),
    # facts 1.3: Volta and Pascal need the proprietary modules, 580 is their last branch
    ("v100", pci((V100,) * 8), {}, "22.04",
     "580", "580.178.04", "proprietary", "cuda-drivers-580", ()),
    ("p100", pci((P100,) * 4), {}, "22.04",
     "580", "580.178.04", "proprietary", "cuda-drivers-580", ()),
    # facts 1.3: a node that mixes Volta with newer cards runs proprietary 580
    ("v100 and t4", pci((V100, T4)), {}, "22.04",
     "580", "580.178.04", "proprietary", "cuda-drivers-580", ()),
    # facts 1.3: Ampere may run either way
    ("a100 proprietary asked", pci((A100,) * 8, (SWITCH_A100,) * 6), {"flavour": "proprietary"}, "22.04",
     "580", "580.178.04", "proprietary", "cuda-drivers-580", ("nvidia-fabricmanager", "libnvidia-nscq")),
    # facts 1.6: unsuffixed names from 590 on
    ("h100 branch 595", pci((H100,) * 8, (SWITCH_H100,) * 4), {"branch": "595"}, "22.04",
     "595", "595.91.07", "open", "nvidia-open", ("nvidia-fabricmanager", "libnvidia-nscq")),
    ("a100 branch 595 proprietary", pci((A100,)), {"branch": "595", "flavour": "proprietary"}, "22.04",
     "595", "595.91.07", "proprietary", "cuda-drivers", ()),
    # an exact version brings its branch along
    ("exact older version", pci((H100,) * 8, (SWITCH_H100,) * 4), {"version": "580.159.03"}, "22.04",
     "580", "580.159.03", "open", "nvidia-open-580", ("nvidia-fabricmanager", "libnvidia-nscq")),
    ("exact version of another branch", pci((L40S,)), {"version": "595.71.05"}, "22.04",
     "595", "595.71.05", "open", "nvidia-open", ()),
    # facts 2.1: B200 boards have nvlsm, libnvsdm and Fabric Manager, and no class-0680 device
    ("hgx-b200", pci((B200,) * 8, (), ("mlx5_0", "mlx5_1")), {}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ("nvidia-fabricmanager", "libnvidia-nscq", "libnvsdm")),
    # facts 2.1, 2.5: a GB200 compute tray has IMEX of the driver's version, and no Fabric Manager, whatever NICs it has
    ("gb200 tray", pci((GB200,) * 4, (), ("mlx5_0",)), {}, "24.04",
     "580", "580.178.04", "open", "nvidia-open-580", ("nvidia-imex",)),
    ("gb300 tray", pci((GB300,) * 4), {"branch": "595"}, "24.04",
     "595", "595.91.07", "open", "nvidia-open", ("nvidia-imex",)),
    ("gb200 tray, the archive", pci((GB200,) * 4), {"source": "ubuntu"}, "24.04",
     "580", "580.178.04", "open", "nvidia-driver-580-server-open", ("nvidia-imex-580",)),
    ("gb200 tray, no fabric software", pci((GB200,) * 4), {"fabric_manager": "false"}, "24.04",
     "580", "580.178.04", "open", "nvidia-open-580", ()),
    # facts 2.1: a Blackwell PCIe card has no fabric
    ("rtx pro 6000", pci((RTX_PRO_6000,) * 8), {}, "24.04", "580", "580.178.04", "open", "nvidia-open-580", ()),
    # facts 1.6: NVIDIA's Debian repositories have unsuffixed names in every branch
    ("debian 12", pci((H100,) * 8, (SWITCH_H100,) * 4), {}, "debian 12",
     "580", "580.178.04", "open", "nvidia-open", ("nvidia-fabricmanager", "libnvidia-nscq")),
    ("debian 12 v100", pci((V100,)), {}, "debian 12", "580", "580.178.04", "proprietary", "cuda-drivers", ()),
    # facts 1.6: fabric packages carry the branch below 580
    ("branch 570", pci((H100,) * 8, (SWITCH_H100,) * 4), {"branch": "570"}, "22.04",
     "570", "570.211.01", "open", "nvidia-open-570", ("nvidia-fabricmanager-570", "libnvidia-nscq-570")),
    # the operator's word about Fabric Manager wins (facts 2.1: shared-NVSwitch guests must not run it)
    ("fabric manager off", pci((H100,) * 8, (SWITCH_H100,) * 4), {"fabric_manager": "false"}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ()),
    ("fabric manager on", pci((H100,) * 8), {"fabric_manager": "true"}, "22.04",
     "580", "580.178.04", "open", "nvidia-open-580", ("nvidia-fabricmanager", "libnvidia-nscq")),
    # facts 1.7: Ubuntu's archive has -server names, with the branch in Fabric Manager's name too
    ("ubuntu archive a100", pci((A100,) * 8, (SWITCH_A100,) * 6), {"source": "ubuntu"}, "24.04",
     "580", "580.178.04", "open", "nvidia-driver-580-server-open", ("nvidia-fabricmanager-580", "libnvidia-nscq-580")),
    ("ubuntu archive v100", pci((V100,) * 4), {"source": "ubuntu"}, "22.04",
     "580", "580.178.04", "proprietary", "nvidia-driver-580-server", ()),
    ("ubuntu archive 595", pci((A100,) * 8, (SWITCH_A100,) * 6), {"source": "ubuntu", "branch": "595"}, "22.04",
     "595", "595.91.07", "open", "nvidia-driver-595-server-open", ("nvidia-fabricmanager-595", "libnvidia-nscq-595")),
    # facts 0.5: on 26.04 only the archive has 580 for a V100
    ("v100 on 26.04 from the archive", pci((V100,)), {"source": "ubuntu"}, "26.04",
     "580", "580.178.04", "proprietary", "nvidia-driver-580-server", ()),
    # facts 0.4: from 615 there is no proprietary flavour
    ("h100 branch 615", pci((H100,)), {"branch": "615"}, "22.04", "615", "615.71.09", "open", "nvidia-open", ()),
    ("h100 branch 620", pci((H100,)), {"branch": "620"}, "24.04", "620", "620.70.06", "open", "nvidia-open", ()),
]


@pytest.mark.parametrize(
    "bus, wish, system, branch, version, flavour, driver, fabric",
    [pytest.param(*row[1:], id=row[0]) for row in CHOICES],
)
def test_a_machine_gets_the_driver_of_its_hardware(bus, wish, system, branch, version, flavour, driver, fabric):
    os_id, _space, os_version = system.rpartition(" ")
    machine = bare(os_id or "ubuntu", os_version, pci=bus, policies=None)
    choice = choose_driver(machine, wishes(**wish))
    assert (choice.branch.name, choice.version, choice.flavour) == (branch, version, flavour)
    assert choice.packages.driver[0] == driver
    assert choice.packages.fabric == fabric
    assert choice.reasons


# machine, wishes -> code of the refusal, a word of the remedy
REFUSALS = [
    # facts 1.3 and 0.4: 580 is the last branch for Volta
    ("volta with 595", bare(pci=pci((V100,))), {"branch": "595"}, "architecture_dropped", "580"),
    ("pascal with 590", bare(pci=pci((P100,))), {"branch": "590"}, "architecture_dropped", "580"),
    ("volta with exact 595", bare(pci=pci((V100,))), {"version": "595.91.07"}, "architecture_dropped", "580"),
    # facts 1.3: Blackwell is open only, Volta proprietary only
    ("blackwell proprietary", bare(pci=pci((B200,) * 8, (), ("mlx5_0",))), {"flavour": "proprietary"},
     "flavour_impossible", "open"),
    ("volta open", bare(pci=pci((V100,))), {"flavour": "open"}, "flavour_impossible", "proprietary"),
    ("volta beside blackwell", bare(pci=pci((V100, RTX_PRO_6000))), {}, "mixed_architectures", "Take"),
    # facts 1.3: Blackwell from 570 on
    ("blackwell with 550", bare(pci=pci((RTX_PRO_6000,))), {"branch": "550"}, "architecture_unknown_to_branch", "580"),
    # facts 0.4
    ("proprietary with 620", bare(), {"branch": "620", "flavour": "proprietary"}, "flavour_impossible", "open"),
    # facts 0.5: NVIDIA's repository for 26.04 starts at 595
    ("580 on 26.04", bare("ubuntu", "26.04"), {}, "branch_not_in_repository", "595"),
    ("unknown branch", bare(), {"branch": "599"}, "branch_unknown", "580"),
    ("unknown system", bare("fedora", "41"), {}, "unsupported_os", "Debian"),
    ("old ubuntu", bare("ubuntu", "18.04"), {}, "unsupported_os", "20.04"),
    ("ubuntu source on debian", bare("debian", "12"), {"source": "ubuntu"}, "source_not_on_os", "nvidia"),
    ("prebuilt from nvidia", bare(), {"modules": "prebuilt"}, "modules_impossible", "ubuntu"),
    # facts 1.9: DKMS under Secure Boot needs an enrolled key; unknown counts as not enrolled
    ("secure boot, key missing", bare(secure_boot=True, key_enrolled=False), {}, "secure_boot_key", "mokutil"),
    ("secure boot, key unknown", bare(secure_boot=True, key_enrolled=None), {}, "secure_boot_key", "ubuntu"),
    # facts 1.12
    (".run installation", bare(run_installer="/usr/bin/nvidia-uninstall"), {}, "run_installation", "nvidia-uninstall"),
    # facts 2.2: B200 without its switches' functions means that ib modules are missing, not that there is no fabric
    ("b200 without switches", bare(pci=pci((B200,) * 8)), {}, "nvlink5_not_seen", "mlx5_ib"),
    # facts 1.10: DKMS builds nothing without headers
    ("no headers to be had", bare(headers_present=False, headers_package="linux-headers-5.4.0-1-generic"), {},
     "no_headers", "linux-image"),
    # facts 1.1, user-pain 8: a version that the repository lacks names those that it has
    ("version not offered", bare(), {"version": "580.100.01"}, "version_unavailable", "580.159.03, 580.178.04"),
    # facts 10.5: Fabric Manager is not released for every driver build
    ("fabric manager not offered",
     bare(pci=pci((H100,) * 8, (SWITCH_H100,) * 4),
          policies=dict(OFFERED, **{"nvidia-fabricmanager": policy("fm", "580.159.03-1ubuntu1")})),
     {"version": "580.178.04"}, "fabric_manager_unavailable", "580.159.03"),
    ("pin not offered", bare(policies={k: v for k, v in OFFERED.items() if "pinning" not in k}), {},
     "pin_unavailable", "mirror"),
    # facts 1.1 and 1.2: policy `refuse`
    ("old branch refused", bare(), {"branch": "570", "old_branch": "refuse"}, "old_branch", "580"),
    ("below the floor refused", bare(), {"version": "580.159.03", "old_branch": "refuse"}, "old_branch", "580.178.04"),
]


@pytest.mark.parametrize("machine, wish, code, remedy", [pytest.param(*row[1:], id=row[0]) for row in REFUSALS])
def test_what_cannot_work_is_refused_with_a_way_out(machine, wish, code, remedy):
    with pytest.raises(DriverPlanError) as refusal:
        plan_driver(machine, wishes(**wish), updated=True)
    assert refusal.value.code == code
    assert remedy in refusal.value.remedy
    assert set(refusal.value.as_dict()) == {"code", "message", "remedy", "observed"}


# facts 1.9: neither the archive's signed modules nor an enrolled key are in Secure Boot's way
@pytest.mark.parametrize(
    "machine, wish",
    [
        pytest.param(bare(secure_boot=True, key_enrolled=True), {}, id="dkms with an enrolled key"),
        pytest.param(bare(secure_boot=False), {}, id="secure boot off"),
        pytest.param(bare(secure_boot=None), {}, id="no EFI"),
        pytest.param(
            bare(secure_boot=True, key_enrolled=False,
                 policies=offers(("nvidia-driver-580-server-open", "nvidia-utils-580-server",
                                  "linux-modules-nvidia-580-server-open-5.15.0-164-generic",
                                  "linux-modules-nvidia-580-server-open-generic"), "580.178.04-0ubuntu0.22.04.1")),
            {"source": "ubuntu"}, id="prebuilt modules of the archive"),
    ],
)
def test_secure_boot_stands_in_nobodys_way_without_need(machine, wish):
    assert plan_driver(machine, wishes(**wish), updated=True).install


# facts 1.1 and 1.2; today is 2026-11-30
@pytest.mark.parametrize(
    "wish, today, expected",
    [
        ({}, "2026-11-30", []),
        ({"branch": "595"}, "2026-11-30", []),
        ({"branch": "620"}, "2026-11-30", []),
        ({"version": "580.159.03"}, "2026-11-30", ["driver_below_security_floor"]),
        ({"branch": "570"}, "2026-11-30", ["driver_branch_end_of_life", "driver_below_security_floor"]),
        ({"branch": "610"}, "2026-11-30", ["driver_branch_end_of_life"]),
        ({"branch": "595"}, "2027-04-01", ["driver_branch_end_of_life"]),
        ({}, "2028-07-01", ["driver_branch_end_of_life"]),
    ],
)
def test_old_branches_and_holes_are_told(wish, today, expected):
    choice = choose_driver(bare(policies=None), wishes(**wish))
    assert [item["id"] for item in branch_findings(choice, today)] == expected


def test_the_newest_that_apt_offers_stands_in_for_a_newest_that_it_lacks():
    lacking = dict(OFFERED, **{"nvidia-open-580": policy("nvidia-open-580", "580.159.03-1ubuntu1")})
    choice = choose_driver(bare(policies=lacking), wishes())
    assert choice.version == "580.159.03"
    assert any("apt offers" in reason for reason in choice.reasons)


def test_a_named_version_has_no_stand_in():
    lacking = dict(OFFERED, **{"nvidia-open-580": policy("nvidia-open-580", "580.159.03-1ubuntu1")})
    assert choose_driver(bare(policies=lacking), wishes(version="580.178.04")).version == "580.178.04"


# facts 1.7: modules of the archive only where it has them for the kernel that will boot; else DKMS
@pytest.mark.parametrize(
    "release, flavour, offered, dkms",
    [
        ("5.15.0-164-generic", "generic", ("5.15.0-164-generic", "generic"), False),
        ("6.8.0-90-generic", "generic-hwe-22.04", ("6.8.0-90-generic", "generic-hwe-22.04"), False),
        ("6.8.0-90-generic", "generic-hwe-22.04", ("5.15.0-164-generic", "generic"), True),
        ("5.15.0-1090-aws", "aws", ("5.15.0-1090-aws", "aws"), False),
        ("5.15.0-1091-aws", "aws", ("5.15.0-1090-aws", "aws"), True),
        ("5.15.7-custom", "custom", (), True),
    ],
)
def test_the_archives_own_modules_are_taken_where_they_fit_the_kernel(release, flavour, offered, dkms):
    prefix = "linux-modules-nvidia-580-server-open-"
    machine = bare(boot_kernel=release, kernel_flavour=flavour,
                   policies=offers([prefix + part for part in offered], "5.15.0-164.174+1"))
    choice = choose_driver(machine, wishes(source="ubuntu"))
    assert choice.dkms is dkms
    assert dkms or choice.packages.free == (prefix + release, prefix + flavour)
