# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi of the simulated machine prints: its formats, limits, settings and refusals."""

from __future__ import annotations

import pytest
from simulated_machine import Machine

VERSION = "580.178.04"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path).install(VERSION).boot()


@pytest.fixture
def a100(tmp_path):
    return Machine(tmp_path, "hgx-a100-8").install(VERSION).boot()


# --- listings -----------------------------------------------------------------------------------------------------


def test_list_has_one_line_per_gpu(a100):
    lines = a100.smi("-L").text.splitlines()
    assert len(lines) == 8
    assert lines[7].startswith("GPU 7: NVIDIA A100-SXM4-80GB (UUID: GPU-") and lines[7].endswith(")")


def test_table_shows_each_gpu_in_89_columns(machine):
    lines = machine.smi().text.splitlines()
    assert "| NVIDIA-SMI 580.178.04             Driver Version: 580.178.04     CUDA Version: 13.0     |" in lines
    assert "|   0  NVIDIA H100 80GB HBM3          Off |   00000000:1B:00.0 Off |                    0 |" in lines
    assert "| N/A   29C    P0             69W /  700W |       0MiB /  81559MiB |      0%      Default |" in lines
    assert {len(line) for line in lines[1:] if line.strip()} == {91}


@pytest.mark.parametrize("version, rule", [("550.163.01", "|---"), ("580.178.04", "+---"), ("595.91.07", "+---")])
def test_table_rule_under_the_versions_changed_its_ends(tmp_path, version, rule):
    lines = Machine(tmp_path).install(version).boot().smi().text.splitlines()
    assert lines[3].startswith(rule)


@pytest.mark.parametrize(
    "version, cuda", [("535.261.03", "12.2"), ("550.163.01", "12.4"), ("580.178.04", "13.0"), ("595.91.07", "13.2")]
)
def test_version_names_tool_library_driver_and_cuda(tmp_path, version, cuda):
    nvml = version.rsplit(".", 1)[0]
    assert Machine(tmp_path).install(version).boot().smi("--version").text == (
        f"NVIDIA-SMI version  : {version}\nNVML version        : {nvml}\n"
        f"DRIVER version      : {version}\nCUDA Version        : {cuda}\n"
    )


# --- queries ------------------------------------------------------------------------------------------------------


def test_query_prints_header_and_units(machine):
    answer = machine.smi("--query-gpu=index,power.limit,memory.total,temperature.gpu", "--format=csv", "-i", "1")
    assert answer.text == "index, power.limit [W], memory.total [MiB], temperature.gpu\n1, 700.00 W, 81559 MiB, 30\n"


def test_query_without_header_and_units(machine):
    assert machine.query("power.default_limit,power.min_limit,power.max_limit", "-i", "0") == [
        ["700.00", "200.00", "700.00"]
    ]


def test_query_answers_the_fields_that_the_roles_ask(a100):
    fields = (
        "index,uuid,pci.bus_id,name,compute_cap,driver_version,vbios_version,memory.total,persistence_mode,"
        "power.limit,power.min_limit,power.max_limit,power.default_limit,ecc.mode.current,ecc.mode.pending,"
        "mig.mode.current,mig.mode.pending,compute_mode,pcie.link.gen.max,pcie.link.gen.gpumax,"
        "pcie.link.gen.hostmax,pcie.link.gen.current,pcie.link.width.max,pcie.link.width.current,temperature.gpu,"
        "clocks_event_reasons.active,ecc.errors.uncorrected.volatile.total,ecc.errors.uncorrected.aggregate.total"
    )
    row = dict(zip(fields.split(","), a100.query(fields)[2]))
    assert row.pop("uuid").startswith("GPU-")
    assert row == {
        "index": "2", "pci.bus_id": "00000000:47:00.0", "name": "NVIDIA A100-SXM4-80GB", "compute_cap": "8.0",
        "driver_version": VERSION, "vbios_version": "92.00.45.00.03", "memory.total": "81920",
        "persistence_mode": "Disabled", "power.limit": "400.00", "power.min_limit": "100.00",
        "power.max_limit": "400.00", "power.default_limit": "400.00", "ecc.mode.current": "Enabled",
        "ecc.mode.pending": "Enabled", "mig.mode.current": "Disabled", "mig.mode.pending": "Disabled",
        "compute_mode": "Default", "pcie.link.gen.max": "4", "pcie.link.gen.gpumax": "4",
        "pcie.link.gen.hostmax": "4", "pcie.link.gen.current": "4", "pcie.link.width.max": "16",
        "pcie.link.width.current": "16", "temperature.gpu": "33",
        "clocks_event_reasons.active": "0x0000000000000001", "ecc.errors.uncorrected.volatile.total": "0",
        "ecc.errors.uncorrected.aggregate.total": "0",
    }  # fmt: skip


