# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulated nvidia-smi sets: words, exit codes, and how long each setting lasts.

Words and codes were seen by running nvidia-smi 550.163.01 against a library that answers as a case needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from simulated_machine import Machine

VERSION = "580.178.04"
FIRST = {"dgx-h100-8": "00000000:1B:00.0", "hgx-a100-8": "00000000:07:00.0"}
DONE = "All done.\n"
STOPPED = "Terminating early due to previous errors.\n"
MOVING_ON = "Treating as warning and moving on.\n"
SUPPORTED = "Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations\n"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path).install(VERSION).boot()


@pytest.fixture
def held(machine):
    """With persistence mode, so that the driver keeps what is set."""
    machine.smi("-pm", "1")
    return machine


@pytest.fixture
def a100(tmp_path):
    machine = Machine(tmp_path, "hgx-a100-8").install(VERSION).boot()
    machine.smi("-pm", "1")
    return machine


@pytest.fixture
def job():
    """Start a process that uses a GPU; call with the machine and the GPU's index."""
    running = []

    def start(on, index):
        running.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        on.gpusim("process", "--gpu", str(index), "--memory", "1024", "--name", "train.py", str(running[-1].pid))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def told(machine, *arguments) -> tuple[int, str]:
    answer = machine.smi("-i", "0", *arguments)
    assert answer.stderr == ""
    return answer.rc, answer.text.replace(FIRST[machine.profile], "GPU0")


def block(machine, name, *gpu) -> str:
    answer = machine.smi("-q", "-d", name, "-i", *(gpu or ("0",)))
    assert answer.rc == 0, answer.text
    return answer.text


def words_of(value) -> str:
    return " ".join(value) if isinstance(value, tuple) else ""


# --- words of the setters -----------------------------------------------------------------------------------------

LGC = (
    "Specified clocks \"{}\" are not valid. Please format input as 'gpuClkMin,gpuClkMax' or 'gpuClkVal' e.g. "
    "'--lock-gpu-clocks=1500,1500', '--lock-gpu-clocks=1500', or '--lock-gpu-clocks=tdp,unlimited'\n"
)
LMC = (
    "Specified clocks \"{}\" are not valid. Please format input as 'memClkMin,memClkMax' or 'memClkVal' e.g. "
    "--lock-memory-clocks=5100,5100 or --lock-memory-clocks=5100\n"
)
AC = 'Specified clocks "{}" are not valid. Please format input as memClk,smClk e.g. --applications-clocks=2000,300\n'
HELP = " Please run 'nvidia-smi -h' for help.\n\n"


