# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read everything that the driver planner needs, through the `Host` that is handed in, in one round trip."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, Iterable, List, Optional, Tuple

from ._apt_sources import normal_uri, parse_sources
from ._dpkg import QUERY_ARGV, Policy, parse_policy, parse_query
from ._driver_facts import UNITS, Observed, SmiAnswer, SourceEntry, Unit
from ._driver_packages import REPOSITORY_ARCHITECTURE, repository_of
from ._host import Host
from ._kernels import boot_kernel, headers_packages, kernel_meta
from ._observe_pci import observe_driver, observe_pci
from ._openpgp import OpenPgpError, primary_fingerprints

SMI_TIMEOUT_S = 60.0
_QUERY = ("nvidia-smi", "--query-gpu=pci.bus_id,driver_version", "--format=csv,noheader")
_LIBRARY = "/usr/lib/*/libnvidia-ml.so.1"
_CUDA_REPOSITORY = re.compile(r"https?://\S*?/compute/cuda/repos/\S+")
_UNIT_PROPERTIES = "Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts,NeedDaemonReload,ExecStart,MainPID"
_OUR_DAEMONS = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine", "nvidia-smi", "nvsm", "dcgm-exporter")
"""Start of the names (the kernel keeps 15 characters) that hold GPUs open without anybody's work being lost."""
_CONTAINER_SHIMS = ("containerd-shim", "conmon")


def observe_machine(host: Host, source_path: str, keyring_path: str, initramfs_inputs: Iterable[str] = ()) -> Observed:
    """`source_path` and `keyring_path` are the role's own; other sources of NVIDIA's repository are reported."""
    os_id, os_version = _os_release(host)
    packages = parse_query(host.run(QUERY_ARGV).stdout)
    running = (host.read_text("/proc/sys/kernel/osrelease", 256) or "").strip()
    kernel = boot_kernel(host.list_dir("/boot"), host.list_dir("/lib/modules"), packages, running, os_id)
    release = kernel.release
    headers = headers_packages(release, packages, os_id) if release else None
    driver = observe_driver(host, ask_modinfo=False)
    module_version, module_flavour = _module_of(host, release)
    architecture = packages["dpkg"].arch if "dpkg" in packages else "amd64"
    repository = repository_of(os_id, os_version)
    sources = _cuda_sources(host, keyring_path)
    return Observed(
        os_id=os_id,
        os_version=os_version,
        architecture=architecture,
        pci=observe_pci(host),
        running_kernel=running or None,
        boot_kernel=release,
        kernel_flavour=(kernel_meta(release, packages, os_id) if release else None) or "generic",
        headers_present=bool(release) and host.exists("/lib/modules/%s/build" % release),
        headers_package=(headers.exact if headers else None) or "",
        packages=packages,
        dpkg_interrupted=any(name.isdigit() for name in host.list_dir("/var/lib/dpkg/updates")),
        module_version=module_version,
        module_flavour=module_flavour,
        loaded_version=driver.loaded_version,
        loaded_flavour=driver.loaded_flavour,
        nouveau_loaded=driver.nouveau_loaded,
        library_version=_library_version(host),
        smi=_ask_smi(host) if driver.loaded_version else None,
        units=observe_units(host),
        secure_boot=driver.secure_boot,
        key_enrolled=_key_enrolled(host) if driver.secure_boot else None,
        run_installer=_run_installer(host),
        sources=tuple(entry for entry in sources if entry.path != source_path),
        own_source_present=host.exists(source_path),
        key_fingerprints=_fingerprints(host.read_bytes(keyring_path)),
        lists_present=bool(repository) and _lists_present(host, repository, architecture),
        initramfs_stale=bool(release) and _initramfs_stale(host, release, initramfs_inputs),
        boot_id=(host.read_text("/proc/sys/kernel/random/boot_id", 64) or "").strip() or None,
    )


