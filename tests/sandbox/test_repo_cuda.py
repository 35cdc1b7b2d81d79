# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beside the driver: CUDA toolkits, NCCL, cuDNN, DCGM, the container toolkit and Docker, as the real apt sees them."""

from __future__ import annotations

import subprocess

import pytest
from scratch_machines import CommandFailed, read_from_deb

REPOSITORY = "compute/cuda/repos/%s/x86_64"
JAMMY = REPOSITORY % "ubuntu2204"
NOBLE = REPOSITORY % "ubuntu2404"
TOOLKIT = "libnvidia-container/stable/deb/amd64"
OLD = ["11-8", "12-1", "12-4"]
TWELVE = ["12-5", "12-6", "12-8", "12-9"]
THIRTEEN = ["13-0", "13-1", "13-2", "13-3", "13-4", "13-5"]

# --- CUDA toolkits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distribution", "key_name", "toolkits"), [
    ("ubuntu2004", "nvidia", OLD + TWELVE),
    ("ubuntu2204", "nvidia", OLD + TWELVE + THIRTEEN),
    ("ubuntu2404", "nvidia", TWELVE + THIRTEEN),
    ("ubuntu2604", "nvidia-ubuntu2604", ["13-3", "13-4", "13-5"]),
    ("debian12", "nvidia", OLD[1:] + TWELVE + THIRTEEN),
    ("debian13", "nvidia-debian13", THIRTEEN),
])
def test_a_distribution_has_the_toolkits_of_its_time(machine, distribution, key_name, toolkits):
    names = machine(REPOSITORY % distribution, key_name=key_name).must(
        "apt-cache", "search", "--names-only", "^cuda-toolkit-[0-9]+-[0-9]+$").splitlines()
    assert sorted(name.split(" ")[0] for name in names) == sorted("cuda-toolkit-" + toolkit for toolkit in toolkits)


DRIVER = "^(nvidia-(open|driver|dkms|headless)|cuda-drivers|libnvidia)"


@pytest.mark.parametrize("toolkit", OLD + TWELVE + THIRTEEN)
def test_a_toolkits_versioned_name_brings_no_driver(machine, toolkit):
    bare = machine(JAMMY)
    bare.install("cuda-toolkit-" + toolkit)
    assert "cuda-nvcc-" + toolkit in bare.installed
    assert bare.versions_installed(DRIVER) == []


@pytest.mark.parametrize("name", ["cuda=12.9.1-1", "cuda-12-9", "cuda-runtime-12-9", "cuda=13.3.1-1", "cuda-13-0"])
def test_the_metapackage_named_cuda_brings_a_driver_and_the_newest_one(machine, name):
    """How a machine loses the driver it was given: never install it."""
    bare = machine(JAMMY)
    bare.install(name)
    assert bare.versions_installed("^nvidia-driver-open$") == ["620.70.06"]


@pytest.mark.parametrize("name", ["cuda", "cuda-13-4", "cuda-13-5"])
def test_from_13_4_on_no_metapackage_brings_a_driver(machine, name):
    bare = machine(JAMMY)
    bare.install(name)
    assert bare.versions_installed(DRIVER) == []


def test_cuda_replaces_the_driver_of_ubuntus_archive(machine, url, key):
    """The metapackage is content with a driver of NVIDIA's repository only."""
    mixed = machine(JAMMY)
    mixed.set_sources([*mixed.sources, "deb [signed-by=%s] %s/ubuntu jammy-updates main restricted multiverse"
                       % (key("ubuntu"), url)])
    mixed.update()
    mixed.install("nvidia-driver-580-server-open")
    assert mixed.versions_installed("^nvidia-driver-580-server-open$") == ["580.178.04"]
    mixed.install("cuda=12.9.1-1")
    assert mixed.versions_installed("^nvidia-driver") == ["620.70.06"]


def test_toolkits_stand_side_by_side(machine):
    many = machine(JAMMY)
    many.install(*["cuda-toolkit-" + toolkit for toolkit in OLD + TWELVE + THIRTEEN])
    assert len([name for name in many.installed if name.startswith("cuda-nvcc-")]) == 13


def test_the_unversioned_names_mean_the_newest(machine):
    newest = machine(NOBLE)
    newest.install("cuda-toolkit-12", "cuda-toolkit")
    assert {"cuda-toolkit-12-9", "cuda-toolkit-13-5"} <= set(newest.installed)


