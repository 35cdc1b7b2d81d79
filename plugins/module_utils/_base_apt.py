# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt, its sources and packages, and the kernel's headers: what role base has to do about them. Pure."""

from __future__ import annotations

from typing import List, Optional, Tuple

from . import _base_files as files
from ._apt_sources import find_clashes, parse_sources
from ._base_desired import BaseError, Desired, Part, last_of, respected
from ._base_services import needs_timesyncd
from ._boot_space import boot_bytes_needed
from ._dpkg import broken_packages
from ._findings import finding
from ._kernels import headers_packages
from ._observe_base import BaseFacts
from ._settings import Setting


def plan_apt_conf(desired: Desired, facts: BaseFacts) -> Part:
    part = Part()
    timeout = desired.apt_lock_timeout_s
    other = last_of(facts.apt_elsewhere, "dpkg::lock::timeout")
    if timeout is not None and other is not None and other.value != str(timeout):
        part.findings.append(respected(other, str(timeout), "base_apt_lock_timeout_s"))
    write = timeout is not None and other is None
    part.files.append((files.APT_CONF, files.render_apt_conf(timeout) if write else None))
    if write:
        part.file_proofs.append((files.APT_CONF, "apt waits up to %d s for another apt" % timeout))

    patterns = list(desired.unattended_upgrades_keep_out)
    for pattern in patterns:
        if '"' in pattern or "\n" in pattern:
            raise BaseError("base_unattended_upgrades_keep_out: %r has a quote or a line break in it" % pattern)
    part.files.append((files.APT_UNATTENDED, files.render_unattended(patterns) if patterns else None))
    if patterns:
        text = "unattended upgrades leave %d patterns of packages alone" % len(patterns)
        part.file_proofs.append((files.APT_UNATTENDED, text))
    part.add(_plan_needrestart(desired, facts))
    part.add(_plan_proxy(desired, facts))
    return part


def _plan_needrestart(desired: Desired, facts: BaseFacts) -> Part:
    part = Part()
    package = facts.packages.get("needrestart")
    here = "needrestart" in desired.packages or (package is not None and package.installed)
    if desired.needrestart == "leave" or not here:
        part.files.append((files.NEEDRESTART, None))
        return part
    list_only = desired.needrestart == "list"
    if list_only and facts.needrestart_elsewhere:
        list_only = False
        other = Setting(facts.needrestart_elsewhere, "$nrconf{restart}", "another mode")
        part.findings.append(respected(other, "l", "base_needrestart"))
    part.files.append((files.NEEDRESTART, files.render_needrestart(list_only)))
    part.file_proofs.append((files.NEEDRESTART, "needrestart restarts nothing that jobs run under"))
    return part


def _plan_proxy(desired: Desired, facts: BaseFacts) -> Part:
    part, proxies = Part(), {}
    for scheme, address in (("http", desired.http_proxy), ("https", desired.https_proxy)):
        other = last_of(facts.apt_elsewhere, "acquire::%s::proxy" % scheme)
        if address and other is not None and other.value != address:
            # The address may hold a password: neither side is repeated.
            shown = Setting(other.path, other.key, "an address of its own")
            part.findings.append(respected(shown, "the inventory's", "gpufleet_%s_proxy" % scheme))
        elif address and other is None:
            if '"' in address or "\n" in address:
                raise BaseError("base_%s_proxy: the address has a quote or a line break in it" % scheme)
            proxies[scheme] = address
    # apt knows exceptions for whole host names alone.
    direct = [name for name in desired.no_proxy if name and not name.startswith((".", "*")) and "/" not in name]
    part.files.append((files.APT_PROXY, files.render_apt_proxy(proxies, direct) if proxies else None))
    return part


