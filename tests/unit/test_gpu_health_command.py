# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpu-health as a user runs it: the built file, on this Python, with exit statuses and stored state."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support_health import ONE_KERNEL_LINE, SMI, ScriptedHost

from ansible_collections.gpufleet.server.plugins.module_utils._gpu_health_cli import Edge, run

REPOSITORY = Path(__file__).resolve().parents[2]
CASES = Path(__file__).resolve().parent / "cases"
BUILDER = REPOSITORY / "plugins" / "plugin_utils" / "_gpu_health_archive.py"


def builder():
    spec = importlib.util.spec_from_file_location("gpu_health_archive", BUILDER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_health_archive"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    path = tmp_path_factory.mktemp("command") / "gpu-health"
    path.write_bytes(builder().build_archive())

    def start(*arguments):
        done = subprocess.run([sys.executable, str(path), *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=60)
        return done.returncode, done.stdout, done.stderr

    return start


def test_same_files_give_the_same_bytes():
    module = builder()
    assert module.build_archive() == module.build_archive()
    assert module.build_archive().startswith(b"#!/usr/bin/python3\n")


def test_archive_holds_what_it_imports_and_no_module_of_a_role():
    names = builder().needed_modules()
    assert {"_host", "_health", "_xid_catalog", "_gpu_health_cli"} <= set(names)
    assert not [name for name in names if name.startswith(("_driver", "_base", "_apt", "_dpkg"))]


def test_folder_is_judged_as_one_machine(command):
    status, out, err = command("judge", "--json", "--expected-gpus", 2, CASES / "dgx-h100-8")
    data = json.loads(out)
    # the recorded machine has two of its eight GPUs in the query, and all eight in the list of links
    assert (status, err) == (0, "")
    assert data["verdict"] == "healthy" and len(data["gpus"]) == 2
    assert set(data) == {
        "schema", "host", "time", "verdict", "findings", "gpus", "links", "topology", "covered", "versions",
    }


@pytest.mark.parametrize(
    "name", ["smi-q.xml", "smi-q.txt", "smi-table.txt", "nvlink-s.txt", "nvlink-e.txt", "topo-m.txt"]
)
def test_file_is_recognised_by_its_content(command, name):
    status, out, _err = command("judge", "--model", "H100", CASES / "dgx-h100-8" / name)
    assert status == 0, out
    assert out.startswith("HEALTHY")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("judge",),
        ("judge", "/nonexistent/file"),
        ("judge", "--kind", "smi-yaml", "x"),
        ("check", "--expected-gpus", "many"),
        ("check", "--timeout", "0"),
        ("check", "--json", "--prometheus"),
        ("check", "--policy", "/nonexistent/policy"),
        ("ack",),
        ("ack", "--reason", " "),
        ("ack", "--reason", "x", "--gpu", "three"),
    ],
)
def test_usage_error_ends_with_3_and_says_why(command, arguments):
    status, out, err = command(*arguments)
    assert (status, out) == (3, "")
    assert len(err) > 10 and "Traceback" not in err


