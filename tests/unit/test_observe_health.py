# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a machine and what is not: bounded where the tool hangs, nothing that cannot exist; the modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support_health import FABRIC_UP, ONE_KERNEL_LINE, SMI, ScriptedHost

from ansible_collections.gpufleet.server.plugins.module_utils import _health_module
from ansible_collections.gpufleet.server.plugins.module_utils._gpu_info import gather_info
from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import PolicyError
from ansible_collections.gpufleet.server.plugins.module_utils._observe import Questions, observe

CASES = Path(__file__).resolve().parent / "cases"
SMI_RE = re.escape(SMI)


def case(profile, name):
    return (CASES / profile / name).read_text(encoding="utf-8")


def bus(root, count=2, switches=0, device="0x2330"):
    """Put GPUs of the recorded machine, and NVSwitches, on a PCI bus, and a loaded driver beside them."""
    (root / "sys/module/nvidia").mkdir(parents=True)
    (root / "sys/module/nvidia/version").write_text("580.178.04\n")
    addresses = ["0000:1b:00.0", "0000:43:00.0"][:count]
    rows = [(address, device, "0x030200") for address in addresses]
    rows += [("0000:c%d:00.0" % number, "0x22a3", "0x068000") for number in range(switches)]
    for address, identity, code in rows:
        folder = root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        for name, text in {"vendor": "0x10de", "device": identity, "class": code, "numa_node": "0"}.items():
            (folder / name).write_text(text + "\n")


def machine(root, answers=(), profile="dgx-h100-8", kernel=ONE_KERNEL_LINE):
    links = [case(profile, name).partition("GPU 2:")[0] for name in ("nvlink-s.txt", "nvlink-e.txt")]
    topology = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
    usual = [
        (SMI_RE + " -q -x$", (0, case(profile, "smi-q.xml"))),
        (SMI_RE + " nvlink -s$", (0, links[0])),
        (SMI_RE + " nvlink -e$", (0, links[1])),
        (SMI_RE + " topo -m$", (0, topology)),
        (SMI_RE + " topo -p2p n$", (0, topology.replace("NV18", "OK"))),
        (SMI_RE + "$", (0, case(profile, "smi-table.txt"))),
        ("^journalctl -k", (0, kernel)),
        ("^systemctl show", (0, FABRIC_UP)),
        ("^nv-fabricmanager", (0, "Fabric Manager version is : 580.178.04")),
        ("^sleep", (0, "")),
    ]
    return ScriptedHost(str(root), list(answers) + usual)


def look(host, **options):
    seen = observe(host, Questions(SMI, 1.0))
    return judge(seen, **options)


def ids(found):
    return sorted(item["id"] for item in found.findings)


def test_healthy_machine_is_asked_each_thing_once(tmp_path):
    bus(tmp_path, switches=4)
    host = machine(tmp_path)
    found = look(host, expected_gpus=2)
    assert (found.verdict, ids(found)) == ("healthy", [])
    assert [line.replace(SMI, "smi").split(" --no-pager")[0] for line in host.asked] == [
        "smi -q -x", "smi", "smi nvlink -s", "smi nvlink -e", "smi topo -m", "smi topo -p2p n", "journalctl -k -b -q",
        "systemctl show nvidia-fabricmanager.service", "nv-fabricmanager --version",
    ]


@pytest.mark.parametrize("hangs", [" -q -x$", " nvlink -s$", " nvlink -e$", " topo -m$", " topo -p2p n$", "$"])
def test_tool_that_hangs_is_not_asked_again(tmp_path, hangs):
    bus(tmp_path)
    host = machine(tmp_path, [(SMI_RE + hangs, None)])
    found = look(host)
    assert found.verdict == "unknown" and "smi_timeout" in ids(found)
    asked = [line for line in host.asked if line.startswith(SMI)]
    assert re.search(SMI_RE + hangs, asked[-1])


def test_machine_without_switches_is_not_asked_for_fabric_manager(tmp_path):
    bus(tmp_path)
    host = machine(tmp_path)
    assert look(host).verdict == "healthy"
    assert not [line for line in host.asked if "fabric" in line]