@pytest.mark.parametrize(
    "arguments, rc, text",
    [
        (("-pm", "0"), 0, "Disabled persistence mode for GPU GPU0.\n" + DONE),
        (("-pm", "2"), 2, "Invalid persistence mode: 2\n" + STOPPED),
        (("-pm", "foo"), 2, "ERROR: Option foo is invalid for -pm." + HELP),
        (("-pl", "350"), 0, "Power limit for GPU GPU0 was set to 350.00 W from 700.00 W.\n" + DONE),
        (("-pl", "700"), 0, "Power limit for GPU GPU0 was set to 700.00 W from 700.00 W.\n" + DONE),
        (
            ("-pl", "100"),
            2,
            "Provided power limit 100.00 W is not a valid power limit which should be between 200.00 W and 700.00 W "
            "for GPU GPU0\n" + STOPPED,
        ),
        (("-pl", "abc"), 2, "ERROR: Option abc is invalid for -pl." + HELP),
        (("--power-limit=abc",), 2, "ERROR: Option abc is invalid for --power-limit." + HELP),
        (("-pl", "-5"), 255, "Input combination for device modification is not valid.\n\n"),
        (("-lgc", "1000,1500"), 0, 'GPU clocks set to "(gpuClkMin 1000, gpuClkMax 1500)" for GPU GPU0\n' + DONE),
        (("-lgc", "1000"), 0, 'GPU clocks set to "(gpuClkMin 1000, gpuClkMax 1000)" for GPU GPU0\n' + DONE),
        (
            ("-lgc", "1000,1500", "--mode", "1"),
            0,
            'GPU clocks set to "(gpuClkMin 1000, gpuClkMax 1500)" for GPU GPU0\n' + DONE,
        ),
        (("-lgc", "abc"), 2, LGC.format("abc") + STOPPED),
        (("-lgc", "1.5"), 2, LGC.format("1.5") + STOPPED),
        (("-lgc", "1,2,3"), 2, LGC.format("1,2,3") + STOPPED),
        (
            ("-lgc", "1500,1000"),
            0,
            'Specified clock combination "(gpuClkMin 1500, gpuClkMax 1000)" is not supported for GPU GPU0. '
            + SUPPORTED
            + MOVING_ON
            + DONE,
        ),
        (
            ("-lgc", "1500,1000", "-eow"),
            3,
            'Specified clock combination "(gpuClkMin 1500, gpuClkMax 1000)" is not supported for GPU GPU0. '
            + SUPPORTED
            + STOPPED,
        ),
        (
            ("--mode=1",),
            2,
            "Invalid combination of input arguments. '--mode' can only be used with '--lock-gpu-clocks'.\n\n",
        ),
        (("-rgc",), 0, DONE),
        (("-lmc", "2619"), 0, 'Memory clocks set to "(memClkMin 2619, memClkMax 2619)" for GPU GPU0\n' + DONE),
        (("-lmc", "x"), 2, LMC.format("x") + STOPPED),
        (("-rmc",), 0, DONE),
        (("-ac", "2619,1980"), 0, 'Applications clocks set to "(MEM 2619, SM 1980)" for GPU GPU0\n' + DONE),
        (
            ("-ac", "2619,1981"),
            0,
            'Specified clock combination "(MEM 2619, SM 1981)" is not supported for GPU GPU0. '
            + SUPPORTED
            + MOVING_ON
            + DONE,
        ),
        (("-ac", "2619"), 2, AC.format("2619") + STOPPED),
        (("-rac",), 0, DONE),
        (("-c", "0"), 0, "Compute mode is already set to DEFAULT for GPU GPU0.\n" + DONE),
        (("-c", "3"), 0, "Set compute mode to EXCLUSIVE_PROCESS for GPU GPU0.\n" + DONE),
        (("-c", "PROHIBITED"), 0, "Set compute mode to PROHIBITED for GPU GPU0.\n" + DONE),
        (
            ("-c", "1"),
            0,
            "Exclusive_Thread was deprecated! Use value 3:Exclusive_Process instead.\n" + MOVING_ON + DONE,
        ),
        (("-c", "9"), 2, "Invalid compute mode: 9\n" + STOPPED),
        (("-c", "default"), 2, "ERROR: Option default is invalid for -c." + HELP),
        (("-e", "1"), 0, "ECC support is already Enabled for GPU GPU0.\n" + DONE),
        (("-e", "0"), 0, "Disabled ECC support for GPU GPU0.\n" + DONE + "Reboot required.\n"),
        (("-e", "7"), 2, "Invalid ECC configuration code: 7\n" + STOPPED),
        (("-p", "0"), 0, "Reset volatile ECC errors to zero for GPU GPU0.\n" + DONE),
        (("-p", "1"), 0, "ECC features not supported for GPU GPU0.\n" + MOVING_ON + DONE),
        (("-p", "5"), 2, "Invalid ECC type: 5\n" + STOPPED),
        (("-mig", "1"), 0, "Enabled MIG Mode for GPU GPU0\n" + DONE),
        (("-mig", "0"), 0, "Disabled MIG Mode for GPU GPU0\n" + DONE),
        (("-mig", "3"), 2, "Invalid MIG Mode: 3\n" + STOPPED),
        (
            ("-pm", "1", "-pl", "300"),
            2,
            "Invalid combination of input arguments. Only one device modification may be done at a time.\n\n",
        ),
        (("-r",), 0, "GPU GPU0 was successfully reset.\n" + DONE),
    ],
    ids=words_of,
)
def test_words_of_a_setter(held, arguments, rc, text):
    assert told(held, *arguments) == (rc, text)


RIGHT = "The current user does not have permission to change clocks for GPU GPU0.\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("-pm", "0"), "Unable to set persistence mode for GPU GPU0: Insufficient Permissions\n"),
        (("-pl", "500"), "Failed to set power management limit for GPU GPU0: Insufficient Permissions\n"),
        (("-lgc", "1000"), RIGHT),
        (("-rgc",), RIGHT),
        (("-lmc", "2619"), RIGHT),
        (("-rmc",), RIGHT),
        (("-ac", "2619,1980"), RIGHT),
        (("-rac",), RIGHT),
        (("-c", "2"), "Unable to set the compute mode for GPU GPU0: Insufficient Permissions\n"),
        (("-e", "0"), "Unable to set ECC config for GPU GPU0: Insufficient Permissions\n"),
        (("-p", "0"), "Unable to clear ECC errors for GPU GPU0: Insufficient Permissions\n"),
        (("-mig", "1"), "Unable to enable MIG Mode for GPU GPU0: Insufficient Permissions\n"),
        (("-r",), "Unable to reset GPU GPU0: Insufficient Permissions\n"),
    ],
    ids=words_of,
)
def test_everything_that_changes_a_gpu_is_for_root_only(held, monkeypatch, arguments, words):
    before = held.state()["calls"]
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert told(held, *arguments) == (4, words + STOPPED)
    assert held.state()["calls"] == before


