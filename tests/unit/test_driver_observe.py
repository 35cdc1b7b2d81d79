# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the planner is told about a machine, read from a folder that looks like one and from commands that answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._driver_facts import FABRIC_MANAGER, PERSISTENCED
from ansible_collections.gpufleet.server.plugins.module_utils._driver_observe import (
    observe_machine,
    with_gpu_users,
    with_policies,
)
from ansible_collections.gpufleet.server.plugins.module_utils._host import CommandResult, Host

SOURCE = "/etc/apt/sources.list.d/gpufleet-nvidia.sources"
KEYRING = "/etc/apt/keyrings/gpufleet-nvidia.gpg"
KEY = (Path(__file__).parent / "data_openpgp" / "ed25519.asc").read_bytes()
KERNEL = "5.15.0-164-generic"

DPKG = "\n".join(
    "\t".join(row)
    for row in (
        ("dpkg", "amd64", "1.21.1", "install", "installed", "ok"),
        ("nvidia-open-580", "amd64", "580.178.04-1ubuntu1", "hold", "installed", "ok"),
        ("linux-image-generic", "amd64", "5.15.0.164.163", "install", "installed", "ok"),
    )
)
MODINFO = """\
filename:       /lib/modules/%s/updates/dkms/nvidia.ko
version:        580.178.04
license:        Dual MIT/GPL
srcversion:     0123
""" % KERNEL
# systemd 249, `systemctl show`
UNITS = """\
MainPID=77
NRestarts=2
ExecStart={ path=/usr/bin/nvidia-persistenced ; argv[]=/usr/bin/nvidia-persistenced --user nvpd --persistence-mode ; \
ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }
Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
NeedDaemonReload=yes

MainPID=0
NRestarts=0
Id=nvidia-fabricmanager.service
LoadState=not-found
ActiveState=inactive
SubState=dead
NeedDaemonReload=no
"""
SMI = """\
00000000:1B:00.0, 580.178.04
00000000:43:00.0, 580.178.04
"""


class StagedHost(Host):
    """Files come from a folder, commands from a table of their first words; whatever is not in it is not found."""

    def __init__(self, root, answers):
        super().__init__(str(root))
        self.answers = answers
        self.asked = []

    def run(self, argv, timeout_s=60.0, max_bytes=0, env=None, stdin=None):
        self.asked.append(tuple(argv))
        matching = [start for start in self.answers if tuple(argv)[: len(start)] == start]
        if matching:
            rc, stdout = self.answers[max(matching, key=len)]
            return CommandResult(tuple(argv), rc, stdout, "", 0.1, timed_out=rc is None)
        return CommandResult(tuple(argv), None, "", "", 0.0, missing=True)


ANSWERS = {
    ("dpkg-query", "-W"): (0, DPKG),
    ("modinfo", "-k", KERNEL, "nvidia"): (0, MODINFO),
    ("systemctl", "show"): (0, UNITS),
    ("nvidia-smi", "--query-gpu=pci.bus_id,driver_version"): (0, SMI),
}


@pytest.fixture
def stage(tmp_path):
    """`stage(files, links, answers)`: a machine with those on top of an ordinary one."""

    def build(files=None, links=None, answers=None):
        content = {
            "/etc/os-release": 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n',
            "/proc/sys/kernel/osrelease": "5.15.0-100-generic\n",
            "/proc/sys/kernel/random/boot_id": "11-22\n",
            "/boot/vmlinuz-" + KERNEL: "",
            "/lib/modules/%s/modules.dep" % KERNEL: "",
            "/sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de\n",
            "/sys/bus/pci/devices/0000:1b:00.0/device": "0x2330\n",
            "/sys/bus/pci/devices/0000:1b:00.0/class": "0x030200\n",
        }
        content.update(files or {})
        for path, text in content.items():
            target = tmp_path / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if isinstance(text, bytes) else text.encode())
        for path, where in (links or {}).items():
            target = tmp_path / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(where)
        table = dict(ANSWERS)
        table.update(answers or {})
        return StagedHost(tmp_path, table)

    return build


def observe(host, inputs=()):
    return observe_machine(host, SOURCE, KEYRING, inputs)


def test_a_bare_machine(stage):
    host = stage(answers={("modinfo", "-k", KERNEL, "nvidia"): (1, "")})
    seen = observe(host)
    assert (seen.os_id, seen.os_version, seen.architecture) == ("ubuntu", "22.04", "amd64")
    assert (seen.running_kernel, seen.boot_kernel, seen.kernel_flavour) == ("5.15.0-100-generic", KERNEL, "generic")
    assert [gpu.device for gpu in seen.pci.gpus] == ["2330"]
    assert (seen.loaded_version, seen.smi, seen.library_version) == (None, None, None)
    assert not any(argv[0] == "nvidia-smi" for argv in host.asked)  # nothing to ask before a module is loaded
    assert (seen.headers_present, seen.headers_package) == (False, "linux-headers-" + KERNEL)
    assert (seen.own_source_present, seen.key_fingerprints, seen.lists_present) == (False, (), False)
    assert seen.boot_id == "11-22"