def with_policies(host: Host, observed: Observed, names: Iterable[str]) -> Observed:
    """The same machine and what apt offers of `names`; apt opens its whole cache for it, so only when needed."""
    result = host.run(("apt-cache", "policy") + tuple(names), timeout_s=120)
    policies: Dict[str, Policy] = parse_policy(result.stdout)
    return replace(observed, policies=policies)


def with_gpu_users(host: Host, observed: Observed) -> Observed:
    """The same machine and who holds its GPUs: a walk over all processes, so only when a reboot is at stake."""
    return replace(observed, gpu_users=_gpu_users(host))


def observe_units(host: Host) -> Dict[str, Unit]:
    result = host.run(("systemctl", "show", "--property=" + _UNIT_PROPERTIES) + UNITS, timeout_s=30)
    units = {}
    for block in result.stdout.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" not in values:
            continue
        pid = values.get("MainPID", "0")
        argv = host.read_bytes("/proc/%s/cmdline" % pid, 65536) if pid not in ("", "0") else None
        units[values["Id"]] = Unit(
            load=values.get("LoadState", ""),
            active=values.get("ActiveState", ""),
            sub=values.get("SubState", ""),
            enabled=values.get("UnitFileState", ""),
            exec_start=_command_of(values.get("ExecStart", "")),
            restarts=int(values.get("NRestarts") or 0),
            needs_reload=values.get("NeedDaemonReload") == "yes",
            running_argv=(argv or b"").replace(b"\0", b" ").decode("utf-8", "replace").strip(),
        )
    return units


# -- parts -------------------------------------------------------------------------------------------------------------


def _os_release(host: Host) -> Tuple[str, str]:
    values = {}
    for line in (host.read_text("/etc/os-release") or host.read_text("/usr/lib/os-release") or "").splitlines():
        key, _sign, value = line.partition("=")
        values[key.strip()] = value.strip().strip('"')
    return values.get("ID", ""), values.get("VERSION_ID", "")


def _module_of(host: Host, release: Optional[str]) -> Tuple[Optional[str], Optional[str]]:
    """Version and flavour of the module on disk for a kernel. Debian's own package calls it `nvidia-current`."""
    if not release:
        return None, None
    for module in ("nvidia", "nvidia-current"):
        result = host.run(("modinfo", "-k", release, module), timeout_s=15)
        if not result.ok:
            continue
        fields = dict(line.split(":", 1) for line in result.stdout.splitlines() if ":" in line)
        version = fields.get("version", "").strip()
        licence = fields.get("license", "").strip()
        return version or None, ("open" if "MIT" in licence else "proprietary") if licence else None
    return None, None


def _library_version(host: Host) -> Optional[str]:
    for path in host.glob(_LIBRARY):
        match = re.search(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)?)$", host.real_path(path))
        if match:
            return match.group(1)
    return None


def _ask_smi(host: Host) -> SmiAnswer:
    result = host.run(_QUERY, timeout_s=SMI_TIMEOUT_S)
    rows = [line.split(",") for line in result.stdout.splitlines() if line.count(",") == 1]
    text = result.describe() if result.rc is None else "exit status %s: %s" % (
        result.rc, " ".join((result.stdout or result.stderr).split())[:300])
    return SmiAnswer(
        rc=result.rc,
        bus_ids=tuple(row[0].strip() for row in rows),
        versions=tuple(sorted({row[1].strip() for row in rows})),
        text=text,
    )


def _command_of(exec_start: str) -> str:
    """systemd shows ``{ path=… ; argv[]=CMD ARGS ; … }``; of several commands the last one counts."""
    found = re.findall(r"argv\[\]=(.*?) ; ", exec_start)
    return found[-1].strip() if found else ""


def _key_enrolled(host: Host) -> Optional[bool]:
    """Is the key that DKMS signs with one that the firmware trusts? None: no key, or nobody to ask."""
    for path in ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub"):
        if host.exists(path):
            result = host.run(("mokutil", "--test-key", path), timeout_s=15)
            if not result.missing:
                return "already enrolled" in result.stdout
    return None


