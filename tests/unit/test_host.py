"""The edge: a hang, a flood, a missing command and a missing file are results, never exceptions or endless waits."""

import os
import sys
import time

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._host import Host


def test_output_exit_status_and_both_streams_are_kept():
    result = Host().run([sys.executable, "-c", "import sys; print('out'); sys.stderr.write('err'); sys.exit(9)"])
    assert (result.rc, result.stdout, result.stderr, result.ok) == (9, "out\n", "err", False)


def test_a_hang_is_a_result_and_its_children_are_ended(tmp_path):
    pid_file = tmp_path / "pid"
    script = "sleep 60 & echo $! > %s; wait" % pid_file
    started = time.monotonic()
    result = Host().run(["/bin/sh", "-c", script], timeout_s=0.5)
    assert time.monotonic() - started < 10
    assert (result.rc, result.timed_out, result.ok) == (None, True, False)
    assert "no answer within" in result.describe()
    child = int(pid_file.read_text())
    for _attempt in range(50):
        if not os.path.exists("/proc/%d" % child) or "Z" in open("/proc/%d/stat" % child).read().split(")")[1]:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the child of a command that hung still runs")


def test_what_was_printed_before_a_hang_is_kept():
    result = Host().run(["/bin/sh", "-c", "echo before; sleep 60"], timeout_s=0.5)
    assert (result.timed_out, result.stdout) == (True, "before\n")


def test_a_flood_is_bounded_and_is_not_ok():
    result = Host().run(["/bin/sh", "-c", "while :; do echo 0123456789; done"], timeout_s=20, max_bytes=5000)
    assert (result.truncated, len(result.stdout), result.ok) == (True, 5000, False)


def test_a_missing_command_is_a_result():
    result = Host().run(["/nonexistent/nvidia-smi", "-L"])
    assert (result.missing, result.rc, result.ok) == (True, None, False)
    assert result.describe() == "/nonexistent/nvidia-smi -L: command not found"


def test_a_file_that_is_not_executable_is_a_result(tmp_path):
    path = tmp_path / "nvidia-smi"
    path.write_text("text")
    assert Host().run([str(path)]).rc == 126


def test_commands_see_the_c_locale_and_no_callers_environment(monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LD_PRELOAD_FOR_TEST", "x")
    words = Host().run(["/usr/bin/env"]).stdout.splitlines()
    assert "LC_ALL=C" in words
    assert not [word for word in words if word.startswith("LD_PRELOAD_FOR_TEST")]


def test_bytes_that_are_not_utf8_do_not_crash():
    assert Host().run(["/bin/sh", "-c", r"printf '\377ok'"]).stdout == "\ufffdok"


def test_standard_input_is_handed_over():
    assert Host().run(["/bin/cat"], stdin="text").stdout == "text"


def test_files_of_proc_sys_are_read_with_the_default_bound():
    assert Host().read_text("/proc/sys/kernel/ostype") == "Linux\n"


def test_a_file_is_read_up_to_the_bound(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 200000)
    assert Host().read_bytes(str(path), max_bytes=100000) == b"x" * 100000


def test_root_moves_files_and_names_stay_the_machines_own(tmp_path):
    (tmp_path / "sys/bus").mkdir(parents=True)
    (tmp_path / "sys/bus/a").write_text("1\n")
    (tmp_path / "sys/b").symlink_to("bus")
    host = Host(root=str(tmp_path))
    assert host.read_text("/sys/bus/a") == "1\n"
    assert host.read_text("/sys/bus/missing") is None
    assert host.list_dir("/sys/bus") == ["a"]
    assert host.list_dir("/sys/none") == []
    assert host.glob("/sys/bus/*") == ["/sys/bus/a"]
    assert host.real_path("/sys/b") == "/sys/bus"
    assert host.exists("/sys/b") and not host.exists("/etc")
