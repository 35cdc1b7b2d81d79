"""The kernel that will boot, and the names of its packages."""

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import Package
from ansible_collections.gpufleet.server.plugins.module_utils._kernels import (
    boot_kernel,
    flavour_of,
    headers_packages,
    kernel_meta,
)


def installed(*pairs, state="installed"):
    return {name: Package(name, version, "amd64", "install", state) for name, version in pairs}


@pytest.mark.parametrize(
    "boot, modules, running, expected",
    [
        (["vmlinuz-5.15.0-164-generic"], ["5.15.0-164-generic"], "5.15.0-164-generic", "5.15.0-164-generic"),
        (
            ["vmlinuz-5.15.0-91-generic", "vmlinuz-5.15.0-164-generic", "initrd.img-5.15.0-200-generic", "grub"],
            ["5.15.0-91-generic", "5.15.0-164-generic"],
            "5.15.0-91-generic",
            "5.15.0-164-generic",
        ),
        (["vmlinuz", "vmlinuz.old", "vmlinuz-6.1.0-9-amd64.old", "vmlinuz-6.1.0-8-amd64"], [], "x", "6.1.0-8-amd64"),
        (["vmlinuz-6.8.0-90-generic.dpkg-new", "vmlinuz-6.8.0-9-generic"], [], "x", "6.8.0-9-generic"),
        ([], ["6.1.0-28-amd64"], "6.1.0-28-amd64", "6.1.0-28-amd64"),
        ([], [], "6.18.44-host", None),
        (["config-6.1.0-28-amd64"], [], "6.18.44-host", None),
    ],
    ids=[
        "one",
        "newest-not-running",
        "old-copies",
        "half-unpacked",
        "modules-only",
        "container",
        "no-image-no-modules",
    ],
)
def test_the_newest_kernel_in_boot_will_boot(boot, modules, running, expected):
    assert boot_kernel(boot, modules, {}, running, "ubuntu").release == expected


def test_a_kernel_that_waits_for_a_reboot_is_noticed():
    kernel = boot_kernel(
        ["vmlinuz-5.15.0-91-generic", "vmlinuz-5.15.0-164-generic"], [], {}, "5.15.0-91-generic", "ubuntu"
    )
    assert kernel.differs
    assert kernel.source == "boot"
    assert kernel.installed == ("5.15.0-91-generic", "5.15.0-164-generic")
    assert kernel.without_modules


def test_without_any_kernel_nothing_waits_for_a_reboot():
    kernel = boot_kernel([], [], {}, "6.18.44-host", "debian")
    assert (kernel.source, kernel.differs, kernel.flavour) == ("none", False, None)


@pytest.mark.parametrize(
    "release, distribution, flavour",
    [
        ("5.15.0-164-generic", "ubuntu", "generic"),
        ("6.8.0-90-generic-64k", "ubuntu", "generic-64k"),
        ("6.8.0-1019-aws", "ubuntu", "aws"),
        ("5.15.0-1063-nvidia", "ubuntu", "nvidia"),
        ("5.4.0-216-lowlatency", "ubuntu", "lowlatency"),
        ("6.1.0-28-amd64", "debian", "amd64"),
        ("6.1.0-28-cloud-amd64", "debian", "cloud-amd64"),
        ("6.1.0-28-rt-amd64", "debian", "rt-amd64"),
        ("6.12.57+deb13-amd64", "debian", "amd64"),
        ("6.12.57+deb13-arm64-16k", "debian", "arm64-16k"),
        ("6.12.9+bpo-cloud-arm64", "debian", "cloud-arm64"),
        ("6.1.0-0.deb11.21-amd64", "debian", "amd64"),
        ("6.8.12-4-pve", "debian", "pve"),
        ("6.18.44-mine", "debian", None),
        ("6.18.44-mine", "ubuntu", None),
        ("6.1.77", "debian", None),
    ],
)
def test_flavour(release, distribution, flavour):
    assert flavour_of(release, distribution) == flavour


@pytest.mark.parametrize(
    "release, distribution, packages, exact, meta",
    [
        ("5.15.0-164-generic", "ubuntu", {}, "linux-headers-5.15.0-164-generic", "linux-headers-generic"),
        (
            "6.8.0-90-generic",
            "ubuntu",
            installed(
                ("linux-image-generic", "5.15.0.164.158"), ("linux-image-generic-hwe-22.04", "6.8.0-90.91~22.04.1")
            ),
            "linux-headers-6.8.0-90-generic",
            "linux-headers-generic-hwe-22.04",
        ),
        (
            "6.8.0-90-generic",
            "ubuntu",
            installed(("linux-image-generic-hwe-22.04", "6.8.0-90.91~22.04.1"), state="config-files"),
            "linux-headers-6.8.0-90-generic",
            "linux-headers-generic",
        ),
        (
            "6.8.0-90-generic",
            "ubuntu",
            installed(("linux-image-generic", "6.8.0-90.91"), ("linux-image-generic-64k", "6.8.0-99.99")),
            "linux-headers-6.8.0-90-generic",
            "linux-headers-generic",
        ),
        (
            "6.8.0-1019-aws",
            "ubuntu",
            installed(("linux-image-aws-lts-24.04", "6.8.0-1019.21")),
            "linux-headers-6.8.0-1019-aws",
            "linux-headers-aws-lts-24.04",
        ),
        (
            "6.1.0-28-amd64",
            "debian",
            installed(("linux-image-amd64", "6.1.119-1"), ("linux-image-amd64-dbg", "6.1.119-1")),
            "linux-headers-6.1.0-28-amd64",
            "linux-headers-amd64",
        ),
        ("6.1.0-28-cloud-amd64", "debian", {}, "linux-headers-6.1.0-28-cloud-amd64", "linux-headers-cloud-amd64"),
        ("6.8.12-4-pve", "debian", {}, "proxmox-headers-6.8.12-4-pve", "proxmox-headers-6.8"),
        ("6.18.44-mine", "debian", {}, None, None),
    ],
    ids=["plain", "hwe", "hwe-removed", "other-flavour", "aws-lts", "debian", "debian-cloud", "proxmox", "own-build"],
)
def test_headers_follow_the_metapackage_that_the_kernel_came_with(release, distribution, packages, exact, meta):
    headers = headers_packages(release, packages, distribution)
    assert (headers.exact, headers.meta) == (exact, meta)
    assert headers.names == tuple(name for name in (exact, meta) if name)


def test_kernel_meta_names_the_prebuilt_modules_suffix():
    packages = installed(("linux-image-generic-hwe-24.04", "6.17.0-8.8~24.04.1"))
    assert kernel_meta("6.17.0-8-generic", packages, "ubuntu") == "generic-hwe-24.04"
