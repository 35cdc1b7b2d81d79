# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: every profile × every fault that it can have → exactly these findings, on that GPU and that link.

The product looks at the simulated machine as it does live. Both sides follow the real tool's recordings on their own;
here they meet. Expected values are written by hand.
"""

from __future__ import annotations

import json

import pytest
from simulated_host import NVLSM, SimulatedHost, change_state, copied, judged, running, start

from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._observe import Questions, observe

COUNT = {"dgx-h100-8": 8, "hgx-a100-8": 8, "hgx-b200-8": 8, "l40s-4": 4, "rtx4090-2": 2, "v100-8": 8}
SECOND = {
    "dgx-h100-8": "00000000:43:00.0",
    "hgx-a100-8": "00000000:0F:00.0",
    "hgx-b200-8": "00000000:43:00.0",
    "l40s-4": "00000000:38:00.0",
    "rtx4090-2": "00000000:21:00.0",
    "v100-8": "00000000:07:00.0",
}
"""The GPU of index 1, which every fault of this table strikes."""
THIRD = {
    "dgx-h100-8": "00000000:52:00.0",
    "hgx-a100-8": "00000000:47:00.0",
    "hgx-b200-8": "00000000:52:00.0",
    "v100-8": "00000000:0A:00.0",
}
PROFILES = tuple(COUNT)
SWITCHED = ("dgx-h100-8", "hgx-a100-8", "hgx-b200-8")
WITH_LINKS = (*SWITCHED, "v100-8")
WITH_ROWS = (*SWITCHED, "l40s-4")
HERE, NEXT, NOWHERE = "the GPU of index 1", "the GPU of index 2", "no GPU"

# Fault; profiles; verdict; findings as (id, where, link). `load` in front makes every GPU work.
ROWS = [
    ("lost", PROFILES, "failed", [("gpu_lost", HERE), ("xid_154", HERE), ("xid_79", HERE)]),
    ("gpu_missing", PROFILES, "failed", [("gpu_count_low", NOWHERE)]),
    ("xid", PROFILES, "failed", [("xid_48", HERE)]),
    ("xid=13", PROFILES, "healthy", [("xid_13", HERE)]),
    ("xid=94", PROFILES, "degraded", [("xid_94", HERE)]),
    ("reset_required", PROFILES, "failed", [("gpu_reset_required", HERE)]),
    ("recovery", PROFILES, "failed", [("recovery_action", HERE), ("xid_154", HERE)]),
    ("recovery=reboot", PROFILES, "failed", [("recovery_action", HERE), ("xid_154", HERE)]),
    ("recovery=drain_and_reset", PROFILES, "failed", [("recovery_action", HERE), ("xid_154", HERE)]),
    ("recovery=drain_p2p", PROFILES, "degraded", [("recovery_drain", HERE), ("xid_154", HERE)]),
    ("ecc", (*WITH_ROWS, "v100-8"), "failed", [("ecc_uncorrectable", HERE), ("xid_48", HERE)]),
    ("ecc=dram", WITH_ROWS, "failed",
     [("ecc_uncorrectable", HERE), ("remap_pending_uncorrectable", HERE), ("xid_48", HERE), ("xid_63", HERE)]),
    ("ecc=dram", ("v100-8",), "failed",
     [("ecc_uncorrectable", HERE), ("retired_pages_pending_uncorrectable", HERE), ("xid_48", HERE), ("xid_63", HERE)]),
    ("ecc=threshold", WITH_ROWS, "failed", [("ecc_aggregate", HERE), ("sram_threshold_exceeded", HERE)]),
    ("remap", WITH_ROWS, "degraded", [("remap_pending", HERE), ("xid_63", HERE)]),
    ("remap=uncorrectable", WITH_ROWS, "failed", [("remap_pending_uncorrectable", HERE), ("xid_63", HERE)]),
    ("remap=failure", WITH_ROWS, "failed",
     [("remap_bank_exhausted", HERE), ("remap_failure", HERE), ("xid_64", HERE)]),
    ("pages", ("v100-8",), "degraded", [("retired_pages_pending", HERE), ("xid_63", HERE)]),
    ("pages=double", ("v100-8",), "failed", [("retired_pages_pending_uncorrectable", HERE), ("xid_63", HERE)]),
    ("pages=many", ("v100-8",), "failed", [("retired_pages_many", HERE)]),
    ("inforom", PROFILES, "failed", [("inforom_corrupted", HERE)]),
    ("throttle", PROFILES, "failed", [("throttle_thermal", HERE)]),
    ("throttle=hw_power_brake", PROFILES, "failed", [("throttle_power_brake", HERE)]),
    ("throttle=hw_slowdown", PROFILES, "failed", [("throttle_hardware", HERE)]),
    ("throttle=sw_thermal", PROFILES, "degraded", [("throttle_software_thermal", HERE)]),
    ("load throttle", PROFILES, "failed", [("throttle_thermal", HERE)]),
    ("hot", PROFILES, "failed", [("temperature_critical", HERE), ("throttle_thermal", HERE)]),
    # With margins (T.Limit), past the operating limit is told by the slowdown alone.
    ("hot=operating", (*WITH_ROWS[:1], "hgx-b200-8", "l40s-4", "rtx4090-2"), "degraded",
     [("throttle_software_thermal", HERE)]),
    ("hot=operating", ("hgx-a100-8", "v100-8"), "degraded",
     [("temperature_high", HERE), ("throttle_software_thermal", HERE)]),
    ("pcie", PROFILES, "degraded", [("pcie_width_low", HERE)]),
    ("pcie=generation", PROFILES, "healthy", []),  # idle cards save power that way
    ("load pcie=generation", PROFILES, "degraded", [("pcie_generation_low", HERE)]),
    ("load pcie=both", PROFILES, "failed", [("pcie_degraded", HERE)]),
    ("replays", PROFILES, "degraded", [("pcie_replay_rate", HERE)]),
    ("replays=1", PROFILES, "healthy", []),
    ("power_limit", PROFILES, "degraded", [("gpu_unlike_peers", HERE), ("power_limit_low", HERE)]),
    ("memory_held", PROFILES, "degraded", [("memory_held", HERE)]),
    ("nvlink_down", SWITCHED, "failed", [("nvlink_all_down", HERE)]),
    # Links of GPU 1 in the mesh: 0 to GPU 0, 1 and 2 to GPU 2, 3 to GPU 3, 4 and 5 to GPU 5.
    ("nvlink_down", ("v100-8",), "failed",
     [("nvlink_all_down", HERE), ("nvlink_inactive", "00000000:06:00.0", 0), ("nvlink_inactive", NEXT, 1),
      ("nvlink_inactive", NEXT, 2), ("nvlink_inactive", "00000000:0B:00.0", 2),
      ("nvlink_inactive", "00000000:86:00.0", 0), ("nvlink_inactive", "00000000:86:00.0", 1)]),
    ("nvlink_down --link 2", SWITCHED, "failed", [("nvlink_inactive", HERE, 2)]),
    # In the mesh, links 1 and 2 of GPU 1 lead to links 1 and 2 of GPU 2, so both ends are down.
    ("nvlink_down --link 2", ("v100-8",), "failed", [("nvlink_inactive", HERE, 2), ("nvlink_inactive", NEXT, 2)]),
    ("nvlink_errors --link 2", WITH_LINKS, "failed", [("nvlink_errors", HERE, 2)]),
    ("nvlink_errors=crc --link 2", WITH_LINKS, "failed", [("nvlink_errors", HERE, 2)]),
    ("nvlink_errors=replay --link 2", ("hgx-b200-8",), "degraded", [("nvlink_recoveries", HERE, 2)]),
    ("nvlink_errors=replay --link 2", ("dgx-h100-8", "hgx-a100-8", "v100-8"), "degraded",
     [("nvlink_replays", HERE, 2)]),
    ("p2p", SWITCHED, "failed", [("p2p_unavailable", HERE), ("p2p_unavailable", NEXT)]),
    ("hang", PROFILES, "unknown", [("smi_timeout", NOWHERE)]),
    ("sxid", ("dgx-h100-8", "hgx-a100-8"), "failed", [("sxid_fatal", NOWHERE, 33)]),
    ("sxid=12028", ("dgx-h100-8", "hgx-a100-8"), "degraded", [("sxid_nonfatal", NOWHERE, 33)]),
    ("fm_dead", SWITCHED, "failed", [("fabric_manager_not_running", NOWHERE)]),
    ("fm_version", SWITCHED, "failed", [("fabric_manager_not_running", NOWHERE), ("fabric_manager_version", NOWHERE)]),
    ("nvlsm_dead", ("hgx-b200-8",), "failed", [("nvlsm_not_running", NOWHERE)]),
    ("mlx5_ib_missing", ("hgx-b200-8",), "failed", [("fabric_manager_not_running", NOWHERE)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """Healthy machines, each booted once; `healthy(profile)` is a copy to break."""
    root = tmp_path_factory.mktemp("machines")
    machines = {}

    def one(profile: str, target):
        if profile not in machines:
            machines[profile] = running(root / profile, profile)
        return copied(machines[profile], target)

    return one


@pytest.fixture
def machine(healthy, tmp_path):
    return lambda profile: healthy(profile, tmp_path / "machine")


def break_it(machine, text: str) -> None:
    """Inject the faults of a row; what rises has been rising for ten minutes."""
    name, *options = text.replace("load ", "", 1).split()
    if text.startswith("load "):
        machine.fault("load")
    machine.fault("--gpu", "1", *options, name)
    kept = machine.root / "var/lib/gpulab/state.json"
    content = json.loads(kept.read_text())
    for faults in content.get("faults", {}).values():
        for value in faults.values():
            if isinstance(value, dict):
                value["since"] -= 600
    kept.write_text(json.dumps(content))
    state = json.loads((machine.root / "run/gpulab/state.json").read_text())
    change_state(machine, booted=state["booted"] - 86400)


def remember_replays(machine, profile: str) -> None:
    """What `gpu-health check --store` wrote when the counters began to rise, ten minutes ago."""
    machine.write("proc/sys/kernel/random/boot_id", b"b007\n")
    counts = {row[0]: 0 for row in machine.query("pci.bus_id")}
    stored = {"boot_id": "b007", "time": 0, "uptime_s": 86400 - 600, "pcie_replays": counts}
    machine.write("var/lib/gpufleet/health/earlier.json", json.dumps(stored).encode())
    assert len(counts) == COUNT[profile]


def found(judgement) -> list:
    """(id, bus id, link) of every finding, sorted."""
    rows = [(item["id"], (item["gpu"] or {}).get("pci_bus_id"), item["link"]) for item in judgement.findings]
    return sorted(rows, key=str)


def wanted(findings: list, profile: str) -> list:
    places = {HERE: SECOND[profile], NEXT: THIRD.get(profile), NOWHERE: None}
    rows = ((one[0], places.get(one[1], one[1]), one[2] if len(one) > 2 else None) for one in findings)
    return sorted(rows, key=str)


@pytest.mark.parametrize("state", ["idle", "load"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_healthy_machine_has_no_finding_idle_and_under_load(machine, profile, state):
    one = machine(profile)
    if state == "load":
        one.fault("load")
    judgement = judged(one, COUNT[profile])
    assert (judgement.verdict, found(judgement)) == ("healthy", [])


@pytest.mark.parametrize("version", ["535.261.03", "550.163.01", "570.211.01", "595.91.07"])
@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "v100-8"])
def test_a_healthy_machine_has_no_finding_on_other_branches(tmp_path, profile, version):
    judgement = judged(running(tmp_path, profile, version), COUNT[profile])
    assert (judgement.verdict, found(judgement)) == ("healthy", [])


@pytest.mark.parametrize("version", ["535.261.03", "550.163.01", "570.211.01"])
def test_a_healthy_v100_machine_has_no_finding_on_other_branches(tmp_path, version):
    judgement = judged(running(tmp_path, "v100-8", version), 8)
    assert (judgement.verdict, found(judgement)) == ("healthy", [])


@pytest.mark.parametrize(
    "profile, fault, verdict, findings",
    [
        pytest.param(profile, fault, verdict, findings, id=f"{profile}-{fault.replace(' ', '_')}")
        for fault, profiles, verdict, findings in ROWS
        for profile in profiles
    ],
)
def test_a_fault_is_judged_and_placed(machine, profile, fault, verdict, findings):
    one = machine(profile)
    remember_replays(one, profile)
    break_it(one, fault)
    judgement = judged(one, COUNT[profile])
    assert (judgement.verdict, found(judgement)) == (verdict, wanted(findings, profile))


@pytest.mark.parametrize("profile", PROFILES)
def test_garbage_is_unknown_and_accuses_no_gpu(machine, profile):
    one = machine(profile)
    one.fault("garbage")
    judgement = judged(one, COUNT[profile])
    assert judgement.verdict == "unknown"
    assert {item["severity"] for item in judgement.findings} == {"warning"}


FABRIC_DOWN = [("fabric_not_completed", f"00000000:{bus}:00.0", None)
               for bus in ("1B", "43", "52", "61", "9D", "C3", "D1", "DF")]  # fmt: skip


@pytest.mark.parametrize(
    "profile, fault, verdict, findings",
    [
        ("dgx-h100-8", "fm_dead", "failed", [*FABRIC_DOWN, ("fabric_manager_not_running", None, None)]),
        ("hgx-a100-8", "fm_dead", "failed", [("fabric_manager_not_running", None, None)]),
        ("hgx-b200-8", "nvlsm_dead", "failed", [*FABRIC_DOWN, ("nvlsm_not_running", None, None)]),
        ("hgx-b200-8", "mlx5_ib_missing", "failed",
         [*FABRIC_DOWN, ("fabric_manager_not_running", None, None), ("nvlink_management_missing", None, None)]),
        ("dgx-h100-8", "lost", "healthy", []),
        ("dgx-h100-8", "gpu_missing", "failed", [("gpu_count_low", None, None)]),
        ("dgx-h100-8", "xid", "healthy", []),
        ("dgx-h100-8", "reset_required", "healthy", []),
        ("dgx-h100-8", "recovery", "healthy", []),
        ("dgx-h100-8", "ecc", "healthy", [("ecc_aggregate", SECOND["dgx-h100-8"], None)]),
        ("dgx-h100-8", "ecc=dram", "healthy", [("ecc_aggregate", SECOND["dgx-h100-8"], None)]),
        ("v100-8", "ecc=dram", "healthy", [("ecc_aggregate", SECOND["v100-8"], None)]),
        ("dgx-h100-8", "ecc=threshold", "failed",
         [("ecc_aggregate", SECOND["dgx-h100-8"], None), ("sram_threshold_exceeded", SECOND["dgx-h100-8"], None)]),
        ("dgx-h100-8", "remap=uncorrectable", "healthy", []),
        ("dgx-h100-8", "remap=failure", "failed",
         [("remap_bank_exhausted", SECOND["dgx-h100-8"], None), ("remap_failure", SECOND["dgx-h100-8"], None)]),
        ("v100-8", "pages=double", "healthy", []),
        ("v100-8", "pages=many", "failed", [("retired_pages_many", SECOND["v100-8"], None)]),
        ("dgx-h100-8", "inforom", "failed", [("inforom_corrupted", SECOND["dgx-h100-8"], None)]),
        ("dgx-h100-8", "throttle", "failed", [("throttle_thermal", SECOND["dgx-h100-8"], None)]),
        ("dgx-h100-8", "pcie", "degraded", [("pcie_width_low", SECOND["dgx-h100-8"], None)]),
        ("dgx-h100-8", "power_limit", "healthy", []),
        ("dgx-h100-8", "memory_held", "healthy", []),
        ("dgx-h100-8", "nvlink_down", "failed", [("nvlink_all_down", SECOND["dgx-h100-8"], None)]),
        ("dgx-h100-8", "p2p", "failed",
         [("p2p_unavailable", SECOND["dgx-h100-8"], None), ("p2p_unavailable", THIRD["dgx-h100-8"], None)]),
        ("dgx-h100-8", "hang", "healthy", []),
        ("dgx-h100-8", "garbage", "healthy", []),
    ],
)  # fmt: skip
def test_what_is_left_of_a_fault_after_a_reboot(machine, profile, fault, verdict, findings):
    one = machine(profile)
    break_it(one, fault)
    judgement = judged(start(one), COUNT[profile])
    assert (judgement.verdict, found(judgement)) == (verdict, sorted(findings, key=str))


def test_clear_mends_what_a_reboot_does_not(machine):
    one = machine("dgx-h100-8")
    for fault in ("gpu_missing", "ecc=threshold", "remap=failure", "inforom", "pcie", "nvlink_down", "p2p", "fm_dead"):
        one.fault("--gpu", "2", fault)
    assert judged(one, 8).verdict == "failed"
    one.gpusim("clear")
    judgement = judged(start(one), 8)
    assert (judgement.verdict, found(judgement)) == ("healthy", [])


def test_without_nvlsm_a_b200_board_has_no_fabric(tmp_path):
    one = running(tmp_path, "hgx-b200-8")
    (tmp_path / NVLSM).unlink()
    judgement = judged(start(one), 8)
    assert judgement.verdict == "failed"
    assert {"nvlsm_missing", "fabric_not_completed"} < {item["id"] for item in judgement.findings}


@pytest.mark.parametrize(
    "profile, version, license_text",
    [
        ("v100-8", "580.178.04", "Dual MIT/GPL"),
        ("v100-8", "595.91.07", "NVIDIA"),
        ("hgx-b200-8", "580.178.04", "NVIDIA"),
    ],
)
def test_a_driver_that_turns_the_gpus_down_is_named(tmp_path, profile, version, license_text):
    one = running(tmp_path, profile, version)  # a set that works, then the other flavour
    one.install(version, license_text)
    judgement = judge(observe(SimulatedHost(start(one)), Questions()), expected_gpus=8)
    assert judgement.verdict == "failed"
    assert {"gpu_unsupported", "no_devices"} & {item["id"] for item in judgement.findings}