@pytest.mark.parametrize(
    "arguments", [("-pl", "500"), ("-lgc", "1000"), ("-lmc", "2619"), ("-ac", "2619,1980"), ("-mig", "1")], ids=words_of
)
def test_without_persistence_mode_the_tool_warns_after_a_blank_line(machine, arguments):
    rc, text = told(machine, *arguments)
    assert rc == 0
    assert "\n\nWarning: persistence mode is disabled on device GPU0. See the Known Issues" in text
    assert text.endswith("how to enable persistence mode.\n" + DONE)


@pytest.mark.parametrize("arguments", [("-c", "3"), ("-e", "0"), ("-p", "0"), ("-rgc",), ("-pm", "1")], ids=words_of)
def test_other_setters_do_not_warn_of_it(machine, arguments):
    assert "Warning" not in told(machine, *arguments)[1]


def test_a_setter_without_i_goes_over_all_gpus_and_is_recorded_for_each(held):
    answer = held.smi("-c", "EXCLUSIVE_PROCESS")
    assert answer.text.count("Set compute mode to EXCLUSIVE_PROCESS for GPU") == 8
    calls = [call for call in held.state()["calls"] if call["set"] == "compute_mode"]
    assert [(call["from"], call["to"]) for call in calls] == [("DEFAULT", "EXCLUSIVE_PROCESS")] * 8


# --- how long a setting lasts -------------------------------------------------------------------------------------


def power_limit(machine) -> str:
    return machine.query("power.limit", "-i", "0")[0][0]


def graphics_clock(machine) -> str:
    return machine.query("clocks.current.graphics", "-i", "0")[0][0]


def memory_clock(machine) -> str:
    return machine.query("clocks.current.memory", "-i", "0")[0][0]


def application_clocks(machine) -> str:
    return ",".join(machine.query("clocks.applications.memory,clocks.applications.graphics", "-i", "0")[0])


def compute_mode(machine) -> str:
    return machine.query("compute_mode", "-i", "0")[0][0]


def ecc_mode(machine) -> str:
    return ",".join(machine.query("ecc.mode.current,ecc.mode.pending", "-i", "0")[0])


def mig_mode(machine) -> str:
    return ",".join(machine.query("mig.mode.current,mig.mode.pending", "-i", "0")[0])


def persistence_mode(machine) -> str:
    return machine.query("persistence_mode", "-i", "0")[0][0]


ECC_WAITS, ECC_OFF, ON, OFF = "Enabled,Disabled", "Disabled,Disabled", "Enabled,Enabled", "Disabled,Disabled"

# profile, setter, reader, before, after the setter, after the last client is gone, after -r, after a reboot
LIFETIMES = [
    ("dgx-h100-8", ("-pl", "500"), power_limit, "700.00", "500.00", "700.00", "700.00", "700.00"),
    ("dgx-h100-8", ("-lgc", "1200"), graphics_clock, "345", "1200", "345", "345", "345"),
    ("dgx-h100-8", ("-lmc", "1593"), memory_clock, "2619", "1593", "2619", "2619", "2619"),
    ("dgx-h100-8", ("-ac", "2619,1200"), application_clocks, "2619,1980", "2619,1200", *["2619,1980"] * 3),
    ("dgx-h100-8", ("-c", "3"), compute_mode, "Default", "Exclusive_Process", "Exclusive_Process", *["Default"] * 2),
    ("dgx-h100-8", ("-pm", "1"), persistence_mode, "Enabled", "Enabled", "Disabled", "Enabled", "Disabled"),
    ("dgx-h100-8", ("-e", "0"), ecc_mode, ON, ECC_WAITS, ECC_WAITS, ECC_OFF, ECC_OFF),
    ("hgx-a100-8", ("-e", "0"), ecc_mode, ON, ECC_WAITS, ECC_WAITS, ECC_OFF, ECC_OFF),
    ("dgx-h100-8", ("-mig", "1"), mig_mode, OFF, ON, ON, ON, OFF),
    ("hgx-a100-8", ("-mig", "1"), mig_mode, OFF, ON, ON, ON, ON),
]
ROW = "profile, setter, read, before, set_to, unheld, after_reset, rebooted"
IDS = [f"{row[0]} {' '.join(row[1])}" for row in LIFETIMES]


@pytest.mark.parametrize(ROW, LIFETIMES, ids=IDS)
def test_lifetime_of_a_setting(tmp_path, profile, setter, read, before, set_to, unheld, after_reset, rebooted):
    machine = Machine(tmp_path, profile).install(VERSION).boot()
    machine.smi("-pm", "1")
    assert read(machine) == before
    assert machine.smi("-i", "0", *setter).rc == 0
    assert read(machine) == set_to
    machine.smi("-pm", "0")  # with the last holder the driver lets go of the GPU
    assert read(machine) == unheld
    machine.smi("-pm", "1")
    machine.smi("-i", "0", *setter)
    assert machine.smi("-r").rc == 0
    assert read(machine) == after_reset
    machine.smi("-i", "0", *setter)
    assert read(machine.boot()) == rebooted


