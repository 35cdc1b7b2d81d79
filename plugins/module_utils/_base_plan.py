# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role base has to do on a machine: desired state and observation in, files, packages, steps and a verdict out.

Pure. Three rules hold everywhere. A switch that is None is left to the operator, and our file for it goes away. What
an operator set in another file of the same kind stands, and is told as an info finding. Whatever is not in force yet
is *pending*: a plan says what would be done about it, a proof calls it a failure.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence, Tuple

from . import _base_files as files
from ._base_apt import (
    plan_apt_conf,
    plan_clashes,
    plan_kernel,
    plan_packages,
    plan_repair,
    plan_sources,
    required_sources,
)
from ._base_desired import Desired, Part
from ._base_kernel import plan_limits, plan_sysctl, plan_thp
from ._base_os import refusal_of
from ._base_services import operators_time_daemon, plan_journal, plan_time
from ._findings import finding, role_result, verdict_of
from ._observe_base import OWN_ATTRIBUTES, BaseFacts

STEPS = (
    "wait_for_cloud_init",
    "repair_dpkg",
    "update_apt",
    "install_packages",
    "reexec_systemd",
    "apply_sysctl",
    "apply_thp",
    "restart_journald",
    "start_time_sync",
    "restart_time_sync",
)
"""In the order in which the role takes them; `repair_dpkg` to `install_packages` belong to its install part."""


CARRIED = ("base_file_restored", "base_dpkg_repaired", "apt_source_not_read")
"""Findings of a plan that its proof repeats: what was mended is worth knowing, and is gone when one looks again."""


def plan_base(desired: Desired, facts: BaseFacts, check_mode: bool = False) -> Part:
    """All concerns together; raises :class:`BaseError` for a desired state that makes no sense on this machine."""
    whole = Part()
    if facts.cloud_init_running:
        whole.need("wait_for_cloud_init", "cloud-init still sets up this machine")
    for part in (
        plan_repair(facts),
        plan_apt_conf(desired, facts),
        plan_sources(desired, facts),
        plan_packages(desired, facts, check_mode),
        plan_kernel(desired, facts),
        plan_limits(desired, facts),
        plan_sysctl(desired, facts),
        plan_thp(desired, facts),
        plan_time(desired, facts),
        plan_journal(desired, facts),
    ):
        whole.add(part)
    plan_clashes(whole, facts)
    _compare_files(whole, facts)
    waiting = {path for path, text in whole.files if text is not None and not facts.has_file(path, text)}
    whole.proven.extend(text for path, text in whole.file_proofs if path not in waiting)
    if facts.reboot_required and not facts.container:
        whole.findings.append(
            finding(
                "base_reboot_required",
                "info",
                "a package asked for a reboot",
                remedy="Reboot when no job runs.",
                source="/run/reboot-required",
            )
        )
    return whole


def _compare_files(whole: Part, facts: BaseFacts) -> None:
    """Files that differ from what they should be are pending; one that was there and differs, somebody changed."""
    for path, text in whole.files:
        seen = facts.own.get(path)
        if path in files.STOCK_SOURCES:
            if text is None or facts.stock_sources.get(path) != text:
                whole.pending.append("%s is to be %s" % (path, "set aside" if text is None else "put back"))
        elif text is None:
            if seen is not None:
                whole.pending.append("%s is to go" % path)
        elif seen is None:
            whole.pending.append("%s is missing" % path)
        elif not seen.is_as(text):
            whole.pending.append("%s differs" % path)
            what = "text" if seen.text != text else "mode or owner (%s)" % seen.attributes
            whole.findings.append(
                finding(
                    "base_file_restored",
                    "info",
                    "%s had another %s than the inventory says; written anew" % (path, what),
                    observed=seen.attributes,
                    expected=OWN_ATTRIBUTES,
                    remedy="Change the inventory instead of the file.",
                    source=path,
                )
            )


def plan_dict(whole: Part, desired: Desired, facts: BaseFacts) -> Dict[str, Any]:
    """The plan as the role reads it."""
    secret = (files.APT_PROXY,)
    return {
        "refusal": None,
        "files": [
            {"path": path, "state": "absent"}
            if text is None
            else {"path": path, "content": text, "show_diff": path not in secret}
            for path, text in whole.files
        ],
        "packages": list(whole.packages),
        "required_sources": required_sources(desired, facts),
        "steps": [step for step in STEPS if step in whole.steps],
        "pending": list(whole.pending),
        "time_daemon": operators_time_daemon(facts)
        or ("chrony" if desired.time_sync == "chrony" else "systemd-timesyncd"),
        "kernel": facts.kernel.release,
    }


def result_of(whole: Part, facts: BaseFacts, prove: bool, carried: Sequence[Mapping[str, Any]] = ()) -> Dict[str, Any]:
    """The role's result. Pending matters are unproven in a plan, and a critical finding in a proof."""
    findings = list(whole.findings)
    findings += [dict(item) for item in carried if item.get("id") in CARRIED and dict(item) not in findings]
    unproven = list(whole.unproven)
    if prove and whole.pending:
        findings.append(
            finding(
                "base_not_in_force",
                "critical",
                "not in force after the run: %s" % "; ".join(whole.pending),
                observed=list(whole.pending),
                remedy="Run again; if it stays, look into the system log of the named part.",
            )
        )
    elif whole.pending:
        unproven += ["not applied yet: %s" % text for text in whole.pending]
    release = facts.os_release
    return role_result(
        verdict_of(findings, unread=() if prove else whole.pending),
        findings=findings,
        proven=["%s on %s is supported" % (release.get("PRETTY_NAME", "system"), facts.arch), *whole.proven],
        unproven=unproven,
        versions={
            "os": "%s %s" % (release.get("ID", ""), release.get("VERSION_ID", "")),
            "kernel_running": facts.kernel.running,
            "kernel_boot": facts.kernel.release,
        },
    )


def refused(text: str, facts: BaseFacts) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Plan and result of a machine that the role does not touch."""
    plan = {
        "refusal": text,
        "files": [],
        "packages": [],
        "required_sources": [],
        "steps": [],
        "pending": [],
        "time_daemon": None,
        "kernel": facts.kernel.release,
    }
    item = finding("base_unsupported", "critical", text, observed=facts.os_release.get("PRETTY_NAME"))
    return plan, role_result("failed", findings=[item])


def plan_and_result(
    desired: Desired,
    facts: BaseFacts,
    check_mode: bool = False,
    prove: bool = False,
    carried: Sequence[Mapping[str, Any]] = (),
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    refusal = refusal_of(facts.os_release, facts.arch)
    if refusal:
        return refused(refusal, facts)
    whole = plan_base(desired, facts, check_mode)
    return plan_dict(whole, desired, facts), result_of(whole, facts, prove, carried)
