# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`lab` on real containers: what a host is, what survives a reboot, and that nothing foreign is ever touched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

import pytest

from gpulab import inotify, lifecycle, podman
from gpulab.cache import SANDBOX, cache_dir

pytestmark = [pytest.mark.sandbox, pytest.mark.controller]

INVENTORY = SANDBOX / "inventory-selftest.yml"
SOURCES = Path(tempfile.mkdtemp(prefix="gpulab-selftest-")) / "sandbox"
"""`lab` runs from a copy of its sources: an edit of them during the tests would make hosts anew that should stay."""

LAB = SOURCES / "lab"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def lab(*arguments: str, rc: int = 0, command: Path = LAB) -> str:
    """Run `lab`; what it wrote, after checking the exit status."""
    done = subprocess.run([str(command), *arguments], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == rc, done.stdout + done.stderr
    return done.stdout + done.stderr


def ssh(host: str, command: str, lab_name: str = "selftest") -> str:
    """Run a command on a host as a person would."""
    config = str(cache_dir() / "ssh" / f"config-{lab_name}")
    done = subprocess.run(["ssh", "-F", config, host, command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def ansible(*arguments: str) -> str:
    """An ad-hoc Ansible run over both hosts."""
    command = str(Path(sys.executable).with_name("ansible"))
    done = subprocess.run(
        [command, "-i", str(INVENTORY), "all", *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_podman(*arguments: str) -> str:
    """Podman itself, as this machine needs it."""
    return podman.podman(*arguments).stdout.strip()


def ids(lab_name: str = "selftest") -> Dict[str, str]:
    """Container ids of a lab by container name."""
    listed = run_podman("ps", "--all", "--filter", f"label=gpufleet.lab={lab_name}", "--format", "{{.Names}} {{.ID}}")
    return dict(line.split() for line in listed.splitlines())


def networks(prefix: str) -> List[str]:
    """The podman networks whose names begin so."""
    return [name for name in run_podman("network", "ls", "--format", "{{.Name}}").split() if name.startswith(prefix)]


def edited(tmp_path: Path, old: str, new: str, name: str = "hosts.yml") -> str:
    """A copy of the inventory with one change."""
    text = INVENTORY.read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    return str(tmp_path / name)


def another(folder: Path, lab_name: str, *hosts: str) -> str:
    """An inventory of another lab, in the next quarter of the subnet, with hosts of the genuine image."""
    head = INVENTORY.read_text().split("    deb01:")[0]
    head = head.replace(": selftest", f": {lab_name}").replace("10.203.6.0/26", "10.203.6.64/26")
    lines = [
        f"    {host}: {{ansible_host: 10.203.6.{70 + number}, sandbox_image: debian12}}\n"
        for number, host in enumerate(hosts)
    ]
    path = folder / f"{lab_name}.yml"
    path.write_text(head + "".join(lines))
    return str(path)


@pytest.fixture(scope="module", autouse=True)
def hosts() -> Iterator[None]:
    """The lab of this file, up for all of its tests."""
    shutil.copytree(SANDBOX, SOURCES, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    lab("up", "--fresh", str(INVENTORY))
    yield
    lab("down", str(INVENTORY))
    shutil.rmtree(SOURCES.parent)
    assert ids() == {}
    assert networks("gpulab-selftest") == []


# --- what a host is ------------------------------------------------------------------------------------------------


def test_up_again_changes_nothing():
    before = ids()
    assert sorted(before) == ["selftest-deb01", "selftest-gpu01", "selftest-repo"]
    assert "0 of them started now" in lab("up", str(INVENTORY))
    assert ids() == before


def test_status_tells_each_host_and_whether_all_are_up(tmp_path: Path):
    assert [line.split()[:2] for line in lab("status", str(INVENTORY)).splitlines()[1:]] == [
        ["deb01", "up"],
        ["gpu01", "up"],
    ]
    more = edited(tmp_path, "    gpu01:", "    new01: {ansible_host: 10.203.6.13, sandbox_image: debian12}\n    gpu01:")
    assert "new01  missing" in lab("status", more, rc=1)


def test_systemd_runs_the_host_and_every_unit_is_well():
    for host in ("deb01", "gpu01"):
        assert ssh(host, "cat /proc/1/comm; systemctl is-system-running --wait") == "systemd\nrunning"


def test_ansible_reaches_the_hosts_and_sees_the_systems_they_play():
    facts = ansible("-m", "ansible.builtin.setup", "-a", "gather_subset=!all,distribution", "-o")
    assert '"ansible_distribution": "Debian"' in facts
    assert '"ansible_distribution": "Ubuntu"' in facts
    assert '"ansible_distribution_version": "22.04"' in facts
    assert '"ansible_distribution_release": "jammy"' in facts


def test_a_stand_in_says_that_it_is_one_and_a_genuine_image_has_no_such_label():
    assert "not Ubuntu" in ssh("gpu01", "cat /etc/gpulab-standin")
    assert ssh("deb01", "ls /etc/gpulab-standin 2>&1 || true").endswith("No such file or directory")


def test_a_stand_in_keeps_its_identity_when_base_files_is_installed_again():
    ssh("gpu01", "apt-get install -qq --reinstall base-files > /dev/null 2>&1")
    assert (
        ssh("gpu01", ". /etc/os-release; echo $ID $VERSION_ID; cat /etc/debian_version") == "ubuntu 22.04\nbookworm/sid"
    )


def test_apt_knows_its_packages_before_any_update():
    assert "Candidate: 5.15." in ssh("gpu01", "apt-cache policy linux-headers-generic")
    assert "Candidate: 535." in ssh("deb01", "apt-cache policy nvidia-driver")
    assert ssh("gpu01", "apt-cache policy nvidia-kernel-dkms") == "", (
        "Debian's own driver competes with the generated ones"
    )


def test_the_repository_server_answers_by_its_name():
    fetch = "import urllib.request as r; print(r.urlopen('http://repo.lab/ubuntu/dists/jammy/InRelease').status)"
    for host in ("deb01", "gpu01"):
        assert ssh(host, f'python3 -c "{fetch}"') == "200"
    only_ubuntu = "-o Dir::Etc::sourcelist=sources.list.d/ubuntu.sources -o Dir::Etc::sourceparts=-"
    assert ssh("gpu01", f"apt-get update -qq --error-on=any -o APT::Get::List-Cleanup=0 {only_ubuntu} 2>&1") == ""


def test_the_declared_hardware_is_there_and_only_there():
    assert ssh("gpu01", "lspci -d 10de: | wc -l") == "12"
    assert ssh("deb01", "lspci -d 10de: | wc -l") == "0"


# --- what stays this machine's own ---------------------------------------------------------------------------------


def test_kernel_settings_of_a_host_do_not_reach_this_machine():
    huge_pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    before = (Path("/proc/sys/vm/swappiness").read_text(), huge_pages.read_text())
    ssh("gpu01", f"sysctl -qw vm.swappiness=3; echo never > {huge_pages}; sleep 0.5")
    assert ssh("gpu01", f"cat /proc/sys/vm/swappiness {huge_pages}") == "3\nalways madvise [never]"
    assert (Path("/proc/sys/vm/swappiness").read_text(), huge_pages.read_text()) == before


def test_a_host_can_set_no_clock_and_load_no_module():
    bounding = int(ssh("gpu01", "awk '/CapBnd/ {print $2}' /proc/1/status"), 16)
    assert not bounding & (1 << 25), "CAP_SYS_TIME"
    assert not bounding & (1 << 16), "CAP_SYS_MODULE"


def test_kernel_messages_stay_in_their_host():
    ssh("gpu01", "echo '4,1,0,-;selftest: a message of the kernel' > /run/lab/kmsg; sleep 0.5")
    assert "selftest: a message of the kernel" in ssh("gpu01", "journalctl -k --no-pager")
    assert "selftest" not in ssh("deb01", "journalctl -k --no-pager")
    dmesg = subprocess.run(["dmesg"], capture_output=True, text=True, check=True)
    assert "selftest" not in dmesg.stdout


def test_a_fault_shows_until_it_is_cleared():
    state = "python3 /usr/lib/gpulab/bin/gpusim state"
    lab("fault", "--lab", "selftest", "gpu01", "--gpu", "2", "--link", "5", "nvlink_down")
    broken = ssh("gpu01", state)
    lab("clear", "--lab", "selftest", "gpu01")
    assert json.loads(broken)["faults"] != json.loads(ssh("gpu01", state))["faults"]


def test_lab_and_ssh_see_the_same_uptime():
    uptime = float(lifecycle.exec_in("selftest-gpu01", "cat", "/proc/uptime").split()[0])
    assert abs(float(ssh("gpu01", "cat /proc/uptime").split()[0]) - uptime) < 10


# --- reboots -------------------------------------------------------------------------------------------------------


def test_reboot_really_restarts_the_host():
    ssh("gpu01", "touch /run/volatile /var/lib/lasting; sysctl -qw vm.swappiness=3; echo 192.0.2.1 other >> /etc/hosts")
    before = (ssh("gpu01", f"cat {BOOT_ID}"), ssh("gpu01", "systemctl show -P ExecMainStartTimestamp ssh"))
    other = ssh("deb01", f"cat {BOOT_ID}")
    time.sleep(max(0.0, 20 - float(ssh("gpu01", "cut -d' ' -f1 /proc/uptime"))))
    uptime = float(ssh("gpu01", "cut -d' ' -f1 /proc/uptime"))
    lab("reboot", "--lab", "selftest", "gpu01")
    assert float(ssh("gpu01", "cut -d' ' -f1 /proc/uptime")) < uptime or not Path("/proc/self/ns/time").exists()
    after = (ssh("gpu01", f"cat {BOOT_ID}"), ssh("gpu01", "systemctl show -P ExecMainStartTimestamp ssh"))
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert ssh("gpu01", "ls /run/volatile /var/lib/lasting 2> /dev/null || true") == "/var/lib/lasting"
    assert ssh("gpu01", "cat /proc/sys/vm/swappiness") == Path("/proc/sys/vm/swappiness").read_text().strip()
    assert "192.0.2.1 other" in ssh("gpu01", "cat /etc/hosts")
    assert int(ssh("gpu01", "journalctl --list-boots --no-pager -q | grep -c :")) >= 2
    assert ssh("deb01", f"cat {BOOT_ID}") == other


def test_ansible_can_reboot_all_hosts_and_their_keys_stay():
    keys = [ssh(host, "cat /etc/ssh/ssh_host_ed25519_key.pub") for host in ("deb01", "gpu01")]
    boots = [ssh(host, f"cat {BOOT_ID}") for host in ("deb01", "gpu01")]
    assert ansible("-m", "ansible.builtin.reboot", "-a", "reboot_timeout=60", "-o").count('"rebooted": true') == 2
    assert keys[0] != keys[1]
    assert [ssh(host, "cat /etc/ssh/ssh_host_ed25519_key.pub") for host in ("deb01", "gpu01")] == keys
    assert not set(boots) & {ssh(host, f"cat {BOOT_ID}") for host in ("deb01", "gpu01")}


# --- following the inventory ---------------------------------------------------------------------------------------


def test_only_hosts_whose_inputs_changed_are_made_anew(tmp_path: Path):
    before = ids()
    lab("up", edited(tmp_path, "dgx-h100-8", "none"))
    between = ids()
    assert between["selftest-gpu01"] != before["selftest-gpu01"]
    assert between["selftest-deb01"] == before["selftest-deb01"]
    assert between["selftest-repo"] == before["selftest-repo"]
    assert ssh("gpu01", "lspci -d 10de: | wc -l") == "0"
    lab("up", str(INVENTORY))
    assert ssh("gpu01", "lspci -d 10de: | wc -l") == "12"


def test_a_host_that_left_the_inventory_is_removed_and_a_stopped_one_is_made_anew(tmp_path: Path):
    more = edited(tmp_path, "    gpu01:", "    new01: {ansible_host: 10.203.6.13, sandbox_image: debian12}\n    gpu01:")
    lab("up", more)
    assert "selftest-new01" in ids()
    run_podman("stop", "--time", "0", "selftest-deb01")
    lab("up", str(INVENTORY))
    assert "selftest-new01" not in ids()
    assert "up" in lab("status", str(INVENTORY))


# --- mistakes, found before anything is started --------------------------------------------------------------------

MISTAKES: List[Any] = [
    pytest.param("ubuntu2204", "centos9", "unknown sandbox_image centos9; known: debian12, debian13", id="image"),
    pytest.param("dgx-h100-8", "dgx-1", "unknown profile dgx-1; known: dgx-h100-8", id="profile"),
    pytest.param("10.203.6.12", "10.203.8.12", "gpu01: ansible_host 10.203.8.12 is not a host address", id="address"),
    pytest.param("sandbox_image", "image", "no host has the variable sandbox_image", id="no sandbox hosts"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_in_the_inventory_touches_nothing(tmp_path: Path, old: str, new: str, message: str):
    before = ids()
    assert message in lab("up", "--fresh", edited(tmp_path, old, new), rc=2)
    assert ids() == before


REQUESTS: List[Any] = [
    pytest.param(["fault", "--lab", "selftest", "gpu01", "smoke"], "unknown fault smoke; known: ", id="fault"),
    pytest.param(
        ["fault", "--lab", "selftest", "gpu99", "lost"], "no host gpu99 in lab selftest; hosts there: deb01", id="host"
    ),
    pytest.param(["reboot", "--lab", "nowhere", "gpu01"], "no host gpu01 in lab nowhere; hosts there: none", id="lab"),
]


@pytest.mark.parametrize(("arguments", "message"), REQUESTS)
def test_a_wrong_request_names_what_there_is(arguments: Sequence[str], message: str):
    assert message in lab(*arguments, rc=2)


# --- several labs, and things that are not ours --------------------------------------------------------------------


def test_two_labs_come_up_at_once_and_a_host_of_both_needs_the_lab_named(tmp_path: Path):
    second = another(tmp_path, "selftest2", "deb01")
    try:
        running = [
            subprocess.Popen(
                [str(LAB), "up", "--fresh", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for path in (str(INVENTORY), second)
        ]
        said = [process.communicate(timeout=300)[0] for process in running]
        assert [process.returncode for process in running] == [0, 0], said
        said = lab("reboot", "deb01", rc=2)
        assert "host deb01 is in several labs (" in said
        assert "selftest2" in said
        first = ssh("deb01", f"cat {BOOT_ID}")
        lab("reboot", "--lab", "selftest2", "deb01")
        assert ssh("deb01", f"cat {BOOT_ID}") == first
    finally:
        lab("down", second)
    assert ids("selftest2") == {}
    assert len(ids()) == 3
    assert int(inotify.LIMIT.read_text()) >= inotify.WANTED, "put back although a lab is up"


def test_a_subnet_that_another_lab_has_is_refused_and_the_lab_is_named(tmp_path: Path):
    inventory = Path(another(tmp_path, "selftest2", "deb01"))
    inventory.write_text(inventory.read_text().replace("10.203.6.64/26", "10.203.6.0/24"))
    assert "10.203.6.0/26 is that of lab selftest" in lab("up", str(inventory), rc=1)
    assert ids("selftest2") == {}


def test_foreign_containers_are_refused_and_they_and_foreign_networks_left_alone(tmp_path: Path):
    inventory = another(tmp_path, "selftest3", "gpu01")
    image = run_podman("inspect", "--format", "{{.ImageName}}", "selftest-repo")
    created = run_podman("create", "--name", "selftest3-gpu01", *podman.run_options(), image, "true")
    try:
        assert "a container selftest3-gpu01 exists that this tool did not make" in lab("up", inventory, rc=1)
        lab("down", inventory)
        assert run_podman("inspect", "--format", "{{.Id}}", "selftest3-gpu01") == created
    finally:
        run_podman("rm", "selftest3-gpu01")
    run_podman("network", "create", "gpulab-selftest3")
    try:
        lab("up", inventory)
        lab("down", inventory)
        assert networks("gpulab-selftest3") == ["gpulab-selftest3"]
        assert ids("selftest3") == {}
    finally:
        run_podman("network", "rm", "gpulab-selftest3")


# --- interruptions and failures ------------------------------------------------------------------------------------


@pytest.fixture
def other(tmp_path: Path) -> Iterator[str]:
    """An inventory of a lab that is not up, with more hosts than start at a time."""
    inventory = another(tmp_path, "selftest4", *(f"n{number}" for number in range(6)))
    yield inventory
    lab("down", inventory)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_nothing_behind(other: str, number: signal.Signals):
    before = ids()
    process = subprocess.Popen([str(LAB), "up", other], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 120
    while len(ids("selftest4")) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert ids("selftest4") == {}
    assert networks("gpulab-selftest4") == []
    assert "10.203.6.65/26" not in subprocess.run(["ip", "-brief", "address"], capture_output=True, text=True).stdout
    assert not (cache_dir() / "ssh" / "config-selftest4").exists()
    assert ids() == before


def test_an_interrupted_addition_keeps_the_hosts_that_were_up(tmp_path: Path):
    before = ids()
    hosts = "".join(
        f"    n{number}: {{ansible_host: 10.203.6.{40 + number}, sandbox_image: debian12}}\n" for number in range(6)
    )
    process = subprocess.Popen([str(LAB), "up", edited(tmp_path, "    gpu01:", hosts + "    gpu01:")])
    deadline = time.monotonic() + 120
    while len(ids()) < len(before) + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=120) == 130
    assert ids() == before
    assert "up" in lab("status", str(INVENTORY))


def test_a_killed_start_is_finished_by_the_next(other: str):
    process = subprocess.Popen([str(LAB), "up", other])
    deadline = time.monotonic() + 120
    while len(ids("selftest4")) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    lab("up", other)
    assert lab("status", other).count("  up  ") == 6


@pytest.fixture
def bridge(request: pytest.FixtureRequest) -> Iterator[str]:
    """A bridge with the address that the other lab's gateway would get, and a port on it."""
    name: str = request.param
    for command in (
        f"link add {name} type bridge",
        f"address add 10.203.6.65/26 dev {name}",
        f"link set {name} up",
        "link add gpulab-port type veth peer name gpulab-peer",
        f"link set gpulab-port master {name}",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    yield name
    for link in ("gpulab-port", name):
        subprocess.run(["ip", "link", "delete", link], check=False, capture_output=True)


@pytest.mark.parametrize("bridge", ["podman97"], indirect=True)
def test_what_podman_left_of_a_network_is_removed_first(other: str, bridge: str):
    lab("up", other)
    assert not Path("/sys/class/net", bridge).exists()
    assert not Path("/sys/class/net/gpulab-port").exists()


@pytest.mark.parametrize("bridge", ["operator97"], indirect=True)
def test_a_bridge_that_is_not_podmans_is_left_alone(other: str, bridge: str):
    assert "10.203.6.64/26" in lab("up", other, rc=1)
    assert Path("/sys/class/net", bridge).exists()
    assert Path("/sys/class/net/gpulab-port").exists()


def test_a_host_that_does_not_boot_is_reported_with_its_last_words_and_all_is_removed(tmp_path: Path, other: str):
    broken = tmp_path / "sandbox"
    shutil.copytree(SOURCES, broken, symlinks=True)
    init = broken / "gpusim" / "bin" / "lab-init"
    init.write_text("#!/bin/sh\necho this host is broken >&2\nexit 1\n")
    said = lab("up", other, rc=1, command=broken / "lab")
    assert "does not boot" in said
    assert "this host is broken" in said
    assert ids("selftest4") == {}
    assert networks("gpulab-selftest4") == []


def test_without_root_nothing_is_tried(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(SANDBOX)}
    code = "import os, sys; os.geteuid = lambda: 1000; from gpulab.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "up", str(INVENTORY)], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, "lab needs root" in done.stderr) == (1, True), done.stderr


def test_hosts_are_labelled_with_what_they_were_made_from():
    labels = json.loads(run_podman("inspect", "--format", "{{json .Config.Labels}}", "selftest-gpu01"))
    assert labels["gpufleet.lab"] == "selftest"
    assert labels["gpufleet.host"] == "gpu01"
    assert labels["gpufleet.profile"] == "dgx-h100-8"