def test_on_2604_the_name_cuda_toolkit_exists_in_two_archives(machine, url, key):
    both = machine(REPOSITORY % "ubuntu2604", key_name="nvidia-ubuntu2604")
    both.set_sources([*both.sources, "deb [signed-by=%s] %s/ubuntu resolute multiverse" % (key("ubuntu"), url)])
    both.update()
    assert both.versions("cuda-toolkit") == ["13.5.0-1", "13.4.2-1", "13.3.1-1", "13.1.0-0ubuntu1"]
    assert both.candidate("nvidia-cuda-toolkit").startswith("12.4.")


def one(folder, pattern):
    (deb,) = folder.glob(pattern)
    return deb


def test_a_toolkit_says_which_it_is(tree, tmp_path):
    nvcc = tmp_path / "nvcc"
    deb = one(tree.root / JAMMY, "cuda-nvcc-12-9_*.deb")
    nvcc.write_bytes(read_from_deb(deb, "/usr/local/cuda-12.9/bin/nvcc"))
    said = subprocess.run(["sh", str(nvcc), "--version"], check=True, capture_output=True, text=True).stdout
    assert "Cuda compilation tools, release 12.9, V12.9.1\n" in said
    deb = one(tree.root / JAMMY, "cuda-toolkit-12-9_*.deb")
    assert b'"version": "12.9.1"' in read_from_deb(deb, "/usr/local/cuda-12.9/version.json")


# --- NCCL, cuDNN, DCGM ---------------------------------------------------------------------------------------------


def test_an_nccl_is_built_for_several_toolkits(machine):
    assert machine(JAMMY).versions("libnccl2") == [
        "2.32.3-1+cuda13.4", "2.32.3-1+cuda12.9", "2.30.4-1+cuda13.0", "2.30.4-1+cuda12.9"]


def test_nccl_taken_blindly_is_built_for_another_toolkit(machine):
    mixed = machine(JAMMY)
    mixed.install("cuda-toolkit-12-9", "libnccl-dev")
    assert mixed.installed["libnccl2"] == "2.32.3-1+cuda13.4"
    mixed.install("libnccl2=2.30.4-1+cuda12.*", "libnccl-dev=2.30.4-1+cuda12.*", downgrade=True)
    assert mixed.installed["libnccl2"] == "2.30.4-1+cuda12.9"


def test_nccls_headers_insist_on_their_own_library(machine):
    with pytest.raises(CommandFailed, match="libnccl-dev : Depends: libnccl2"):
        machine(JAMMY).install("libnccl2=2.30.4-1+cuda12.9", "libnccl-dev=2.30.4-1+cuda13.0")


@pytest.mark.parametrize(("distribution", "key_name", "present", "absent"), [
    ("ubuntu2004", "nvidia", "cudnn9-cuda-12", "cudnn9-cuda-13"),
    ("ubuntu2604", "nvidia-ubuntu2604", "cudnn9-cuda-13", "cudnn9-cuda-12"),
    ("ubuntu2204", "nvidia", "libcudnn8", "libcudnn7"),
    ("ubuntu2404", "nvidia", "libcudnn9-headers-cuda-13", "libcudnn8"),
])
def test_cudnn_is_there_for_the_toolkits_that_are(machine, distribution, key_name, present, absent):
    names = machine(REPOSITORY % distribution, key_name=key_name).must("apt-cache", "pkgnames").splitlines()
    assert present in names
    assert absent not in names


def test_the_last_cudnn_for_volta_can_be_had_and_is_not_the_newest(machine):
    volta = machine(JAMMY)
    assert volta.versions("libcudnn9-cuda-12") == ["9.13.0.50-1", "9.10.2.21-1"]
    volta.install(*["%s=9.10.2.21-1" % name for name in ("cudnn9-cuda-12", "libcudnn9-dev-cuda-12",
                                                        "libcudnn9-headers-cuda-12", "libcudnn9-cuda-12")])
    assert volta.versions_installed("cudnn") == ["9.10.2.21"]


def test_a_cudnn_metapackage_at_an_exact_version_does_not_bring_the_rest_along(machine):
    with pytest.raises(CommandFailed, match="unmet dependencies"):
        machine(JAMMY).install("cudnn9-cuda-12=9.10.2.21-1")