@pytest.mark.parametrize(
    "lock, unlock, read, free",
    [
        (("-lgc", "1200,1500"), "-rgc", graphics_clock, "345"),
        (("-lmc", "1593"), "-rmc", memory_clock, "2619"),
        (("-ac", "2619,1200"), "-rac", application_clocks, "2619,1980"),
    ],
)
def test_a_lock_is_undone_by_its_reset(held, lock, unlock, read, free):
    held.smi("-i", "0", *lock)
    assert read(held) != free
    assert held.smi("-i", "0", unlock).rc == 0
    assert read(held) == free


@pytest.mark.parametrize("clocks, current", [("300,2500", "345"), ("5000", "1980"), ("tdp,unlimited", "1980")])
def test_a_clock_lock_is_cut_to_what_the_card_can(held, clocks, current):
    assert held.smi("-i", "0", "-lgc", clocks).rc == 0
    assert graphics_clock(held) == current


def test_an_ecc_change_taken_back_needs_no_reboot(held):
    held.smi("-i", "0", "-e", "0")
    assert told(held, "-e", "1") == (0, "Enabled ECC support for GPU GPU0.\n" + DONE)
    assert ecc_mode(held.boot()) == ON


@pytest.mark.parametrize("version, gone", [("580.178.04", False), ("595.91.07", True)])
def test_application_clocks_are_gone_from_590_on(tmp_path, version, gone):
    machine = Machine(tmp_path).install(version).boot()
    machine.smi("-pm", "1")
    rc, text = told(machine, "-ac", "2619,1200")
    assert rc == 0
    assert ("Setting applications clocks is not supported for GPU GPU0." in text) == gone


# --- the last client, processes, resets -----------------------------------------------------------------------------


def test_a_process_is_listed_until_it_ends(held, job):
    process = job(held, 2)
    uuid = held.query("uuid", "-i", "2")[0][0]
    fields = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"
    assert held.smi(fields, "--format=csv").text == (
        f"gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n{uuid}, {process.pid}, train.py, 1024 MiB\n"
    )
    assert held.smi(fields, "--format=csv,noheader", "-i", "0").text == ""
    xml = held.smi("-q", "-x", "-i", "2").text
    assert f"<pid>{process.pid}</pid>" in xml and "<process_name>train.py</process_name>" in xml
    assert "<used_memory>1024 MiB</used_memory>" in xml
    assert f"Process ID                        : {process.pid}" in block(held, "PIDS", "2")
    process.kill()
    process.wait()
    assert held.smi(fields, "--format=csv,noheader").text == ""


IN_USE = (
    "Warning: MIG mode is in pending enable state for GPU GPU0:In use by another client\n"
    "GPU0 is currently being used by one or more other processes (e.g. CUDA application or a monitoring "
    "application such as another instance of nvidia-smi). Please first kill all processes using the device and retry "
    "the command or reboot the system to make MIG mode effective.\n"
)


def test_mig_mode_of_a_gpu_in_use_stays_pending_until_a_reset(a100, job):
    process = job(a100, 0)
    assert told(a100, "-mig", "1") == (0, IN_USE + DONE)
    assert mig_mode(a100) == "Disabled,Enabled"
    process.kill()
    process.wait()
    assert a100.smi("-r").rc == 0
    assert mig_mode(a100) == ON


def test_a_gpu_in_use_is_not_reset_the_others_are(held, job):
    job(held, 1)
    held.smi("-e", "0")
    answer = held.smi("-r", "-i", "0,1")
    assert (answer.rc, answer.text) == (
        255,
        "GPU 00000000:1B:00.0 was successfully reset.\n\nThe following GPUs could not be reset:\n"
        "  GPU 00000000:43:00.0: In use by another client\n\n1 device is currently being used by one or more other "
        "processes (e.g., Fabric Manager, CUDA application, graphics application such as an X server, or a monitoring "
        "application such as another instance of nvidia-smi). Please first kill all processes using this device and "
        "all compute applications running in the system.\n",
    )
    assert held.query("ecc.mode.current", "-i", "0,1,2") == [["Disabled"], ["Enabled"], ["Enabled"]]


def test_one_a100_behind_switches_is_reset_alone_only_with_a_fabric_manager(a100):
    answer = a100.smi("-r", "-i", "3")
    assert answer.rc == 255
    assert answer.text.startswith("GPU Reset couldn't progress because the specified devices do not meet the reset")
    assert answer.text.endswith("\n0,1,2,4,5,6,7\n")
    pid = a100.root / "run/nvidia-fabricmanager/nv-fabricmanager.pid"
    pid.parent.mkdir(parents=True)
    pid.write_text(f"{os.getpid()}\n")
    assert a100.smi("-r", "-i", "3").text == "GPU 00000000:4E:00.0 was successfully reset.\nAll done.\n"


