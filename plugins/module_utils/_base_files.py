# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that role base owns: where they are and what is in them. Pure.

All are drop-ins beside the distribution's and the operator's own files, so that taking one away gives back what was
there before. Every function returns the whole text of one file.
"""

from __future__ import annotations

from typing import Mapping, Optional, Sequence, Tuple

APT_CONF = "/etc/apt/apt.conf.d/90gpufleet"
APT_PROXY = "/etc/apt/apt.conf.d/90gpufleet-proxy"
APT_UNATTENDED = "/etc/apt/apt.conf.d/90gpufleet-unattended-upgrades"
APT_MIRROR = "/etc/apt/sources.list.d/gpufleet-mirror.sources"
NEEDRESTART = "/etc/needrestart/conf.d/90-gpufleet.conf"
LIMITS = "/etc/security/limits.d/90-gpufleet.conf"
SYSTEMD = "/etc/systemd/system.conf.d/90-gpufleet.conf"
SYSCTL = "/etc/sysctl.d/90-gpufleet.conf"
THP = "/etc/tmpfiles.d/90-gpufleet-thp.conf"
JOURNALD = "/etc/systemd/journald.conf.d/90-gpufleet.conf"
TIMESYNCD = "/etc/systemd/timesyncd.conf.d/90-gpufleet.conf"
CHRONY = "/etc/chrony/sources.d/90-gpufleet.sources"

OWN_PATHS = (
    APT_CONF,
    APT_PROXY,
    APT_UNATTENDED,
    APT_MIRROR,
    NEEDRESTART,
    LIMITS,
    SYSTEMD,
    SYSCTL,
    THP,
    JOURNALD,
    TIMESYNCD,
    CHRONY,
)

STOCK_SOURCES = (
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/ubuntu.sources",
    "/etc/apt/sources.list.d/debian.sources",
)
ASIDE = ".disabled"
"""apt passes over this ending without a word (Dir::Ignore-Files-Silently)."""

ASIDE_MARK = "# Set aside by gpufleet.server (role base); base_apt_stock_sources: keep puts it back.\n"

THP_ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"

_OWNER = "Managed by gpufleet.server (role base). Change the inventory, not this file."

SERVICES_NOT_TO_RESTART = ("containerd", "docker", "nvidia-", "dcgm", "slurmd", "slurmctld", "munge", "kubelet", "k3s")
"""Beginnings of units whose restart kills jobs or takes the GPUs away from them."""


def _head(comment: str = "#") -> str:
    return "%s %s\n" % (comment, _OWNER)


def render_apt_conf(lock_timeout_s: int) -> str:
    return _head("//") + (
        "// Wait for another apt (apt-daily, cloud-init) instead of failing.\n"
        'DPkg::Lock::Timeout "%d";\n' % lock_timeout_s
    )


def render_apt_proxy(proxies: Mapping[str, str], direct_hosts: Sequence[str]) -> str:
    """`proxies`: scheme to address. apt knows exceptions for whole host names only, not for domains or networks."""
    lines = [_head("//")]
    for scheme in sorted(proxies):
        lines.append('Acquire::%s::Proxy "%s";\n' % (scheme, proxies[scheme]))
        lines.extend('Acquire::%s::Proxy::%s "DIRECT";\n' % (scheme, host) for host in direct_hosts)
    return "".join(lines)


def render_unattended(patterns: Sequence[str]) -> str:
    lines = [
        _head("//"),
        "// Python patterns that match the beginning of a name; lists of several files add up.\n",
        "Unattended-Upgrade::Package-Blacklist {\n",
    ]
    lines.extend('    "%s";\n' % pattern for pattern in patterns)
    return "".join(lines + ["};\n"])


def render_needrestart(list_only: bool) -> str:
    lines = [_head()]
    if list_only:
        lines.append("# List what would need a restart; restart nothing.\n$nrconf{restart} = 'l';\n")
    lines.append("# Hints about a new kernel go to the terminal instead of a dialog that waits for an answer.\n")
    lines.append("$nrconf{kernelhints} = -1;\n")
    lines.append("# Never restart what jobs run under.\n")
    lines.extend("$nrconf{override_rc}{qr(^%s)} = 0;\n" % name for name in SERVICES_NOT_TO_RESTART)
    return "".join(lines)


def render_limits(entries: Sequence[Tuple[str, str, str]]) -> str:
    """`entries`: (domain, item, value). `*` does not cover root, so root has its own lines."""
    return _head() + "".join("%-5s -  %-8s %s\n" % entry for entry in entries)


def render_ini(section: str, values: Sequence[Tuple[str, str]]) -> str:
    return _head() + "[%s]\n" % section + "".join("%s=%s\n" % pair for pair in values)


def render_sysctl(values: Mapping[str, str]) -> str:
    return _head() + "".join("%s = %s\n" % (key, values[key]) for key in sorted(values))


def render_thp(mode: str) -> str:
    return _head() + "w %s - - - - %s\n" % (THP_ENABLED, mode)


def render_chrony(servers: Sequence[str]) -> str:
    return _head() + "".join("server %s iburst\n" % server for server in servers)


def render_mirror(
    distribution: str,
    codename: str,
    mirror: str,
    security_mirror: Optional[str],
    components: Sequence[str],
) -> str:
    """A deb822 source of the distribution's own suites, signed by the distribution's own key."""
    keyring = "/usr/share/keyrings/%s-archive-keyring.gpg" % distribution
    suites = [codename, codename + "-updates"]
    stanzas = [(mirror, suites)]
    if security_mirror == mirror:
        suites.append(codename + "-security")
    elif security_mirror:
        stanzas.append((security_mirror, [codename + "-security"]))
    return _head() + "\n".join(
        "Types: deb\nURIs: %s\nSuites: %s\nComponents: %s\nSigned-By: %s\n"
        % (uri, " ".join(names), " ".join(components), keyring)
        for uri, names in stanzas
    )
