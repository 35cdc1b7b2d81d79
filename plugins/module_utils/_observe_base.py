# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads through a :class:`Host` what role base judges by. Decides nothing; reads no more than it was told to.

A dozen files and seven commands, none of which opens apt's package cache: that one is asked only about packages that
are missing, by :func:`with_candidates`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ._apt_sources import Source, parse_all
from ._base_files import ASIDE, LIMITS, OWN_PATHS, STOCK_SOURCES, THP_ENABLED
from ._dpkg import QUERY_ARGV, Package, Policy, parse_policy, parse_query
from ._host import Host
from ._kernels import BootKernel, boot_kernel
from ._settings import (
    Setting,
    parse_apt_conf,
    parse_ini,
    parse_limits,
    parse_sysctl,
    sysctl_path,
    sysctl_value,
)

TIME_UNITS = ("systemd-timesyncd", "chrony", "chronyd", "ntpsec", "ntp", "ntpd", "openntpd", "timemaster", "phc2sys")
OTHER_UNITS = ("systemd-journald", "tuned")
CAP_SYS_RESOURCE = 24
OWN_ATTRIBUTES = "0644 root:root"

_RELEASE_LINE = re.compile(r"^(?P<key>[A-Z_]+)=(?P<quote>[\"']?)(?P<value>.*)(?P=quote)\s*$")


@dataclass(frozen=True)
class Unit:
    """State of one unit; `started_s` is the epoch time at which its main process started, None where unknown."""

    load: str
    active: str
    enabled: str
    started_s: Optional[float] = None


@dataclass(frozen=True)
class OwnFile:
    """One of our files as it is: text (None where absent), attributes as ``0644 root:root``, time of last change."""

    text: Optional[str] = None
    attributes: str = ""
    changed_s: float = 0.0
    kind: str = "absent"

    def is_as(self, text: str) -> bool:
        return self.kind == "file" and self.text == text and self.attributes == OWN_ATTRIBUTES


@dataclass(frozen=True)
class BaseFacts:
    """A machine as role base sees it. Settings `*_elsewhere` are those of other files than ours."""

    os_release: Mapping[str, str] = field(default_factory=dict)
    arch: str = ""
    container: Optional[str] = None
    raises_limits: bool = True
    nr_open: Optional[int] = None
    hard_limits: Mapping[str, str] = field(default_factory=dict)
    kernel: BootKernel = BootKernel(None, None, "none", "")
    headers_built: bool = False
    boot_files: Mapping[str, int] = field(default_factory=dict)
    boot_free_bytes: Optional[int] = None
    grub_default: Optional[str] = None
    reboot_required: bool = False
    packages: Mapping[str, Package] = field(default_factory=dict)
    updates_pending: bool = False
    policies: Optional[Mapping[str, Policy]] = None
    apt_lists: Tuple[str, ...] = ()
    apt_elsewhere: Tuple[Setting, ...] = ()
    cloud_init_running: bool = False
    needrestart_elsewhere: Optional[str] = None
    own: Mapping[str, OwnFile] = field(default_factory=dict)
    stock_sources: Mapping[str, str] = field(default_factory=dict)
    sources: Tuple[Source, ...] = ()
    sysctl: Mapping[str, Optional[str]] = field(default_factory=dict)
    sysctl_elsewhere: Tuple[Setting, ...] = ()
    limits_elsewhere: Tuple[Setting, ...] = ()
    login_limits: Mapping[str, str] = field(default_factory=dict)
    manager: Mapping[str, str] = field(default_factory=dict)
    manager_elsewhere: Tuple[Setting, ...] = ()
    gpu_containers: bool = False
    thp: Optional[str] = None
    thp_elsewhere: Optional[str] = None
    journald_elsewhere: Tuple[Setting, ...] = ()
    journal_on_disk: bool = False
    units: Mapping[str, Unit] = field(default_factory=dict)
    clock_synchronised: Optional[bool] = None
    timesyncd_elsewhere: Tuple[Setting, ...] = ()
    chrony_reads_sources: Optional[bool] = None

    @property
    def distribution(self) -> str:
        return self.os_release.get("ID", "")

    def has_file(self, path: str, text: str) -> bool:
        """Whether one of our files is there with this text and our attributes."""
        seen = self.own.get(path)
        return seen is not None and seen.is_as(text)


def parse_os_release(text: str) -> Dict[str, str]:
    matches = (_RELEASE_LINE.match(line) for line in text.splitlines())
    return {match.group("key"): match.group("value") for match in matches if match}


