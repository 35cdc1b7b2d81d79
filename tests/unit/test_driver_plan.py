# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to change on a machine so that it holds the chosen set. "facts N" is a section of the domain facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support_driver import (
    A100,
    H100,
    KEY,
    OFFERED,
    SET_580,
    SWITCH_H100,
    UNITS_UP,
    V100,
    bare,
    driven,
    installed,
    offers,
    packages,
    pci,
    policy,
    wishes,
)

from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import Package
from ansible_collections.gpufleet.server.plugins.module_utils._driver_facts import (
    FABRIC_MANAGER,
    PERSISTENCED,
    DriverPlanError,
    SourceEntry,
    Unit,
)
from ansible_collections.gpufleet.server.plugins.module_utils._driver_plan import plan_as_dict, plan_driver

V178, V159, V595 = "580.178.04-1ubuntu1", "580.159.03-1ubuntu1", "595.91.07-1ubuntu1"
FABRIC_H100 = pci((H100,) * 8, (SWITCH_H100,) * 4)


def plan(machine, updated=True, **wish):
    return plan_driver(machine, wishes(**wish), updated)


# -- nothing to do -----------------------------------------------------------------------------------------------------


def test_a_machine_that_holds_the_set_needs_nothing_and_apt_is_not_asked():
    found = plan(driven())
    assert not found.pending
    assert found.queries == ()
    assert not found.reboot_required
    assert found.drift == ()


def test_a_machine_without_a_gpu_gets_nothing():
    found = plan(bare(pci=pci(())))
    assert found.no_gpu and not found.pending and found.choice is None


def test_a_machine_without_a_gpu_gets_the_driver_when_asked_by_name_and_is_not_rebooted_for_it():
    machine = bare(pci=pci(()))
    assert plan(machine, install_without_gpu=True).install == {"nvidia-open-580": V178}
    carrying = driven(pci=pci(()), loaded_version=None, without=("nvidia-fabricmanager", "libnvidia-nscq"))
    assert not plan(carrying, install_without_gpu=True).reboot_required


@pytest.mark.parametrize(
    "architecture, gpu, folder, driver",
    [
        ("amd64", H100, "x86_64", "nvidia-open-580"),
        # facts 1.4: the repository of arm64 servers is called sbsa; the names are the same
        ("arm64", "2342", "sbsa", "nvidia-open-580"),
        ("arm64", "2941", "sbsa", "nvidia-open-580"),
    ],
)
def test_a_machine_takes_the_repository_of_its_architecture(architecture, gpu, folder, driver):
    machine = bare("ubuntu", "24.04", architecture=architecture, pci=pci((gpu,)))
    shown = plan_as_dict(machine, wishes(), plan(machine))
    assert shown["architecture"] == folder
    assert driver in shown["packages"]["install"]


# -- packages ----------------------------------------------------------------------------------------------------------