def test_all_a100_behind_switches_are_reset_without_a_fabric_manager_and_the_switches_too(a100):
    answer = a100.smi("-r")
    assert answer.rc == 0
    assert "\nNote: The operation has successfully reset all GPUs and NVSwitches." in answer.text


def test_one_h100_behind_switches_is_reset_alone(machine):
    assert machine.smi("-r", "-i", "3").rc == 0


@pytest.mark.parametrize(
    "fault, fields, before, after",
    [
        ("remap=pending", "remapped_rows.pending,remapped_rows.correctable", ["Yes", "1"], ["No", "1"]),
        ("remap=failure", "remapped_rows.pending,remapped_rows.failure", ["No", "Yes"], ["No", "Yes"]),
    ],
)
def test_a_reset_does_what_waited_for_it(held, fault, fields, before, after):
    held.fault("--gpu", "3", fault)

    def read():
        answer = held.smi(f"--query-remapped-rows={fields}", "--format=csv,noheader", "-i", "3")
        return answer.text.strip().split(", ")

    assert read() == before
    assert held.smi("-r", "-i", "3").rc == 0
    assert read() == after


def ecc_total(machine, span):
    fields = f"ecc.errors.uncorrected.{span}.total"
    return machine.query(fields, "-i", "3")[0][0]


@pytest.mark.parametrize("cure", [("-i", "3", "-r"), ("-i", "3", "-p", "0"), "reboot"])
def test_volatile_errors_go_and_aggregate_ones_stay(held, cure):
    held.fault("--gpu", "3", "ecc=sram")
    assert int(ecc_total(held, "volatile")) > 0
    aggregate = ecc_total(held, "aggregate")
    assert int(aggregate) > 0
    if cure == "reboot":
        held.boot()
    else:
        assert held.smi(*cure).rc == 0
    assert (ecc_total(held, "volatile"), ecc_total(held, "aggregate")) == ("0", aggregate)


def test_a_reset_is_recorded(held):
    held.smi("-r", "-i", "3")
    assert [call["gpu"] for call in held.state()["calls"] if call["set"] == "reset"] == ["00000000:61:00.0"]


def test_compute_mode_and_error_counters_refuse_a_mig_gpu(held):
    held.smi("-mig", "1")
    assert told(held, "-c", "3") == (
        0,
        "Setting compute mode to EXCLUSIVE_PROCESS is not supported on a MIG-enabled device.\n"
        "Unable to set the compute mode for GPU GPU0: Not Supported\n" + MOVING_ON + DONE,
    )
    assert told(held, "-p", "0") == (
        0,
        "Clearing ECC errors is not supported on a MIG-enabled device.\nECC features not supported for GPU GPU0.\n"
        + MOVING_ON
        + DONE,
    )


def test_identities_and_settings_are_kept_per_gpu(held):
    held.smi("-i", "2", "-e", "0")
    state = json.loads((held.root / "var/lib/gpulab/state.json").read_text())
    assert list(state["inforom"]) == [held.query("uuid", "-i", "2")[0][0]]
    assert held.query("ecc.mode.pending") == [["Enabled"]] * 2 + [["Disabled"]] + [["Enabled"]] * 5


# --- MIG instances ------------------------------------------------------------------------------------------------


@pytest.fixture
def mig(a100):
    """An A100 in MIG mode, without instances; the other seven are whole."""
    a100.smi("-i", "0", "-mig", "1")
    return a100


def made(machine, *arguments) -> tuple[int, list[str]]:
    answer = machine.smi("mig", *arguments)
    return answer.rc, answer.text.splitlines()


def created(number: int, name: str, profile: int) -> str:
    return f"Successfully created GPU instance ID {number:2} on GPU  0 using profile MIG {name} (ID {profile:2})"


# The examples of NVIDIA's MIG user guide: profiles asked for, then (instance, profile, start) in the order created.
PLACEMENTS = [
    ("9,3g.40gb", [(2, "3g.40gb", 9), (1, "3g.40gb", 9)]),
    ("19,14,5", [(13, "1g.10gb", 19), (5, "2g.20gb", 14), (1, "4g.40gb", 5)]),
    ("9,19,14,19", [(2, "3g.40gb", 9), (7, "1g.10gb", 19), (4, "2g.20gb", 14), (8, "1g.10gb", 19)]),
    (
        "14,19,19,19,19,19",
        [(5, "2g.20gb", 14), *((number, "1g.10gb", 19) for number in (13, 7, 8, 9, 10))],
    ),
    ("MIG 7g.80gb", [(0, "7g.80gb", 0)]),
    ("19:2", [(9, "1g.10gb", 19)]),
]