def _run_installer(host: Host) -> Optional[str]:
    """The uninstaller that NVIDIA's .run file leaves; packages have none, but dpkg is asked to be sure."""
    for path in ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer"):
        if host.exists(path) and host.run(("dpkg-query", "-S", path), timeout_s=30).rc not in (0, None):
            return path
    return None


def _cuda_sources(host: Host, keyring_path: str) -> List[SourceEntry]:
    """Every apt source of NVIDIA's CUDA repository; two with different keys stop apt altogether."""
    found = []
    folder = "/etc/apt/sources.list.d"
    paths = ["/etc/apt/sources.list"] + [
        "%s/%s" % (folder, name) for name in host.list_dir(folder) if name.endswith((".list", ".sources"))
    ]
    for path in paths:
        text = host.read_text(path) or ""
        lines = [line.strip() for line in text.splitlines()]
        active = [line for line in lines if line and not line.startswith("#")]
        uris = [match.group(0) for line in active for match in [_CUDA_REPOSITORY.search(line)] if match]
        if uris:
            foreign = [line for line in active if re.match(r"^(?:deb|deb-src|URIs:)\s", line, re.IGNORECASE)
                       and not _CUDA_REPOSITORY.search(line)]
            keys = {
                source.signed_by for source in parse_sources(path, text) if source.uri in map(normal_uri, uris)
            }
            alone = not foreign and path != "/etc/apt/sources.list"
            found.append(SourceEntry(path, uris[0], alone=alone, other_key=bool(keys - {keyring_path})))
    return found


def _fingerprints(data: Optional[bytes]) -> Tuple[str, ...]:
    try:
        return primary_fingerprints(data) if data else ()
    except OpenPgpError:
        return ("unreadable",)


def _lists_present(host: Host, repository: str, architecture: str) -> bool:
    """apt writes the address of a source into the names of its lists, with ``_`` of the address as ``%5f``."""
    folder = "cuda_repos_%s_%s" % (repository, REPOSITORY_ARCHITECTURE.get(architecture, "").replace("_", "%5f"))
    return any(folder in name and "Packages" in name for name in host.list_dir("/var/lib/apt/lists"))


def _initramfs_stale(host: Host, release: str, inputs: Iterable[str]) -> bool:
    """Is one of the files that the initramfs holds a copy of newer than it? False where there is no initramfs."""
    image = "/boot/initrd.img-%s" % release
    present = [path for path in inputs if host.exists(path)]
    if not present or not host.exists(image):
        return False
    result = host.run(("find",) + tuple(present) + ("-newer", image), timeout_s=15)
    return bool(result.stdout.strip())


def _gpu_users(host: Host) -> Tuple[str, ...]:
    """``name (pid)`` of processes that have a GPU open, daemons of the driver aside, and of container shims."""
    users = []
    for pid in host.list_dir("/proc"):
        if not pid.isdigit():
            continue
        name = (host.read_text("/proc/%s/comm" % pid, 64) or "").strip()
        if name.startswith(_CONTAINER_SHIMS):
            users.append("container %s (%s)" % (name, pid))
            continue
        if not name or name.startswith(_OUR_DAEMONS):
            continue
        folder = "/proc/%s/fd" % pid
        if any(host.real_path("%s/%s" % (folder, fd)).startswith("/dev/nvidia") for fd in host.list_dir(folder)):
            users.append("%s (%s)" % (name, pid))
    listed = host.run(("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"),
                      timeout_s=SMI_TIMEOUT_S)
    if listed.ok:
        users += ["%s (%s)" % (row[1].strip(), row[0].strip())
                  for row in (line.split(",", 1) for line in listed.stdout.splitlines() if "," in line)
                  if row[0].strip().isdigit()]
    elif listed.timed_out:
        users.append("nvidia-smi does not answer, so who works on the GPUs is unknown")
    return tuple(sorted(set(users)))
