# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The double repositories behave towards the real apt as the vendors' do: every trap a role must survive is there."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from scratch_machines import CommandFailed, PaperMachine, archive_sources, field_of_deb, files_of_deb, read_from_deb

from gpurepo import RepoTree
from gpurepo.__main__ import default_cache

NVIDIA_UBUNTU = "compute/cuda/repos/ubuntu2204/x86_64"
NVIDIA_DEBIAN = "compute/cuda/repos/debian12/x86_64"
NVIDIA_NOBLE = "compute/cuda/repos/ubuntu2404/x86_64"
NVIDIA_RESOLUTE = "compute/cuda/repos/ubuntu2604/x86_64"
NVIDIA_TRIXIE = "compute/cuda/repos/debian13/x86_64"
TOOLKIT = "libnvidia-container/stable/deb/amd64"


# --- trust ---------------------------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    # distribution: the key that signs its repository (that of 2022 or one of its own), and the file it is served as
    "ubuntu2004": ("nvidia", "3bf863cc.pub"),
    "ubuntu2204": ("nvidia", "3bf863cc.pub"),
    "ubuntu2404": ("nvidia", "3bf863cc.pub"),
    "debian12": ("nvidia", "3bf863cc.pub"),
    "debian13": ("nvidia-debian13", "8793F200.pub"),
    "ubuntu2604": ("nvidia-ubuntu2604", "60DF8A40.pub"),
}
ALL_SOURCES = [(key, "compute/cuda/repos/%s/x86_64/" % name, "/") for name, (key, _file) in DISTRIBUTIONS.items()]
ALL_SOURCES += [("nvidia", "broken/%s/%s/" % (what, NVIDIA_UBUNTU), "/") for what in ("fabricmanager", "driver")]
ALL_SOURCES += [("nvidia-old", "old-key/%s/" % NVIDIA_UBUNTU, "/"), ("toolkit", TOOLKIT + "/", "/")]
ALL_SOURCES += [("ubuntu", "ubuntu", "%s%s main restricted universe multiverse" % (release, pocket))
                for release in ("focal", "jammy", "noble", "resolute")
                for pocket in ("", "-updates", "-security", "-proposed")]
ALL_SOURCES += [("docker", "linux/ubuntu", release + " stable") for release in ("focal", "jammy", "noble", "resolute")]
ALL_SOURCES += [("docker", "linux/debian", release + " stable") for release in ("bookworm", "trixie")]


@pytest.mark.parametrize(("key_name", "path", "suites"), ALL_SOURCES)
def test_every_index_is_accepted_with_its_own_key(machine, key_name, path, suites):
    assert machine(path, suites, key_name).must("apt-cache", "pkgnames").split()


@pytest.mark.parametrize(("key_name", "path", "suites"), ALL_SOURCES)
def test_every_index_is_refused_with_another_key(machine, key_name, path, suites):
    other = "nvidia" if key_name == "ubuntu" else "ubuntu"
    with pytest.raises(CommandFailed, match="NO_PUBKEY"):
        machine(path, suites, other)


@pytest.mark.parametrize(("distribution", "keyring"), [
    ("debian13", "nvidia"), ("ubuntu2604", "nvidia"), ("ubuntu2204", "nvidia-debian13"),
    ("ubuntu2604", "nvidia-debian13"), ("debian13", "nvidia-ubuntu2604"),
    # A machine that still has the key from before 2022.
    ("ubuntu2204", "nvidia-old"), ("debian12", "nvidia-old"), ("debian13", "nvidia-old"),
])
def test_one_distributions_keyring_does_not_verify_anothers_repository(machine, distribution, keyring):
    with pytest.raises(CommandFailed, match="NO_PUBKEY"):
        machine("compute/cuda/repos/%s/x86_64/" % distribution, "/", keyring)


def test_a_mirror_that_still_has_the_old_signature_is_refused_by_todays_keyring(machine):
    with pytest.raises(CommandFailed, match="NO_PUBKEY"):
        machine("old-key/" + NVIDIA_UBUNTU)