def parse_units(text: str, clock_offset_s: float) -> Dict[str, Unit]:
    """Blocks of `systemctl show` by the unit's name without ``.service``; the offset as for :func:`observe_base`."""
    units: Dict[str, Unit] = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines())
        name = values.get("Id", "")
        if not name:
            continue
        started = None
        stamp = values.get("ExecMainStartTimestampMonotonic", "0")
        if stamp.isdigit() and int(stamp):
            started = clock_offset_s + int(stamp) / 1e6
        states = (values.get(key, "") for key in ("LoadState", "ActiveState", "UnitFileState"))
        unit = Unit(*states, started)
        units[name.replace(".service", "")] = unit
        for alias in values.get("Names", "").split():
            units.setdefault(alias.replace(".service", ""), unit)
    return units


def parse_stat(text: str) -> Dict[str, OwnFile]:
    """Lines ``path<tab>mode<tab>user:group<tab>mtime<tab>type`` of stat(1)."""
    found = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].lstrip("-").isdigit():
            path, mode, owner, changed, kind = fields
            kind = "link" if kind == "symbolic link" else "file" if kind.startswith("regular") else "other"
            found[path] = OwnFile(None, "%s %s" % (mode.zfill(4), owner), float(changed), kind)
    return found


def selected(text: Optional[str]) -> Optional[str]:
    """The word in brackets of a sysfs choice such as ``always [madvise] never``."""
    match = re.search(r"\[(\S+)\]", text or "")
    return match.group(1) if match else None


# -- observation -------------------------------------------------------------------------------------------------------


def observe_base(host: Host, clock_offset_s: float, sysctl_keys: Sequence[str]) -> BaseFacts:
    """One look at the machine. `clock_offset_s` is epoch less monotonic time; `sysctl_keys` are those that matter."""
    os_release = parse_os_release(host.read_text("/etc/os-release") or host.read_text("/usr/lib/os-release") or "")
    packages = parse_query(host.run(QUERY_ARGV).stdout)
    kernel = boot_kernel(
        host.list_dir("/boot"),
        host.list_dir("/lib/modules"),
        packages,
        (_proc(host, "/proc/sys/kernel/osrelease") or "").strip(),
        os_release.get("ID", ""),
    )
    container = _container(host)
    return BaseFacts(
        os_release=os_release,
        arch=packages["dpkg"].arch if "dpkg" in packages else "",
        container=container,
        raises_limits=_has_capability(host, CAP_SYS_RESOURCE),
        nr_open=_integer(_proc(host, "/proc/sys/fs/nr_open")),
        hard_limits=_hard_limits(host.read_text("/proc/1/limits") or ""),
        kernel=kernel,
        headers_built=bool(kernel.release and host.list_dir("/lib/modules/%s/build" % kernel.release)),
        boot_files=_boot_files(host),
        boot_free_bytes=_boot_free_bytes(host),
        grub_default=_grub_default(host),
        reboot_required=host.exists("/run/reboot-required"),
        packages=packages,
        updates_pending=bool(host.list_dir("/var/lib/dpkg/updates")),
        apt_lists=tuple(name for name in host.list_dir("/var/lib/apt/lists") if "_" in name),
        apt_elsewhere=_elsewhere(host, parse_apt_conf, ["/etc/apt/apt.conf"], "/etc/apt/apt.conf.d/*"),
        cloud_init_running=host.exists("/run/cloud-init") and _cloud_init_running(host),
        needrestart_elsewhere=_needrestart_elsewhere(host),
        own=_own_files(host),
        stock_sources=_stock_sources(host),
        sources=_sources(host),
        sysctl={key: _sysctl(host, key) for key in sysctl_keys},
        sysctl_elsewhere=_sysctl_elsewhere(host, sysctl_keys),
        limits_elsewhere=_elsewhere(host, parse_limits, ["/etc/security/limits.conf"], "/etc/security/limits.d/*.conf"),
        login_limits=_login_limits(host),
        manager_elsewhere=_elsewhere(
            host, parse_ini, ["/etc/systemd/system.conf"], "/etc/systemd/system.conf.d/*.conf"
        ),
        gpu_containers=_containers_running(host),
        thp=selected(host.read_text(THP_ENABLED)),
        thp_elsewhere=_thp_elsewhere(host),
        journald_elsewhere=_elsewhere(
            host, parse_ini, ["/etc/systemd/journald.conf"], "/etc/systemd/journald.conf.d/*.conf"
        ),
        journal_on_disk=_journal_on_disk(host),
        clock_synchronised=None if container else _clock_synchronised(host),
        timesyncd_elsewhere=_elsewhere(
            host, parse_ini, ["/etc/systemd/timesyncd.conf"], "/etc/systemd/timesyncd.conf.d/*.conf"
        ),
        chrony_reads_sources=_chrony_reads_sources(host),
        **_systemd(host, clock_offset_s),
    )


