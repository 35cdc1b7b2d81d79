# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Render a judgement as metrics for node_exporter's textfile collector (Prometheus text format 0.0.4)."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Tuple

from ._findings import SEVERITIES, VERDICTS
from ._health import Judgement

# (metric, key of a GPU's row, factor to base units, help)
_GAUGES: Tuple[Tuple[str, str, float, str], ...] = (
    ("gpufleet_gpu_temperature_celsius", "temperature_c", 1, "Temperature of the GPU."),
    ("gpufleet_gpu_power_watts", "power_draw_w", 1, "Power that the GPU draws."),
    ("gpufleet_gpu_power_limit_watts", "power_limit_w", 1, "Power limit in force."),
    ("gpufleet_gpu_utilization_ratio", "utilization_percent", 0.01, "Share of time in which the GPU computes."),
    ("gpufleet_gpu_memory_used_bytes", "memory_used_mib", 1048576, "Memory in use."),
    ("gpufleet_gpu_memory_size_bytes", "memory_total_mib", 1048576, "Memory of the GPU."),
    ("gpufleet_gpu_pcie_lanes", "pcie_width", 1, "Lanes of the PCIe link."),
    ("gpufleet_gpu_pcie_generation", "pcie_generation", 1, "Generation of the PCIe link at this moment."),
    (
        "gpufleet_gpu_ecc_uncorrectable_errors",
        "ecc_uncorrectable_volatile",
        1,
        "Uncorrectable memory errors since the driver was loaded.",
    ),
    ("gpufleet_gpu_clock_event_reasons", "clock_event_reasons", 1, "Clock event reasons, a bit mask."),
)


def render_prometheus(found: Judgement, now: float) -> str:
    lines: List[str] = []
    _metric(
        lines,
        "gpufleet_health_verdict",
        "Verdict on the machine: 1 at the one that holds.",
        [({"verdict": name}, 1 if name == found.verdict else 0) for name in VERDICTS],
    )
    _metric(lines, "gpufleet_health_last_run_timestamp_seconds", "When the machine was judged.", [({}, now)])
    counts = Counter(item["severity"] for item in found.findings)
    _metric(
        lines,
        "gpufleet_health_findings",
        "Findings by severity.",
        [({"severity": severity}, counts.get(severity, 0)) for severity in SEVERITIES],
    )
    _metric(
        lines,
        "gpufleet_health_finding",
        "One for each finding; see its id in the documentation.",
        _finding_rows(found),
    )
    _metric(
        lines,
        "gpufleet_gpu_present",
        "One for each GPU that was seen.",
        [(_gpu_labels(gpu, name=gpu.get("name") or ""), 1) for gpu in found.gpus],
    )
    for metric, key, factor, text in _GAUGES:
        rows = [(_gpu_labels(gpu), gpu[key] * factor) for gpu in found.gpus if gpu.get(key) is not None]
        _metric(lines, metric, text, rows)
    links = Counter((_key(link["gpu"]), link["state"]) for link in found.links)
    _metric(
        lines,
        "gpufleet_gpu_nvlinks",
        "NVLinks of a GPU by state.",
        [({"pci_bus_id": bus_id, "state": state}, number) for (bus_id, state), number in sorted(links.items())],
    )
    return "\n".join(lines) + "\n"


def _finding_rows(found: Judgement) -> List[Tuple[Dict[str, str], int]]:
    rows: Counter = Counter()
    for item in found.findings:
        link = "" if item["link"] is None else str(item["link"])
        rows[(item["id"], item["severity"], _key(item["gpu"] or {}), link)] += 1
    return [
        ({"id": finding_id, "severity": severity, "pci_bus_id": bus_id, "link": link}, number)
        for (finding_id, severity, bus_id, link), number in sorted(rows.items())
    ]


def _key(gpu: Mapping[str, Any]) -> str:
    return str(gpu.get("pci_bus_id") or gpu.get("uuid") or "")


def _gpu_labels(gpu: Mapping[str, Any], **more: str) -> Dict[str, str]:
    return dict({"pci_bus_id": str(gpu.get("pci_bus_id") or ""), "uuid": str(gpu.get("uuid") or "")}, **more)


def _metric(lines: List[str], name: str, text: str, rows) -> None:
    if not rows:
        return
    lines.append("# HELP %s %s" % (name, text))
    lines.append("# TYPE %s gauge" % name)
    for labels, value in rows:
        inner = ",".join('%s="%s"' % (key, _escape(value_)) for key, value_ in labels.items())
        lines.append("%s%s %s" % (name, "{%s}" % inner if inner else "", _number(value)))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))