def test_policy_with_an_unknown_name_is_refused(command, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text('{"default": {"power_limit": 300}}')
    status, _out, err = command("judge", "--policy", policy, CASES / "dgx-h100-8")
    assert status == 3 and "power_limit" in err and "power_limit_w" in err


def test_policy_applies(command, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text('{"models": {"H100": {"power_limit_w": 300}}}')
    status, out, _err = command("judge", "--policy", policy, CASES / "dgx-h100-8" / "smi-q.xml")
    assert status == 1 and "power_limit_differs" in out


@pytest.mark.parametrize("text", ["", "hello\n", "{}", "\x00\x01\x02"])
def test_recording_that_says_nothing_is_unknown(command, tmp_path, text):
    recording = tmp_path / "recording"
    recording.write_text(text)
    assert command("judge", recording)[0] == 3


# -- check, with its edge in the test's hands ------------------------------------------------------------------------


class Options:
    def __init__(self, command, **values):
        nothing = ("expected_gpus", "expected_model", "policy", "kind", "model", "gpu")
        self.__dict__.update(dict.fromkeys(nothing), json=False, prometheus=False, store=False)
        self.__dict__.update(nvidia_smi=SMI, timeout=1.0, command=command, **values)


@pytest.fixture
def machine(tmp_path):
    """A machine without PCI bus whose nvidia-smi shows two GPUs; what the command prints and writes is kept."""

    class Machine:
        kernel = ONE_KERNEL_LINE
        out, err = "", ""
        now = 1732000500.0
        edit = ("", "")

        def start(self, command, **options):
            case = CASES / "dgx-h100-8"
            smi = re.escape(SMI)
            text = (case / "smi-q.xml").read_text(encoding="utf-8").replace(*self.edit, 1)
            two = [(case / name).read_text().partition("GPU 2:")[0] for name in ("nvlink-s.txt", "nvlink-e.txt")]
            topo = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
            host = ScriptedHost(
                str(tmp_path),
                [(smi + " -q -x", (0, text)), (smi + " nvlink -s", (0, two[0])), (smi + " nvlink -e", (0, two[1])),
                 (smi + " topo", (0, topo)), (smi + "$", (0, "")), ("^journalctl", (0, self.kernel))],
            )
            self.out = self.err = ""
            edge = Edge(
                host=host, write=self.write, now=lambda: self.now, host_name="node1",
                out=lambda text: setattr(self, "out", self.out + text),
                err=lambda text: setattr(self, "err", self.err + text),
                absolute=lambda path: path, is_dir=lambda path: False,
            )
            return run(Options(command, **options), edge)

        @staticmethod
        def write(path, text):
            target = tmp_path / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("boot-1\n")
    return Machine()


def test_check_of_a_healthy_machine_ends_with_0(machine):
    assert machine.start("check") == 0
    assert machine.out.startswith("HEALTHY") and "kernel_log" in machine.out


def test_check_counts_what_is_expected(machine):
    assert machine.start("check", expected_gpus=8) == 2
    assert "gpu_count_low" in machine.out


def test_check_cannot_call_a_machine_healthy_without_its_kernel_log(machine):
    machine.kernel = ""
    assert machine.start("check") == 3
    assert "kernel_log_unreadable" in machine.out


def test_xid_is_told_until_it_is_acknowledged_and_a_later_one_again(machine):
    line = "1732000%d.0 node kernel: NVRM: Xid (PCI:0000:43:00): 63, pid=1, name=p, remapped\n"
    machine.kernel = ONE_KERNEL_LINE + line % 400
    assert machine.start("check") == 1
    assert machine.start("ack", reason="seen") == 0
    assert machine.start("check") == 0
    machine.kernel += line % 600
    assert machine.start("check") == 1


def test_acknowledgement_of_one_gpu_leaves_the_others(machine):
    line = "1732000400.0 node kernel: NVRM: Xid (PCI:0000:%s:00): 63, pid=1, name=p, remapped\n"
    machine.kernel = ONE_KERNEL_LINE + line % "43" + line % "1b"
    machine.start("ack", reason="seen", gpu="0000:43:00.0")
    assert machine.start("check", json=True) == 1
    assert [item["gpu"]["index"] for item in json.loads(machine.out)["findings"]] == [0]


def test_nothing_is_written_unless_asked_for(machine, tmp_path):
    machine.start("check")
    assert not (tmp_path / "var").exists()
    machine.start("check", store=True)
    stored = json.loads((tmp_path / "var/lib/gpufleet/health/earlier.json").read_text())
    assert stored["boot_id"] == "boot-1" and "Replay Errors" in stored["nvlink_errors"]


def test_replays_are_judged_by_their_rate_since_the_stored_reading(machine, tmp_path):
    uptime = tmp_path / "proc/uptime"
    uptime.write_text("1000.00 1.00\n")
    assert machine.start("check", store=True) == 0
    uptime.write_text("1600.00 1.00\n")
    # Gen5 x16: 1.92 a lane and minute, so 31 a minute, 310 in ten
    machine.edit = ("<replay_counter>0<", "<replay_counter>310<")
    assert machine.start("check") == 0
    machine.edit = ("<replay_counter>0<", "<replay_counter>320<")
    assert machine.start("check", json=True) == 1
    assert [(item["id"], item["gpu"]["index"]) for item in json.loads(machine.out)["findings"]] == [
        ("pcie_replay_rate", 0)
    ]
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("boot-2\n")
    assert machine.start("check") == 0


def test_xid_that_comes_back_after_two_reboots_is_no_matter_of_a_reset(machine, tmp_path):
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    line = "%d.0 node kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=1, name=p, GPU has fallen off the bus.\n"
    found = []
    for number in range(4):
        boot.write_text("boot-%d\n" % number)
        machine.now = 1732000000.0 + number * 1000
        machine.kernel = ONE_KERNEL_LINE + line % (machine.now - 10)
        machine.start("check", store=True, json=True)
        machine.start("check", store=True, json=True)
        found.append([item["id"] for item in json.loads(machine.out)["findings"]])
        if number == 2:
            machine.start("ack", reason="the GPU was replaced")
    recurring = ["xid_79", "xid_recurring"]
    assert found == [["xid_79"], ["xid_79"], recurring, ["xid_79"]]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"boots": 3}', '{"boots": [{"xids": [[1], 2, ["a", "b", "c"]]}]}'])
def test_damaged_memory_is_as_good_as_none(machine, tmp_path, text):
    for name in ("xids.json", "earlier.json", "acknowledged.json"):
        machine.write("/var/lib/gpufleet/health/" + name, text)
    machine.kernel = ONE_KERNEL_LINE + "1732000400.0 node kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=1, name=p, gone\n"
    assert machine.start("check", store=True, json=True) == 2
    assert [item["id"] for item in json.loads(machine.out)["findings"]] == ["xid_79"]
    assert json.loads((tmp_path / "var/lib/gpufleet/health/xids.json").read_text())["boots"][-1] == {
        "boot_id": "boot-1", "xids": [["00000000:43:00.0", 79, 1732000400.0]]
    }


def test_metrics_follow_the_text_format(machine):
    assert machine.start("check", prometheus=True) == 0
    lines = machine.out.splitlines()
    assert 'gpufleet_health_verdict{verdict="healthy"} 1' in lines
    assert sum(line.startswith("gpufleet_gpu_temperature_celsius{") for line in lines) == 2
    seen = set()
    for line in lines:
        comment = re.match(r"^# (HELP|TYPE) (\w+) (.+)$", line)
        if comment:
            seen.add((comment.group(1), comment.group(2)))
            continue
        sample = re.match(r'^(\w+)(?:\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? -?[0-9.e+-]+$', line)
        assert sample and {("HELP", sample.group(1)), ("TYPE", sample.group(1))} <= seen, line
    names = [line for line in lines if not line.startswith("#")]
    assert len(names) == len({line.rpartition(" ")[0] for line in names})


def test_real_edge_judges_this_machine(command):
    status, out, err = command("check", "--json", "--nvidia-smi", "/nonexistent/nvidia-smi")
    assert "Traceback" not in err
    assert {"healthy": 0, "degraded": 1, "failed": 2, "unknown": 3}[json.loads(out)["verdict"]] == status
