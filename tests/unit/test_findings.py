"""Findings and verdicts: what could not be read is never healthy, and a fault that was read outranks it."""

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._findings import (
    finding,
    gpu_ref,
    role_result,
    sort_findings,
    verdict_of,
    worst_verdict,
)

INFO = finding("idle", "info", "idle")
WARNING = finding("width", "warning", "x8")
CRITICAL = finding("lost", "critical", "lost")


@pytest.mark.parametrize(
    "findings, unread, verdict",
    [
        ([], [], "healthy"),
        ([INFO], [], "healthy"),
        ([WARNING, INFO], [], "degraded"),
        ([CRITICAL, WARNING], [], "failed"),
        ([], ["nvidia-smi"], "unknown"),
        ([WARNING], ["nvidia-smi"], "unknown"),
        ([CRITICAL], ["nvidia-smi"], "failed"),
    ],
    ids=["nothing", "info", "warning", "critical", "unread", "unread-outranks-warning", "fault-outranks-unread"],
)
def test_verdict_of(findings, unread, verdict):
    assert verdict_of(findings, unread) == verdict


@pytest.mark.parametrize(
    "verdicts, worst",
    [
        ([], "unknown"),
        (["healthy", "healthy"], "healthy"),
        (["healthy", "degraded"], "degraded"),
        (["degraded", "unknown"], "unknown"),
        (["unknown", "failed", "healthy"], "failed"),
    ],
)
def test_worst_verdict(verdicts, worst):
    assert worst_verdict(verdicts) == worst


def test_order_is_worst_first_and_does_not_depend_on_what_was_read_first():
    gpu1 = finding("lost", "critical", "lost", gpu=gpu_ref(1, "GPU-b", "0000:02:00.0"))
    gpu0 = finding("lost", "critical", "lost", gpu=gpu_ref(0, "GPU-a", "0000:01:00.0"))
    link = finding("link", "warning", "down", gpu=gpu_ref(0, "GPU-a", "0000:01:00.0"), link=3)
    expected = [gpu0, gpu1, link, INFO]
    assert sort_findings([INFO, link, gpu1, gpu0]) == expected
    assert sort_findings([gpu0, gpu1, INFO, link]) == expected


def test_unknown_severity_is_refused_by_name():
    with pytest.raises(ValueError, match="'fatal'.*info, warning, critical"):
        finding("x", "fatal", "x")


def test_unknown_verdict_is_refused_by_name():
    with pytest.raises(ValueError, match="'ok'.*healthy"):
        role_result("ok")