@pytest.mark.parametrize("asked, instances", PLACEMENTS)
def test_instances_get_the_numbers_and_places_of_the_user_guide(mig, asked, instances):
    assert made(mig, "-cgi", asked) == (0, [created(*instance) for instance in instances])


def test_an_instance_that_does_not_fit_ends_the_call_and_what_was_made_stays(mig):
    rc, lines = made(mig, "-cgi", "19,19,14,9")
    assert rc == 23
    assert lines[3:] == [
        "Unable to create a GPU instance on GPU  0 using profile 9: Insufficient Resources",
        "Failed to create GPU instances: Insufficient Resources",
    ]
    assert len(mig.state()["gpus"]) == 8
    assert made(mig, "-lgi")[0] == 0


@pytest.mark.parametrize("asked", ["99", "foo", "19:x"])
def test_an_unknown_profile_is_an_invalid_argument(mig, asked):
    name = asked.partition(":")[0]
    assert made(mig, "-cgi", asked) == (
        2,
        [
            f"Unable to create a GPU instance on GPU  0 using profile {name}: Invalid Argument",
            "Failed to create GPU instances: Invalid Argument",
        ],
    )


def test_gpu_and_compute_instances_are_listed(mig):
    assert made(mig, "-cgi", "9,14", "-C")[0] == 0
    assert made(mig, "-lgi")[1] == [
        "+---------------------------------------------------------+",
        "| GPU instances:                                          |",
        "| GPU   Name               Profile  Instance   Placement  |",
        "|                            ID       ID       Start:Size |",
        "|=========================================================|",
        "|   0  MIG 3g.40gb            9        2          4:4     |",
        "+---------------------------------------------------------+",
        "|   0  MIG 2g.20gb           14        3          0:2     |",
        "+---------------------------------------------------------+",
    ]
    assert made(mig, "-lci")[1][-4:] == [
        "|   0      2       MIG 3g.40gb          2         0          0:3     |",
        "+--------------------------------------------------------------------+",
        "|   0      3       MIG 2g.20gb          1         0          0:2     |",
        "+--------------------------------------------------------------------+",
    ]


def test_profiles_are_listed_with_what_is_still_free(mig):
    made(mig, "-cgi", "9")
    rc, lines = made(mig, "-i", "0", "-lgip")
    assert rc == 0
    assert lines[5:8] == [
        "|   0  MIG 1g.10gb         19     4/7        9.50       No     14     0     0   |",
        "|                                                               1     0     0   |",
        "+-------------------------------------------------------------------------------+",
    ]
    assert "|   0  MIG 4g.40gb          5     1/1        39.25      No     56     2     0   |" in lines
    assert "|   0  MIG 7g.80gb          0     0/1        79.00      No     98     5     0   |" in lines


def test_tables_of_550_are_two_characters_narrower(tmp_path):
    machine = Machine(tmp_path).install("550.163.01").boot()
    lines = made(machine, "-i", "0", "-lgip")[1]
    assert lines[1:4] == [
        "| GPU instance profiles:                                                      |",
        "| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |",
        "|                              Free/Total   GiB              CE    JPEG  OFA  |",
    ]
    assert {len(line) for line in lines} == {79}
    machine.smi("-i", "0", "-mig", "1")
    made(machine, "-cgi", "9")
    assert made(machine, "-lgi")[1][2:6] == [
        "| GPU   Name             Profile  Instance   Placement  |",
        "|                          ID       ID       Start:Size |",
        "|=======================================================|",
        "|   0  MIG 3g.40gb          9        2          4:4     |",
    ]


def test_devices_of_a_partitioned_gpu_are_listed_and_described(mig):
    made(mig, "-cgi", "9,14", "-C")
    lines = mig.smi("-L").text.splitlines()
    assert lines[1].startswith("  MIG 3g.40gb     Device  0: (UUID: MIG-")
    assert lines[2].startswith("  MIG 2g.20gb     Device  1: (UUID: MIG-")
    assert lines[3].startswith("GPU 1: ")
    xml = mig.smi("-q", "-x", "-i", "0").text
    assert xml.count("<mig_device>") == 2
    for element in (
        "<multiprocessor_count>42</multiprocessor_count>", "<total>40192 MiB</total>", "<gpu_instance_id>2<",
        "<gpu_util>N/A</gpu_util>", "<remapped_rows>N/A</remapped_rows>", "<dram_correctable>N/A</dram_correctable>",
    ):  # fmt: skip
        assert element in xml
    assert "<remapped_row_pending>No<" in mig.smi("-q", "-x", "-i", "1").text
    assert mig.query("utilization.gpu,ecc.errors.uncorrected.volatile.total", "-i", "0,1") == [
        ["[N/A]", "[N/A]"], ["0", "0"],
    ]  # fmt: skip