def test_a_machine_with_a_driver(stage):
    host = stage(
        files={
            "/sys/module/nvidia/version": "580.178.04\n",
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.178.04  R\n",
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.178.04": "",
            "/proc/77/cmdline": b"/usr/bin/nvidia-persistenced\0--no-persistence-mode\0",
            "/lib/modules/%s/build/Makefile" % KERNEL: "",
            SOURCE: "Types: deb\nURIs: http://repo.lab/compute/cuda/repos/ubuntu2204/x86_64/\n",
            KEYRING: KEY,
            "/var/lib/apt/lists/repo.lab_compute_cuda_repos_ubuntu2204_x86%5f64_Packages": "",
        },
        links={"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "libnvidia-ml.so.580.178.04"},
    )
    seen = observe(host)
    assert (seen.module_version, seen.module_flavour) == ("580.178.04", "open")
    assert (seen.loaded_version, seen.loaded_flavour, seen.library_version) == ("580.178.04", "open", "580.178.04")
    assert (seen.smi.rc, seen.smi.bus_ids, seen.smi.versions) == (
        0, ("00000000:1B:00.0", "00000000:43:00.0"), ("580.178.04",))
    daemon = seen.units[PERSISTENCED]
    assert (daemon.active, daemon.enabled, daemon.restarts, daemon.needs_reload) == ("active", "enabled", 2, True)
    assert daemon.exec_start == "/usr/bin/nvidia-persistenced --user nvpd --persistence-mode"
    assert daemon.running_argv == "/usr/bin/nvidia-persistenced --no-persistence-mode"
    assert not seen.units[FABRIC_MANAGER].known
    assert seen.headers_present and seen.own_source_present and seen.lists_present
    assert seen.key_fingerprints == ("A7BC19D15FFB5E4898D791C6766BE19CCE3AA512",)
    assert seen.sources == ()
    assert seen.packages["nvidia-open-580"].held


@pytest.mark.parametrize(
    "licence, flavour", [("Dual MIT/GPL", "open"), ("NVIDIA", "proprietary"), ("", None)]
)
def test_the_licence_tells_the_flavour(stage, licence, flavour):
    text = "version: 580.178.04\nlicense: %s\n" % licence
    seen = observe(stage(answers={("modinfo", "-k", KERNEL, "nvidia"): (0, text)}))
    assert seen.module_flavour == flavour


def test_debians_own_module_has_another_name(stage):
    host = stage(answers={("modinfo", "-k", KERNEL, "nvidia"): (1, ""),
                          ("modinfo", "-k", KERNEL, "nvidia-current"): (0, "version: 535.261.03\nlicense: NVIDIA\n")})
    assert observe(host).module_version == "535.261.03"


@pytest.mark.parametrize(
    "rc, stdout, words",
    [(18, "Failed to initialize NVML: Driver/library version mismatch\n", "mismatch"), (None, "", "no answer")],
)
def test_an_nvidia_smi_that_fails_or_hangs_is_kept_with_its_words(stage, rc, stdout, words):
    seen = observe(stage(files={"/sys/module/nvidia/version": "580.178.04\n"},
                         answers={("nvidia-smi", "--query-gpu=pci.bus_id,driver_version"): (rc, stdout)}))
    assert (seen.smi.rc, seen.smi.bus_ids) == (rc, ())
    assert words in seen.smi.text


# domain facts 1.4, user-pain 10: other sources of the same repository stop apt with "Conflicting values … Signed-By"
@pytest.mark.parametrize(
    "path, text, alone",
    [
        ("/etc/apt/sources.list.d/cuda-ubuntu2204-x86_64.list",
         "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] "
         "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/ /\n", True),
        ("/etc/apt/sources.list.d/mine.sources",
         "Types: deb\nURIs: https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/\n", True),
        ("/etc/apt/sources.list.d/mixed.list",
         "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/ /\n"
         "deb https://example.org/debian stable main\n", False),
        ("/etc/apt/sources.list", "deb http://mirror.example/compute/cuda/repos/ubuntu2204/x86_64/ /\n", False),
    ],
)
def test_other_sources_of_the_repository_are_found(stage, path, text, alone):
    seen = observe(stage(files={path: text}))
    assert [(entry.path, entry.alone) for entry in seen.sources] == [(path, alone)]


@pytest.mark.parametrize(
    "options, other", [("[signed-by=/k/other.gpg] ", True), ("", True), ("[signed-by=%s] " % KEYRING, False)]
)
def test_a_source_under_another_key_than_the_roles_is_told(stage, options, other):
    text = "deb %shttps://x.example/compute/cuda/repos/ubuntu2204/x86_64 /\n" % options
    seen = observe(stage(files={"/etc/apt/sources.list.d/x.list": text}))
    assert [entry.other_key for entry in seen.sources] == [other]


@pytest.mark.parametrize(
    "path, text",
    [
        ("/etc/apt/sources.list.d/cuda.list", "# deb https://x.example/compute/cuda/repos/ubuntu2204/x86_64/ /\n"),
        ("/etc/apt/sources.list.d/cuda.list.save", "deb https://x.example/compute/cuda/repos/ubuntu2204/x86_64/ /\n"),
        ("/etc/apt/sources.list.d/ubuntu.sources", "Types: deb\nURIs: http://archive.ubuntu.com/ubuntu\n"),
    ],
)
def test_what_apt_does_not_read_or_is_another_repository_is_not_found(stage, path, text):
    assert observe(stage(files={path: text})).sources == ()


def test_a_damaged_key_file_is_seen_as_such(stage):
    assert observe(stage(files={KEYRING: b"rubbish"})).key_fingerprints == ("unreadable",)


@pytest.mark.parametrize("owner_rc, expected", [(1, "/usr/bin/nvidia-uninstall"), (0, None)])
def test_a_run_installation_is_an_uninstaller_that_no_package_owns(stage, owner_rc, expected):
    host = stage(files={"/usr/bin/nvidia-uninstall": ""}, answers={("dpkg-query", "-S"): (owner_rc, "")})
    assert observe(host).run_installer == expected


EFI = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@pytest.mark.parametrize(
    "answer, enrolled",
    [((1, "/var/lib/shim-signed/mok/MOK.der is already enrolled\n"), True),
     ((0, "/var/lib/shim-signed/mok/MOK.der is not enrolled\n"), False)],
)
def test_secure_boot_asks_for_the_key(stage, answer, enrolled):
    seen = observe(stage(files={EFI: b"\6\0\0\0\1", "/var/lib/shim-signed/mok/MOK.der": "k"},
                         answers={("mokutil", "--test-key"): answer}))
    assert (seen.secure_boot, seen.key_enrolled) == (True, enrolled)


def test_secure_boot_without_a_key_or_without_mokutil_is_not_enrolled(stage):
    assert observe(stage(files={EFI: b"\6\0\0\0\1"})).key_enrolled is None
    assert observe(stage(files={EFI: b"\6\0\0\0\0"})).secure_boot is False


def test_an_initramfs_older_than_the_settings_is_stale(stage):
    path = "/etc/modprobe.d/gpufleet-nvidia.conf"
    files = {path: "x", "/boot/initrd.img-" + KERNEL: "x"}
    assert observe(stage(files=files, answers={("find",): (0, path + "\n")}), [path]).initramfs_stale
    assert not observe(stage(files=files, answers={("find",): (0, "")}), [path]).initramfs_stale


def test_no_initramfs_is_none_that_could_be_stale(stage):
    path = "/etc/modprobe.d/gpufleet-nvidia.conf"
    host = stage(files={path: "x"}, answers={("find",): (0, path + "\n")})
    assert not observe(host, [path]).initramfs_stale


@pytest.mark.parametrize("name, interrupted", [("0003", True), ("tmp.i", False), (".keep", False)])
def test_dpkgs_journal_tells_of_an_interruption(stage, name, interrupted):
    assert observe(stage(files={"/var/lib/dpkg/updates/" + name: ""})).dpkg_interrupted is interrupted


def test_apts_answer_is_kept_by_name(stage):
    text = "nvidia-open-580:\n  Installed: (none)\n  Candidate: 580.178.04-1ubuntu1\n  Version table:\n" \
           "     580.178.04-1ubuntu1 600\n        600 http://repo.lab/ Packages\n"
    host = stage(answers={("apt-cache", "policy"): (0, text)})
    found = with_policies(host, observe(host), ["nvidia-open-580", "nvidia-none"])
    assert found.policies["nvidia-open-580"].candidate == "580.178.04-1ubuntu1"
    assert "nvidia-none" not in found.policies


def test_processes_and_containers_that_hold_gpus_are_named_and_the_drivers_own_daemons_are_not(stage):
    host = stage(
        files={
            "/proc/100/comm": "python3\n", "/proc/101/comm": "nvidia-persiste\n", "/proc/102/comm": "nv-fabricmanage\n",
            "/proc/103/comm": "containerd-shim\n", "/proc/104/comm": "bash\n", "/dev/nvidia3": "", "/dev/null": "",
            "/proc/version": "Linux\n",
        },
        answers={("nvidia-smi", "--query-compute-apps=pid,process_name"): (0, "4242, /usr/bin/train\n")},
    )
    root = Path(host.root)
    for pid in ("100", "101", "102"):
        (root / "proc" / pid / "fd").mkdir()
        (root / "proc" / pid / "fd" / "7").symlink_to(root / "dev/nvidia3")
    (root / "proc/104/fd").mkdir()
    (root / "proc/104/fd/0").symlink_to(root / "dev/null")
    found = with_gpu_users(host, observe(host))
    assert found.gpu_users == ("/usr/bin/train (4242)", "container containerd-shim (103)", "python3 (100)")


def test_a_hanging_nvidia_smi_leaves_open_who_works_on_the_gpus(stage):
    host = stage(answers={("nvidia-smi", "--query-compute-apps=pid,process_name"): (None, "")})
    assert len(with_gpu_users(host, observe(host)).gpu_users) == 1