@pytest.mark.parametrize(("distribution", "key_name", "file"), [(name, *row) for name, row in DISTRIBUTIONS.items()])
def test_each_repository_serves_its_key_and_its_keyring_package_has_it(tree, key, distribution, key_name, file):
    folder = tree.root / "compute/cuda/repos" / distribution / "x86_64"
    assert shown_fingerprints((folder / file).read_bytes()) == [fingerprint_of(key_name)]
    assert shown_fingerprints((folder / "7fa2af80.pub").read_bytes()) == [fingerprint_of("nvidia-old")]
    deb = folder / "cuda-keyring_1.1-1_all.deb"
    assert read_from_deb(deb, "/usr/share/keyrings/cuda-archive-keyring.gpg") == key(key_name).read_bytes()
    line = read_from_deb(deb, "/etc/apt/sources.list.d/cuda-%s-x86_64.list" % distribution).decode()
    assert "/compute/cuda/repos/%s/x86_64/ /\n" % distribution in line


@pytest.mark.parametrize(("path", "key_name"), [
    ("libnvidia-container/gpgkey", "toolkit"), ("linux/ubuntu/gpg", "docker"), ("linux/debian/gpg", "docker")])
def test_the_other_repositories_serve_their_keys_where_the_vendors_do(tree, path, key_name):
    assert shown_fingerprints((tree.root / path).read_bytes()) == [fingerprint_of(key_name)]


def fingerprint_of(key_name: str) -> str:
    return (default_cache() / "keys" / (key_name + ".fpr")).read_text().strip()


def shown_fingerprints(armoured: bytes) -> list:
    """The fingerprints of the primary keys in an armoured file."""
    done = subprocess.run(["gpg", "--show-keys", "--with-colons"], input=armoured, check=True, capture_output=True)
    return [line.split(":")[9] for line in done.stdout.decode().splitlines() if line.startswith("fpr:")][:1]


def test_a_release_says_where_it_comes_from(tree):
    release = (tree.root / NVIDIA_UBUNTU / "Release").read_text()
    assert "Origin: NVIDIA\n" in release and "Label: NVIDIA CUDA\n" in release


def test_the_keyring_package_brings_key_source_and_priorities(tree, key):
    deb = tree.root / NVIDIA_UBUNTU / "cuda-keyring_1.1-1_all.deb"
    assert read_from_deb(deb, "/usr/share/keyrings/cuda-archive-keyring.gpg") == key("nvidia").read_bytes()
    line = read_from_deb(deb, "/etc/apt/sources.list.d/cuda-ubuntu2204-x86_64.list").decode()
    assert line == ("deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] "
                    "http://repo.lab/compute/cuda/repos/ubuntu2204/x86_64/ /\n")
    assert b"Package: *\nPin: release l=NVIDIA CUDA\n" in read_from_deb(
        deb, "/etc/apt/preferences.d/cuda-repository-pin-600")


@pytest.mark.parametrize("path", ["/nothing", "/compute/cuda/repos/ubuntu1804/x86_64/InRelease", "/../keys/nvidia.fpr"])
def test_what_is_not_there_is_not_found(url, path):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url + path, timeout=10)


# --- NVIDIA's repository -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "key_name", "revision"), [
    (NVIDIA_UBUNTU, "nvidia", "1ubuntu1"), (NVIDIA_DEBIAN, "nvidia", "1"),
    (NVIDIA_RESOLUTE, "nvidia-ubuntu2604", "1ubuntu1"), (NVIDIA_TRIXIE, "nvidia-debian13", "1"),
])
def test_without_a_pin_the_newest_branch_wins(machine, path, key_name, revision):
    newest = machine(path, key_name=key_name)
    assert newest.candidate("nvidia-fabricmanager") == "620.70.06-" + revision
    assert newest.candidate("nvidia-open") == "620.70.06-" + revision


def test_old_versions_stay_published(machine):
    assert machine(NVIDIA_UBUNTU).versions("nvidia-fabricmanager") == [
        "620.70.06-1ubuntu1", "595.91.07-1ubuntu1", "595.71.05-1ubuntu1", "590.48.01-1ubuntu1", "580.178.04-1ubuntu1",
        "580.159.03-1ubuntu1"]


