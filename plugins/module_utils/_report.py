# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the roles said of a host to its one verdict, and from all hosts to the page a person reads. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ._findings import finding, sort_findings, worst_verdict

SCHEMA = 1

SOURCE = "gpufleet.server report"

TASK_FAILED = "task_failed"
"""Finding of a role that stopped at a task: the roles after it did not run, which need not be said again."""

NOT_THROUGH = (TASK_FAILED, "host_unreachable", "role_without_result", "run_unfinished")
"""Findings of the run itself, not of the machine."""


def host_report(
    host: str,
    time: str,
    run: Mapping[str, Any],
    results: Optional[Mapping[str, Mapping[str, Any]]],
    reachable: bool = True,
    required_roles: Sequence[str] = (),
    finished: bool = True,
) -> Dict[str, Any]:
    """Report of one host, as it is written to ``reports/<host>.json``.

    `results` is the host's `gpufleet_results`: role name to role result. A host that could not be reached, a run that
    has not come to its end and a required role that gave no result are `unknown`: none of them was seen healthy.
    """
    roles = {name: dict(result) for name, result in (results or {}).items()}
    findings: List[Dict[str, Any]] = []
    verdicts = [result["verdict"] for result in roles.values()]
    for result in roles.values():
        findings.extend(result.get("findings") or [])
    if not finished:
        verdicts.append("unknown")
        findings.append(
            finding(
                "run_unfinished",
                "warning",
                "the run that started at %s has not reported this host yet; if no run is going on, it was interrupted"
                % run.get("started"),
                remedy="start the playbook again: it goes on from what it finds on the host",
                source=SOURCE,
            )
        )
    elif not reachable:
        verdicts.append("unknown")
        findings.append(
            finding(
                "host_unreachable",
                "warning",
                "the host could not be reached, or was lost during the run",
                observed="unreachable",
                expected="reachable over ssh",
                remedy="check power, network and ssh (`ansible -m ping %s`), then run the playbook again" % host,
                source=SOURCE,
            )
        )
    elif not any(item["id"] == TASK_FAILED for item in findings):
        for role in required_roles:
            if role in roles:
                continue
            verdicts.append("unknown")
            findings.append(
                finding(
                    "role_without_result",
                    "warning",
                    "role %s gave no result, so nothing is known of what it proves" % role,
                    observed=None,
                    expected=role,
                    remedy="run the playbook without --tags, --skip-tags or --start-at-task that leave the role out",
                    source=SOURCE,
                )
            )
    return {
        "schema": SCHEMA,
        "host": host,
        "time": time,
        "run": dict(run),
        "verdict": worst_verdict(verdicts),
        "reachable": reachable,
        "changed": any(result.get("changed") for result in roles.values()),
        "findings": sort_findings(findings),
        "unproven": sorted({text for result in roles.values() for text in result.get("unproven") or []}),
        "versions": {name: dict(result.get("versions") or {}) for name, result in roles.items()},
        "roles": roles,
    }


def failure_result(task: str, message: str, role: str) -> Dict[str, Any]:
    """Role result for a role whose task failed: what a rescue writes, so that the report can say it."""
    return {
        "verdict": "failed",
        "changed": True,
        "findings": [
            finding(
                TASK_FAILED,
                "critical",
                "role %s stopped at task «%s»: %s" % (role, task, message.strip() or "no message"),
                observed=task,
                remedy="read the message, mend its cause and run the playbook again",
                source=SOURCE,
            )
        ],
        "proven": [],
        "unproven": [],
        "versions": {},
    }


def render_line(report: Mapping[str, Any], width: int = 0) -> str:
    """One line for one host: name, verdict, the worst findings in words."""
    return "%s  %-8s  %s" % (str(report["host"]).ljust(width), report["verdict"], summarise(report))


def render_lines(reports: Sequence[Mapping[str, Any]]) -> List[str]:
    width = max([len(str(report["host"])) for report in reports], default=0)
    return [render_line(report, width) for report in reports]


