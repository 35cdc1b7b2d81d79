# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits, sysctl and huge pages: what role base has to do about them. Pure."""

from __future__ import annotations

from typing import List, Tuple

from . import _base_files as files
from ._base_desired import BaseError, Desired, Part, last_of, respected, wanted_sysctl
from ._findings import finding
from ._observe_base import BaseFacts
from ._settings import Setting


def plan_limits(desired: Desired, facts: BaseFacts) -> Part:
    part = Part()
    _check_nofile(desired, facts)
    wanted = [("memlock", desired.limits_memlock), ("nofile", desired.limits_nofile)]
    entries = []
    for item, value in wanted:
        if value is None:
            continue
        if not _can_have(item, str(value), facts):
            part.unproven.append(
                "%s %s for logins: this %s may not raise it above %s, and a login without its limits is refused"
                % (item, value, facts.container or "machine", facts.hard_limits.get(item))
            )
            continue
        for domain in ("*", "root"):
            other = last_of(facts.limits_elsewhere, "%s %s" % (domain, item))
            if other is None:
                entries.append((domain, item, str(value)))
            elif other.value != "- %s" % value:
                part.findings.append(respected(other, str(value), "base_limits_%s" % item))
    text = files.render_limits(entries) if entries else None
    part.files.append((files.LIMITS, text))
    if text is not None and facts.has_file(files.LIMITS, text):
        _judge_logins(part, entries, facts)
    part.add(_plan_manager(desired, facts))
    return part


def _judge_logins(part: Part, entries: List[Tuple[str, str, str]], facts: BaseFacts) -> None:
    """What a new session really gets; `nobody` stands for everybody whom `*` covers."""
    for domain, item, value in entries:
        seen = facts.login_limits.get("%s %s" % ("root" if domain == "root" else "nobody", item))
        text = "%s %s %s for logins" % (domain, item, value)
        if seen == value:
            part.proven.append(text)
        elif seen is None:
            part.unproven.append(text + ": the limits of a new session could not be read")
        else:
            part.findings.append(
                finding(
                    "base_login_limit",
                    "warning",
                    "new sessions get %s %s instead of %s" % (item, seen, value),
                    observed=seen,
                    expected=value,
                    remedy="See whether pam_limits is in /etc/pam.d/sshd and in common-session, and what else sets it.",
                    source=files.LIMITS,
                )
            )


def _check_nofile(desired: Desired, facts: BaseFacts) -> None:
    """pam_limits refuses every login whose nofile is above fs.nr_open: a typing error would lock everybody out."""
    nofile = desired.limits_nofile
    if nofile is None or facts.nr_open is None:
        return
    raised = "0" if facts.container else wanted_sysctl(desired).get("fs.nr_open", "0")
    allowed = max(facts.nr_open, int(raised) if raised.isdigit() else 0)
    if nofile > allowed:
        raise BaseError(
            "base_limits_nofile is %d, but the kernel allows at most %d (fs.nr_open): no login would be possible. "
            "Lower it, or raise fs.nr_open in base_sysctl." % (nofile, allowed)
        )


def _can_have(item: str, value: str, facts: BaseFacts) -> bool:
    hard = facts.hard_limits.get(item)
    if facts.raises_limits or hard in (None, "unlimited"):
        return True
    if not value.isdigit() or not hard.isdigit():
        return False
    scale = 1024 if item == "memlock" else 1  # limits.conf counts memlock in KiB
    return int(value) * scale <= int(hard)