PIN = "nvidia-driver-pinning-580.178.04"
FM = {"nvidia-fabricmanager": V178, "libnvidia-nscq": V178}
PACKAGES = [
    # facts 0.3, 1.6: the pin first and by itself, then driver and Fabric Manager at one exact version
    ("fresh h100", bare(pci=FABRIC_H100), {}, (PIN,), dict(FM, **{"nvidia-open-580": V178}), ()),
    ("fresh l40s", bare(), {}, (PIN,), {"nvidia-open-580": V178}, ()),
    ("fresh v100", bare(pci=pci((V100,))), {}, (PIN,), {"cuda-drivers-580": V178}, ()),
    ("fresh, older version by name", bare(pci=FABRIC_H100), {"version": "580.159.03"},
     ("nvidia-driver-pinning-580.159.03",),
     {"nvidia-open-580": V159, "nvidia-fabricmanager": V159, "libnvidia-nscq": V159}, ()),
    ("fresh 595", bare(), {"branch": "595"}, ("nvidia-driver-pinning-595.91.07",), {"nvidia-open": V595}, ()),
    # facts 1.10: headers before DKMS builds
    ("no headers yet", bare(headers_present=False), {}, ("linux-headers-5.15.0-164-generic", PIN),
     {"nvidia-open-580": V178}, ()),
    # facts 2.3, user-pain 2: Fabric Manager of another version comes to the driver's
    ("fabric manager ran ahead", driven(extra={"nvidia-fabricmanager": V595}, policies=OFFERED), {}, (),
     {"nvidia-fabricmanager": V178}, ()),
    ("fabric manager fell behind", driven(extra={"nvidia-fabricmanager": V159}, policies=OFFERED), {}, (),
     {"nvidia-fabricmanager": V178}, ()),
    ("fabric manager removed", driven(without=("nvidia-fabricmanager",), policies=OFFERED), {}, (),
     {"nvidia-fabricmanager": V178}, ()),
    # user-pain 1: an unattended upgrade of the library
    ("library ran ahead", driven(extra={"libnvidia-compute-580": "580.190.01-1ubuntu1"}, policies=OFFERED), {}, (),
     {"libnvidia-compute-580": V178}, ()),
    ("pin removed", driven(without=(PIN,), policies=OFFERED), {}, (PIN,), {}, ()),
    # facts 2.1: Fabric Manager only where a switch is
    ("fabric manager without a switch", driven(pci=pci((H100,) * 8), policies=OFFERED), {}, (), {},
     ("libnvidia-nscq", "nvidia-fabricmanager")),
    # facts sandbox: for a downgrade every installed package of the set has to be named
    ("downgrade", driven(policies=OFFERED), {"version": "580.159.03"}, ("nvidia-driver-pinning-580.159.03",),
     dict.fromkeys(SET_580, V159), ()),
    # facts 9.1 (6): the names change at 590, and nothing of the old branch stays
    ("580 to 595", driven(policies=OFFERED), {"branch": "595"}, ("nvidia-driver-pinning-595.91.07",),
     {"nvidia-open": V595, "nvidia-fabricmanager": V595, "libnvidia-nscq": V595},
     ("libnvidia-compute-580", "nvidia-dkms-580-open", "nvidia-driver-580-open", "nvidia-kernel-common-580",
      "nvidia-open-580", "nvidia-utils-580")),
    # facts 1.3: a flavour change replaces the packages of the other flavour
    ("open to proprietary", driven(policies=OFFERED), {"flavour": "proprietary"}, (),
     {"cuda-drivers-580": V178}, ("nvidia-dkms-580-open", "nvidia-driver-580-open", "nvidia-open-580")),
]


@pytest.mark.parametrize(
    "machine, wish, prepare, install, remove", [pytest.param(*row[1:], id=row[0]) for row in PACKAGES]
)
def test_packages_come_to_one_version_in_one_transaction(machine, wish, prepare, install, remove):
    found = plan(machine, **wish)
    assert found.prepare == prepare
    assert dict(found.install) == install
    assert found.remove == remove


def test_apt_is_asked_only_for_names_that_matter_and_only_when_needed():
    found = plan(bare(policies=None))
    assert set(found.queries) == {"nvidia-open-580", "nvidia-dkms-580-open", PIN, "linux-headers-5.15.0-164-generic"}
    assert found.install == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"lists_present": False},
        {"own_source_present": False},
        {"policies": {}},
        {"policies": offers(("nvidia-open-580",), "580.100.01-1ubuntu1")},
    ],
)
def test_what_apt_lacks_is_first_looked_for_by_an_update(changes):
    found = plan(bare(**changes), updated=False, version="580.178.04")
    assert found.needs_update
    assert found.install == {"nvidia-open-580": "580.178.04-*"}
    assert found.prepare == (PIN,)


def test_the_newest_revision_of_a_version_is_taken():
    twice = dict(OFFERED, **{"nvidia-open-580": policy("n", V178, "580.178.04-2ubuntu1", V159)})
    assert plan(bare(policies=twice)).install == {"nvidia-open-580": "580.178.04-2ubuntu1"}


ARCHIVE = offers(
    ("nvidia-driver-580-server-open", "nvidia-utils-580-server", "nvidia-fabricmanager-580", "libnvidia-nscq-580"),
    "580.178.04-0ubuntu0.22.04.1",
)
PREBUILT = ("linux-modules-nvidia-580-server-open-5.15.0-164-generic", "linux-modules-nvidia-580-server-open-generic")