def with_candidates(host: Host, facts: BaseFacts, names: Sequence[str]) -> BaseFacts:
    """The facts with what apt could install of `names`; `policies` stays None where apt does not answer."""
    if not names:
        return replace(facts, policies={})
    result = host.run(["apt-cache", "policy", *names])
    return replace(facts, policies=parse_policy(result.stdout)) if result.ok else facts


def _systemd(host: Host, clock_offset_s: float) -> Dict[str, object]:
    properties = "Id,Names,LoadState,ActiveState,UnitFileState,ExecMainStartTimestampMonotonic"
    names = ["%s.service" % name for name in TIME_UNITS + OTHER_UNITS]
    units = host.run(["systemctl", "show", "-p", properties, *names]).stdout
    manager = host.run(["systemctl", "show", "-p", "DefaultLimitNOFILE,DefaultLimitMEMLOCK"]).stdout
    return {
        "units": parse_units(units, clock_offset_s),
        "manager": dict(line.partition("=")[::2] for line in manager.splitlines() if "=" in line),
    }


def _elsewhere(host: Host, parse, files: Sequence[str], pattern: str) -> Tuple[Setting, ...]:
    """Settings of `files` and of what matches `pattern`, without our own files; later files later."""
    settings: List[Setting] = []
    for path in [*files, *host.glob(pattern)]:
        if path not in OWN_PATHS:
            settings.extend(parse(path, host.read_text(path) or ""))
    return tuple(settings)


def _sysctl_elsewhere(host: Host, keys: Sequence[str]) -> Tuple[Setting, ...]:
    """Without files that a package brought and nobody changed: those are the distribution's, not the operator's."""
    found = _elsewhere(host, parse_sysctl, ["/etc/sysctl.conf"], "/etc/sysctl.d/*.conf")
    found = tuple(setting for setting in found if setting.key in keys)
    stock = {path for path in {setting.path for setting in found} if _is_stock(host, path)}
    return tuple(setting for setting in found if setting.path not in stock)


def _is_stock(host: Host, path: str) -> bool:
    owner = host.run(["dpkg-query", "-S", path]).stdout.partition(":")[0]
    if not owner:
        return False
    return path not in host.run(["dpkg", "--verify", owner]).stdout.split()


def _sysctl(host: Host, key: str) -> Optional[str]:
    text = _proc(host, sysctl_path(key))
    return None if text is None else sysctl_value(text)


def _proc(host: Host, path: str) -> Optional[str]:
    """A file of /proc/sys: the kernel refuses to answer a read with a buffer of some MiB."""
    return host.read_text(path, 65536)


def _own_files(host: Host) -> Dict[str, OwnFile]:
    paths = list(OWN_PATHS) + [path + ASIDE for path in STOCK_SOURCES]
    found = parse_stat(host.run(["stat", "--printf", "%n\\t%a\\t%U:%G\\t%Y\\t%F\\n", *paths]).stdout)
    return {
        path: OwnFile(host.read_text(path), seen.attributes, seen.changed_s, seen.kind) for path, seen in found.items()
    }


def _stock_sources(host: Host) -> Dict[str, str]:
    texts = ((path, host.read_text(path)) for path in STOCK_SOURCES)
    return {path: text for path, text in texts if text}


def _sources(host: Host) -> Tuple[Source, ...]:
    """Every active source of apt, those of our own file among them."""
    folder = "/etc/apt/sources.list.d/*."
    paths = ["/etc/apt/sources.list", *host.glob(folder + "list"), *host.glob(folder + "sources")]
    return tuple(parse_all({path: host.read_text(path) or "" for path in paths}))


def _boot_files(host: Host) -> Dict[str, int]:
    """Names in /boot and their sizes in bytes."""
    listed = host.run(["find", "/boot", "-maxdepth", "1", "-type", "f", "-printf", "%s\\t%f\\n"]).stdout
    lines = (line.partition("\t") for line in listed.splitlines())
    return {name: int(size) for size, _tab, name in lines if size.isdigit()}