def test_a_part_of_a_gpu_instance_is_a_compute_instance_of_its_own(mig):
    made(mig, "-cgi", "9")
    head = "Successfully created compute instance ID"
    assert made(mig, "-cci", "0", "-gi", "2") == (
        0, [head + "  0 on GPU  0 GPU instance ID  2 using profile MIG 1c.3g.40gb (ID  0)"],
    )  # fmt: skip
    assert made(mig, "-cci", "2c.3g.40gb") == (
        0, [head + "  1 on GPU  0 GPU instance ID  2 using profile MIG 2c.3g.40gb (ID  1)"],
    )  # fmt: skip
    rc, lines = made(mig, "-cci")
    assert rc == 23 and lines[-1] == "Failed to create compute instances: Insufficient Resources"
    assert "  MIG 1c.3g.40gb  Device  0:" in mig.smi("-L").text


def test_a_gpu_instance_is_destroyed_after_its_compute_instances(mig):
    made(mig, "-cgi", "9", "-C")
    assert made(mig, "-dgi", "-gi", "2") == (
        19,
        [
            "Unable to destroy GPU instance ID  2 from GPU  0: In use by another client",
            "Failed to destroy GPU instances: In use by another client",
        ],
    )
    words = "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  2"
    assert made(mig, "-dci", "-ci", "0", "-gi", "2") == (0, [words])
    assert made(mig, "-dgi") == (0, ["Successfully destroyed GPU instance ID  2 from GPU  0"])
    assert made(mig, "-lgi") == (6, ["No GPU instances found: Not Found"])


@pytest.mark.parametrize("mode", ["-lgi", "-lci", "-dgi", "-dci", "-cci"])
def test_without_mig_mode_there_is_nothing_to_list_or_destroy(a100, mode):
    assert made(a100, mode) == (0, ["No MIG-enabled devices found."])


def test_instances_keep_mig_mode_on_and_are_lost_at_a_reboot(mig):
    made(mig, "-cgi", "9", "-C")
    assert (
        "Warning: MIG mode is in pending disable state for GPU GPU0:In use by another client\n"
        in told(mig, "-mig", "0")[1]
    )
    assert mig_mode(mig) == "Enabled,Disabled"
    told(mig, "-mig", "1")
    mig.boot()
    assert mig_mode(mig) == ON
    assert made(mig, "-lgi") == (6, ["No GPU instances found: Not Found"])