def test_the_archive_gives_driver_and_prebuilt_modules_in_one_transaction():
    offered = dict(ARCHIVE, **offers(PREBUILT, "5.15.0-164.174+580.178.04"))
    found = plan(bare(pci=FABRIC_H100, policies=offered), source="ubuntu")
    assert found.prepare == ()  # facts 1.6: pinning packages are NVIDIA's; 1.7: no headers, no compiler
    assert found.install == {
        "nvidia-driver-580-server-open": "580.178.04-0ubuntu0.22.04.1",
        "nvidia-utils-580-server": "580.178.04-0ubuntu0.22.04.1",
        "nvidia-fabricmanager-580": "580.178.04-0ubuntu0.22.04.1",
        "libnvidia-nscq-580": "580.178.04-0ubuntu0.22.04.1",
        PREBUILT[0]: "",
        PREBUILT[1]: "",
    }


def test_a_new_kernel_brings_its_prebuilt_modules_although_the_metapackage_is_on_hold():
    have = packages(dict.fromkeys(ARCHIVE, "580.178.04-0ubuntu0.22.04.1"))
    have.update(packages(dict.fromkeys(PREBUILT, "5.15.0-164.174+580.178.04")))
    new = "linux-modules-nvidia-580-server-open-5.15.0-170-generic"
    offered = dict(ARCHIVE, **offers((new, PREBUILT[1]), "5.15.0-170.180+580.178.04"))
    machine = bare(pci=FABRIC_H100, packages=have, policies=offered, boot_kernel="5.15.0-170-generic",
                   module_version=None)
    assert plan(machine, source="ubuntu").install == {new: ""}


# -- mixed sources -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "have, source",
    [
        ({"nvidia-driver-580-server-open": "580.178.04-0ubuntu0.22.04.1"}, "nvidia"),
        ({"nvidia-fabricmanager-580": "580.178.04-0ubuntu0.22.04.1"}, "nvidia"),
        ({"linux-modules-nvidia-580-server-open-generic": "5.15.0-164.174"}, "nvidia"),
        ({"nvidia-open-580": V178}, "ubuntu"),
        ({"nvidia-fabricmanager": V178}, "ubuntu"),
    ],
)
def test_packages_of_another_source_are_refused(have, source):
    with pytest.raises(DriverPlanError) as refusal:
        plan(bare(packages=packages(have)), source=source)
    assert refusal.value.code == "mixed_sources"
    assert next(iter(have)) in refusal.value.message


@pytest.mark.parametrize(
    "changes, refused",
    [
        ({}, True),
        ({"alone": True}, False),
        ({"other_key": False}, False),
        ({"uri": "http://repo/compute/cuda/repos/debian12/x86_64/"}, False),
    ],
)
def test_a_file_of_somebody_else_that_would_stop_apt_is_refused_by_name(changes, refused):
    uri = "http://repo/compute/cuda/repos/ubuntu2204/x86_64/"
    entry = SourceEntry("/etc/apt/sources.list.d/x.list", uri, alone=False, other_key=True)
    host = bare(sources=(replace(entry, **changes),))
    if not refused:
        assert plan(host, source="nvidia").choice
        return
    with pytest.raises(DriverPlanError, match="x.list names NVIDIA's repository with another key") as refusal:
        plan(host, source="nvidia")
    assert refusal.value.code == "source_clash"


# -- interrupted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["half-configured", "half-installed", "unpacked"])
def test_a_package_that_dpkg_left_half_done_is_configured_first_and_then_installed(state):
    machine = driven(policies=OFFERED)
    broken = dict(machine.packages, **{"nvidia-dkms-580-open": Package(
        "nvidia-dkms-580-open", V178, "amd64", "install", state)})
    found = plan(replace(machine, packages=broken))
    assert found.configure_pending and found.transaction
    assert found.install == {"nvidia-dkms-580-open": V178}


def test_an_installation_that_was_cut_short_has_not_drifted():
    half = packages({"libnvidia-compute-580": V178}, held=False)
    half["nvidia-dkms-580-open"] = Package("nvidia-dkms-580-open", V178, "amd64", "install", "half-configured")
    found = plan(bare(packages=half))
    assert found.configure_pending and found.fresh and found.drift == ()


def test_dpkgs_own_journal_is_worked_off_although_the_set_is_whole():
    found = plan(driven(dpkg_interrupted=True))
    assert found.configure_pending and found.transaction


# -- modules and boot --------------------------------------------------------------------------------------------------


def test_a_module_that_is_missing_for_the_kernel_that_boots_is_built_again():
    found = plan(driven(boot_kernel="5.15.0-170-generic", module_version=None, module_flavour=None,
                        headers_present=False, headers_package="linux-headers-5.15.0-170-generic"))
    assert found.prepare == ("linux-headers-5.15.0-170-generic",)
    assert found.reinstall == ("nvidia-dkms-580-open",)
    assert not found.boot_ready