def _plan_manager(desired: Desired, facts: BaseFacts) -> Part:
    part = Part()
    memlock = desired.limits_memlock
    if memlock is not None:
        memlock = str(int(memlock) * 1024) if memlock.isdigit() else "infinity"
    nofile = None if desired.limits_nofile is None else str(desired.limits_nofile)
    values = []
    for item, key, value in (("memlock", "DefaultLimitMEMLOCK", memlock), ("nofile", "DefaultLimitNOFILE", nofile)):
        if value is None:
            continue
        other = last_of(facts.manager_elsewhere, "Manager/" + key)
        if other is not None:
            if other.value != value:
                part.findings.append(respected(other, value, "base_limits_%s" % item))
            continue
        values.append((key, value))
    part.files.append((files.SYSTEMD, files.render_ini("Manager", values) if values else None))
    waiting = [pair for pair in values if facts.manager.get(pair[0]) != pair[1]]
    if not waiting:
        part.proven.extend("services start with %s=%s" % pair for pair in values)
    elif not facts.manager:
        part.unproven.append("limits of services: systemd does not answer")
    elif _may_reexec(desired, facts):
        part.need("reexec_systemd", "systemd has to take over %s" % ", ".join("%s=%s" % pair for pair in waiting))
    else:
        part.findings.append(
            finding(
                "base_limits_wait",
                "warning",
                "systemd still has other limits than the inventory for services that start now",
                observed=dict(facts.manager),
                expected=dict(values),
                remedy="Containers run, and re-executing systemd can take their GPUs away: "
                "run `systemctl daemon-reexec` when they have ended, reboot, or set base_daemon_reexec_ok to true.",
                source=files.SYSTEMD,
            )
        )
    return part


def _may_reexec(desired: Desired, facts: BaseFacts) -> bool:
    if desired.daemon_reexec_ok == "auto":
        return not facts.gpu_containers
    return desired.daemon_reexec_ok == "true"


# -- kernel settings ---------------------------------------------------------------------------------------------------


NAMESPACED = ("net.", "kernel.shm", "kernel.msg", "kernel.sem", "kernel.hostname", "kernel.domainname", "fs.mqueue.")
"""Keys that a container has for itself; all others are its host's, and not ours to change from inside."""


def plan_sysctl(desired: Desired, facts: BaseFacts) -> Part:
    part, ours, waiting = Part(), {}, []
    for key, value in sorted(wanted_sysctl(desired).items()):
        seen = facts.sysctl.get(key)
        other = last_of(facts.sysctl_elsewhere, key)
        if facts.container and not key.startswith(NAMESPACED):
            part.unproven.append("%s = %s: belongs to the host of this %s container" % (key, value, facts.container))
        elif other is not None and other.value != value:
            variable = "base_numa_balancing" if key == "kernel.numa_balancing" else "base_sysctl"
            part.findings.append(respected(other, value, variable))
        else:
            if other is None:
                ours[key] = value
            if seen is None:
                part.unproven.append("%s = %s: this kernel has no such setting" % (key, value))
            elif seen == value:
                part.proven.append("%s = %s" % (key, value))
            elif other is None:
                waiting.append("%s is %s instead of %s" % (key, seen, value))
            else:
                part.unproven.append("%s is %s, though %s sets %s" % (key, seen, other.path, value))
    part.files.append((files.SYSCTL, files.render_sysctl(ours) if ours else None))
    for text in waiting:
        part.need("apply_sysctl", text)
    return part


def plan_thp(desired: Desired, facts: BaseFacts) -> Part:
    part, wanted = Part(), desired.thp
    tuned = facts.units.get("tuned")
    owner = facts.thp_elsewhere or ("tuned" if tuned and tuned.active == "active" else None)
    if wanted == "leave" or facts.container or facts.thp is None or owner:
        part.files.append((files.THP, None))
    if wanted == "leave":
        return part
    if facts.container or facts.thp is None:
        reason = (
            "belongs to the host of this %s container" % facts.container if facts.container else "not in this kernel"
        )
        part.unproven.append("transparent huge pages %s: %s" % (wanted, reason))
    elif owner:
        if facts.thp != wanted:
            part.findings.append(respected(Setting(owner, "transparent_hugepage", facts.thp), wanted, "base_thp"))
    else:
        part.files.append((files.THP, files.render_thp(wanted)))
        if facts.thp == wanted:
            part.proven.append("transparent huge pages: %s" % wanted)
        else:
            part.need("apply_thp", "transparent huge pages are %s instead of %s" % (facts.thp, wanted))
    return part