def _boot_free_bytes(host: Host) -> Optional[int]:
    words = host.run(["df", "--block-size=1", "--output=avail", "/boot"]).stdout.split()
    return _integer(words[-1]) if words else None


def _chrony_reads_sources(host: Host) -> Optional[bool]:
    """Whether chrony's configuration names the folder that our file is in; None where there is no configuration."""
    text = host.read_text("/etc/chrony/chrony.conf")
    return None if text is None else bool(re.search(r"^\s*sourcedir\s+/etc/chrony/sources\.d\b", text, re.MULTILINE))


def _container(host: Host) -> Optional[str]:
    """systemd's name for the container that this is, None on a machine (real or virtual)."""
    name = host.run(["systemd-detect-virt", "--container"]).stdout.strip()
    return None if name in ("", "none") else name


def _has_capability(host: Host, number: int) -> bool:
    match = re.search(r"^CapBnd:\s*([0-9a-f]+)", host.read_text("/proc/1/status") or "", re.MULTILINE)
    return match is None or bool(int(match.group(1), 16) >> number & 1)


def _hard_limits(text: str) -> Dict[str, str]:
    names = {"Max open files": "nofile", "Max locked memory": "memlock"}
    limits = {}
    for line in text.splitlines():
        for title, name in names.items():
            if line.startswith(title):
                limits[name] = line[len(title) :].split()[1]
    return limits


def _login_limits(host: Host) -> Dict[str, str]:
    """Hard limits that PAM gives to a new session, by ``user item``; asked once our file is there."""
    limits = {}
    if host.exists(LIMITS):
        for user in ("nobody", "root"):
            result = host.run(["runuser", "-u", user, "--", "/bin/sh", "-c", "ulimit -Hn; ulimit -Hl"], timeout_s=10)
            values = result.stdout.split()
            if result.ok and len(values) == 2:
                limits.update({user + " nofile": values[0], user + " memlock": values[1]})
    return limits


def _integer(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.strip().isdigit() else None


def _grub_default(host: Host) -> Optional[str]:
    value = None
    for path in ["/etc/default/grub", *host.glob("/etc/default/grub.d/*.cfg")]:
        for match in re.finditer(r"^\s*GRUB_DEFAULT=[\"']?([^\"'\n]*)", host.read_text(path) or "", re.MULTILINE):
            value = match.group(1).strip()
    return value


def _cloud_init_running(host: Host) -> bool:
    """cloud-init writes its result when it ends; where it is disabled it never will."""
    return not host.exists("/run/cloud-init/result.json") and host.exists("/run/cloud-init/enabled")


def _needrestart_elsewhere(host: Host) -> Optional[str]:
    for path in ["/etc/needrestart/needrestart.conf", *host.glob("/etc/needrestart/conf.d/*.conf")]:
        text = host.read_text(path) or ""
        if path not in OWN_PATHS and re.search(r"^\s*\$nrconf\{[\"']?restart[\"']?\}\s*=", text, re.MULTILINE):
            return path
    return None


def _containers_running(host: Host) -> bool:
    """A shim is the parent of every container of docker, containerd and CRI; conmon of podman and CRI-O."""
    for path in host.glob("/proc/[0-9]*/comm"):
        name = (host.read_text(path) or "").strip()
        if name.startswith("containerd-shim") or name == "conmon":
            return True
    return False


def _thp_elsewhere(host: Host) -> Optional[str]:
    """Who else decides about huge pages: the kernel command line, or another tmpfiles or sysfs.conf file."""
    if "transparent_hugepage=" in (host.read_text("/proc/cmdline") or ""):
        return "/proc/cmdline"
    for path in [*host.glob("/etc/tmpfiles.d/*.conf"), "/etc/sysfs.conf", *host.glob("/etc/sysfs.d/*.conf")]:
        text = host.read_text(path) or ""
        if path not in OWN_PATHS and re.search(r"^\s*[^#\s].*transparent_hugepage/enabled", text, re.MULTILINE):
            return path
    return None


def _journal_on_disk(host: Host) -> bool:
    machine_id = (host.read_text("/etc/machine-id") or "").strip()
    return bool(machine_id) and host.exists("/var/log/journal/%s/system.journal" % machine_id)


def _clock_synchronised(host: Host) -> Optional[bool]:
    answer = host.run(["timedatectl", "show", "-p", "NTPSynchronized", "--value"], timeout_s=10).stdout.strip()
    return {"yes": True, "no": False}.get(answer)
