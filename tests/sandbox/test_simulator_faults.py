# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each fault shows in what the tools print, which machines can have it, and what a reset or a reboot does to it."""

from __future__ import annotations

import re
import time

import pytest
from simulated_host import running
from simulated_machine import Machine

NEW = "580.178.04"
FAULTS = (
    "lost", "gpu_missing", "xid", "reset_required", "recovery", "ecc", "remap", "pages", "inforom", "throttle", "hot",
    "pcie", "replays", "power_limit", "memory_held", "nvlink_down", "nvlink_errors", "p2p", "hang", "garbage", "sxid",
    "fm_dead", "fm_version", "nvlsm_dead", "mlx5_ib_missing", "load",
)  # fmt: skip


@pytest.fixture
def machine(tmp_path):
    return running(tmp_path, "dgx-h100-8")


def booted(tmp_path, profile: str, version: str = NEW):
    return running(tmp_path, profile, version)


def element(machine, path: str, gpu: int = 1) -> str:
    """Text of the first element of that name in the XML of a GPU that is not N/A."""
    text = machine.smi("-q", "-x", "-i", str(gpu)).text
    return next(found for found in re.findall(rf"<{path}>([^<]*)</{path}>", text) if found != "N/A")


def log(machine) -> str:
    return "\n".join(machine.state()["kernel_log"])


def test_every_fault_is_listed_with_its_values_and_what_a_reboot_does(machine):
    lines = machine.gpusim("faults").splitlines()
    assert [line.split()[0] for line in lines] == list(FAULTS)
    assert all(line.endswith("]") and "[" in line for line in lines)
    assert lines[FAULTS.index("ecc")].startswith("ecc             (ecc=sram|dram|threshold) uncorrectable ")
    assert lines[FAULTS.index("xid")].startswith("xid             (xid=N) writes Xid 48")


# --- who can have what --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "profile, fault, words",
    [
        ("l40s-4", "nvlink_down", "nvlink_down: this GPU has no NVLink"),
        ("l40s-4", "nvlink_errors", "nvlink_errors: this GPU has no NVLink"),
        ("l40s-4", "p2p", "p2p: no NVSwitch joins the GPUs of this machine"),
        ("l40s-4", "sxid", "sxid: this machine has no NVSwitch on its PCI bus"),
        ("rtx4090-2", "ecc", "ecc: this GPU has no ECC"),
        ("rtx4090-2", "remap", "remap: this GPU does not remap rows"),
        ("rtx4090-2", "fm_dead", "fm_dead: this machine needs no fabric manager: it has no NVSwitch"),
        ("v100-8", "remap", "remap: this GPU does not remap rows"),
        ("v100-8", "ecc=threshold", "ecc=threshold: this GPU does not count SRAM errors"),
        ("v100-8", "fm_version", "fm_version: this machine needs no fabric manager: it has no NVSwitch"),
        ("v100-8", "p2p", "p2p: no NVSwitch joins the GPUs of this machine"),
        ("dgx-h100-8", "pages", "pages: this GPU does not retire pages, it remaps rows"),
        ("dgx-h100-8", "nvlsm_dead", "nvlsm_dead: this machine has no NVLink 5 switches"),
        ("dgx-h100-8", "mlx5_ib_missing", "mlx5_ib_missing: this machine has no NVLink 5 switches"),
        ("hgx-b200-8", "sxid", "sxid: this machine has no NVSwitch on its PCI bus"),
        ("none", "lost", "--gpu 0: allowed: none, this machine shows no GPU"),
    ],
)
def test_a_fault_that_a_machine_cannot_have_is_refused(tmp_path, profile, fault, words):
    machine = Machine(tmp_path, profile).install(NEW, "NVIDIA" if profile == "v100-8" else "Dual MIT/GPL").boot()
    answer = machine.call("gpusim", "fault", fault)
    assert (answer.rc, answer.stderr) == (2, f"gpusim: {words}\n")
    assert machine.state()["faults"] == {}