@pytest.mark.parametrize(("distribution", "key_name", "branches"), [
    ("ubuntu2004", "nvidia", {"535", "550", "570", "580"}),
    ("ubuntu2204", "nvidia", {"535", "550", "570", "580", "590", "595", "620"}),
    ("ubuntu2404", "nvidia", {"570", "580", "590", "595", "620"}),
    # Its repository starts at 595, so there is no 580 for a V100.
    ("ubuntu2604", "nvidia-ubuntu2604", {"595", "620"}),
    ("debian12", "nvidia", {"535", "550", "570", "580", "590", "595", "620"}),
    ("debian13", "nvidia-debian13", {"580", "590", "595", "620"}),
])
def test_each_distribution_has_the_branches_of_its_time(machine, distribution, key_name, branches):
    offered = machine("compute/cuda/repos/%s/x86_64" % distribution, key_name=key_name)
    assert {version.split(".")[0] for version in offered.versions("nvidia-open")} == branches


@pytest.mark.parametrize(("path", "names"), [
    (NVIDIA_NOBLE, ["cuda-drivers", "nvidia-driver", "nvidia-dkms"]),
    (NVIDIA_DEBIAN, ["cuda-drivers", "nvidia-kernel-dkms"]),
])
def test_from_620_on_there_are_no_proprietary_modules(machine, path, names):
    newest = machine(path)
    assert newest.candidate("nvidia-open").startswith("620.70.06-")
    assert {newest.candidate(name).split("-")[0] for name in names} == {"595.91.07"}


def test_a_volta_on_ubuntu_2604_finds_its_driver_in_ubuntus_archive_only(machine, tmp_path, url, key):
    """It needs proprietary modules of 580 at most, and NVIDIA's repository of that system begins with 595."""
    vendor = machine(NVIDIA_RESOLUTE, key_name="nvidia-ubuntu2604")
    for names in ("cuda-drivers-580", "nvidia-dkms-580"):
        assert vendor.run("apt-get", "--simulate", "install", names).returncode != 0
    assert min(vendor.versions("cuda-drivers")).startswith("595.")
    archive = PaperMachine(tmp_path / "archive", archive_sources(url, key("ubuntu"), "resolute", "resolute-updates"))
    archive.update()
    archive.install("nvidia-driver-580-server")
    assert archive.versions_installed("^nvidia-dkms-580-server$") == ["580.178.04"]


@pytest.mark.parametrize(("present", "absent"), [
    ("nvidia-dkms-580-open", "nvidia-dkms-595-open"),
    ("nvidia-dkms-open", "nvidia-fabricmanager-580"),
    ("libnvidia-compute", "libnvidia-compute-595"),
    ("nvidia-firmware", "nvidia-firmware-580"),
    # Fabric Manager and its kin lost their suffix at 580, the driver at 590.
    ("nvidia-fabricmanager-570", "nvidia-fabricmanager-580"),
    ("libnvidia-nscq-535", "libnvidia-nscq-580"),
    ("libnvsdm-570", "libnvsdm-580"),
    ("nvidia-imex-550", "nvidia-imex-580"),
    ("nvidia-open-580", "nvidia-open-590"),
    ("cuda-drivers-535", "cuda-drivers-590"),
    ("nvidia-headless-no-dkms-580-open", "nvidia-headless-no-dkms-590-open"),
    ("nvidia-headless-no-dkms-open", "nvidia-utils-595"),
    ("nvidia-driver-pinning-595", "nvidia-driver-pinning-610"),
])
def test_names_are_suffixed_up_to_580_and_not_from_590(machine, present, absent):
    names = machine(NVIDIA_UBUNTU).must("apt-cache", "pkgnames").splitlines()
    assert present in names
    assert absent not in names


@pytest.mark.parametrize(("pin", "expected"), [
    ("580", {"nvidia-open-580": "580.178.04", "nvidia-fabricmanager": "580.178.04", "nvidia-open": "580.178.04"}),
    ("580.159.03", {"nvidia-open-580": "580.159.03", "nvidia-fabricmanager": "580.159.03", "nvlsm": "2025.10.11"}),
    ("595.71.05", {"nvidia-open": "595.71.05", "libnvidia-nscq": "595.71.05", "nvidia-imex": "595.71.05"}),
    ("595", {"nvidia-open": "595.91.07", "nvidia-settings": "595.91.07", "nvidia-modprobe": "595.91.07"}),
    ("535.288.01", {"nvidia-open-535": "535.288.01", "nvidia-fabricmanager-535": "535.288.01",
                    "libnvidia-nscq-535": "535.288.01", "nvidia-imex-535": "535.288.01"}),
    # The set of the driver alone: what has versions of its own is not pinned.
    ("580.178.04", {"nvlsm": "2025.10.11", "datacenter-gpu-manager-4-core": "1:4.6.0",
                    "nvidia-container-toolkit": "1.17.8", "cuda-toolkit-12-9": "12.9.1"}),
])
def test_a_pinning_package_really_pins(machine, tree, pin, expected):
    pinned = machine(NVIDIA_UBUNTU)
    (deb,) = (tree.root / NVIDIA_UBUNTU).glob("nvidia-driver-pinning-%s_*.deb" % pin)
    pinned.use_pin_of(deb)
    assert {name: pinned.candidate(name).split("-")[0] for name in expected} == expected