def test_card_without_links_is_not_asked_for_them(tmp_path):
    bus(tmp_path, device="0x26b9")
    text = case("dgx-h100-8", "smi-q.xml").replace("NVIDIA H100 80GB HBM3", "NVIDIA L40S")
    host = machine(tmp_path, [(SMI_RE + " -q -x$", (0, text))])
    assert look(host).verdict == "healthy"
    assert not [line for line in host.asked if "nvlink" in line or "topo" in line]


def test_machine_without_a_gpu_starts_no_command_but_one(tmp_path):
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    host = ScriptedHost(str(tmp_path), [])
    assert (look(host).verdict, host.asked) == ("healthy", [SMI + " -q -x"])


@pytest.mark.parametrize(
    "rc, text, verdict, expected",
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "failed",
         {"driver_not_loaded"}),
        (18, "Failed to initialize NVML: Driver/library version mismatch", "failed", {"driver_library_mismatch"}),
        (6, "No devices were found", "failed", {"no_devices"}),
        (255, "Failed to initialize NVML: Unknown Error", "unknown", {"smi_failed"}),
        (4, "Failed to initialize NVML: Insufficient Permissions", "unknown", {"smi_permission"}),
        (1, "", "unknown", {"smi_failed"}),
        (0, "", "unknown", {"smi_unreadable"}),
        (139, "Segmentation fault", "unknown", {"smi_failed"}),
    ],
)
def test_tool_that_fails(tmp_path, rc, text, verdict, expected):
    bus(tmp_path)
    found = look(machine(tmp_path, [(SMI_RE + " -q -x$", (rc, text))]))
    assert (found.verdict, set(ids(found))) == (verdict, expected)


def test_healthy_output_with_a_bad_exit_status_is_not_healthy(tmp_path):
    bus(tmp_path)
    found = look(machine(tmp_path, [(SMI_RE + " -q -x$", (42, case("dgx-h100-8", "smi-q.xml")))]))
    assert (found.verdict, ids(found)) == ("unknown", ["smi_failed"])


def test_gpu_that_the_driver_does_not_show_is_named_by_its_bus_id(tmp_path):
    bus(tmp_path)
    whole = case("dgx-h100-8", "smi-q.xml")
    blocks = re.findall(r"\t<gpu id.*?</gpu>\n", whole, re.DOTALL)
    text = whole.replace(blocks[1], "").replace("<attached_gpus>2<", "<attached_gpus>1<")
    links = [case("dgx-h100-8", name).partition("GPU 1:")[0] for name in ("nvlink-s.txt", "nvlink-e.txt")]
    found = look(machine(tmp_path, [
        (SMI_RE + " -q -x$", (0, text)), (" nvlink -s$", (0, links[0])), (" nvlink -e$", (0, links[1])),
    ]))
    assert found.verdict == "failed"
    assert [(item["id"], item["gpu"]["pci_bus_id"]) for item in found.findings] == [
        ("gpu_missing_from_driver", "00000000:43:00.0")
    ]


def test_corrupted_inforom_is_read_from_the_table(tmp_path):
    bus(tmp_path)
    text = case("dgx-h100-8", "smi-table.txt") + "WARNING: infoROM is corrupted at gpu 0000:43:00.0\n"
    found = look(machine(tmp_path, [(SMI_RE + "$", (14, text))]))
    assert [(item["id"], item["gpu"]["index"]) for item in found.findings] == [("inforom_corrupted", 1)]


@pytest.mark.parametrize("later, verdict, expected", [("0x0000000000000001", "degraded", "throttle_transient"),
                                                      ("0x0000000000000048", "failed", "throttle_thermal")])