@pytest.mark.parametrize(
    "asked, header",
    [
        ("clocks_throttle_reasons.active", "clocks_event_reasons.active"),
        ("gpu_name", "name"),
        ("gpu_uuid", "uuid"),
        ("clocks.gr", "clocks.current.graphics [MHz]"),
    ],
)
def test_query_header_prints_the_canonical_name(machine, asked, header):
    assert machine.smi(f"--query-gpu={asked}", "--format=csv").text.splitlines()[0] == header


@pytest.mark.parametrize(
    "version, field, known",
    [
        ("535.261.03", "gpu_recovery_action", False),
        ("580.178.04", "gpu_recovery_action", True),
        ("550.163.01", "reset_status.reset_required", True),
        ("580.178.04", "reset_status.reset_required", False),
        ("550.163.01", "fabric.health.bandwidth", True),
        ("550.163.01", "fabric.health.summary", False),
    ],
)
def test_query_knows_the_fields_of_its_branch(tmp_path, version, field, known):
    answer = Machine(tmp_path).install(version).boot().smi(f"--query-gpu=index,{field}", "--format=csv")
    if known:
        assert answer.rc == 0
    else:
        assert (answer.rc, answer.text) == (2, f'Field "{field}" is not a valid field to query.\n\n')


HELP = " Please run 'nvidia-smi -h' for help.\n\n"


@pytest.mark.parametrize(
    "arguments, rc, text",
    [
        (("--query-gpu=name",), 2, '"--format=" switch is missing.' + HELP),
        (("--query-gpu=name", "--format=noheader"), 2, "Format modifier --format=csv is mandatory.\n"),
        (("--query-gpu=name", "--format=csv,nohead"), 2, "Format modifier is not recognized.\n"),
        (("--query-gpu=name", "--query-compute-apps=pid"), 2, "Only one --query-* switch can be used at a time.\n"),
        (("--query-gpu=name", "--bogus"), 2, "ERROR: Option --bogus is not recognized." + HELP),
        (("--query-gpu",), 255, "ERROR: Option --query-gpu is missing its value." + HELP),
        (("-q", "-i"), 255, "ERROR: Option -i is missing its value." + HELP),
        (("--bogus",), 255, "ERROR: Option --bogus is not recognized. Please run 'nvidia-smi -h'.\n\n"),
        (("-pm", "1", "--bogus"), 255, "ERROR: Option --bogus is not recognized." + HELP),
        (("-q", "-pm", "1"), 255, "ERROR: Option -q is not recognized." + HELP),
        (("-L", "-pm", "1"), 2, "ERROR: Option -pm is not valid for this command." + HELP),
        (("-q", "-L"), 2, "ERROR: Option -q is not valid for this command." + HELP),
        (
            ("topo", "-m", "-i", "0"),
            255,
            "The -i command line argument must be used in conjunction with -n or -p.\n\n",
        ),
        (("topo", "-foo"), 2, 'Option "-foo" is not recognized.\n'),
        (("topo", "-p2p"), 2, 'Option "-p2p" is missing its value.\n'),
        (("topo", "-p2p", "x"), 2, "Invalid p2p capability index specified at the command-line\n"),
        (("nvlink", "-s", "-i"), 2, 'Option "-i" is missing its value.\n'),
        (("nvlink", "-s", "-l", "x"), 2, 'Option "x" is invalid for "-l".\n'),
        (("mig", "-foo"), 2, 'Option "-foo" is not recognized.\n'),
        (("mig", "-cgi"), 2, 'Option "-cgi" is missing its value.\n'),
        (("-q", "-d", "FOO"), 2, "Failed to parse --display/-d flags\n"),
        (("-q", "-d", "ECC,FOO"), 2, "Failed to parse --display/-d flags\n"),
        (
            ("-d", "ECC"),
            2,
            "Invalid combination of input arguments. Specify -q/--query and -d/--display to run a filtered query. "
            + HELP,
        ),
        (
            ("-q", "-x", "-d", "ECC"),
            2,
            "Invalid combination of input arguments: --display/-d flags can not be combined with -x/--xml-format "
            "flags.\n",
        ),
        (
            ("-x",),
            2,
            "Invalid combination of input arguments. Specify -q/--query and -x/--xml-format to run an XML query. "
            + HELP,
        ),
    ],
)
def test_wrong_arguments_have_their_words_and_exit_code_on_stdout(machine, arguments, rc, text):
    """Rows seen by running 550.163.01."""
    answer = machine.smi(*arguments)
    assert (answer.rc, answer.text, answer.stderr) == (rc, text, "")