def test_two_pinning_packages_exclude_each_other(machine):
    pinned = machine(NVIDIA_UBUNTU)
    pinned.install("nvidia-driver-pinning-580")
    pinned.install("nvidia-driver-pinning-595.91.07")
    assert list(pinned.installed) == ["nvidia-driver-pinning-595.91.07"]


def test_a_metapackage_at_an_exact_version_pins_neither_the_driver_nor_fabric_manager(machine):
    """NVIDIA's metapackages depend on `>=`: this is how a machine ends up with a mixed set."""
    mixed = machine(NVIDIA_UBUNTU)
    mixed.install("nvidia-open-580=580.159.03-1ubuntu1", "nvidia-fabricmanager")
    assert mixed.installed["nvidia-open-580"] == "580.159.03-1ubuntu1"
    assert mixed.installed["nvidia-driver-580-open"] == "580.178.04-1ubuntu1"
    assert mixed.installed["nvidia-fabricmanager"] == "620.70.06-1ubuntu1"


@pytest.mark.parametrize(("wanted", "driver", "got"), [
    ("nvidia-open=595.71.05-1ubuntu1", "nvidia-driver-open", "620.70.06"),
    ("nvidia-open=580.159.03-1ubuntu1", "nvidia-open-580", "580.178.04"),
    ("cuda-drivers=580.159.03-1ubuntu1", "cuda-drivers-580", "580.178.04"),
])
def test_the_metapackages_without_a_branch_pin_nothing_either(machine, wanted, driver, got):
    """With the unversioned names of 590 and later it may even be another branch that comes."""
    mixed = machine(NVIDIA_UBUNTU)
    mixed.install(wanted)
    assert mixed.versions_installed("^%s$" % driver) == [got]


def test_proprietary_modules_of_595_need_a_pin_since_620_is_there(machine, tree):
    """Their libraries have the names of 620's, which has no such modules."""
    unpinned = machine(NVIDIA_UBUNTU)
    with pytest.raises(CommandFailed, match="unmet dependencies"):
        unpinned.install("cuda-drivers=595.91.07-1ubuntu1")
    (deb,) = (tree.root / NVIDIA_UBUNTU).glob("nvidia-driver-pinning-595.91.07_*.deb")
    unpinned.use_pin_of(deb)
    unpinned.install("cuda-drivers")
    assert unpinned.versions_installed("^nvidia-dkms$") == ["595.91.07"]


def test_a_suffixed_fabric_manager_drifts_from_the_driver_unless_the_exact_version_is_named(machine):
    """Nothing in the packages ties the two, and Fabric Manager refuses to serve another driver version."""
    mixed = machine(NVIDIA_UBUNTU)
    mixed.install("nvidia-utils-535=535.288.01-1ubuntu1", "libnvidia-compute-535=535.288.01-1ubuntu1",
                  "nvidia-fabricmanager-535", "libnvidia-nscq-535")
    assert mixed.versions_installed("utils|compute") == ["535.288.01"]
    assert mixed.versions_installed("fabricmanager|nscq") == ["535.309.01"]
    mixed.install("nvidia-fabricmanager-535=535.288.01-1ubuntu1", "libnvidia-nscq-535=535.288.01-1ubuntu1",
                  downgrade=True)
    assert mixed.versions_installed() == ["535.288.01"]


@pytest.mark.parametrize("names", [["nvidia-fabricmanager-535", "nvidia-fabricmanager-570"],
                                   ["nvidia-fabricmanager-570", "nvidia-fabricmanager"],
                                   ["libnvidia-nscq-570", "libnvidia-nscq"]])