def test_throttling_is_looked_at_again(tmp_path, later, verdict, expected):
    bus(tmp_path)
    name = "clocks_event_reason_hw_thermal_slowdown"
    text = case("dgx-h100-8", "smi-q.xml").replace("<%s>Not Active" % name, "<%s>Active" % name, 1)
    rows = "00000000:1B:00.0, %s\n00000000:43:00.0, 0x0000000000000001\n" % later
    host = machine(tmp_path, [(SMI_RE + " -q -x$", (0, text)), ("--query-gpu", (0, rows))])
    found = look(host)
    assert (found.verdict, ids(found)) == (verdict, [expected])
    assert sum(line.startswith("sleep") for line in host.asked) == 4


def test_fabric_in_progress_soon_after_boot_is_read_again(tmp_path):
    bus(tmp_path)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/uptime").write_text("95.10 300.00\n")
    host = machine(tmp_path, [
        (SMI_RE + " -q -x$", (0, case("dgx-h100-8", "smi-q.xml").replace("<state>Completed", "<state>In Progress"))),
    ])
    assert look(host).verdict == "failed"
    assert sum(line.startswith("sleep") for line in host.asked) == 3


@pytest.mark.parametrize("kernel, verdict", [(ONE_KERNEL_LINE, "healthy"), ("", "unknown")])
def test_kernel_log_is_due(tmp_path, kernel, verdict):
    bus(tmp_path)
    assert look(machine(tmp_path, kernel=kernel)).verdict == verdict


def test_ring_buffer_stands_in_for_a_journal_that_is_not_there(tmp_path):
    bus(tmp_path)
    line = "[   12.5] NVRM: Xid (PCI:0000:43:00): 79, pid=1, GPU has fallen off the bus.\n"
    found = look(machine(tmp_path, [("^journalctl", (1, "")), ("^dmesg", (0, line))]))
    assert [(item["id"], item["gpu"]["index"]) for item in found.findings] == [("xid_79", 1)]


def test_pairs_that_cannot_use_their_links_are_found(tmp_path):
    bus(tmp_path, switches=4)
    pairs = "\tGPU0\tGPU1\nGPU0\t X \tNS\nGPU1\tNS\t X \n"
    found = look(machine(tmp_path, [(SMI_RE + " topo -p2p n$", (0, pairs))]))
    assert [(item["id"], item["gpu"]["index"]) for item in found.findings] == [
        ("p2p_unavailable", 0), ("p2p_unavailable", 1)
    ]
    assert "p2p" in found.covered


@pytest.mark.parametrize(
    "answers, expected",
    [
        ([("^systemctl show", (0, FABRIC_UP.replace("=active", "=failed")))], "fabric_manager_not_running"),
        ([(SMI_RE + " -q -x$", (0, "IN PROGRESS"))], "fabric_not_completed"),
    ],
)
def test_pairs_are_silent_while_the_fabric_is_down(tmp_path, answers, expected):
    bus(tmp_path, switches=4)
    waiting = case("dgx-h100-8", "smi-q.xml").replace("<state>Completed", "<state>In Progress")
    answers = [(line, (rc, waiting if text == "IN PROGRESS" else text)) for line, (rc, text) in answers]
    pairs = "\tGPU0\tGPU1\nGPU0\t X \tNS\nGPU1\tNS\t X \n"
    found = look(machine(tmp_path, [*answers, (SMI_RE + " topo -p2p n$", (0, pairs))]))
    assert set(ids(found)) == {expected}


def test_tool_that_does_not_know_the_question_about_pairs_leaves_it_open(tmp_path):
    bus(tmp_path)
    found = look(machine(tmp_path, [(SMI_RE + " topo -p2p n$", (2, "Invalid combination of input arguments.\n"))]))
    assert (found.verdict, ids(found)) == ("healthy", []) and "p2p" not in found.covered


def test_mesh_of_volta_is_not_asked_for_every_pair(tmp_path):
    bus(tmp_path, device="0x1db1")
    text = case("dgx-h100-8", "smi-q.xml").replace("NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB")
    host = machine(tmp_path, [(SMI_RE + " -q -x$", (0, text))])
    look(host)
    assert SMI + " topo -m" in host.asked and SMI + " topo -p2p n" not in host.asked