def test_the_cudnn_of_one_cuda_replaces_that_of_another(machine):
    changed = machine(JAMMY)
    changed.install("cudnn9-cuda-12")
    changed.install("cudnn9-cuda-13")
    assert "libcudnn9-cuda-13" in changed.installed
    assert not [name for name in changed.installed if name.endswith("cuda-12")]


@pytest.mark.parametrize("major", ["12", "13"])
def test_dcgm_4_comes_with_the_plugins_of_one_cuda(machine, major):
    bare = machine(JAMMY)
    bare.install("datacenter-gpu-manager-4-cuda" + major)
    assert set(bare.installed) == {
        "datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-proprietary",
        "datacenter-gpu-manager-4-proprietary-cuda" + major, "datacenter-gpu-manager-4-cuda" + major}
    assert bare.installed["datacenter-gpu-manager-4-core"] == "1:4.6.0-1"


def test_dcgms_name_without_a_number_is_version_3_and_throws_version_4_out(machine):
    changed = machine(JAMMY)
    changed.install("datacenter-gpu-manager-4-cuda12", "datacenter-gpu-manager-4-cuda13")
    changed.install("datacenter-gpu-manager")
    assert changed.installed["datacenter-gpu-manager"] == "1:3.3.9"
    assert "datacenter-gpu-manager-4-core" not in changed.installed


# --- containers ----------------------------------------------------------------------------------------------------

FOUR = ["nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools",
        "libnvidia-container1"]


def test_the_toolkit_is_there_at_several_versions_on_both_sides_of_the_safe_one(machine):
    assert machine(TOOLKIT, key_name="toolkit").versions("nvidia-container-toolkit") == [
        "1.20.0-1", "1.19.1-1", "1.19.0-1", "1.18.0-1", "1.17.8-1", "1.16.2-1"]


def test_all_four_packages_of_the_toolkit_have_to_be_named_at_an_exact_version(machine):
    bare = machine(TOOLKIT, key_name="toolkit")
    with pytest.raises(CommandFailed, match="unmet dependencies"):
        bare.install("nvidia-container-toolkit=1.19.1-1")
    bare.install(*["%s=1.19.1-1" % name for name in FOUR])
    assert bare.versions_installed() == ["1.19.1"]


@pytest.mark.parametrize("priorities", ["", "Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n"])
def test_the_cuda_repository_has_an_older_toolkit_and_its_priorities_decide(machine, url, key, priorities):
    both = machine(JAMMY)
    both.set_sources([*both.sources, "deb [signed-by=%s] %s/%s /" % (key("toolkit"), url, TOOLKIT)])
    (both.root / "etc/apt/preferences.d/cuda-repository-pin-600").write_text(priorities)
    both.update()
    assert both.candidate("nvidia-container-toolkit") == ("1.17.8-1" if priorities else "1.20.0-1")


@pytest.mark.parametrize(("version", "has_units"), [("1.17.8", False), ("1.18.0", True), ("1.20.0", True)])
def test_cdi_units_come_with_1_18(tree, version, has_units):
    deb = one(tree.root / TOOLKIT, "nvidia-container-toolkit-base_%s-*.deb" % version)
    listed = subprocess.run(["dpkg-deb", "--contents", str(deb)], check=True, capture_output=True, text=True).stdout
    assert ("nvidia-cdi-refresh.path" in listed) == has_units
    assert ('version %s"' % version).encode() in read_from_deb(deb, "/usr/bin/nvidia-ctk")


@pytest.mark.parametrize(("path", "suite", "version"), [
    ("linux/ubuntu", "noble", "5:29.6.1-1~ubuntu.24.04~noble"),
    ("linux/ubuntu", "resolute", "5:29.6.1-1~ubuntu.26.04~resolute"),
    ("linux/debian", "trixie", "5:29.6.1-1~debian.13~trixie"),
])
def test_dockers_engine_comes_with_a_client_and_a_containerd_of_its_own(machine, path, suite, version):
    bare = machine(path, suite + " stable", "docker")
    bare.install("docker-ce")
    assert bare.installed["docker-ce"] == bare.installed["docker-ce-cli"] == version
    assert {"containerd.io", "docker-buildx-plugin", "docker-compose-plugin"} <= set(bare.installed)


def test_an_older_engine_needs_its_client_named(machine):
    bare = machine("linux/ubuntu", "noble stable", "docker")
    with pytest.raises(CommandFailed, match="docker-ce : Depends: docker-ce-cli"):
        bare.install("docker-ce=5:28.5.2-1~ubuntu.24.04~noble")