def test_two_fabric_managers_exclude_each_other(machine, names):
    one = machine(NVIDIA_UBUNTU)
    for name in names:
        one.install(name)
    assert list(one.installed) == names[-1:]


def test_a_machine_with_nvlink5_gets_its_subnet_manager_at_its_own_version(machine):
    b200 = machine(NVIDIA_NOBLE)
    b200.install("nvidia-fabricmanager=595.91.07-1ubuntu1", "libnvsdm=595.91.07-1ubuntu1", "nvlsm")
    assert b200.installed["nvlsm"] == "2025.10.11-1"


def test_pinned_first_the_whole_set_has_one_version(machine, tree):
    pinned = machine(NVIDIA_UBUNTU)
    pinned.use_pin_of(tree.root / NVIDIA_UBUNTU / "nvidia-driver-pinning-580.159.03_580.159.03-1ubuntu1_all.deb")
    pinned.install("nvidia-open-580", "nvidia-fabricmanager", "libnvidia-nscq", "nvidia-imex")
    assert pinned.versions_installed() == ["580.159.03"]
    assert "nvidia-dkms-580" not in pinned.installed


@pytest.mark.parametrize(("path", "old", "new"), [
    (NVIDIA_UBUNTU, ["nvidia-open-580"], ["nvidia-open"]),
    (NVIDIA_UBUNTU, ["cuda-drivers-580"], ["cuda-drivers"]),
    (NVIDIA_UBUNTU, ["libnvidia-compute-580", "nvidia-dkms-580-open", "nvidia-utils-580"],
     ["libnvidia-compute", "nvidia-dkms-open", "nvidia-utils"]),
    (NVIDIA_UBUNTU, ["nvidia-headless-580-open"], ["nvidia-headless-open"]),
    (NVIDIA_DEBIAN, ["nvidia-driver-cuda", "nvidia-kernel-open-dkms"], ["nvidia-driver-cuda"]),
])
def test_a_change_of_branch_replaces_the_set_in_one_transaction_and_back(machine, tree, path, old, new):
    changed = machine(path)

    def pin(version: str) -> None:
        (deb,) = (tree.root / path).glob("nvidia-driver-pinning-%s_*.deb" % version)
        changed.use_pin_of(deb)

    pin("580.178.04")
    changed.install(*old, "nvidia-fabricmanager")
    before = dict(changed.installed)
    assert changed.versions_installed() == ["580.178.04"]
    pin("595.91.07")
    changed.install("--no-install-recommends", *new, "nvidia-fabricmanager")
    assert changed.versions_installed("(?<!settings)$") == ["595.91.07"]
    assert not [name for name in changed.installed if "-580" in name]
    pin("580.178.04")
    gone = [name + "-" for name in changed.installed if name not in before]
    changed.install(*old, "nvidia-fabricmanager", *gone, downgrade=True)
    assert set(before) <= set(changed.installed)
    assert changed.versions_installed() == ["580.178.04"]


def test_a_change_back_is_refused_unless_it_names_what_has_to_go(machine, tree):
    """A later branch is published under the names that must go, and apt would rather keep those."""
    changed = machine(NVIDIA_UBUNTU)
    changed.install("nvidia-open=595.91.07-1ubuntu1", "nvidia-driver-open=595.91.07-1ubuntu1",
                    *["%s=595.91.07-1ubuntu1" % name for name in SET_OF_595])
    assert changed.versions_installed("^(?!nvidia-settings)") == ["595.91.07"]
    (deb,) = (tree.root / NVIDIA_UBUNTU).glob("nvidia-driver-pinning-580.178.04_*.deb")
    changed.use_pin_of(deb)
    with pytest.raises(CommandFailed, match="unmet dependencies"):
        changed.install("nvidia-open-580", downgrade=True)


SET_OF_595 = [
    "libnvidia-cfg1", "libnvidia-compute", "libnvidia-decode", "libnvidia-encode", "libnvidia-extra", "libnvidia-fbc1",
    "libnvidia-gl", "nvidia-compute-utils", "nvidia-dkms-open", "nvidia-firmware", "nvidia-kernel-common",
    "nvidia-kernel-source-open", "nvidia-persistenced", "nvidia-utils"]