def test_instances_are_made_by_root_only(mig, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert made(mig, "-cgi", "9") == (4, ["Failed to create GPU instances: Insufficient Permissions"])


# --- readers ------------------------------------------------------------------------------------------------------


def test_blocks_of_a_filtered_query_come_in_the_order_of_the_whole(machine):
    lines = machine.smi("-q", "-d", "row_remapper,ECC", "-i", "0").text.splitlines()
    assert lines[0:3] == ["", "==============NVSMI LOG==============", ""]
    assert lines[3].startswith("Timestamp                                 : ")
    names = [line.split(" : ")[0].rstrip() for line in lines[7:]]
    assert names[:5] == [
        "Attached GPUs", "GPU 00000000:1B:00.0", "    ECC Mode", "        Current", "        Pending",
    ]  # fmt: skip
    assert names.index("    ECC Errors") < names.index("    Remapped Rows")
    assert "    Compute Mode" not in names


def test_supported_clocks_are_what_ac_takes(held):
    lines = block(held, "SUPPORTED_CLOCKS").splitlines()
    assert lines[9:12] == [
        "    Supported Clocks",
        "        Memory                            : 2619 MHz",
        "            Graphics                      : 1980 MHz",
    ]
    lowest = [line.split(" : ")[1][:-4] for line in lines if "Graphics" in line][-1]
    assert held.smi("-i", "0", "-ac", f"1593,{lowest}").text.startswith("Applications clocks set to ")
    query = held.smi("--query-supported-clocks=mem,gr", "--format=csv", "-i", "0").text.splitlines()
    assert query[:2] == ["memory [MHz], graphics [MHz]", "2619 MHz, 1980 MHz"]


def test_samples_stand_after_power_utilization_and_clock(machine):
    text = block(machine, "CLOCK,POWER,UTILIZATION")
    titles = [line.strip() for line in text.splitlines() if line.endswith(" Samples")]
    assert titles == [
        *(f"{name} Utilization Samples" for name in ("GPU", "Memory", "ENC", "DEC", "JPG", "OFA")),
        "Power Samples", "SM Clock Samples", "Memory Clock Samples",
    ]  # fmt: skip
    assert "        Max                               : 345 MHz" in text


@pytest.mark.parametrize("letter, cell", [("r", "OK"), ("w", "OK"), ("n", "OK"), ("a", "OK"), ("p", "OK")])
def test_peer_to_peer_matrix_of_a_healthy_machine(machine, letter, cell):
    lines = machine.smi("topo", "-p2p", letter).text.splitlines()
    assert lines[0] == " \t\x1b[4m" + "".join(f"GPU{number}\t" for number in range(8)) + "\x1b[0m"
    for number, line in enumerate(lines[1:9]):
        cells = [cell] * 8
        cells[number] = "X"
        assert line == f" GPU{number}\t" + "".join(f"{one}\t" for one in cells)
    assert lines[9:11] == ["", "Legend:"] and lines[-1] == "  U    = Unknown"


def test_a_gpu_without_links_has_no_nvlink_peers(machine):
    machine.fault("--gpu", "2", "nvlink_down")
    rows = [line.split("\t")[1:9] for line in machine.smi("topo", "-p2p", "n").text.splitlines()[1:9]]
    assert rows[2] == ["NS", "NS", "X", "NS", "NS", "NS", "NS", "NS"]
    assert [row[2] for row in rows] == rows[2]
    assert "NS" not in machine.smi("topo", "-p2p", "r").text.split("Legend")[0]


@pytest.mark.parametrize("switch", ["gpu", "compute-apps", "remapped-rows", "retired-pages", "supported-clocks"])
def test_every_field_that_the_help_lists_can_be_asked(machine, switch):
    text = machine.smi(f"--help-query-{switch}").text
    assert text.startswith(f'List of valid properties to query for the switch "--query-{switch}":\n\n"timestamp"\n')
    fields = [name.strip('"') for line in text.splitlines() if line[:1] == '"' for name in line.split(" or ")]
    assert len(fields) >= 7
    assert machine.smi(f"--query-{switch}={','.join(fields)}", "--format=csv").rc == 0


def test_retired_pages_of_a_card_that_remaps_rows_are_not_available(machine):
    answer = machine.smi("--query-retired-pages=retired_pages.address,retired_pages.cause", "--format=csv", "-i", "0")
    assert answer.text == ("retired_pages.address, retired_pages.cause\n[N/A], Single Bit ECC\n[N/A], Double Bit ECC\n")


@pytest.mark.parametrize("switch", ["gpu", "compute-apps", "remapped-rows", "retired-pages", "supported-clocks"])
def test_an_unknown_field_spoils_a_query(machine, switch):
    answer = machine.smi(f"--query-{switch}=timestamp,foo", "--format=csv")
    assert (answer.rc, answer.text) == (2, 'Field "foo" is not a valid field to query.\n\n')


def test_the_table_shows_modes_and_processes(held, job):
    process = job(held, 0)
    held.smi("-i", "0", "-c", "3")
    held.smi("-i", "1", "-mig", "1")
    lines = held.smi().text.splitlines()
    assert any("1024MiB /  81559MiB" in line and "E. Process" in line for line in lines)
    assert sum(line.endswith("              Enabled |") for line in lines) == 1
    assert f"|    0   N/A  N/A {process.pid:>16}      C   train.py" in "\n".join(lines)
    assert {len(line) for line in lines[1:] if line.strip()} == {91}


# --- CPU frequency governors ----------------------------------------------------------------------------------------

GOVERNORS = [
    ("dgx-h100-8", "intel_pstate", "performance powersave", "powersave", "balance_performance"),
    (
        "hgx-a100-8",
        "acpi-cpufreq",
        "conservative ondemand userspace powersave performance schedutil",
        "schedutil",
        None,
    ),
]


@pytest.mark.parametrize("profile, driver, governors, governor, preference", GOVERNORS)
def test_each_cpu_has_the_governors_of_its_driver(tmp_path, profile, driver, governors, governor, preference):
    Machine(tmp_path, profile).boot()
    for cpu in range(4):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        read = {path.name: path.read_text().strip() for path in folder.iterdir()}
        assert read["scaling_driver"] == driver
        assert read["scaling_available_governors"] == governors
        assert read["scaling_governor"] == governor
        assert read.get("energy_performance_preference") == preference
        assert int(read["scaling_min_freq"]) == int(read["cpuinfo_min_freq"]) < int(read["cpuinfo_max_freq"])
        assert read["affected_cpus"] == str(cpu)


def test_a_governor_is_written_and_reset_by_a_reboot(machine):
    governor = machine.root / "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
    governor.write_text("performance\n")
    assert governor.read_text() == "performance\n"
    machine.boot()
    assert governor.read_text() == "powersave\n"


@pytest.mark.parametrize("profile", ["none", "l40s-4"])
def test_a_virtual_machine_has_no_governors(tmp_path, profile):
    Machine(tmp_path, profile).boot()
    assert not list(tmp_path.glob("sys/devices/system/cpu/**/cpufreq"))
