"""Write docs/health-findings.md from the code: `python tools/generate_health_docs.py [--check]`."""

from __future__ import annotations

import sys

from generated_page import REPOSITORY, load, row, write_or_check

PAGE = REPOSITORY / "docs" / "health-findings.md"


def render() -> str:
    catalog, policy, xids = load("_findings_catalog"), load("_health_policy"), load("_xid_catalog")
    lines = [
        "# Health findings",
        "",
        "Every finding that `gpu-health` and the health modules can make. This page is generated from the code",
        "(`make docs`); the short names of sources are explained in `plugins/module_utils/_findings_catalog.py`.",
        "",
        "A `critical` finding makes a machine **failed**, a `warning` makes it **degraded**, `info` changes nothing.",
        "A finding marked *unread* stands for something that was due and could not be read: it makes a machine",
        "**unknown**, unless something else makes it failed.",
        "",
        "## Findings",
        "",
        "| id | severity | meaning | what to do | source |",
        "|---|---|---|---|---|",
    ]
    for name, entry in sorted(catalog.CATALOG.items()):
        severity = entry.severity + (" (unread)" if entry.unread else "")
        lines.append(row("`%s`" % name, severity, entry.meaning, entry.remedy, entry.source))
    lines += [
        "",
        "## Xids",
        "",
        "An Xid of the kernel log is the finding `xid_<number>`. An application fault is information, unless",
        "`xid_repeat_max` processes meet it on one GPU (`xid_repeated`). `by word`: the line itself says Fatal or",
        "Nonfatal. `by action`: the line names the recovery action.",
        "",
        "| Xid | severity | meaning | NVIDIA's action | what to do |",
        "|---|---|---|---|---|",
    ]
    for number, xid in sorted(xids.XIDS.items()):
        severity = {"app": "info (application)"}.get(xid.severity, xid.severity.replace("_", " "))
        lines.append(row(str(number), severity, xid.meaning, xid.nvidia_action or "-", xids.REMEDIES[xid.remedy]))
    lines += [
        "",
        "## Thresholds",
        "",
        "Any of them can be overridden for all GPUs or for one model, by the variable `gpu_health_policy`, the module",
        "option `policy`, or `gpu-health --policy FILE` (JSON). Unknown names are refused.",
        "",
        "```json",
        '{"default": {"power_limit_w": 500}, "models": {"L40S": {"expected_pcie_width": 8}}}',
        "```",
        "",
        "| threshold | default | meaning | source |",
        "|---|---|---|---|",
    ]
    for name, (_kind, default, meaning, source) in policy.THRESHOLDS.items():
        lines.append(row("`%s`" % name, "-" if default is None else str(default), meaning, source))
    return "\n".join(lines) + "\n"


def main() -> int:
    return write_or_check(PAGE, render)


if __name__ == "__main__":
    sys.exit(main())
