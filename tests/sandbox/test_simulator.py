# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated machine: what a boot makes, what versions do to each other, what faults do and for how long."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest
from simulated_machine import KERNEL, PROGRAMS, Machine

OLD, NEW = "580.159.03", "580.178.04"


@pytest.fixture
def bare(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path).install(NEW).boot()


def kernel_log(machine) -> str:
    return "\n".join(machine.state()["kernel_log"])


# --- what loads ---------------------------------------------------------------------------------------------------


def test_without_a_library_nvidia_smi_ends_with_12_on_stdout(bare):
    answer = bare.boot().call("nvidia-smi", "-L")
    assert answer.rc == 12
    assert answer.text.startswith("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.")
    assert answer.stderr == ""


@pytest.mark.parametrize("arguments", [(), ("-q", "-x"), ("--version",), ("--no-such-option",), ("nvlink", "-s")])
def test_before_the_reboot_after_an_installation_everything_ends_with_9(bare, arguments):
    bare.boot().install(NEW)
    answer = bare.smi(*arguments)
    assert (answer.rc, answer.stderr) == (9, "")
    assert answer.text == (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.\n\n"
    )


@pytest.mark.parametrize("arguments", [(), ("-q", "-x"), ("-L",), ("--query-gpu=name", "--format=csv"), ("topo", "-m")])
def test_an_upgrade_without_a_reboot_is_a_version_mismatch(bare, arguments):
    bare.install(OLD).boot()
    bare.install(NEW)
    answer = bare.smi(*arguments)
    assert (answer.rc, answer.stderr) == (18, "")
    assert answer.text == "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178\n"


def test_a_reboot_loads_the_upgrade(bare):
    bare.install(OLD).boot()
    bare.install(NEW).boot()
    assert bare.query("driver_version") == [[NEW]] * 8
    assert (bare.root / "sys/module/nvidia/version").read_text() == NEW + "\n"


def test_the_newest_installed_kernel_boots_and_decides_what_is_loaded(bare):
    bare.install(OLD, kernel="5.15.0-9-generic")
    bare.install(NEW, kernel="5.15.0-164-generic").boot()
    assert bare.state()["kernel"] == "5.15.0-164-generic"
    assert bare.state()["module"]["version"] == NEW


def test_a_newer_kernel_without_a_module_boots_without_a_driver(bare):
    bare.install(NEW)
    bare.write("boot/vmlinuz-6.8.0-90-generic", b"")
    bare.write("lib/modules/6.8.0-90-generic/modules.builtin", b"")
    bare.boot()
    assert bare.smi("-L").rc == 9
    assert not (bare.root / "sys/module/nvidia").exists()


@pytest.mark.parametrize("built, loaded", [((OLD, NEW), NEW), ((NEW, OLD), OLD)])
def test_a_dkms_module_wins_over_a_prebuilt_one(bare, built, loaded):
    prebuilt, dkms = built
    bare.install(dkms)
    module = f"\0version={prebuilt}\0license=NVIDIA\0".encode()
    bare.write(f"lib/modules/{KERNEL}/kernel/nvidia-580srv/nvidia.ko", module)
    assert bare.boot().state()["module"]["version"] == loaded
    (bare.root / "lib/modules" / KERNEL / "updates/dkms/nvidia.ko").unlink()
    assert bare.boot().state()["module"] == {
        "path": str(bare.root / "lib/modules" / KERNEL / "kernel/nvidia-580srv/nvidia.ko"),
        "version": prebuilt,
        "license": "NVIDIA",
    }


@pytest.mark.parametrize("suffix, module", [("xz", "lzma"), ("gz", "gzip"), ("bz2", "bz2")])
def test_a_compressed_module_is_read(bare, suffix, module):
    bare.install(NEW)
    path = f"lib/modules/{KERNEL}/updates/dkms/nvidia.ko"
    content = (bare.root / path).read_bytes()
    (bare.root / path).unlink()
    bare.write(f"{path}.{suffix}", importlib.import_module(module).compress(content))
    assert bare.boot().state()["module"]["version"] == NEW


@pytest.mark.parametrize(
    "license_text, words",
    [("Dual MIT/GPL", "NVIDIA UNIX Open Kernel Module for x86_64  "), ("NVIDIA", "NVIDIA UNIX x86_64 Kernel Module  ")],
)
def test_proc_names_the_flavour_of_the_module(bare, license_text, words):
    bare.install(NEW, license_text).boot()
    first = (bare.root / "proc/driver/nvidia/version").read_text().splitlines()[0]
    assert first.startswith(f"NVRM version: {words}{NEW}  ")


def test_a_machine_without_gpus_loads_nothing(tmp_path):
    machine = Machine(tmp_path, "none").install(NEW).boot()
    assert machine.smi().rc == 9
    vendors = {path.read_text().strip() for path in tmp_path.glob("sys/bus/pci/devices/*/vendor")}
    assert vendors and "0x10de" not in vendors


def test_loading_makes_device_files_and_a_kernel_log_line(machine):
    names = {path.name for path in (machine.root / "dev").iterdir()}
    assert names >= {"nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm", "nvidia-nvswitch3", "nvidia-nvswitchctl"}
    assert kernel_log(machine).startswith("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.178.04")