@pytest.mark.parametrize("name", ["nvlink", "topo", "mig"])
def test_a_sub_command_without_a_mode_prints_its_usage(machine, name):
    answer = machine.smi(name)
    assert answer.rc == 0
    assert f"Usage: nvidia-smi {name} [options]" in answer.text


def test_compute_apps_of_an_idle_machine_is_the_header_alone(machine):
    answer = machine.smi("--query-compute-apps=pid,process_name,used_memory", "--format=csv")
    assert (answer.rc, answer.text) == (0, "pid, process_name, used_gpu_memory [MiB]\n")
    assert machine.smi("--query-compute-apps=pid", "--format=csv,noheader").text == ""


def test_remapped_rows_query(machine):
    fields = "gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending"
    answer = machine.smi(f"--query-remapped-rows={fields}", "--format=csv,noheader", "-i", "0")
    assert answer.text == "00000000:1B:00.0, 0, 0, No\n"


@pytest.mark.parametrize("name", ["3", "00000000:61:00.0", "0000:61:00.0", "61:00.0", "0000:61:00.0".upper()])
def test_a_gpu_is_chosen_by_index_or_bus_id(machine, name):
    assert machine.query("index", "-i", name) == [["3"]]


def test_a_gpu_is_chosen_by_uuid_or_serial(machine):
    uuid, serial = machine.query("uuid,serial")[5]
    assert machine.query("index", "-i", f"{uuid},{serial}") == [["5"], ["5"]]


@pytest.mark.parametrize("name", ["8", "00000000:FF:00.0", "GPU-11111111-2222-3333-4444-555555555555"])
def test_no_such_gpu_ends_with_6(machine, name):
    answer = machine.smi("-q", "-x", "-i", name)
    assert (answer.rc, answer.text) == (6, "No devices were found\n")


# --- NVLink and topology ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "profile, count, speed, cell", [("dgx-h100-8", 18, "26.562", "NV18"), ("hgx-a100-8", 12, "25", "NV12")]
)
def test_links_and_topology_of_a_healthy_machine(tmp_path, profile, count, speed, cell):
    machine = Machine(tmp_path, profile).install(VERSION).boot()
    lines = machine.smi("nvlink", "-s").text.splitlines()
    assert len(lines) == 8 * (1 + count)
    assert lines[1] == f"\t Link 0: {speed} GB/s"
    assert lines[count] == f"\t Link {count - 1}: {speed} GB/s"
    rows = [line.split("\t") for line in machine.smi("topo", "-m").text.splitlines()[1:9]]
    for number, row in enumerate(rows):
        assert row[0] == f"GPU{number}"
        assert row[1:9] == [" X " if other == number else cell for other in range(8)]
        assert row[-2:] == ["", "N/A"]


def test_topology_header_is_underlined_even_into_a_pipe(machine):
    header = machine.smi("topo", "-m").text.splitlines()[0]
    assert header.startswith("\t\x1b[4mGPU0\tGPU1\t")
    assert header.endswith("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m")


def test_one_dead_link_shows_in_its_own_row_and_in_no_counter(machine):
    machine.fault("--gpu", "2", "--link", "5", "nvlink_down")
    status = machine.smi("nvlink", "-s").text.split("GPU ")[3].splitlines()
    assert status[5:8] == ["\t Link 4: 26.562 GB/s", "\t Link 5: <inactive>", "\t Link 6: 26.562 GB/s"]
    assert "Link 5:" not in machine.smi("nvlink", "-e", "-i", "2").text
    rows = machine.smi("topo", "-m").text.splitlines()
    assert rows[3].count("NV17") == 7 and rows[2].count("NV18") == 7


def test_a_gpu_without_any_link_says_so_in_one_line(machine):
    machine.fault("--gpu", "2", "nvlink_down")
    status = machine.smi("nvlink", "-s", "-i", "2")
    assert status.rc == 0
    assert status.text.splitlines()[1:] == ["NVML: Unable to retrieve NVLink information as all links are inActive"]
    errors = machine.smi("nvlink", "-e", "-i", "2").text.splitlines()
    assert errors[1:] == ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    assert len(machine.smi("nvlink", "-c", "-i", "2").text.splitlines()) == 1
    row = machine.smi("topo", "-m").text.splitlines()[3].split("\t")
    assert row[1:9] == ["NODE", "NODE", " X ", "NODE", "SYS", "SYS", "SYS", "SYS"]