def test_a_fabric_manager_whose_unit_is_gone_is_installed_again():
    found = plan(driven(units=dict(UNITS_UP, **{FABRIC_MANAGER: Unit("not-found")})))
    assert found.reinstall == ("nvidia-fabricmanager",)
    assert any("unit nvidia-fabricmanager.service was missing" in text for text in found.drift)


@pytest.mark.parametrize(
    "changes, reason",
    [
        # facts 0.11: loaded differs from installed, or nouveau is loaded; nothing else
        ({"loaded_version": None, "smi": None}, "no nvidia module"),
        ({"loaded_version": "580.159.03"}, "580.159.03"),
        ({"loaded_flavour": "proprietary"}, "proprietary"),
        ({"nouveau_loaded": True}, "nouveau"),
    ],
)
def test_a_reboot_is_due_when_loaded_is_not_installed(changes, reason):
    found = plan(driven(**changes))
    assert found.reboot_required and reason in found.reboot_reason
    assert found.boot_ready


@pytest.mark.parametrize(
    "changes",
    [
        {"running_kernel": "5.15.0-100-generic"},
        {"held": False},
        {"units": {}},
        {"initramfs_stale": True},
    ],
)
def test_no_reboot_for_anything_else(changes):
    assert not plan(driven(**changes)).reboot_required


def test_no_boot_into_a_kernel_with_a_module_of_another_version_or_flavour():
    assert not plan(driven(module_version="580.159.03", loaded_version=None)).boot_ready
    assert not plan(driven(module_flavour="proprietary", loaded_version=None)).boot_ready
    assert not plan(driven(boot_kernel=None, loaded_version=None)).boot_ready


def test_a_reboot_that_is_due_is_not_forgotten_over_a_module_that_cannot_be_built():
    found = plan(driven(loaded_version="580.159.03", module_version=None, module_flavour=None))
    assert found.reboot_required and not found.boot_ready and found.reinstall


def test_no_reboot_before_the_packages_are_in_place():
    found = plan(driven(without=("nvidia-fabricmanager",), loaded_version=None, policies=OFFERED))
    assert not found.reboot_required and not found.boot_ready


# -- holds -------------------------------------------------------------------------------------------------------------


def test_exactly_the_installed_packages_of_the_set_are_held():
    other = {"nvidia-container-toolkit": "1.19.1-1", "cuda-toolkit-13-0": "13.0.1-1",
             "libnvidia-container1": "1.19.1-1", "datacenter-gpu-manager-4-core": "1:4.6.0-1",
             "linux-image-generic": "5.15.0.164.163"}
    machine = driven(held=False)
    machine = replace(machine, packages=dict(machine.packages, **packages(other, held=False)))
    found = plan(machine)
    assert set(found.holds_missing) == {
        "nvidia-open-580", "nvidia-driver-580-open", "nvidia-dkms-580-open", "libnvidia-compute-580",
        "nvidia-kernel-common-580", "nvidia-utils-580", "nvidia-fabricmanager", "libnvidia-nscq",
    }


def test_one_lost_hold_is_found():
    machine = driven()
    machine = replace(machine, packages=dict(
        machine.packages, **{"nvidia-utils-580": installed("nvidia-utils-580", V178, held=False)}))
    found = plan(machine)
    assert found.holds_missing == ("nvidia-utils-580",)
    assert found.drift == ("package nvidia-utils-580 was not on hold",)
    assert not found.transaction


def test_holds_are_left_alone_where_they_are_not_wanted():
    assert plan(driven(held=False), hold=False).holds_missing == ()


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fingerprints, needed",
    [((KEY,), False), ((), True), (("0" * 40,), True), ((KEY, "0" * 40), True), (("unreadable",), True)],
)
def test_a_key_file_with_anything_but_allowed_keys_is_replaced(fingerprints, needed):
    assert plan(driven(key_fingerprints=fingerprints)).needs_keyring is needed