# --- how it shows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault, path, before, after",
    [
        ("ecc", "sram_uncorrectable_parity", "0", "1"),
        ("ecc=dram", "dram_uncorrectable", "0", "1"),
        ("ecc=dram", "remapped_row_pending", "No", "Yes"),
        ("ecc=threshold", "sram_threshold_exceeded", "No", "Yes"),
        ("remap", "remapped_row_corr", "0", "1"),
        ("remap", "remapped_row_pending", "No", "Yes"),
        ("remap=uncorrectable", "remapped_row_unc", "0", "1"),
        ("remap=failure", "remapped_row_failure", "No", "Yes"),
        ("remap=failure", "row_remapper_histogram_none", "0 bank(s)", "1 bank(s)"),
        ("recovery", "gpu_recovery_action", "None", "Reset"),
        ("recovery=drain_p2p", "gpu_recovery_action", "None", "Drain P2P"),
        ("throttle", "clocks_event_reason_hw_thermal_slowdown", "Not Active", "Active"),
        ("throttle", "clocks_event_reason_hw_slowdown", "Not Active", "Active"),
        ("throttle=hw_power_brake", "clocks_event_reason_hw_power_brake_slowdown", "Not Active", "Active"),
        ("throttle=sw_thermal", "clocks_event_reason_sw_thermal_slowdown", "Not Active", "Active"),
        ("throttle=hw_slowdown", "clocks_event_reason_hw_thermal_slowdown", "Not Active", "Not Active"),
        ("hot", "gpu_temp_tlimit", "57 C", "-3 C"),
        ("pcie", "current_link_width", "16x", "8x"),
        ("pcie=generation", "current_link_gen", "5", "3"),
        ("power_limit", "current_power_limit", "700.00 W", "200.00 W"),
        ("power_limit=450", "current_power_limit", "700.00 W", "450.00 W"),
        ("replays", "replay_counter", "0", "1"),
    ],
)
def test_a_fault_shows_in_the_xml_of_its_gpu_alone(machine, fault, path, before, after):
    neighbour = element(machine, path, 2)
    assert element(machine, path) == before
    machine.fault("--gpu", "1", fault)
    assert element(machine, path) == after
    assert element(machine, path, 2) == neighbour


@pytest.mark.parametrize(
    "fault, fields, after",
    [
        ("ecc", "ecc.errors.uncorrected.volatile.total,ecc.errors.uncorrected.aggregate.total", ["1", "1"]),
        ("ecc=dram", "ecc.errors.uncorrected.volatile.dram,ecc.errors.uncorrected.volatile.sram", ["1", "0"]),
        ("ecc=threshold", "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", ["Yes"]),
        ("remap", "remapped_rows.pending,remapped_rows.correctable", ["Yes", "1"]),
        ("remap=failure", "remapped_rows.failure,remapped_rows.histogram.none", ["Yes", "1"]),
        ("recovery=reboot", "gpu_recovery_action", ["Reboot"]),
        ("inforom", "inforom.checksum_validation", ["invalid"]),
        ("throttle", "clocks_event_reasons.active,clocks_event_reasons.hw_thermal_slowdown",
         ["0x0000000000000049", "Active"]),
        ("pcie=both", "pcie.link.width.current,pcie.link.gen.current,pcie.link.gen.max", ["8", "3", "5"]),
        ("power_limit", "power.limit", ["200.00"]),
        ("memory_held", "memory.used,utilization.gpu", ["40779", "0"]),
        ("hot", "temperature.gpu", ["90"]),
        ("load", "utilization.gpu,pstate,clocks_event_reasons.active", ["98", "P0", "0x0000000000000004"]),
    ],
)  # fmt: skip
def test_a_fault_shows_in_the_query(machine, fault, fields, after):
    machine.fault("--gpu", "1", fault)
    assert machine.query(fields, "-i", "1") == [after]