# nvlsm: None where its program is not there, else the exit status of pgrep
@pytest.mark.parametrize(
    "nvlsm, manager, expected",
    [
        (0, "active", []),
        (1, "active", ["nvlsm_not_running"]),
        (None, "active", ["nvlsm_missing"]),
        (1, "failed", ["fabric_manager_not_running"]),
        (None, "failed", ["fabric_manager_not_running", "nvlsm_missing"]),
    ],
)
def test_subnet_manager_of_nvlink_5_is_looked_for(tmp_path, nvlsm, manager, expected):
    for number in range(8):
        folder = tmp_path / ("sys/bus/pci/devices/0000:%d0:00.0" % number)
        folder.mkdir(parents=True)
        for name, text in {"vendor": "0x10de", "device": "0x2901", "class": "0x030200", "numa_node": "0"}.items():
            (folder / name).write_text(text + "\n")
    if nvlsm is not None:
        (tmp_path / "opt/nvidia/nvlsm/sbin").mkdir(parents=True)
        (tmp_path / "opt/nvidia/nvlsm/sbin/nvlsm").write_text("")
    host = ScriptedHost(str(tmp_path), [
        ("^systemctl show", (0, FABRIC_UP.replace("=active", "=" + manager))),
        ("^nv-fabricmanager", (0, "Fabric Manager version is : 580.178.04")), ("^journalctl", (0, ONE_KERNEL_LINE)),
        ("^pgrep -x nvlsm$", (nvlsm, "")),
    ])
    found = judge(observe(host, Questions(SMI, 1.0, sources=("fabric_manager",))))
    fabric = [item["id"] for item in found.findings if item["id"].startswith(("nvlsm_", "fabric_"))]
    assert fabric == expected


def test_subnet_manager_is_no_matter_of_earlier_switches(tmp_path):
    bus(tmp_path, switches=4)
    host = machine(tmp_path)
    look(host)
    assert not [line for line in host.asked if "pgrep" in line]


# -- the modules' common part ----------------------------------------------------------------------------------------

PARAMS = {"nvidia_smi": SMI, "timeout": 1.0, "expected_gpus": None, "expected_model": None, "policy": {},
          "fail_on": [], "sample_s": 0.0}


class Module:
    """The two ends of an AnsibleModule."""

    def __init__(self, **params):
        self.params = dict(PARAMS, **params)
        self.failed, self.result = None, None

    def exit_json(self, **result):
        self.failed, self.result = False, result

    def fail_json(self, **result):
        self.failed, self.result = True, result


KEYS = {"verdict", "findings", "gpus", "links", "topology", "covered", "versions", "changed", "result", "msg"}


@pytest.mark.parametrize("fail_on, failed", [([], False), (["unknown"], False), (["failed"], True)])
def test_module_fails_only_where_asked_and_returns_everything_then_too(tmp_path, fail_on, failed):
    bus(tmp_path)
    module = Module(fail_on=fail_on, expected_gpus=4)
    _health_module.finish(module, lambda: _health_module.run_health(machine(tmp_path), module.params))
    assert module.failed is failed and set(module.result) == KEYS
    assert module.result["verdict"] == module.result["result"]["verdict"] == "failed"
    assert module.result["changed"] is False and "gpu_count_low" in ids_of(module.result)


def ids_of(result):
    return [item["id"] for item in result["findings"]]


def test_module_refuses_a_policy_by_name(tmp_path):
    module = Module(policy={"default": {"power": 1}})
    _health_module.finish(module, lambda: _health_module.run_health(machine(tmp_path), module.params))
    assert module.failed and "power" in module.result["msg"]
    with pytest.raises(PolicyError):
        _health_module.run_health(machine(tmp_path), module.params)


@pytest.mark.parametrize("params", [{"timeout": 0.0}, {"timeout": -1.0}, {"expected_gpus": -1}, {"sample_s": -1.0}])
def test_module_refuses_numbers_that_cannot_be_meant(tmp_path, params):
    with pytest.raises(ValueError):
        _health_module.run_nvlink(machine(tmp_path), dict(PARAMS, **params))