def test_nvidias_key_of_the_distribution_is_the_default():
    # facts 1.4: three keys, by distribution
    for os_id, os_version, fingerprint in (
        ("ubuntu", "22.04", "EB693B3035CD5710E231E123A4B469963BF863CC"),
        ("debian", "12", "EB693B3035CD5710E231E123A4B469963BF863CC"),
        ("debian", "13", "02182E60104FCDC26EAE1B8597A5D4CB8793F200"),
    ):
        machine = bare(os_id, os_version, key_fingerprints=(fingerprint,), policies=None)
        assert not plan(machine, key_fingerprints=()).needs_keyring
        assert plan(replace(machine, key_fingerprints=("1" * 40,)), key_fingerprints=()).needs_keyring


# -- units -------------------------------------------------------------------------------------------------------------

DOWN = Unit("loaded", "inactive", "dead", "enabled")
UNIT_CASES = [
    ("disabled", PERSISTENCED, Unit("loaded", "active", "running", "disabled"), (True, False, "")),
    ("static, as Ubuntu ships it", PERSISTENCED, Unit("loaded", "active", "running", "static"), (True, False, "")),
    ("masked", PERSISTENCED, Unit("masked", "inactive", "dead", "masked"), (True, True, "started")),
    ("stopped", FABRIC_MANAGER, DOWN, (False, False, "started")),
    ("failed", FABRIC_MANAGER, Unit("loaded", "failed", "failed", "enabled"), (False, False, "started")),
    ("in a restart loop", PERSISTENCED, Unit("loaded", "activating", "auto-restart", "enabled"),
     (False, False, "restarted")),
    ("persistence off", PERSISTENCED,
     Unit("loaded", "active", "running", "enabled", "x --user nvpd --persistence-mode", 0, False,
          "x --user nvpd --no-persistence-mode"), (False, False, "restarted")),
]


@pytest.mark.parametrize("name, unit, expected", [pytest.param(*row[1:], id=row[0]) for row in UNIT_CASES])
def test_units_come_to_enabled_and_running(name, unit, expected):
    found = plan(driven(units=dict(UNITS_UP, **{name: unit})))
    assert [(u.name, u.enable, u.unmask, u.state) for u in found.units] == [(name,) + expected]


def test_nothing_is_started_before_the_wanted_module_is_loaded():
    found = plan(driven(loaded_version="580.159.03", units=dict(UNITS_UP, **{FABRIC_MANAGER: DOWN})))
    assert found.units == ()


def test_fabric_manager_is_none_of_our_business_without_a_switch():
    machine = driven(pci=pci((A100,) * 4), without=("nvidia-fabricmanager", "libnvidia-nscq"),
                     units=dict(UNITS_UP, **{FABRIC_MANAGER: DOWN}))
    assert plan(machine).units == ()


# -- drift -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine, words",
    [
        (driven(extra={"nvidia-fabricmanager": V595}, policies=OFFERED), "nvidia-fabricmanager was at " + V595),
        (driven(without=("nvidia-fabricmanager",), policies=OFFERED), "nvidia-fabricmanager was missing"),
        (driven(without=(PIN,), policies=OFFERED), PIN + " was missing"),
        (driven(key_fingerprints=("0" * 40,)), "key was another one"),
        (driven(key_fingerprints=()), "key was missing"),
        (driven(units=dict(UNITS_UP, **{FABRIC_MANAGER: DOWN})), "nvidia-fabricmanager.service"),
        (driven(module_version=None, module_flavour=None), "module 580.178.04 was not there"),
        (driven("580.159.03", policies=OFFERED), "the driver set was 580.159.03 (open), wanted is 580.178.04 (open)"),
    ],
)
def test_what_was_changed_behind_the_roles_back_is_told(machine, words):
    assert any(words in text for text in plan(machine).drift)


def test_a_fresh_machine_has_not_drifted():
    assert plan(bare()).drift == ()


# -- for the role ------------------------------------------------------------------------------------------------------


def test_the_role_reads_the_same_keys_whatever_the_plan():
    machines = [driven(), bare(), bare(pci=pci(())), bare(policies=None)]
    keys = {frozenset(plan_as_dict(machine, wishes(), plan(machine))) for machine in machines}
    assert len(keys) == 1


def test_the_persistence_daemon_runs_under_the_account_of_the_shipped_unit():
    shipped = Unit("loaded", exec_start="/usr/bin/nvidia-persistenced --user nvidia-persistenced --verbose")
    machine = driven(units={PERSISTENCED: shipped})
    assert plan_as_dict(machine, wishes(), plan(machine))["persistenced_user"] == "nvidia-persistenced"
    assert plan_as_dict(bare(), wishes(), plan(bare()))["persistenced_user"] == ""