def plan_sources(desired: Desired, facts: BaseFacts) -> Part:
    """Our own source beside the distribution's, which on request are set aside, never edited."""
    part = Part()
    if not desired.apt_mirror:
        part.files.append((files.APT_MIRROR, None))
        part.files.extend(_put_back(facts))
        return part
    name = facts.distribution
    mirror = desired.apt_mirror.replace("{distribution}", name).rstrip("/")
    security = desired.apt_security_mirror.replace("{distribution}", name).rstrip("/")
    if not security and name == "ubuntu":
        security = mirror  # Ubuntu's archive holds its security suites, Debian's does not
    if not security:
        part.findings.append(
            finding(
                "base_no_security_mirror",
                "info",
                "the mirror %s has no security suite of its own" % mirror,
                remedy="Set base_apt_security_mirror to a mirror of debian-security.",
                source=files.APT_MIRROR,
            )
        )
    components = list(desired.apt_components) or _components(facts)
    codename = facts.os_release.get("VERSION_CODENAME", "")
    text = files.render_mirror(name, codename, mirror, security or None, components)
    part.files.append((files.APT_MIRROR, text))
    lists = mirror.split("://", 1)[-1].replace("/", "_") + "_dists_"
    seen = facts.own.get(files.APT_MIRROR)
    if not any(entry.startswith(lists) for entry in facts.apt_lists) or seen is None or seen.text != text:
        part.need("update_apt", "apt has to read the lists of %s" % mirror)
    else:
        part.proven.append("apt takes the distribution's packages from %s" % mirror)
    part.files.extend(_set_aside(facts) if desired.apt_stock_sources == "disable" else _put_back(facts))
    return part


def required_sources(desired: Desired, facts: BaseFacts) -> List[str]:
    """Addresses without whose lists there is no point in installing anything."""
    mirrors = (desired.apt_mirror, desired.apt_security_mirror)
    return [mirror.replace("{distribution}", facts.distribution) for mirror in mirrors if mirror]


def plan_clashes(part: Part, facts: BaseFacts) -> None:
    """Adds what is to be said of sources that would stop apt; `part` has all files and steps of the plan.

    Raises :class:`BaseError` where this run needs apt, or would itself bring the clash about.
    """
    changed = dict(part.files)
    sources = [source for source in facts.sources if source.path not in changed]
    for path, text in part.files:
        if text and path.endswith((".list", ".sources")):
            sources += parse_sources(path, text)
    clashes = find_clashes(sources)
    if not clashes:
        return
    text = "; ".join(clash.text for clash in clashes)
    remedy = "Keep one of these sources and remove the others, or give them the same Signed-By."
    ours = any(source.path == files.APT_MIRROR for clash in clashes for source in clash.sources)
    if ours or "install_packages" in part.steps or "update_apt" in part.steps:
        raise BaseError("%s. %s Nothing was changed." % (text, remedy))
    part.findings.append(
        finding("base_sources_clash", "warning", text, remedy=remedy, source=clashes[0].sources[-1].path)
    )


def _components(facts: BaseFacts) -> List[str]:
    if facts.distribution == "ubuntu":
        return ["main", "restricted", "universe", "multiverse"]
    return ["main", "contrib", "non-free", "non-free-firmware"]


def _set_aside(facts: BaseFacts) -> List[Tuple[str, Optional[str]]]:
    changes: List[Tuple[str, Optional[str]]] = []
    for path, text in facts.stock_sources.items():
        active = any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())
        if active:
            changes += [(path + files.ASIDE, files.ASIDE_MARK + text), (path, None)]
    return changes


def _put_back(facts: BaseFacts) -> List[Tuple[str, Optional[str]]]:
    """Only what we set aside, and only where nothing new has taken its place."""
    changes: List[Tuple[str, Optional[str]]] = []
    for path in files.STOCK_SOURCES:
        aside = facts.own.get(path + files.ASIDE)
        if aside and aside.text and aside.text.startswith(files.ASIDE_MARK) and path not in facts.stock_sources:
            changes += [(path, aside.text[len(files.ASIDE_MARK) :]), (path + files.ASIDE, None)]
    return changes


# -- packages and kernel -----------------------------------------------------------------------------------------------


def wanted_packages(desired: Desired, facts: BaseFacts) -> List[str]:
    """All packages that should be there, the headers of the kernel that will boot among them."""
    names = list(desired.packages)
    if desired.kernel_headers and facts.kernel.release:
        names += headers_packages(facts.kernel.release, facts.packages, facts.distribution).names
    if needs_timesyncd(desired, facts):
        names.append("systemd-timesyncd")
    if desired.time_sync == "chrony" and not facts.container:
        names.append("chrony")
    return list(dict.fromkeys(names))


def missing_packages(desired: Desired, facts: BaseFacts) -> List[str]:
    return [name for name in wanted_packages(desired, facts) if not _installed(facts, name)]


def _installed(facts: BaseFacts, name: str) -> bool:
    package = facts.packages.get(name)
    return package is not None and package.installed