# --- hardware -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "profile, gpu, switch",
    [("dgx-h100-8", (8, "0x2330"), (4, "0x22a3")), ("hgx-a100-8", (8, "0x20b2"), (6, "0x1af1"))],
)
def test_pci_functions_of_a_profile(tmp_path, profile, gpu, switch):
    Machine(tmp_path, profile).boot()
    found = {}
    for folder in tmp_path.glob("sys/bus/pci/devices/*"):
        key = tuple((folder / name).read_text().strip() for name in ("vendor", "device", "class"))
        found[key] = found.get(key, 0) + 1
        config = (folder / "config").read_bytes()
        assert len(config) == 256
        assert config[2:4] == int(key[1], 16).to_bytes(2, "little")
        assert config[9:12] == int(key[2], 16).to_bytes(3, "little")
    assert found["0x10de", gpu[1], "0x030200"] == gpu[0]
    assert found["0x10de", switch[1], "0x068000"] == switch[0]


def test_numa_nodes_are_listed(machine):
    nodes = machine.root / "sys/devices/system/node"
    assert (nodes / "online").read_text() == "0-1\n"
    assert (nodes / "node1/cpulist").read_text() == "56-111,168-223\n"
    assert (machine.root / "sys/bus/pci/devices/0000:df:00.0/numa_node").read_text() == "1\n"


def test_identities_stay_over_a_reboot_and_differ_between_machines(machine, tmp_path_factory):
    before = machine.query("uuid,serial")
    assert len({cell for row in before for cell in row}) == 16
    assert machine.boot().query("uuid,serial") == before
    other = Machine(tmp_path_factory.mktemp("other"))
    other.settings["LAB_SEED"] = "another"
    assert other.install(NEW).boot().query("uuid,serial") != before


# --- faults -------------------------------------------------------------------------------------------------------

LOST = (
    "Unable to determine the device handle for GPU0000:61:00.0: GPU is lost.  "
    "Reboot the system to recover this GPU\n\n\n"
)


@pytest.mark.parametrize(
    "arguments, rc, text",
    [
        ((), 15, LOST),
        (("-q", "-x"), 15, LOST),
        (("-q",), 15, LOST),
        (("nvlink", "-s"), 15, LOST),
        (("nvlink", "-e"), 15, LOST),
        (("--query-gpu=name", "--format=csv"), 15, LOST),
        (("-pm", "1"), 15, LOST),
        (("-i", "3", "-q"), 15, LOST),
        (("topo", "-m"), 255, "Failed to run topology matrix\n\n"),
        (("-i", "0000:1B:00.0", "-q"), 6, "No devices were found\n"),
        (("-i", "GPU-0", "-q"), 255, "Problem with GPU 3: GPU is lost.  Reboot the system to recover this GPU\n"),
    ],
)
def test_a_lost_gpu_spoils_every_answer_that_needs_its_handle(machine, arguments, rc, text):
    machine.fault("--gpu", "3", "lost")
    answer = machine.smi(*arguments)
    assert (answer.rc, answer.text, answer.stderr) == (rc, text, "")


def test_a_lost_gpu_is_named_in_the_list_of_the_others(machine):
    machine.fault("--gpu", "3", "lost")
    answer = machine.smi("-L")
    assert answer.rc == 15
    assert answer.text.count("(UUID: ") == 7
    assert LOST.replace("GPU0000", "gpu 0000", 1) in answer.text


def test_another_gpu_can_still_be_asked_by_index(machine):
    machine.fault("--gpu", "3", "lost")
    assert machine.query("index", "-i", "0,7") == [["0"], ["7"]]


def test_a_lost_gpu_stays_on_the_bus_and_reads_as_ones_until_the_reboot(machine):
    folder = machine.root / "sys/bus/pci/devices/0000:61:00.0"
    machine.fault("--gpu", "3", "lost")
    assert (folder / "config").read_bytes() == b"\xff" * 256
    assert (folder / "device").read_text() == "0x2330\n"
    machine.boot()
    assert (folder / "config").read_bytes()[:4] == b"\xde\x10\x30\x23"
    assert machine.smi("-L").rc == 0


def test_a_lost_gpu_is_in_the_kernel_log(machine):
    machine.fault("--gpu", "3", "lost")
    log = kernel_log(machine)
    assert "NVRM: Xid (PCI:0000:61:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus." in log
    assert "NVRM: Xid (PCI:0000:61:00): 154," in log
    assert "Xid" not in kernel_log(machine.boot())


@pytest.mark.parametrize("text, code", [("xid", 48), ("xid=63", 63), ("xid=79", 79), ("xid=999", 999)])
def test_an_xid_is_logged_and_changes_nothing_else(machine, text, code):
    before = machine.smi("-L").text
    assert machine.fault("--gpu", "1", text)["xid"] == code
    assert f"NVRM: Xid (PCI:0000:43:00): {code}, pid='<unknown>'" in kernel_log(machine)
    assert machine.smi("-L").text == before