def test_link_face_keeps_links_and_leaves_the_rest_out(tmp_path):
    bus(tmp_path)
    text = case("dgx-h100-8", "smi-q.xml").replace("<persistence_mode>Enabled", "<persistence_mode>Disabled")
    links = case("dgx-h100-8", "nvlink-s.txt").partition("GPU 2:")[0]
    links = links.replace("Link 5: 26.562 GB/s", "Link 5: <inactive>", 1)
    host = machine(tmp_path, [(SMI_RE + " -q -x$", (0, text)), (" nvlink -s$", (0, links))])
    found = _health_module.run_nvlink(host, PARAMS)
    assert [(item["id"], item["gpu"]["index"], item["link"]) for item in found.findings] == [("nvlink_inactive", 0, 5)]
    assert not [line for line in host.asked if line.startswith(("journalctl", "systemctl"))]


def test_growth_in_a_sample_counts_and_old_errors_do_not(tmp_path):
    bus(tmp_path)
    old = case("dgx-h100-8", "nvlink-e.txt").partition("GPU 2:")[0]
    old = old.replace("Link 5: Replay Errors: 0", "Link 5: Replay Errors: 9", 1)
    host = machine(tmp_path, [(" nvlink -e$", (0, old))])
    assert ids(_health_module.run_nvlink(host, PARAMS)) == ["nvlink_replays"]
    assert ids(_health_module.run_nvlink(host, dict(PARAMS, sample_s=2.0))) == []
    assert "sleep 2" in host.asked


def test_info_tells_of_bus_and_driver_without_judging(tmp_path):
    bus(tmp_path, switches=1)
    info = gather_info(machine(tmp_path, [("^modinfo -F version nvidia$", (0, "580.178.04\n")),
                                          ("^modinfo -F license nvidia$", (0, "Dual MIT/GPL\n"))]), SMI, 1.0)
    assert [gpu["pci_bus_id"] for gpu in info["gpus"]] == ["00000000:1B:00.0", "00000000:43:00.0"]
    assert info["gpus"][1]["name"] == "NVIDIA H100 80GB HBM3" and info["gpus"][1]["numa_node"] == 0
    assert info["nvswitches"] == [{"pci_bus_id": "00000000:C0:00.0", "pci_device_id": "22a3", "numa_node": 0}]
    assert info["driver"]["loaded_version"] == info["driver"]["installed_version"] == "580.178.04"
    assert info["driver"]["installed_flavour"] == "open" and info["secure_boot"] is None


def test_info_of_a_machine_without_a_driver_comes_from_the_bus(tmp_path):
    bus(tmp_path, count=1)
    (tmp_path / "sys/module/nvidia/version").unlink()
    host = ScriptedHost(str(tmp_path), [])
    info = gather_info(host, SMI, 1.0)
    gpu = info["gpus"][0]
    assert (gpu["model"], gpu["architecture"], gpu["name"], gpu["uuid"]) == ("H100 SXM", "hopper", None, None)
    assert SMI + " -q -x" not in host.asked


def test_gpu_that_requires_a_reset_is_named_once(tmp_path):
    """The tool leaves it out of the NVLink listing and cannot finish the topology: both follow from the reset."""
    bus(tmp_path)
    text = case("dgx-h100-8", "smi-q.xml")
    second = text.index('<gpu id="00000000:43')
    stuck = text[second:].replace("<persistence_mode>Enabled<", "<persistence_mode>GPU requires reset<", 1)
    links = {what: case("dgx-h100-8", "nvlink-%s.txt" % what).partition("GPU 1:")[0] for what in "se"}
    answers = [
        (SMI_RE + " -q -x$", (0, text[:second] + stuck)),
        (SMI_RE + " nvlink -s$", (0, links["s"])),
        (SMI_RE + " nvlink -e$", (0, links["e"])),
        (SMI_RE + " topo -", (255, "Failed to run topology matrix\n\n")),
    ]
    found = judge(observe(machine(tmp_path, answers), Questions(nvidia_smi=SMI)))
    assert [(item["id"], item["gpu"]["index"]) for item in found.findings] == [("gpu_reset_required", 1)]