def test_link_counters_are_three_lines_and_a_blank_one(machine):
    lines = machine.smi("nvlink", "-e", "-i", "0").text.splitlines()
    assert lines[1:5] == [f"\t Link 0: {counter} Errors: 0" for counter in ("Replay", "Recovery", "CRC")] + [""]
    assert len(lines) == 1 + 18 * 4


def test_link_capabilities_are_six_lines(machine):
    lines = machine.smi("nvlink", "-c", "-i", "0").text.splitlines()
    assert len(lines) == 1 + 18 * 6
    assert lines[1] == "\t Link 0, P2P is supported: true"


# --- settings -----------------------------------------------------------------------------------------------------


def test_persistence_mode_is_off_set_once_and_lost_at_a_reboot(machine):
    assert machine.query("persistence_mode") == [["Disabled"]] * 8
    first = machine.smi("-pm", "1")
    assert first.rc == 0
    assert first.text.splitlines()[0] == "Enabled persistence mode for GPU 00000000:1B:00.0."
    assert first.text.splitlines()[-1] == "All done."
    assert machine.query("persistence_mode") == [["Enabled"]] * 8
    assert machine.smi("-pm", "ENABLED", "-i", "0").text == (
        "Persistence mode is already Enabled for GPU 00000000:1B:00.0.\nAll done.\n"
    )
    assert machine.boot().query("persistence_mode") == [["Disabled"]] * 8


def test_a_power_limit_holds_while_persistence_mode_is_on(machine):
    machine.smi("-pm", "1")
    answer = machine.smi("-i", "1", "-pl", "500")
    assert (answer.rc, answer.text) == (
        0,
        "Power limit for GPU 00000000:43:00.0 was set to 500.00 W from 700.00 W.\nAll done.\n",
    )
    assert machine.query("power.limit,enforced.power.limit", "-i", "0,1") == [["700.00"] * 2, ["500.00"] * 2]
    assert "<current_power_limit>500.00 W<" in machine.smi("-q", "-x", "-i", "1").text
    machine.smi("-pm", "0")
    assert machine.query("power.limit") == [["700.00"]] * 8


def test_a_power_limit_without_persistence_mode_is_forgotten_with_a_warning(machine):
    answer = machine.smi("-i", "1", "--power-limit=500")
    assert answer.rc == 0
    assert "Warning: persistence mode is disabled on device 00000000:43:00.0." in answer.text
    assert machine.query("power.limit", "-i", "1") == [["700.00"]]


@pytest.mark.parametrize("watts", ["199", "701", "900.5"])
def test_a_power_limit_outside_the_cards_range_is_refused(machine, watts):
    answer = machine.smi("-pl", watts)
    assert (answer.rc, answer.text) == (
        2,
        f"Provided power limit {float(watts):.2f} W is not a valid power limit which should be between 200.00 W and "
        "700.00 W for GPU 00000000:1B:00.0\nTerminating early due to previous errors.\n",
    )
    assert machine.state()["calls"] == []


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("-pm", "1"), "Unable to set persistence mode for GPU 00000000:1B:00.0: Insufficient Permissions"),
        (("-pl", "500"), "Failed to set power management limit for GPU 00000000:1B:00.0: Insufficient Permissions"),
    ],
)
def test_settings_are_for_root_only(machine, monkeypatch, arguments, words):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    answer = machine.smi(*arguments)
    assert (answer.rc, answer.text) == (4, words + "\nTerminating early due to previous errors.\n")


def test_settings_are_recorded_with_boot_and_argv(machine):
    machine.smi("-pm", "1")
    machine.boot().smi("-i", "2", "-pm", "1")
    calls = machine.state()["calls"]
    assert [call["boot"] for call in calls] == [1] * 8 + [2]
    assert calls[-1]["argv"] == ["-i", "2", "-pm", "1"]
    assert (calls[-1]["set"], calls[-1]["gpu"], calls[-1]["to"]) == ("persistence", "00000000:52:00.0", True)


def test_a_setting_that_changes_nothing_is_not_recorded(machine):
    machine.smi("-pm", "0")
    assert machine.state()["calls"] == []
