# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time and journal: what role base has to do about them. Pure."""

from __future__ import annotations

from typing import Optional, Sequence

from . import _base_files as files
from ._base_desired import Desired, Part, last_of, respected
from ._findings import Finding, finding
from ._observe_base import BaseFacts
from ._settings import Setting

TIME_DAEMONS = ("chrony", "chronyd", "ntpsec", "ntp", "ntpd", "openntpd", "timemaster", "phc2sys")


def operators_time_daemon(facts: BaseFacts) -> Optional[str]:
    """A time daemon that is set up here, other than systemd-timesyncd."""
    for name in TIME_DAEMONS:
        unit = facts.units.get(name)
        if unit and unit.load == "loaded" and (unit.active == "active" or unit.enabled == "enabled"):
            return name
    return None


def needs_timesyncd(desired: Desired, facts: BaseFacts) -> bool:
    if facts.container or desired.time_sync not in ("auto", "systemd-timesyncd"):
        return False
    return operators_time_daemon(facts) is None


def plan_time(desired: Desired, facts: BaseFacts) -> Part:
    part = Part()
    servers = list(desired.ntp_servers)
    daemon = None
    if desired.time_sync != "leave" and facts.container:
        part.unproven.append("time: belongs to the host of this %s container" % facts.container)
    elif desired.time_sync != "leave":
        daemon = operators_time_daemon(facts)
        wanted = "chrony" if desired.time_sync == "chrony" else "systemd-timesyncd"
        if daemon is not None and desired.time_sync not in ("auto", "chrony" if daemon == "chronyd" else daemon):
            part.findings.append(
                respected(Setting("%s.service" % daemon, "time daemon", daemon), desired.time_sync, "base_time_sync")
            )
        if daemon is None:
            daemon = wanted
            unit = facts.units.get(daemon)
            if unit is None or unit.active != "active" or unit.enabled not in ("enabled", "enabled-runtime"):
                part.need("start_time_sync", "%s has to be started" % daemon)
        if not any(step == "start_time_sync" for step in part.steps):
            if facts.clock_synchronised:
                part.proven.append("%s keeps the clock; it is synchronised" % daemon)
            else:
                part.unproven.append("%s runs, the clock is not synchronised yet" % daemon)
    part.add(_plan_servers(servers, daemon, facts))
    for path, unit_name in ((files.TIMESYNCD, "systemd-timesyncd"), (files.CHRONY, daemon or "chrony")):
        text = dict(part.files)[path]
        if text is not None and "start_time_sync" not in part.steps and _stale(facts, path, text, unit_name):
            part.need("restart_time_sync", "%s has to read %s" % (unit_name, path))
    return part


def _plan_servers(servers: Sequence[str], daemon: Optional[str], facts: BaseFacts) -> Part:
    """Where the daemon that keeps the clock learns of the servers; another file's servers stand."""
    part = Part()
    timesyncd = chrony = None
    if servers and daemon == "systemd-timesyncd":
        timesyncd = files.render_ini("Time", [("NTP", " ".join(servers))])
        other = last_of(facts.timesyncd_elsewhere, "Time/NTP")
        if other is not None and other.value:
            timesyncd = None
            if other.value.split() != list(servers):
                part.findings.append(respected(other, " ".join(servers), "base_ntp_servers"))
    elif servers and daemon in ("chrony", "chronyd"):
        chrony = files.render_chrony(servers)
        if facts.chrony_reads_sources is False:
            chrony = None
            part.findings.append(_no_chrony_sources(servers))
    elif servers and daemon is not None:
        part.unproven.append("time servers %s: %s has to be told by you" % (", ".join(servers), daemon))
    part.files += [(files.TIMESYNCD, timesyncd), (files.CHRONY, chrony)]
    return part


def _no_chrony_sources(servers: Sequence[str]) -> Finding:
    """chrony before 4.0 (Ubuntu 20.04) knows one file alone, and that is the operator's."""
    return finding(
        "base_ntp_servers_not_set",
        "warning",
        "this chrony reads no /etc/chrony/sources.d, so it does not learn of base_ntp_servers",
        expected=list(servers),
        remedy="Write `server NAME iburst` into /etc/chrony/chrony.conf, or leave base_ntp_servers empty.",
        source="/etc/chrony/chrony.conf",
    )


def _stale(facts: BaseFacts, path: str, text: str, unit_name: str) -> bool:
    """A daemon that started before its file was changed, also when the run that changed it was killed since."""
    seen = facts.own.get(path)
    if seen is None or seen.text != text:
        return True
    unit = facts.units.get(unit_name)
    return bool(unit and unit.started_s is not None and seen.changed_s > unit.started_s)


def plan_journal(desired: Desired, facts: BaseFacts) -> Part:
    part, values = Part(), []
    wanted = []
    if desired.journal_persistent is not None:
        wanted.append(
            ("Storage", "persistent" if desired.journal_persistent else "volatile", "base_journal_storage")
        )
    if desired.journal_max_use_mb is not None and desired.journal_persistent is not False:
        wanted.append(("SystemMaxUse", "%dM" % desired.journal_max_use_mb, "base_journal_max_use_mb"))
    for key, value, variable in wanted:
        other = last_of(facts.journald_elsewhere, "Journal/" + key)
        if other is None:
            values.append((key, value))
        elif other.value != value:
            part.findings.append(respected(other, value, variable))
    text = files.render_ini("Journal", values) if values else None
    part.files.append((files.JOURNALD, text))
    if text is None:
        return part
    persistent = ("Storage", "persistent") in values
    if _stale(facts, files.JOURNALD, text, "systemd-journald"):
        part.need("restart_journald", "journald has to read %s" % files.JOURNALD)
    elif persistent and not facts.journal_on_disk:
        part.need("restart_journald", "the journal is not on disk yet")
    elif persistent:
        part.proven.append("the journal is on disk")
    return part
