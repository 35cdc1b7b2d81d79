"""The report: a host that was not seen healthy is never called healthy, and a person can read what to do."""

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils import _report
from ansible_collections.gpufleet.server.plugins.module_utils._findings import finding, gpu_ref, role_result

RUN = {"playbook": "site", "started": "2026-11-30T09:00:00Z", "ended": "2026-11-30T09:05:00Z", "check_mode": False}
LOST = finding(
    "gpu_lost",
    "critical",
    "GPU is lost",
    observed="GPU is lost",
    expected="answers",
    remedy="cold power cycle",
    gpu=gpu_ref(3, "GPU-3", "0000:4b:00.0"),
)
HEALTHY = {
    "gpu_health": role_result(
        "healthy", proven=["8 GPUs judged healthy", "144 links up"], versions={"driver": "580.178.04"}
    )
}


def report(results=None, **more):
    options = {"host": "gpu01", "time": "2026-11-30T09:05:00Z", "run": RUN, "results": results}
    options.update(more)
    return _report.host_report(**options)


@pytest.mark.parametrize(
    "more, verdict, finding_id",
    [
        ({"results": HEALTHY}, "healthy", None),
        ({"results": HEALTHY, "required_roles": ["gpu_health"]}, "healthy", None),
        ({"results": None}, "unknown", None),
        ({"results": {}}, "unknown", None),
        (
            {"results": {"base": role_result("healthy")}, "required_roles": ["gpu_health"]},
            "unknown",
            "role_without_result",
        ),
        ({"results": HEALTHY, "reachable": False}, "unknown", "host_unreachable"),
        ({"results": HEALTHY, "finished": False}, "unknown", "run_unfinished"),
        ({"results": {"gpu_health": role_result("failed", findings=[LOST])}, "reachable": False}, "failed", "gpu_lost"),
    ],
    ids=[
        "healthy",
        "required-there",
        "no-results",
        "empty",
        "required-missing",
        "lost-host",
        "unfinished",
        "worst-wins",
    ],
)
def test_verdict(more, verdict, finding_id):
    got = report(**more)
    assert got["verdict"] == verdict
    if finding_id:
        assert finding_id in [item["id"] for item in got["findings"]]


def test_changed_versions_and_unproven_are_those_of_all_roles():
    got = report(
        {
            "base": role_result("healthy", changed=True, unproven=["sysctl kernel.numa_balancing"]),
            "nvidia_driver": role_result("healthy", versions={"loaded": "580.178.04"}),
        }
    )
    assert got["changed"] is True
    assert got["versions"] == {"base": {}, "nvidia_driver": {"loaded": "580.178.04"}}
    assert _report.driver_of(got) == "580.178.04"
    assert got["unproven"] == ["sysctl kernel.numa_balancing"]


def test_line_names_host_verdict_and_gpu():
    line = _report.render_line(report({"gpu_health": role_result("failed", findings=[LOST])}))
    assert line == "gpu01  failed    GPU 3 (0000:4b:00.0): GPU is lost"


def test_line_does_not_repeat_a_bus_id_that_the_message_has():
    item = dict(LOST, message="GPU 0000:4B:00.0 is lost")
    line = _report.render_line(report({"gpu_health": role_result("failed", findings=[item])}))
    assert line == "gpu01  failed    GPU 0000:4B:00.0 is lost"


def test_line_is_short_and_the_page_is_whole():
    item = dict(LOST, message="word " * 100, gpu=None)
    got = report({"gpu_health": role_result("failed", findings=[item])})
    assert len(_report.render_line(got)) < 140
    assert "word " * 99 in _report.render_fleet([got], RUN)


def test_line_of_many_findings_says_how_many_more():
    items = [dict(LOST, id="f%d" % index) for index in range(5)]
    assert "and 3 more" in _report.render_line(report({"gpu_health": role_result("failed", findings=items)}))


def test_page_has_every_host_finding_and_remedy():
    page = _report.render_fleet(
        [report(HEALTHY), report({"gpu_health": role_result("failed", findings=[LOST])}, host="gpu02")], RUN
    )
    assert "| healthy | gpu01 |" in page
    assert "| failed | gpu02 |" in page
    assert "| gpu01 | healthy | no | 580.178.04 | 8 GPUs judged healthy; 144 links up |" in page
    assert "## gpu02: failed" in page
    assert "what to do: cold power cycle" in page


def test_a_pipe_in_a_message_does_not_break_the_table():
    item = dict(LOST, message="a | b\nc", gpu=None)
    page = _report.render_fleet([report({"gpu_health": role_result("failed", findings=[item])})], RUN)
    assert "| a \\| b c |" in page


def test_failure_result_names_role_task_and_message():
    got = _report.failure_result("Install the set", "no candidate\n", "nvidia_driver")
    assert got["verdict"] == "failed"
    assert got["findings"][0]["message"] == "role nvidia_driver stopped at task «Install the set»: no candidate"


def test_roles_after_one_that_stopped_are_not_told_as_missing():
    stopped = {"base": _report.failure_result("Install", "no candidate", "base")}
    got = report(stopped, required_roles=["gpu_health"])
    assert [item["id"] for item in got["findings"]] == ["task_failed"]


FAILED = {"gpu_health": role_result("failed", findings=[LOST])}
STOPPED = {"base": _report.failure_result("Install", "no candidate", "base")}


@pytest.mark.parametrize(
    "results, fail_on, check_mode, failing",
    [
        (HEALTHY, ["failed", "unknown"], False, []),
        (None, ["failed", "unknown"], False, ["gpu01"]),
        (FAILED, ["failed"], False, ["gpu01"]),
        (FAILED, [], False, []),
        (FAILED, ["failed"], True, []),
        (STOPPED, ["failed"], True, ["gpu01"]),
    ],
    ids=["healthy", "no-results", "failed", "never", "check-fresh-machine", "check-that-stopped"],
)
def test_failing_hosts(results, fail_on, check_mode, failing):
    assert _report.failing_hosts([report(results)], fail_on, check_mode) == failing
