# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings and verdicts: the one form in which every role, module and command says what it saw.

A finding is a plain dict (it crosses JSON): ``{id, severity, gpu, link, observed, expected, message, remedy,
source}``. A verdict is one of `VERDICTS`. What could not be read is `unknown`, never `healthy`; a fault that was
read outranks it, because somebody must act on it.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional

SEVERITIES = ("info", "warning", "critical")
VERDICTS = ("healthy", "degraded", "unknown", "failed")
"""From best to worst: `worst_verdict` takes the right-most."""

Finding = Dict[str, Any]


def gpu_ref(index: Optional[int], uuid: Optional[str], pci_bus_id: Optional[str]) -> Dict[str, Any]:
    """How a finding names a GPU: index for a person, UUID and PCI bus id for everything else."""
    return {"index": index, "uuid": uuid, "pci_bus_id": pci_bus_id}


def finding(
    finding_id: str,
    severity: str,
    message: str,
    observed: Any = None,
    expected: Any = None,
    remedy: str = "",
    source: str = "",
    gpu: Optional[Mapping[str, Any]] = None,
    link: Optional[int] = None,
) -> Finding:
    if severity not in SEVERITIES:
        raise ValueError("severity %r is not one of %s" % (severity, ", ".join(SEVERITIES)))
    return {
        "id": finding_id,
        "severity": severity,
        "gpu": dict(gpu) if gpu else None,
        "link": link,
        "observed": observed,
        "expected": expected,
        "message": message,
        "remedy": remedy,
        "source": source,
    }


def sort_findings(findings: Iterable[Finding]) -> List[Finding]:
    """Worst first, then by id, GPU and link: the order does not depend on what was read first."""

    def key(item: Finding):
        gpu = item.get("gpu") or {}
        index = gpu.get("index")
        return (
            -SEVERITIES.index(item["severity"]),
            item["id"],
            -1 if index is None else index,
            str(gpu.get("pci_bus_id") or ""),
            -1 if item.get("link") is None else item["link"],
            str(item.get("observed")),
        )

    return sorted(findings, key=key)


def verdict_of(findings: Iterable[Finding], unread: Iterable[str] = ()) -> str:
    """Verdict of findings and of the names of sources that were due and could not be read."""
    severities = {item["severity"] for item in findings}
    if "critical" in severities:
        return "failed"
    if list(unread):
        return "unknown"
    return "degraded" if "warning" in severities else "healthy"


def worst_verdict(verdicts: Iterable[str]) -> str:
    """The worst of several verdicts; `unknown` where there is none."""
    ranked = [VERDICTS.index(verdict) for verdict in verdicts]
    return VERDICTS[max(ranked)] if ranked else "unknown"


def role_result(
    verdict: str,
    changed: bool = False,
    findings: Iterable[Finding] = (),
    proven: Iterable[str] = (),
    unproven: Iterable[str] = (),
    versions: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Any]:
    """What a role adds to `gpufleet_results`: one form for all roles."""
    if verdict not in VERDICTS:
        raise ValueError("verdict %r is not one of %s" % (verdict, ", ".join(VERDICTS)))
    return {
        "verdict": verdict,
        "changed": bool(changed),
        "findings": sort_findings(findings),
        "proven": list(proven),
        "unproven": list(unproven),
        "versions": dict(versions or {}),
    }
