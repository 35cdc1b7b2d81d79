# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One apt transaction: its command line, what is left to do, and what a simulation of it says. Pure (apt-get(8))."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

from ._dpkg import Package

ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "NEEDRESTART_SUSPEND": "1",
    "UCF_FORCE_CONFFOLD": "1",
    "APT_LISTCHANGES_FRONTEND": "none",
}
"""needrestart would restart daemons (or ask) at the end of every run; the other three keep packages from asking."""

LOCK_TIMEOUT_S = 600
"""How long another apt is waited for where nothing else is said."""

_OPTIONS = (
    "-y",
    "-q",
    "--no-install-recommends",
    "--allow-downgrades",
    "--allow-change-held-packages",
    "-o", "Acquire::Retries=0",
    "-o", "Dpkg::Options::=--force-confdef",
    "-o", "Dpkg::Options::=--force-confold",
)
_LOCKED = re.compile(r"lock|another process|is locked", re.IGNORECASE)
_INSTALLED = re.compile(r"^Inst (\S+) (?:\[[^\]]*\] )?\((\S+)", re.MULTILINE)
_REMOVED = re.compile(r"^(?:Remv|Purg) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Work:
    """What is left of a request on a machine; empty where it is fulfilled."""

    install: Mapping[str, str] = field(default_factory=dict)
    remove: Tuple[str, ...] = ()
    reinstall: Tuple[str, ...] = ()
    hold: Tuple[str, ...] = ()
    unhold: Tuple[str, ...] = ()
    configure: bool = False

    @property
    def packages(self) -> bool:
        return bool(self.install or self.remove or self.reinstall)

    @property
    def any(self) -> bool:
        return bool(self.packages or self.hold or self.unhold or self.configure)


@dataclass(frozen=True)
class Simulation:
    """`installs`: name → version that would be unpacked; `removes`: names that would go."""

    installs: Mapping[str, str]
    removes: Tuple[str, ...]


def plan_work(
    packages: Mapping[str, Package],
    install: Mapping[str, str],
    remove: Iterable[str] = (),
    reinstall: Iterable[str] = (),
    hold: Iterable[str] = (),
    unhold: Iterable[str] = (),
    configure: bool = False,
) -> Work:
    """What dpkg says is not so yet. An empty version means "installed, whatever its version"."""

    def missing(name: str, version: str) -> bool:
        package = packages.get(name)
        return package is None or not package.installed or bool(version) and package.version != version

    def held(name: str) -> bool:
        return name in packages and packages[name].held

    def there(name: str) -> bool:
        return name in packages and packages[name].state not in ("not-installed", "config-files")

    return Work(
        install={name: version for name, version in sorted(install.items()) if missing(name, version or "")},
        remove=tuple(sorted(name for name in remove if there(name))),
        reinstall=tuple(sorted(set(reinstall))),
        hold=tuple(sorted(name for name in hold if there(name) and not held(name))),
        unhold=tuple(sorted(name for name in unhold if held(name))),
        configure=configure,
    )


def environment_of(environ: Mapping[str, str]) -> Dict[str, str]:
    """What apt is started with: no questions, and the proxies that the task was given."""
    names = ("http_proxy", "https_proxy", "no_proxy")
    return dict(ENVIRONMENT, **{name: environ[name] for name in names if environ.get(name)})


def _apt_get(lock_timeout_s: int) -> List[str]:
    return ["apt-get", *_OPTIONS, "-o", "DPkg::Lock::Timeout=%d" % lock_timeout_s]


def install_argv(work: Work, simulate: bool = False, lock_timeout_s: int = LOCK_TIMEOUT_S) -> List[str]:
    """Install and remove in one transaction: a trailing ``-`` removes."""
    wanted = ["%s=%s" % (name, version) if version else name for name, version in work.install.items()]
    gone = [name + "-" for name in work.remove]
    return _apt_get(lock_timeout_s) + (["-s"] if simulate else []) + ["install"] + wanted + gone


def reinstall_argv(work: Work, lock_timeout_s: int = LOCK_TIMEOUT_S) -> List[str]:
    return _apt_get(lock_timeout_s) + ["install", "--reinstall"] + list(work.reinstall)


def fix_argv(lock_timeout_s: int = LOCK_TIMEOUT_S) -> List[str]:
    """Bring what half-installed packages wait for; whatever that would remove, a person decides about."""
    return _apt_get(lock_timeout_s) + ["--fix-broken", "--no-remove", "install"]


def parse_simulation(text: str) -> Simulation:
    """Of the output of ``apt-get -s install``."""
    installs: Dict[str, str] = dict(_INSTALLED.findall(text))
    return Simulation(installs, tuple(name for name in _REMOVED.findall(text) if name not in installs))


def forbidden_removals(simulation: Simulation, work: Work, allowed: Sequence[str]) -> Tuple[str, ...]:
    """Packages that apt would remove and nobody asked it to. `allowed`: regular expressions of whole names."""
    return tuple(
        sorted(
            name
            for name in simulation.removes
            if name.split(":")[0] not in work.remove
            and not any(re.match("(?:%s)$" % pattern, name.split(":")[0]) for pattern in allowed)
        )
    )


def is_locked(message: str) -> bool:
    """Does an error of dpkg say that somebody else is at work?"""
    return bool(_LOCKED.search(message))


def describe(work: Work) -> List[str]:
    """The work in words, one step a line."""
    words = []
    if work.configure:
        words.append("configure what an interrupted dpkg left behind")
    if work.unhold:
        words.append("release the hold on %s" % ", ".join(work.unhold))
    words += ["install %s" % (name + ("=" + version if version else "")) for name, version in work.install.items()]
    words += ["remove %s" % name for name in work.remove]
    words += ["install %s again" % name for name in work.reinstall]
    if work.hold:
        words.append("hold %s" % ", ".join(work.hold))
    return words