def test_a_downgrade_that_names_the_metapackage_only_is_refused(machine):
    """Its driver could go down only together with every package of the set, and apt does not look for them."""
    newest = machine(NVIDIA_UBUNTU)
    newest.install("nvidia-open-580", "nvidia-fabricmanager=580.178.04-1ubuntu1")
    wanted = ["nvidia-driver-580-open=580.159.03-1ubuntu1", "nvidia-fabricmanager=580.159.03-1ubuntu1"]
    with pytest.raises(CommandFailed, match="held broken packages"):
        newest.install(*wanted, downgrade=True)
    of_the_set = [name for name, version in newest.installed.items() if version == "580.178.04-1ubuntu1"]
    newest.install(*["%s=580.159.03-1ubuntu1" % name for name in of_the_set], downgrade=True)
    assert newest.versions_installed("(?<!settings)$") == ["580.159.03"]


def test_open_and_proprietary_modules_exclude_each_other(machine):
    one = machine(NVIDIA_UBUNTU)
    one.install("nvidia-open-580")
    one.install("cuda-drivers-580")
    assert "nvidia-dkms-580" in one.installed
    assert "nvidia-dkms-580-open" not in one.installed


def test_on_debian_the_plain_metapackage_brings_the_proprietary_modules(machine, tree):
    debian = machine(NVIDIA_DEBIAN)
    (deb,) = (tree.root / NVIDIA_DEBIAN).glob("nvidia-driver-pinning-595.91.07_*.deb")
    debian.use_pin_of(deb)
    debian.install("cuda-drivers")
    assert "nvidia-kernel-dkms" in debian.installed
    assert "nvidia-kernel-open-dkms" not in debian.installed


# --- Ubuntu's archive ----------------------------------------------------------------------------------------------


def test_an_upgrade_of_a_transitional_package_jumps_the_branch(tmp_path, url, key):
    machine = PaperMachine(tmp_path / "machine", archive_sources(url, key("ubuntu"), "jammy"))
    machine.update()
    machine.install("nvidia-driver-570-server", "nvidia-fabricmanager-570")
    assert machine.versions_installed() == ["570.211.01"]
    machine.set_sources(archive_sources(url, key("ubuntu"), "jammy", "jammy-updates"))
    machine.update()
    machine.apt("upgrade", "--with-new-pkgs")
    assert machine.installed["nvidia-utils-580-server"] == "580.178.04-0ubuntu0.22.04.1"
    assert machine.installed["nvidia-driver-570-server"] == "580.178.04-0ubuntu0.22.04.1"
    assert machine.installed["nvidia-fabricmanager-580"] == "580.178.04-0ubuntu0.22.04.1"


def test_the_name_590_means_595(jammy):
    jammy.install("nvidia-driver-590-server-open", "nvidia-fabricmanager-590")
    assert jammy.versions_installed("utils") == ["595.91.07"]
    assert "nvidia-fabricmanager-595" in jammy.installed


def test_fabric_manager_insists_on_the_drivers_exact_version(jammy):
    jammy.install("nvidia-utils-580-server", "nvidia-fabricmanager-580=580.159.03-0ubuntu0.22.04.1",
                  "nvidia-kernel-common-580-server=580.159.03-0ubuntu0.22.04.1",
                  "nvidia-firmware-580-server-580.159.03")
    with pytest.raises(CommandFailed, match=r"nvidia-fabricmanager-580 : Depends: .*580\.159\.03"):
        jammy.install("nvidia-fabricmanager-580=580.159.03-0ubuntu0.22.04.1",
                      "nvidia-kernel-common-580-server=580.178.04-0ubuntu0.22.04.1")


def test_a_change_of_branch_replaces_the_archives_set(jammy):
    jammy.install("nvidia-driver-580-server-open", "nvidia-fabricmanager-580", "libnvidia-nscq-580")
    jammy.install("nvidia-driver-595-server-open", "nvidia-fabricmanager-595", "libnvidia-nscq-595")
    assert jammy.versions_installed("^(?!nvidia-firmware)") == ["595.91.07"]


def test_the_archives_old_firmware_stays_behind(jammy):
    jammy.install("nvidia-driver-580-server-open")
    jammy.install("nvidia-driver-595-server-open")
    assert [name for name in jammy.installed if "-580" in name] == ["nvidia-firmware-580-server-580.178.04"]


