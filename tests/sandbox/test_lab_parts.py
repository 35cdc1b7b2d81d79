# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of `lab` needs no container: reading inventories, naming what is cached, starting commands, keeping limits."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from gpulab import cache, cli, hosts, images, inotify, inventory, podman, process, remains, simulator, ssh, systems
from gpulab.cache import SANDBOX
from gpulab.errors import Interrupted, LabError, UsageError

pytestmark = pytest.mark.controller


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test of this file touches the real cache, nor the machine's locks."""
    monkeypatch.setenv("GPUFLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "LOCKS", tmp_path / "locks")
    return tmp_path / "cache"


# --- inventories ---------------------------------------------------------------------------------------------------

SHARED = {"sandbox_lab": "demo", "sandbox_subnet": "10.203.6.0/24"}
LISTING: Dict[str, Any] = {
    "_meta": {
        "hostvars": {
            "gpu02": {**SHARED, "ansible_host": "10.203.6.12", "sandbox_image": "ubuntu2404"},
            "gpu01": {
                **SHARED,
                "ansible_host": "10.203.6.11",
                "sandbox_image": "ubuntu2204",
                "sandbox_profile": "dgx-h100-8",
            },
            "real01": {"ansible_host": "192.0.2.7"},
        }
    }
}


def test_an_inventory_becomes_a_lab_and_hosts_without_an_image_are_not_ours():
    lab = inventory.parse("hosts.yml", LISTING)
    assert (lab.name, lab.gateway, lab.repo_address) == ("demo", "10.203.6.1", "10.203.6.2")
    assert [(host.name, host.address, host.image, host.profile) for host in lab.hosts] == [
        ("gpu01", "10.203.6.11", "ubuntu2204", "dgx-h100-8"),
        ("gpu02", "10.203.6.12", "ubuntu2404", "none"),
    ]
    assert (lab.container("gpu01"), lab.repo_container) == ("demo-gpu01", "demo-repo")


Edit = Callable[[Dict[str, Dict[str, Any]]], Any]
MISTAKES: List[Any] = [
    pytest.param(lambda hosts: hosts.clear(), "no host has the variable sandbox_image", id="no sandbox hosts"),
    pytest.param(
        lambda hosts: [host.pop("sandbox_lab", 0) for host in hosts.values()],
        "sandbox_lab is not set",
        id="lab missing",
    ),
    pytest.param(
        lambda hosts: hosts["gpu01"].update(sandbox_lab="other"),
        "sandbox_lab differs between hosts (demo, other)",
        id="two labs",
    ),
    pytest.param(
        lambda hosts: [host.update(sandbox_lab="{{ x }}") for host in hosts.values()],
        "sandbox_lab is '{{ x }}'",
        id="lab by Jinja",
    ),
    pytest.param(
        lambda hosts: [host.update(sandbox_subnet="10.203.6.1/24") for host in hosts.values()],
        "has host bits set",
        id="not a network",
    ),
    pytest.param(
        lambda hosts: [host.update(sandbox_subnet="8.8.8.0/24") for host in hosts.values()],
        "a private network",
        id="public network",
    ),
    pytest.param(lambda hosts: hosts["gpu01"].pop("ansible_host"), "gpu01: ansible_host is ''", id="no address"),
    pytest.param(
        lambda hosts: hosts["gpu01"].update(ansible_host="gpu01.lan"), "gpu01: ansible_host is 'gpu01.lan'", id="a name"
    ),
    pytest.param(
        lambda hosts: hosts["gpu01"].update(ansible_host="10.203.7.11"),
        "10.203.7.11 is not a host address of 10.203.6.0/24",
        id="outside",
    ),
    pytest.param(
        lambda hosts: hosts["gpu01"].update(ansible_host="10.203.6.255"), "is not a host address", id="broadcast"
    ),
    pytest.param(
        lambda hosts: hosts["gpu01"].update(ansible_host="10.203.6.2"),
        "10.203.6.2 is taken",
        id="the repository server's",
    ),
    pytest.param(
        lambda hosts: hosts["gpu01"].update(ansible_host="10.203.6.12"),
        "gpu02: address 10.203.6.12 is also that of gpu01",
        id="twice",
    ),
    pytest.param(
        lambda hosts: hosts.update(repo=dict(hosts.pop("gpu01"))), "repo: this name is taken", id="reserved name"
    ),
    pytest.param(
        lambda hosts: hosts.update(gpu_1=dict(hosts.pop("gpu01"))),
        "gpu_1: a sandbox host's name must match",
        id="odd name",
    ),
]


@pytest.mark.parametrize(("edit", "message"), MISTAKES)
def test_a_mistake_in_an_inventory_is_named_before_anything_starts(edit: Edit, message: str):
    listing = copy.deepcopy(LISTING)
    edit(listing["_meta"]["hostvars"])
    with pytest.raises(UsageError) as caught:
        inventory.parse("hosts.yml", listing)
    assert message in str(caught.value)
    assert str(caught.value).startswith("hosts.yml: ")


def test_all_mistakes_of_an_inventory_are_named_at_once():
    listing = copy.deepcopy(LISTING)
    listing["_meta"]["hostvars"]["gpu01"]["ansible_host"] = "10.203.7.11"
    listing["_meta"]["hostvars"]["gpu02"]["ansible_host"] = "10.203.6.1"
    with pytest.raises(UsageError) as caught:
        inventory.parse("hosts.yml", listing)
    assert len(str(caught.value).splitlines()) == 2


def test_a_real_inventory_is_read_by_ansible_itself_with_group_variables(tmp_path: Path):
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("sandbox_lab: demo\nsandbox_subnet: 10.203.6.0/24\n")
    (tmp_path / "hosts.ini").write_text("[gpu_servers]\ngpu01 ansible_host=10.203.6.11 sandbox_image=debian12\n")
    assert inventory.load(str(tmp_path)).hosts[0].image == "debian12"


def test_a_missing_or_unreadable_inventory_is_an_error(tmp_path: Path):
    with pytest.raises(UsageError, match="no inventory at"):
        inventory.load(str(tmp_path / "nowhere"))
    (tmp_path / "hosts.ini").write_text("[gpu_servers\n")
    with pytest.raises(UsageError, match="Ansible cannot read this inventory"):
        inventory.load(str(tmp_path / "hosts.ini"))


# --- what is cached, and under which name --------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_text("1")
    (folder / "sub" / "b").write_text("2")
    (folder / "link").symlink_to("a")
    return folder


TREE_CHANGES: List[Any] = [
    pytest.param(lambda tree: (tree / "a").write_text("2"), id="content"),
    pytest.param(lambda tree: (tree / "a").chmod(0o755), id="mode"),
    pytest.param(lambda tree: (tree / "a").rename(tree / "c"), id="name"),
    pytest.param(lambda tree: (tree / "sub" / "b").unlink(), id="removal"),
    pytest.param(lambda tree: ((tree / "link").unlink(), (tree / "link").symlink_to("sub")), id="link target"),
]


@pytest.mark.parametrize("change", TREE_CHANGES)
def test_a_digest_changes_with_its_inputs(tree: Path, change: Callable[[Path], Any]):
    before = cache.digest_of("text", tree)
    assert cache.digest_of("text", tree) == before
    change(tree)
    assert cache.digest_of("text", tree) != before


def test_a_digest_keeps_texts_apart_and_ignores_compiled_files(tree: Path):
    assert cache.digest_of("ab", "c") != cache.digest_of("a", "bc")
    before = cache.digest_of(tree)
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert cache.digest_of(tree) == before


IMAGES: List[Any] = [
    # image, suite it is made from, stand-in, and with a mirror of Ubuntu's archive
    ("debian12", "bookworm", False, "bookworm"),
    ("debian13", "trixie", False, "trixie"),
    ("ubuntu2004", "bullseye", True, "focal"),
    ("ubuntu2204", "bookworm", True, "jammy"),
    ("ubuntu2404", "bookworm", True, "noble"),
    ("ubuntu2604", "trixie", True, "resolute"),
]


@pytest.mark.parametrize(("image", "suite", "stand_in", "genuine_suite"), IMAGES)
def test_an_image_is_made_from_the_release_it_is_or_stands_for(
    image: str, suite: str, stand_in: bool, genuine_suite: str
):
    system = systems.system_of(image)
    assert (system.base.suite, system.base.vendor, system.stand_in) == (suite, "Debian", stand_in)
    genuine = systems.system_of(image, ubuntu_mirror="http://mirror.lan/ubuntu")
    assert (genuine.base.suite, genuine.stand_in) == (genuine_suite, False)
    assert (images.SOURCES / image).is_dir() == stand_in


@pytest.mark.parametrize("image", [row[0] for row in IMAGES if row[2]])
def test_a_stand_in_carries_the_identity_that_its_name_says(image: str):
    identity = (images.SOURCES / image / "usr/lib/os-release").read_text()
    release = dict(line.replace('"', "").split("=", 1) for line in identity.splitlines())
    older = (images.SOURCES / image / "etc/lsb-release").read_text()
    assert image == release["ID"] + release["VERSION_ID"].replace(".", "")
    assert release["VERSION_CODENAME"] == systems.system_of(image, "http://mirror.lan/ubuntu").base.suite
    assert "stand-in" in release["PRETTY_NAME"]
    assert f"DISTRIB_RELEASE={release['VERSION_ID']}\nDISTRIB_CODENAME={release['VERSION_CODENAME']}\n" in older


def test_images_that_can_be_built_are_named_when_another_is_asked_for():
    assert images.known_images() == [row[0] for row in IMAGES]
    with pytest.raises(UsageError, match=r"unknown sandbox_image centos9; known: debian12, debian13, ubuntu2004"):
        images.check_known(["debian12", "centos9"])


@pytest.mark.parametrize(("suite", "components"), [
    ("bullseye", "main contrib non-free"),
    ("bookworm", "main contrib non-free non-free-firmware"),
    ("trixie", "main contrib non-free non-free-firmware"),
])
def test_debians_own_driver_is_within_reach(suite: str, components: str):
    assert systems.debian(suite).components == components


class FakeRepositories:
    """No packages and no indexes: what an image is named by is the business of these tests, not what is in it."""

    root, server = Path("/nonexistent"), Path("/nonexistent/server.py")

    def image_debs(self, _image: str) -> List[Path]:
        return []

    def archive_digest(self) -> str:
        return "archive"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """Names of the images that would be built, in order."""
    built: List[str] = []
    monkeypatch.setattr(images, "_have", lambda reference: False)
    monkeypatch.setattr(images, "_build_base", lambda bootstrap, reference: built.append(bootstrap.base.name))
    monkeypatch.setattr(images, "_build_image", lambda system, *_: built.append(f"{system.image} {system.base.name}"))
    return built


@pytest.mark.parametrize(("wanted", "expected"), [
    (["debian12", "ubuntu2404"], ["base-bookworm", "debian12 base-bookworm", "ubuntu2404 base-bookworm"]),
    (["ubuntu2604"], ["base-bookworm", "base-trixie", "ubuntu2604 base-trixie"]),
    (["ubuntu2004"], ["base-bookworm", "base-bullseye", "ubuntu2004 base-bullseye"]),
    ([], ["base-bookworm"]),
])
def test_only_what_an_inventory_asks_for_is_built_and_the_repository_servers_base(
    builds: List[str], wanted: List[str], expected: List[str]
):
    references = images.ensure_images(wanted, FakeRepositories())  # type: ignore[arg-type]
    assert builds == expected
    assert references["base"] == references["base-bookworm"]


def test_with_a_mirror_of_ubuntus_archive_the_same_name_is_the_genuine_system(
    builds: List[str], monkeypatch: pytest.MonkeyPatch
):
    stand_in = images.ensure_images(["ubuntu2204"], FakeRepositories())["ubuntu2204"]  # type: ignore[arg-type]
    monkeypatch.setenv("GPUFLEET_UBUNTU_MIRROR", "http://mirror.lan/ubuntu")
    genuine = images.ensure_images(["ubuntu2204"], FakeRepositories())["ubuntu2204"]  # type: ignore[arg-type]
    assert builds[-2:] == ["base-jammy", "ubuntu2204 base-jammy"]
    assert genuine != stand_in


def bootstrap_command(base: systems.Base) -> List[str]:
    return images._mmdebstrap(images._bootstrap(base), Path("/x/base.tar"))


def test_a_genuine_ubuntu_is_bootstrapped_from_the_named_mirror_with_ubuntus_keys(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GPUFLEET_UBUNTU_MIRROR", "http://mirror.lan/ubuntu")
    command = bootstrap_command(systems.system_of("ubuntu2404", "http://mirror.lan/ubuntu").base)
    components = "main restricted universe multiverse"
    assert command[-5:] == ["noble", "/x/base.tar"] + [
        f"deb http://mirror.lan/ubuntu noble{pocket} {components}" for pocket in ("", "-updates", "-security")
    ]
    assert "--keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg" in command
    assert "--components=main,restricted,universe,multiverse" in command


def test_without_ubuntus_keys_a_genuine_ubuntu_is_refused_and_the_package_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(images, "UBUNTU_KEYRING", tmp_path / "missing.gpg")
    base = systems.system_of("ubuntu2404", "http://mirror.lan/ubuntu").base
    with pytest.raises(LabError, match="install ubuntu-keyring"):
        images._build_base(images._bootstrap(base), "localhost/x:1")


@pytest.mark.parametrize(("suite", "merged"), [("bullseye", True), ("bookworm", False), ("trixie", False)])
def test_a_base_has_one_lib_and_one_bin_as_an_installed_system_has(suite: str, merged: bool):
    """From bookworm on that is so without asking; in bullseye packages of /usr/lib/modules would miss /lib/modules."""
    hooks = [part for part in bootstrap_command(systems.debian(suite)) if part.startswith("--setup-hook=")]
    assert bool(hooks) == merged


def test_the_hook_for_old_systems_makes_the_links_of_a_new_one(tmp_path: Path):
    subprocess.run(["sh", "-euc", images.MERGE_USR, "sh", str(tmp_path)], check=True)
    assert os.readlink(tmp_path / "lib") == "usr/lib"
    assert (tmp_path / "bin").is_dir()
    assert (tmp_path / "sbin").is_dir()
    assert (tmp_path / "lib64").is_dir()


def test_images_are_removed_before_the_bases_they_are_layers_on():
    found = ["p/base-trixie:1", "p/debian13:1", "p/base-bookworm:2", "p/ubuntu2604:3"]
    assert systems.references_first(found, "p") == [
        "p/debian13:1", "p/ubuntu2604:3", "p/base-bookworm:2", "p/base-trixie:1"]


def test_profiles_and_faults_that_exist_are_named_when_another_is_asked_for():
    with pytest.raises(UsageError, match=r"unknown profile dgx-1; known: .*dgx-h100-8.*none"):
        simulator.check_known("profiles", ["none", "dgx-1"])
    with pytest.raises(UsageError, match=r"unknown fault smoke; known: .*lost"):
        simulator.check_known("faults", ["smoke"])


TARGETS = """\
http://mirror.lan/debian/ bookworm Debian
http://mirror.lan/debian/ bookworm-updates Debian
http://mirror.lan/debian/ bookworm-backports Debian
http://mirror.lan/security/ bookworm-security Debian
http://vendor.lan/apt/ bookworm Vendor
"""
MODERN = "main contrib non-free non-free-firmware"
SOURCES_ROWS: List[Any] = [
    pytest.param(
        "bookworm",
        TARGETS,
        [
            f"deb http://mirror.lan/debian/ bookworm {MODERN}",
            f"deb http://mirror.lan/debian/ bookworm-updates {MODERN}",
            f"deb http://mirror.lan/security/ bookworm-security {MODERN}",
        ],
        id="a Debian machine with a mirror",
    ),
    pytest.param(
        "trixie",
        TARGETS,
        [
            f"deb http://mirror.lan/debian/ trixie {MODERN}",
            f"deb http://mirror.lan/debian/ trixie-updates {MODERN}",
            f"deb http://mirror.lan/security/ trixie-security {MODERN}",
        ],
        id="another release is at the same addresses",
    ),
    pytest.param(
        "bullseye",
        "http://mirror.lan/debian/ trixie Debian\n",
        ["deb http://mirror.lan/debian/ bullseye main contrib non-free"],
        id="no security suite, and the components of an older release",
    ),
    pytest.param("bookworm", "http://archive.lan/ubuntu/ noble Ubuntu\n", [], id="an Ubuntu machine: the default"),
    pytest.param("bookworm", "http://mirror.lan/security/ bookworm-security Debian\n", [], id="security alone"),
    pytest.param("bookworm", "file:/srv/debian/ bookworm Debian\n", [], id="a folder is not reachable from a host"),
]


@pytest.mark.parametrize(("suite", "targets", "expected"), SOURCES_ROWS)
def test_the_archive_of_the_images_is_the_one_this_machine_uses(
    monkeypatch: pytest.MonkeyPatch, suite: str, targets: str, expected: List[str]
):
    answer = process.Completed(argv=[], rc=0, stdout=targets, stderr="")
    monkeypatch.setattr(images, "run", lambda argv, **_: answer)
    monkeypatch.setattr(images.shutil, "which", lambda _: "/usr/bin/apt-get")
    assert images._sources(systems.debian(suite)) == expected


def test_a_mirror_named_in_the_environment_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GPUFLEET_DEBIAN_MIRROR", "http://mirror.lan/debian")
    sources = images._sources(systems.debian("trixie"))
    assert [line.split()[1:3] for line in sources] == [
        ["http://mirror.lan/debian", "trixie"], ["http://mirror.lan/debian", "trixie-updates"]]


# --- ssh -----------------------------------------------------------------------------------------------------------


def test_ssh_itself_understands_the_configuration_of_a_lab():
    ssh.write_config(inventory.parse("hosts.yml", LISTING))
    answer = subprocess.run(
        ["ssh", "-G", "-F", str(ssh.config_path("demo")), "gpu01"], capture_output=True, text=True, check=True
    )
    options = dict(line.split(" ", 1) for line in answer.stdout.splitlines() if " " in line)
    assert (options["hostname"], options["user"]) == ("10.203.6.11", "root")
    assert options["identityfile"].strip('"').endswith("/ssh/id_ed25519")
    assert options["userknownhostsfile"] == "/dev/null"


def test_a_control_path_too_long_for_ssh_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lab = inventory.parse("hosts.yml", LISTING)
    monkeypatch.setenv("GPUFLEET_CACHE", str(tmp_path / ("x" * 90)))
    ssh.write_config(lab)
    assert "ControlPath" not in ssh.config_path("demo").read_text()
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setenv("GPUFLEET_CACHE", short)
        ssh.write_config(lab)
        assert f'ControlPath "{Path(short).resolve()}/ssh/cp-%C"' in ssh.config_path("demo").read_text()


def test_the_key_is_made_once():
    assert ssh.ensure_key().startswith("ssh-ed25519 ")
    assert ssh.ensure_key() == ssh.ensure_key()


# --- commands ------------------------------------------------------------------------------------------------------


@pytest.fixture
def stoppable() -> Iterator[None]:
    yield
    process.allow_again()


def test_a_failed_command_shows_its_last_lines():
    with pytest.raises(LabError) as caught:
        process.run(["sh", "-c", "echo first; echo wrong >&2; exit 3"])
    assert "exit status 3" in str(caught.value)
    assert "wrong" in str(caught.value)


def test_a_failed_build_names_its_log(tmp_path: Path):
    with pytest.raises(LabError, match=rf"wrong\n.*{tmp_path}/build.log"):
        process.run(["sh", "-c", "echo wrong >&2; exit 3"], log=tmp_path / "build.log")


def test_a_missing_command_says_how_to_get_it():
    with pytest.raises(LabError, match="no-such-command is not installed; 'make setup'"):
        process.run(["no-such-command"])


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path):
    mark = tmp_path / "pid"
    with pytest.raises(LabError, match="no answer within 1 s"):
        process.run(["sh", "-c", f"sleep 60 & echo $! > {mark}; wait"], timeout_s=1)
    assert not _alive(int(mark.read_text()))


def test_stopping_lets_a_command_finish_that_leaves_a_mess_when_cut_off(stoppable: None, tmp_path: Path):
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    results: List[process.Completed] = []

    def work() -> None:
        results.append(process.run(["sh", "-c", f"touch {begun}; sleep 1; touch {ended}"], finish=True))

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 10
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.stop_all()
    thread.join(timeout=10)
    assert ended.exists()
    assert [done.rc for done in results] == [0]


def test_an_interrupt_waits_for_such_a_command_and_goes_on_then(tmp_path: Path):
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    code = (
        "import signal\nfrom gpulab import process\n"
        "signal.signal(signal.SIGTERM, lambda *unused: (_ for _ in ()).throw(KeyboardInterrupt()))\n"
        f"process.run(['sh', '-c', 'touch {begun}; sleep 1; touch {ended}'], finish=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SANDBOX)})
    deadline = time.monotonic() + 10
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    child.terminate()
    assert child.wait(timeout=10) == -signal.SIGINT
    assert ended.exists()


def test_stopping_ends_commands_of_all_threads_and_refuses_new_ones(stoppable: None):
    outcomes: List[str] = []

    def work() -> None:
        try:
            process.run(["sleep", "60"])
        except Interrupted:
            outcomes.append("interrupted")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 10
    while len(process._RUNNING.processes) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.stop_all()
    for thread in threads:
        thread.join(timeout=10)
    assert outcomes == ["interrupted", "interrupted"]
    with pytest.raises(Interrupted):
        process.run(["true"])
    with pytest.raises(Interrupted):
        process.pause(0)


def _alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- what podman left behind --------------------------------------------------------------------------------------

ADDRESS = [{"family": "inet", "local": "10.203.6.1", "prefixlen": 24}]


@pytest.mark.parametrize(
    ("bridge", "orphaned"),
    [
        ({"ifname": "podman2", "addr_info": ADDRESS}, True),
        ({"ifname": "cni-podman2", "addr_info": ADDRESS}, True),
        ({"ifname": "podman2", "addr_info": [{"local": "10.203.6.65"}, *ADDRESS]}, True),
        pytest.param({"ifname": "podman1", "addr_info": ADDRESS}, False, id="a network's"),
        pytest.param({"ifname": "br0", "addr_info": ADDRESS}, False, id="an operator's"),
        pytest.param({"ifname": "podman2-uplink", "addr_info": ADDRESS}, False, id="an operator's, like podman's"),
        pytest.param({"ifname": "podman2", "addr_info": [{"local": "10.203.6.10"}]}, False, id="another address"),
        pytest.param({"ifname": "podman2", "addr_info": []}, False, id="no address"),
        pytest.param({}, False, id="ip's placeholder for another type"),
    ],
)
def test_only_a_bridge_of_podmans_with_our_address_and_no_network_is_a_remainder(
    bridge: Dict[str, Any], orphaned: bool
):
    expected = [bridge["ifname"]] if orphaned else []
    assert remains.orphans([bridge], {"podman0", "podman1"}, "10.203.6.1") == expected


# --- what podman needs on this kind of machine ---------------------------------------------------------------------

MACHINES: List[Any] = [
    pytest.param(False, 1 << 20, [], [], id="ordinary: cgroup v2 and a high limit"),
    pytest.param(True, 1 << 20, ["--runtime", "runc"], ["--cgroupns=private"], id="cgroup v1"),
    pytest.param(
        False,
        20000,
        [],
        ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096"],
        id="limits that cannot be raised",
    ),
]


@pytest.mark.parametrize(("cgroup_v1", "files", "global_options", "run_options"), MACHINES)
def test_podman_gets_only_the_options_that_this_machine_needs(
    monkeypatch: pytest.MonkeyPatch, cgroup_v1: bool, files: int, global_options: List[str], run_options: List[str]
):
    monkeypatch.setattr(podman, "cgroup_v1", lambda: cgroup_v1)
    monkeypatch.setattr(podman.resource, "getrlimit", lambda _: (1024, files))
    assert podman._global_options.__wrapped__() == global_options
    assert podman.run_options.__wrapped__() == ["--stop-timeout", "0", *run_options]


# --- waiting for a host ------------------------------------------------------------------------------------------


def wait(monkeypatch: pytest.MonkeyPatch, restart_counts: List[int], polls_until_ready: int) -> None:
    """Wait for a host that shows these restart counts, one at each look, and greets after so many polls."""
    looks = iter(restart_counts)
    polls = iter([False] * polls_until_ready + [True])
    monkeypatch.setattr(hosts, "inspect", lambda _: {"RestartCount": next(looks)})
    monkeypatch.setattr(hosts, "greets", lambda _: next(polls))
    monkeypatch.setattr(hosts, "last_words", lambda _: "  its last words")
    monkeypatch.setattr(hosts, "pause", lambda _: None)
    hosts.wait_for_host("demo-gpu01", "10.203.6.11")


def test_a_host_that_was_often_rebooted_and_is_slow_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    wait(monkeypatch, [7, 7, 8, 9], polls_until_ready=70)


def test_a_host_that_restarts_again_and_again_is_given_up_with_its_last_words(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(LabError, match=r"demo-gpu01: does not boot.*\n  its last words"):
        wait(monkeypatch, [7, 8, 9, 10], polls_until_ready=100)


# --- the machine's limit -------------------------------------------------------------------------------------------


@pytest.fixture
def limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "max_user_instances"
    file.write_text("128\n")
    monkeypatch.setattr(inotify, "LIMIT", file)
    monkeypatch.setattr(inotify, "FORMER", tmp_path / "run" / "former")
    return file


def test_the_inotify_limit_is_raised_once_and_put_back(limit: Path):
    inotify.raise_limit()
    inotify.raise_limit()
    assert limit.read_text() == "1024\n"
    inotify.put_back()
    assert limit.read_text() == "128\n"
    limit.write_text("256\n")
    inotify.put_back()
    assert limit.read_text() == "256\n"


def test_a_higher_limit_is_never_lowered(limit: Path):
    limit.write_text("8192\n")
    inotify.raise_limit()
    inotify.put_back()
    assert limit.read_text() == "8192\n"


def test_a_limit_that_somebody_changed_meanwhile_stays(limit: Path):
    inotify.raise_limit()
    limit.write_text("4096\n")
    inotify.put_back()
    assert limit.read_text() == "4096\n"


# --- the command line ----------------------------------------------------------------------------------------------


def test_profiles_and_faults_are_listed_without_any_lab(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["profiles"]) == 0
    assert cli.main(["faults"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"dgx-h100-8", "hgx-a100-8", "none", "lost", "xid", "hang", "nvlink_down"} <= set(listed)


def test_the_first_process_of_a_host_is_posix_sh():
    for script in (simulator.SOURCE / "bin" / "lab-init", images.SOURCES / "setup.sh", cache.SANDBOX / "lab"):
        subprocess.run(["sh", "-n", str(script)], check=True)