@pytest.mark.parametrize(
    "fault, code, words",
    [
        ("ecc", 48, "DBE (double bit error) ECC Error"),
        ("ecc=dram", 63, "Row Remapper: New row"),
        ("remap", 63, "Row Remapper: New row"),
        ("remap=failure", 64, "Row Remapper: Error: failed to remap row"),
        ("recovery", 154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
        ("recovery=reboot", 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
    ],
)
def test_a_fault_is_in_the_kernel_log(machine, fault, code, words):
    machine.fault("--gpu", "1", fault)
    assert f"NVRM: Xid (PCI:0000:43:00): {code}, pid='<unknown>', name=<unknown>, {words}" in log(machine)


@pytest.mark.parametrize(
    "number, line",
    [
        ("", "nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 33 LTSSM Fault Up"),
        ("=12028", "nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 12028, Non-fatal, Link 33 egress non-posted PRIV error"),
    ],
)
def test_an_sxid_names_its_switch(machine, number, line):
    machine.fault("sxid" + number)
    assert line in log(machine)


def test_before_570_a_recovery_is_the_reset_status(tmp_path):
    machine = booted(tmp_path, "dgx-h100-8", "550.163.01")
    assert (element(machine, "reset_required"), element(machine, "drain_and_reset_recommended")) == ("No", "No")
    machine.fault("--gpu", "1", "recovery")
    assert (element(machine, "reset_required"), "Xid" in log(machine)) == ("Yes", False)
    machine.fault("--gpu", "1", "recovery=drain_and_reset")
    assert (element(machine, "reset_required"), element(machine, "drain_and_reset_recommended")) == ("No", "Yes")


def test_volta_counts_double_bit_errors_and_retires_pages(tmp_path):
    machine = booted(tmp_path, "v100-8")
    assert "remapped_rows>N/A<" in machine.smi("-q", "-x", "-i", "1").text
    machine.fault("--gpu", "1", "ecc=dram")
    text = machine.smi("-q", "-x", "-i", "1").text
    double = text.split("<double_bit>")[1].split("</double_bit>")[0]
    assert "<device_memory>1<" in double and "<total>1<" in double
    assert element(machine, "pending_retirement") == "Yes"
    assert "<retired_page_address>0x" in text
    plain = machine.smi("-q", "-i", "1").text.split("Retired Pages\n")[1].splitlines()[:3]
    assert [line.split(" : ")[1] for line in plain] == ["0", "1", "Yes"]
    assert "63, pid='<unknown>', name=<unknown>, Dynamic Page Retirement: New page retired" in log(machine)
    machine.boot()
    assert element(machine, "pending_retirement") == "No"
    assert "<retired_count>1<" in machine.smi("-q", "-x", "-i", "1").text


def test_a_gpu_that_waits_for_a_reset_reads_so_and_is_left_out(machine):
    machine.fault("--gpu", "3", "reset_required")
    text = machine.smi("-q", "-x").text
    assert text.count("<persistence_mode>GPU requires reset<") == 1
    assert text.count("<remapped_rows>GPU requires reset</remapped_rows>") == 1
    assert machine.smi("-L").text.count("UUID") == 8
    assert "GPU 3:" not in machine.smi("nvlink", "-s").text
    topology = machine.smi("topo", "-m")
    assert topology.rc == 255
    assert topology.text.splitlines()[3].startswith("GPU2\t") and topology.text.endswith("topology matrix\n\n")


def test_a_corrupted_inforom_is_told_by_the_table_and_not_by_the_xml(machine):
    machine.fault("--gpu", "1", "inforom")
    table = machine.smi()
    assert (table.rc, table.text.splitlines()[-1]) == (14, "WARNING: infoROM is corrupted at gpu 0000:43:00.0")
    document = machine.smi("-q", "-x")
    assert document.rc == 0 and "WARNING" not in document.text


def test_a_missing_gpu_is_nowhere_and_the_others_close_up(machine):
    machine.fault("--gpu", "3", "gpu_missing")
    assert not (machine.root / "sys/bus/pci/devices/0000:61:00.0").exists()
    rows = machine.query("index,pci.bus_id")
    assert [row[0] for row in rows] == list("0123456")
    assert "00000000:61:00.0" not in [row[1] for row in rows]
    machine.boot()
    assert not (machine.root / "sys/bus/pci/devices/0000:61:00.0").exists()
    machine.gpusim("clear")
    assert len(machine.query("index")) == 8
    assert (machine.root / "sys/bus/pci/devices/0000:61:00.0/vendor").read_text() == "0x10de\n"


def test_counters_rise_between_two_looks(machine, monkeypatch):
    machine.fault("--gpu", "1", "replays")
    machine.fault("--gpu", "1", "--link", "4", "nvlink_errors")
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    assert 600 <= int(element(machine, "replay_counter")) <= 602
    lines = machine.smi("nvlink", "-e", "-i", "1").text.splitlines()
    rising = [line for line in lines if "Errors: 0" not in line and "Errors:" in line]
    assert len(rising) == 1 and rising[0].startswith("\t Link 4: Recovery Errors: 12")


def test_a_narrow_link_is_seen_in_sysfs_too(machine):
    folder = machine.root / "sys/bus/pci/devices/0000:43:00.0"
    machine.fault("--gpu", "1", "pcie=both")
    assert (folder / "current_link_width").read_text() == "8\n"
    assert (folder / "current_link_speed").read_text() == "8.0 GT/s PCIe\n"
    assert (folder / "max_link_width").read_text() == "16\n"
    machine.boot()
    assert (folder / "current_link_width").read_text() == "8\n"
    machine.gpusim("clear")
    assert (folder / "current_link_width").read_text() == "16\n"


def test_a_fabric_manager_of_another_version_refuses_in_the_real_words(machine):
    machine.fault("fm_version")
    answer = machine.call("nv-fabricmanager", "--lab-version", NEW, "--version")
    assert answer.text == "Fabric Manager version is : 580.178.05\n"
    assert machine.fabric_refusal() == (
        "fabric manager NVIDIA GPU driver interface version 580.178.05 don't match with driver version 580.178.04. "
        "Please update with matching NVIDIA driver package."
    )


def test_load_makes_all_gpus_work_and_ends_with_clear_or_a_reboot(machine):
    machine.fault("load")
    assert {row[0] for row in machine.query("utilization.gpu")} == {"98"}
    apps = machine.smi("--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader").text.splitlines()
    assert len(apps) == 8 and apps[0] == "41230, /opt/conda/bin/python3, 71364 MiB"
    assert all(float(draw) > 680 for (draw,) in machine.query("power.draw"))
    machine.gpusim("clear")
    assert {row[0] for row in machine.query("utilization.gpu")} == {"0"}