def test_the_driver_alone_takes_dkms(jammy):
    jammy.install("nvidia-headless-580-server-open")
    assert "nvidia-dkms-580-server-open" in jammy.installed


PREBUILT = "linux-modules-nvidia-580-server-open-"


@pytest.mark.parametrize("names", [
    [PREBUILT + "generic", "nvidia-headless-580-server-open"],
    [PREBUILT + "5.15.0-164-generic", "nvidia-headless-580-server-open"],
    ["nvidia-headless-580-server-open", PREBUILT + "5.15.0-164-generic"],
])
def test_prebuilt_modules_in_the_same_transaction_take_the_place_of_dkms(jammy, names):
    jammy.install(*names)
    assert "nvidia-dkms-580-server-open" not in jammy.installed
    assert "linux-image-5.15.0-164-generic" in jammy.installed
    assert jammy.versions_installed("^nvidia-headless") == ["580.178.04"]


def test_the_prebuilt_metapackage_named_after_the_driver_comes_too_late(jammy):
    """apt goes through the names in order, and only the metapackage's dependency provides what DKMS provides."""
    jammy.install("nvidia-headless-580-server-open", PREBUILT + "generic")
    assert "nvidia-dkms-580-server-open" in jammy.installed


def test_prebuilt_modules_do_not_fit_another_driver_version(jammy):
    with pytest.raises(CommandFailed):
        jammy.install("nvidia-kernel-common-580-server=580.178.04-0ubuntu0.22.04.1",
                      "linux-modules-nvidia-580-server-open-generic=5.15.0-164.174+580.159.03")


# --- files ---------------------------------------------------------------------------------------------------------


def in_pool(tree: RepoTree, pattern: str) -> Path:
    (deb,) = (tree.root / "ubuntu/pool").glob("*/jammy-updates/" + pattern)
    return deb


def test_the_archives_persistenced_unit_is_static_with_persistence_off(tree):
    unit = read_from_deb(in_pool(tree, "nvidia-compute-utils-580-server_*.deb"),
                         "/usr/lib/systemd/system/nvidia-persistenced.service").decode()
    assert "[Install]" not in unit
    assert "--user nvidia-persistenced --no-persistence-mode" in unit
    assert "StopWhenUnneeded=true\n" in unit


@pytest.mark.parametrize(("path", "pattern"), [
    (NVIDIA_UBUNTU, "nvidia-compute-utils-580_580.178.04-*.deb"),
    (NVIDIA_UBUNTU, "nvidia-persistenced_595.91.07-*.deb"),
    (NVIDIA_DEBIAN, "nvidia-persistenced_580.178.04-*.deb"),
])
def test_the_vendors_persistenced_unit_can_be_enabled_and_is_on(tree, path, pattern):
    (deb,) = (tree.root / path).glob(pattern)
    unit = read_from_deb(deb, "/usr/lib/systemd/system/nvidia-persistenced.service").decode()
    assert "WantedBy=multi-user.target" in unit
    assert "ExecStart=/usr/bin/nvidia-persistenced --user nvpd\n" in unit


@pytest.mark.parametrize(("pattern", "path", "text"), [
    ("nvidia-utils-580_580.159.03-*", "/usr/bin/nvidia-smi", "bin/nvidia-smi --lab-version 580.159.03 \"$@\""),
    ("nvidia-utils_595.91.07-*", "/usr/bin/nvidia-smi", "bin/nvidia-smi --lab-version 595.91.07 \"$@\""),
    ("nvidia-fabricmanager_595.71.05-*", "/usr/bin/nv-fabricmanager", "bin/nv-fabricmanager --lab-version 595.71.05"),
    ("nvidia-kernel-common-580_580.178.04-*", "/etc/modprobe.d/nvidia-graphics-drivers.conf", "blacklist nouveau"),
    ("nvidia-kernel-common_595.91.07-*", "/etc/modprobe.d/nvidia-graphics-drivers-kms.conf", "nvidia-drm modeset=1"),
])
def test_a_file_carries_the_version_of_its_package(tree, pattern, path, text):
    (deb,) = (tree.root / NVIDIA_UBUNTU).glob(pattern + ".deb")
    assert text in read_from_deb(deb, path).decode()


