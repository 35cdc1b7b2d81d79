# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of a machine's base system, and the form in which each concern says what is to be done. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._findings import Finding, finding
from ._settings import Setting, settings_of, sysctl_key, sysctl_value


class BaseError(Exception):
    """A desired state that makes no sense on this machine; the text names variable, value and what is allowed."""


@dataclass(frozen=True)
class Desired:
    """The role's variables, without their prefix. None leaves a matter to the operator."""

    packages: Sequence[str] = ()
    kernel_headers: Optional[bool] = None
    apt_lock_timeout_s: Optional[int] = None
    needrestart: str = "leave"
    unattended_upgrades_keep_out: Sequence[str] = ()
    limits_memlock: Optional[str] = None
    limits_nofile: Optional[int] = None
    sysctl: Mapping[str, Any] = field(default_factory=dict)
    numa_balancing: Optional[bool] = None
    thp: str = "leave"
    time_sync: str = "leave"
    ntp_servers: Sequence[str] = ()
    journal_persistent: Optional[bool] = None
    journal_max_use_mb: Optional[int] = None
    apt_mirror: str = ""
    apt_security_mirror: str = ""
    apt_components: Sequence[str] = ()
    apt_stock_sources: str = "keep"
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: Sequence[str] = ()
    daemon_reexec_ok: str = "auto"


@dataclass
class Part:
    """What one concern adds. `pending`: sentences about what is not in force yet; `packages` are still missing.

    `file_proofs` are (path, sentence): the sentence is proven once that file is as it should be.
    """

    files: List[Tuple[str, Optional[str]]] = field(default_factory=list)
    file_proofs: List[Tuple[str, str]] = field(default_factory=list)
    packages: List[str] = field(default_factory=list)
    steps: List[str] = field(default_factory=list)
    pending: List[str] = field(default_factory=list)
    findings: List[Finding] = field(default_factory=list)
    proven: List[str] = field(default_factory=list)
    unproven: List[str] = field(default_factory=list)

    def add(self, other: "Part") -> None:
        for name in ("files", "file_proofs", "packages", "steps", "pending", "findings", "proven", "unproven"):
            mine = getattr(self, name)
            mine.extend(item for item in getattr(other, name) if item not in mine)

    def need(self, step: str, text: str) -> None:
        self.steps.append(step)
        self.pending.append(text)


def desired_of(options: Mapping[str, Any]) -> Desired:
    """Module options to :class:`Desired`; raises :class:`BaseError` for a memlock that is neither KiB nor a word."""
    values = dict(options)
    for name in ("apt_lock_timeout_s", "limits_nofile", "journal_max_use_mb", "kernel_headers"):
        values[name] = values[name] or None
    memlock = str(values["limits_memlock"]).strip()
    if memlock not in ("unlimited", "leave") and not memlock.isdigit():
        raise BaseError("base_limits_memlock is %r; allowed are a number of KiB, unlimited and leave" % memlock)
    values["limits_memlock"] = None if memlock == "leave" else memlock
    values["numa_balancing"] = {"enabled": True, "disabled": False}.get(values["numa_balancing"])
    values["journal_persistent"] = {"persistent": True, "volatile": False}.get(values.pop("journal_storage"))
    for name in ("http_proxy", "https_proxy", "apt_mirror", "apt_security_mirror"):
        values[name] = (values[name] or "").strip()
    return Desired(**values)


def sysctl_keys(desired: Desired) -> List[str]:
    """Keys whose values the observation has to read."""
    return sorted(wanted_sysctl(desired))


def wanted_sysctl(desired: Desired) -> Dict[str, str]:
    wanted = {}
    if desired.numa_balancing is not None:
        wanted["kernel.numa_balancing"] = str(int(desired.numa_balancing))
    for key, value in desired.sysctl.items():
        wanted[sysctl_key(str(key))] = value
    return {key: sysctl_value(value) for key, value in wanted.items() if value is not None}


def respected(setting: Setting, wanted: str, variable: str) -> Finding:
    """An info finding: the operator's setting stands."""
    return finding(
        "base_operator_setting",
        "info",
        "%s sets %s to %s; left as it is" % (setting.path, setting.key, setting.value or "nothing"),
        observed=setting.value,
        expected=wanted,
        remedy="Take the setting out of %s to let %s decide, or leave %s to yourself."
        % (setting.path, variable, variable),
        source=setting.path,
    )


def last_of(settings: Iterable[Setting], key: str) -> Optional[Setting]:
    found = settings_of(settings, key)
    return found[-1] if found else None