def summarise(report: Mapping[str, Any], limit: int = 2) -> str:
    """What decides the verdict, in one line: the worst `limit` findings and how many more there are.

    Of a host without such findings: what the last required look at its GPUs proved, or else what there is to know.
    """
    serious = [item for item in report["findings"] if item["severity"] != "info"]
    if serious:
        words = [_shortened(_with_gpu(item)) for item in serious[:limit]]
        more = len(serious) - len(words)
        if more:
            words.append("and %d more" % more)
        return "; ".join(words)
    proven = (report["roles"].get("gpu_health") or {}).get("proven") or []
    told = list(proven) or [item["message"] for item in report["findings"][:1]]
    return _shortened("; ".join(told)) or "nothing found"


def _shortened(text: str, width: int = 110) -> str:
    """A message on one line of bounded length; the page and the JSON file have all of it."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def driver_of(report: Mapping[str, Any]) -> Optional[str]:
    """The driver that is loaded, as the judgement or the driver role saw it."""
    versions = report["versions"]
    return (versions.get("gpu_health") or {}).get("driver") or (versions.get("nvidia_driver") or {}).get("loaded")


def render_fleet(reports: Sequence[Mapping[str, Any]], run: Mapping[str, Any]) -> str:
    """Markdown page: a table of all hosts, then every finding that asks for something, with its remedy."""
    lines = [
        "# GPU fleet report",
        "",
        "`%s` on %d hosts, started %s, ended %s."
        % (run.get("playbook"), len(reports), run.get("started"), run.get("ended")),
        "",
        "| verdict | hosts |",
        "|---|---|",
    ]
    for verdict in ("failed", "unknown", "degraded", "healthy"):
        names = [str(report["host"]) for report in reports if report["verdict"] == verdict]
        if names:
            lines.append("| %s | %s |" % (verdict, ", ".join(names)))
    lines += ["", "| host | verdict | changed | driver | what |", "|---|---|---|---|---|"]
    for report in reports:
        lines.append(
            "| %s | %s | %s | %s | %s |"
            % (
                report["host"],
                report["verdict"],
                "yes" if report["changed"] else "no",
                driver_of(report) or "-",
                _cell(summarise(report)),
            )
        )
    for report in reports:
        lines += _host_section(report)
    return "\n".join(lines) + "\n"


def _host_section(report: Mapping[str, Any]) -> List[str]:
    serious = [item for item in report["findings"] if item["severity"] != "info"]
    if not serious and not report["unproven"]:
        return []
    lines = ["", "## %s: %s" % (report["host"], report["verdict"]), ""]
    for item in serious:
        lines.append("* **%s** (%s): %s" % (item["id"], item["severity"], _with_gpu(item)))
        compared = [
            "%s: %s" % (name, _value(item[name])) for name in ("observed", "expected") if item.get(name) is not None
        ]
        if compared:
            lines.append("  * " + "; ".join(compared))
        if item.get("remedy"):
            lines.append("  * what to do: %s" % item["remedy"])
    for text in report["unproven"]:
        lines.append("* not proven: %s" % text)
    return lines


def _with_gpu(item: Mapping[str, Any]) -> str:
    """Message of a finding; names its GPU and link where the message itself does not."""
    message = str(item["message"])
    gpu = item.get("gpu") or {}
    bus_id = gpu.get("pci_bus_id")
    prefix = ""
    if bus_id and bus_id.lower() not in message.lower():
        prefix = "GPU %s: " % bus_id if gpu.get("index") is None else "GPU %s (%s): " % (gpu["index"], bus_id)
    return prefix + message


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)


def failing_hosts(
    reports: Iterable[Mapping[str, Any]], verdicts: Iterable[str], check_mode: bool = False
) -> List[str]:
    """Names of the hosts whose verdict is one of `verdicts`.

    A run in check mode judges machines as they are before the changes that it foretells, so that a fresh one is always
    `failed`. There, only hosts count on which the run itself did not get through.
    """
    wanted = set(verdicts)
    return [
        str(report["host"])
        for report in reports
        if report["verdict"] in wanted and (not check_mode or _did_not_get_through(report))
    ]


def _did_not_get_through(report: Mapping[str, Any]) -> bool:
    return any(item["id"] in NOT_THROUGH for item in report["findings"])