@pytest.mark.parametrize(("package", "licence"), [
    ("nvidia-dkms-580-open_580.178.04-1ubuntu1", "Dual MIT/GPL"),
    ("nvidia-dkms-580_580.178.04-1ubuntu1", "NVIDIA"),
])
def test_real_modinfo_reads_version_and_licence_of_a_module(tree, tmp_path, package, licence):
    module = tmp_path / "nvidia.ko"
    module.write_bytes(read_from_deb(tree.root / NVIDIA_UBUNTU / (package + "_amd64.deb"),
                                     "/usr/src/nvidia-580.178.04/nvidia.ko"))

    def modinfo(name: str) -> str:
        done = subprocess.run(["/sbin/modinfo", "-F", name, str(module)], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    assert (modinfo("version"), modinfo("license")) == ("580.178.04", licence)


def test_real_ldconfig_takes_the_libraries_for_libraries(tree, tmp_path):
    deb = tree.root / NVIDIA_UBUNTU / "libnvidia-compute-580_580.178.04-1ubuntu1_amd64.deb"
    name = "libnvidia-ml.so.580.178.04"
    (tmp_path / name).write_bytes(read_from_deb(deb, "/usr/lib/x86_64-linux-gnu/" + name))
    subprocess.run(["/sbin/ldconfig", "-n", str(tmp_path)], check=True)
    assert (tmp_path / "libnvidia-ml.so.1").readlink() == Path(name)


@pytest.mark.parametrize(("what", "package"), [
    ("fabricmanager", "nvidia-fabricmanager_580.178.04-1ubuntu1_amd64.deb"),
    ("driver", "nvidia-dkms-580-open_580.178.04-1ubuntu1_amd64.deb"),
    ("driver", "nvidia-dkms-open_595.91.07-1ubuntu1_amd64.deb"),
])
def test_a_broken_package_looks_the_same_to_apt_and_installs_nothing(tree, what, package):
    whole, broken = tree.root / NVIDIA_UBUNTU / package, tree.root / "broken" / what / NVIDIA_UBUNTU / package
    assert files_of_deb(whole)
    assert files_of_deb(broken) == []
    for name in ("Package", "Version", "Depends", "Conflicts", "Provides"):
        assert field_of_deb(broken, name) == field_of_deb(whole, name)


@pytest.mark.parametrize("what", ["fabricmanager", "driver"])
def test_a_broken_repository_is_otherwise_the_same(tree, what):
    def inodes(directory: Path) -> dict:
        return {path.name: path.stat().st_ino for path in directory.glob("*.deb")}

    whole, broken = inodes(tree.root / NVIDIA_UBUNTU), inodes(tree.root / "broken" / what / NVIDIA_UBUNTU)
    assert set(whole) == set(broken)
    different = {name.split("_")[0] for name in whole if whole[name] != broken[name]}
    assert different == ({"nvidia-fabricmanager"} if what == "fabricmanager" else
                         {"nvidia-dkms", "nvidia-dkms-open", *("nvidia-dkms-%s%s" % (branch, tail)
                          for branch in ("535", "550", "570", "580") for tail in ("", "-open"))})


@pytest.mark.parametrize(("image", "kernel"), [
    ("ubuntu2004", "5.4.0-216-generic"),
    ("ubuntu2204", "5.15.0-164-generic"),
    ("ubuntu2404", "6.8.0-90-generic"),
    ("ubuntu2604", "7.0.0-14-generic"),
])
def test_a_stand_in_image_gets_a_kernel_without_headers_and_the_archives_sources(tree, key, image, kernel):
    found = tree.image_debs(image)
    assert [deb.name.split("_")[0] for deb in found] == [
        "gpulab-ubuntu-archive", "linux-image-" + kernel, "linux-image-generic"]
    sources = read_from_deb(found[0], "/etc/apt/sources.list.d/ubuntu.sources").decode()
    assert "URIs: http://repo.lab/ubuntu\n" in sources
    ring = read_from_deb(found[0], "/usr/share/keyrings/ubuntu-archive-keyring.gpg")
    assert ring == key("ubuntu").read_bytes()


@pytest.mark.parametrize("image", ["debian12", "debian13"])
def test_a_genuine_image_gets_nothing(tree, image):
    assert tree.image_debs(image) == []