def plan_packages(desired: Desired, facts: BaseFacts, check_mode: bool) -> Part:
    part = Part()
    missing = missing_packages(desired, facts)
    unknown = [] if facts.policies is None else [name for name in missing if not _has_candidate(facts, name)]
    meta = _headers_meta(desired, facts)
    if meta in unknown and set(missing) - set(unknown):
        # A kernel without a metapackage in this archive: its own headers are what counts.
        missing.remove(meta)
        unknown.remove(meta)
        part.unproven.append("no package %s in apt's lists: headers will not follow a kernel upgrade" % meta)
    if check_mode and unknown:
        missing = [name for name in missing if name not in unknown]
        part.pending.append("not in apt's present lists, so not tried in check mode: %s" % ", ".join(unknown))
        part.unproven.append("a real run reads apt's lists first and then installs %s" % ", ".join(unknown))
    if missing:
        part.packages = missing
        part.need("install_packages", "packages to install: %s" % ", ".join(missing))
    elif not unknown:
        part.proven.append("%d packages are installed" % len(wanted_packages(desired, facts)))
    if missing and (unknown or not facts.apt_lists):
        part.steps.insert(0, "update_apt")
    return part


def _has_candidate(facts: BaseFacts, name: str) -> bool:
    policy = (facts.policies or {}).get(name)
    return policy is not None and policy.candidate is not None


def _headers_meta(desired: Desired, facts: BaseFacts) -> Optional[str]:
    if not desired.kernel_headers or not facts.kernel.release:
        return None
    return headers_packages(facts.kernel.release, facts.packages, facts.distribution).meta


def plan_kernel(desired: Desired, facts: BaseFacts) -> Part:
    part, kernel = Part(), facts.kernel
    if kernel.differs and not facts.container:
        part.findings.append(
            finding(
                "base_kernel_waits",
                "info",
                "kernel %s runs, %s will boot" % (kernel.running, kernel.release),
                observed=kernel.running,
                expected=kernel.release,
                remedy="Reboot when no job runs.",
                source="/boot",
            )
        )
    if facts.grub_default not in (None, "", "0"):
        part.unproven.append(
            "GRUB_DEFAULT is %s: another kernel than %s may boot" % (facts.grub_default, kernel.release)
        )
    if not desired.kernel_headers:
        return part
    if kernel.release is None:
        text = "no kernel in /boot: nothing here tells which one will boot, so no headers are installed"
        if facts.container:
            part.unproven.append(text + " (container)")
        else:
            part.findings.append(finding("base_no_kernel", "warning", text, source="/boot"))
        return part
    part.add(_plan_boot_space(facts))
    headers = headers_packages(kernel.release, facts.packages, facts.distribution)
    if headers.exact is None:
        part.findings.append(
            finding(
                "base_kernel_unknown",
                "warning",
                "kernel %s is not of this distribution: its headers have no package name" % kernel.release,
                observed=kernel.release,
                remedy="Install its headers by hand and set base_kernel_headers to false.",
                source="/boot",
            )
        )
    elif _installed(facts, headers.exact) and facts.headers_built:
        part.proven.append("headers of %s, which will boot, are installed" % kernel.release)
    elif _installed(facts, headers.exact):
        part.findings.append(
            finding(
                "base_headers_incomplete",
                "warning",
                "%s is installed, yet /lib/modules/%s/build is empty" % (headers.exact, kernel.release),
                remedy="apt-get install --reinstall %s" % headers.exact,
                source="/lib/modules/%s/build" % kernel.release,
            )
        )
    return part


def _plan_boot_space(facts: BaseFacts) -> Part:
    """A /boot that cannot take the next kernel: told now, since an upgrade that fills it leaves half a kernel."""
    part = Part()
    needed = boot_bytes_needed(["linux-image-0"], facts.boot_files)
    free = facts.boot_free_bytes
    if free is not None and free < needed:
        part.findings.append(
            finding(
                "base_boot_space",
                "warning",
                "/boot has %d MiB left; a new kernel or initramfs needs about %d MiB" % (free >> 20, needed >> 20),
                observed=free,
                expected=needed,
                remedy="Remove kernels that are not used: apt-get autoremove --purge.",
                source="/boot",
            )
        )
    return part


def plan_repair(facts: BaseFacts) -> Part:
    part = Part()
    broken = broken_packages(facts.packages)
    if broken or facts.updates_pending:
        text = "dpkg was interrupted: %s" % (", ".join(broken[:8]) or "its journal is not empty")
        part.need("repair_dpkg", text)
        part.findings.append(finding("base_dpkg_repaired", "info", text + "; configured", observed=broken))
    return part