def test_without_a_driver_nobody_logs_a_fault(bare):
    bare.boot()
    answer = bare.call("gpusim", "fault", "xid")
    assert (answer.rc, answer.stderr) == (
        2,
        "gpusim: xid: no driver is loaded, so nothing would log it; install one and reboot\n",
    )
    bare.fault("--gpu", "3", "lost")
    assert kernel_log(bare) == ""
    assert (bare.root / "sys/bus/pci/devices/0000:61:00.0/config").read_bytes() == b"\xff" * 256


def test_a_hanging_driver_never_answers_until_the_reboot(machine):
    machine.fault("hang")
    with pytest.raises(subprocess.TimeoutExpired):
        machine.spawn("nvidia-smi", "--lab-version", NEW, "-L", timeout=3)
    assert machine.boot().smi("-L").rc == 0


def test_garbage_has_rc_0_and_does_not_parse(machine):
    whole = machine.smi("-q", "-x").raw
    machine.fault("garbage")
    answer = machine.smi("-q", "-x")
    assert answer.rc == 0
    assert len(answer.raw) < len(whole) / 2
    assert b"\xff" in answer.raw and b"</nvidia_smi_log>" not in answer.raw


def test_a_dead_link_survives_a_reboot_and_is_mended_by_clear(machine):
    machine.fault("--gpu", "2", "--link", "5", "nvlink_down")
    machine.fault("--gpu", "2", "--link", "7", "nvlink_down")
    machine.boot()
    assert machine.smi("nvlink", "-s").text.count("<inactive>") == 2
    machine.gpusim("clear")
    assert machine.smi("nvlink", "-s").text.count("<inactive>") == 0


def test_booting_again_forgets_faults_even_where_run_was_kept(machine):
    machine.fault("lost")
    machine.gpusim("boot", "--profile", "dgx-h100-8")
    assert machine.state()["faults"] == {}


def test_clear_mends_every_fault(machine):
    for fault in ("lost", "hang", "garbage", "nvlink_down", "fm_dead"):
        machine.fault(fault)
    machine.gpusim("clear")
    assert machine.state()["faults"] == {}
    assert machine.smi("-q", "-x").rc == 0
    assert (machine.root / "sys/bus/pci/devices/0000:1b:00.0/config").read_bytes()[:2] == b"\xde\x10"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--gpu", "8", "lost"), "--gpu 8: allowed: 0 to 7"),
        (("--gpu", "-1", "lost"), "--gpu -1: allowed: 0 to 7"),
        (("--link", "18", "nvlink_down"), "--link 18: allowed: 0 to 17"),
        (("--link", "1", "lost"), "--link goes with nvlink_down and nvlink_errors, not with lost"),
        (("xid=many",), "xid=many: allowed: a number (Xid)"),
        (("lost=1",), "fault 'lost' takes no value"),
        (("ecc=l2",), "ecc=l2: allowed: sram, dram, threshold"),
        (("power_limit=700",), "power_limit=700: allowed: 200 to 699"),
        (("--gpu", "3", "p2p=3"), "p2p=3: a GPU always reaches itself; name another one"),
        (("p2p=8",), "p2p=8: allowed: 0 to 7"),
    ],
)
def test_a_wrong_fault_is_refused_with_what_is_allowed(machine, arguments, words):
    answer = machine.call("gpusim", "fault", *arguments)
    assert (answer.rc, answer.stderr) == (2, f"gpusim: {words}\n")
    assert machine.state()["faults"] == {}


def test_an_unknown_profile_is_refused_with_the_known_ones(bare):
    answer = bare.call("gpusim", "boot", "--profile", "dgx-9000")
    assert answer.rc == 2
    assert "no profile 'dgx-9000'; there are: dgx-h100-8, hgx-a100-8, " in answer.stderr


def test_an_unknown_fault_is_refused_with_the_known_ones(machine):
    answer = machine.call("gpusim", "fault", "nonsense")
    assert answer.rc == 2
    assert answer.stderr.startswith("gpusim: no fault 'nonsense'; there are: lost, gpu_missing, xid, reset_required, ")


def test_faults_at_once_do_not_lose_each_other(machine):
    program = [sys.executable, str(PROGRAMS / "gpusim"), "fault", "--gpu"]
    environment = {**os.environ, **machine.settings}
    running = [
        subprocess.Popen([*program, str(gpu), "xid"], env=environment, stdout=subprocess.DEVNULL) for gpu in range(4)
    ]
    assert [process.wait(60) for process in running] == [0] * 4
    assert kernel_log(machine).count(": 48, ") == 4


def test_kernel_records_go_to_the_fifo_one_by_one(machine):
    fifo = machine.root / "run/lab/kmsg"
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    machine.fault("--gpu", "0", "lost")
    records = os.read(reader, 65536).decode().splitlines()
    os.close(reader)
    assert [record.split(";")[0].split(",")[0] for record in records] == ["5", "4", "4", "4", "4"]
    numbers = [int(record.split(",")[1]) for record in records]
    assert numbers == sorted(set(numbers))
    assert ",-;NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>'" in records[1]
