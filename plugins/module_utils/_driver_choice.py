# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver a machine gets: source, branch, version, module flavour, fabric software. Pure; refuses by exception.

Numbers and rules: `_driver_branches` (branches, floors, architectures) and `_driver_packages` (names, repositories).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, List, Optional, Tuple

from ._dpkg import compare_versions
from ._driver_branches import BRANCHES, NO_KNOWN_FLAW, OPEN_ONLY, PRE_TURING, Branch, branch_name, version_key
from ._driver_facts import DriverPlanError, Observed, Wishes
from ._driver_packages import (
    FIRST_BRANCH_OF,
    Needs,
    PackageSet,
    driver_version_of,
    is_member,
    package_set,
    repository_of,
    source_of,
)
from ._findings import Finding, finding

NVLINK5_GPUS = ("2901", "3182")
"""PCI ids of B200 and B300 SXM: their switches show up only behind InfiniBand functions."""

RACK_SCALE_GPUS = ("2941", "31c2")
"""PCI ids of GB200 and GB300: Fabric Manager runs on the rack's switch trays, the compute trays run IMEX."""


@dataclass(frozen=True)
class Choice:
    """`reasons`: why, in words. `exact`: the version was named by the inventory, so no other will do."""

    source: str
    repository: str
    branch: Branch
    version: str
    exact: bool
    flavour: str
    dkms: bool
    needs: Needs
    packages: PackageSet
    reasons: Tuple[str, ...]


def choose_driver(observed: Observed, wishes: Wishes) -> Choice:
    """Raises DriverPlanError where no driver fits both the machine and the wishes."""
    repository = repository_of(observed.os_id, observed.os_version)
    if repository is None:
        raise DriverPlanError(
            "unsupported_os",
            "%s %s is not a system that this role installs drivers on" % (observed.os_id, observed.os_version),
            "Use Ubuntu 20.04, 22.04, 24.04 or 26.04, or Debian 12 or 13.",
        )
    reasons: List[str] = []
    source = _choose_source(observed, wishes, reasons)
    branch = _choose_branch(observed, wishes, source, repository, reasons)
    flavour = _choose_flavour(observed, wishes, branch, reasons)
    needs = fabric_needs(observed, wishes, reasons)
    dkms = _choose_dkms(observed, wishes, source, branch, flavour, reasons)
    version = _choose_version(observed, wishes, source, branch, flavour, reasons)
    packages = package_set(
        source, observed.os_id, branch.number, version, flavour, needs, observed.kernel, dkms
    )
    return Choice(
        source, repository, branch, version, bool(wishes.version), flavour, dkms, needs, packages, tuple(reasons)
    )


def branch_findings(choice: Choice, today: str) -> List[Finding]:
    """Warnings about a branch that NVIDIA no longer looks after, or a version with known holes."""
    found = []
    branch = choice.branch
    if today and today > branch.eol:
        found.append(
            finding(
                "driver_branch_end_of_life",
                "warning",
                "driver branch %s reached its end of life on %s" % (branch.name, branch.eol),
                observed=branch.name,
                expected="a branch that still gets fixes",
                remedy="Set nvidia_driver_branch to 580 (long-term) or 595.",
                source="NVIDIA data-centre driver pages, reviewed 2026-11-30",
            )
        )
    below = branch.floor is not None and version_key(choice.version) < version_key(branch.floor)
    if below or (branch.floor is None and branch.name not in NO_KNOWN_FLAW):
        found.append(
            finding(
                "driver_below_security_floor",
                "warning",
                "driver %s has publicly known security holes" % choice.version,
                observed=choice.version,
                expected=">= %s" % branch.floor if branch.floor else "no fixed version in branch %s" % branch.name,
                remedy="Set nvidia_driver_version to %s." % (branch.floor or BRANCHES["580"].floor),
                source="NVIDIA security bulletin 5861",
            )
        )
    return found


def refuse_unfit_host(observed: Observed, wishes: Wishes, choice: Choice) -> None:
    """States of a machine in which installing would break it; raised before anything is changed."""
    if observed.run_installer:
        raise DriverPlanError(
            "run_installation",
            "a driver installed by NVIDIA's .run file is present (%s)" % observed.run_installer,
            "Remove it with nvidia-uninstall --silent, then run again.",
            observed.run_installer,
        )
    foreign = sorted(
        name
        for name, package in observed.packages.items()
        if package.installed
        and is_member(name)
        and source_of(name, package.version) not in (None, choice.source)
    )
    if foreign:
        raise DriverPlanError(
            "mixed_sources",
            "driver packages of another source than '%s' are installed: %s" % (choice.source, ", ".join(foreign)),
            "Set nvidia_driver_source to where they came from, or remove them first (apt purge %s)."
            % " ".join(foreign),
            foreign,
        )
    clashing = [
        entry.path
        for entry in observed.sources
        if choice.source == "nvidia" and entry.other_key and not entry.alone and "/%s/" % choice.repository in entry.uri
    ]
    if clashing:
        raise DriverPlanError(
            "source_clash",
            "%s names NVIDIA's repository with another key, and two keys for one repository stop apt"
            % ", ".join(clashing),
            "Take the lines of that repository out of the file; it holds other sources too, so the role leaves it.",
            clashing,
        )
    if observed.secure_boot and choice.dkms and observed.key_enrolled is not True:
        raise DriverPlanError(
            "secure_boot_key",
            "Secure Boot is on and the key that DKMS signs modules with is not enrolled",
            "Set nvidia_driver_source to ubuntu for modules signed by Canonical, or enrol the key: "
            "mokutil --import /var/lib/shim-signed/mok/MOK.der (Debian: /var/lib/dkms/mok.pub), reboot, confirm at "
            "the console.",
            "Secure Boot on",
        )
    if wishes.old_branch == "refuse":
        old = branch_findings(choice, observed.today)
        if old:
            raise DriverPlanError("old_branch", old[0]["message"], old[0]["remedy"], choice.version)


def fabric_needs(observed: Observed, wishes: Wishes, reasons: List[str]) -> Needs:
    """Fabric Manager where NVSwitch is, nvlsm where NVLink 5 is, IMEX on the trays of a rack, and nowhere else."""
    pci = observed.pci
    nvlink5_gpus = [gpu for gpu in pci.gpus if gpu.device in NVLINK5_GPUS]
    if wishes.fabric_manager == "false":
        reasons.append("no Fabric Manager: nvidia_driver_fabric_manager is false")
        return Needs()
    if nvlink5_gpus and not pci.nvlink_management and wishes.fabric_manager == "auto":
        raise DriverPlanError(
            "nvlink5_not_seen",
            "%d NVLink 5 GPUs, but no management function of their switches" % len(nvlink5_gpus),
            "Load mlx5_ib and ib_umad (Ubuntu cloud kernels: install linux-modules-extra-%s first), then run again."
            % (observed.running_kernel or "$(uname -r)"),
        )
    if wishes.fabric_manager == "auto" and any(gpu.device in RACK_SCALE_GPUS for gpu in pci.gpus):
        reasons.append("IMEX and no Fabric Manager: the switch trays of a GB200 or GB300 rack run that")
        return Needs(imex=True)
    nvlink5 = bool(pci.nvlink_management) and bool(nvlink5_gpus)
    if pci.nvswitches:
        reasons.append("Fabric Manager: %d NVSwitches on the PCI bus" % len(pci.nvswitches))
    elif nvlink5:
        reasons.append("Fabric Manager and nvlsm: NVLink 5 switches behind %s" % ", ".join(pci.nvlink_management))
    elif wishes.fabric_manager == "true":
        reasons.append("Fabric Manager: nvidia_driver_fabric_manager is true")
    else:
        reasons.append("no Fabric Manager: no NVSwitch on the PCI bus")
    wanted = bool(pci.nvswitches) or nvlink5 or wishes.fabric_manager == "true"
    return Needs(fabric_manager=wanted, nvlink5=nvlink5)


# -- one choice each ---------------------------------------------------------------------------------------------------


def _choose_source(observed: Observed, wishes: Wishes, reasons: List[str]) -> str:
    if wishes.source == "ubuntu" and observed.os_id != "ubuntu":
        raise DriverPlanError(
            "source_not_on_os",
            "source 'ubuntu' is Ubuntu's own archive; this machine runs %s" % observed.os_id,
            "Set nvidia_driver_source to nvidia.",
        )
    if wishes.source != "auto":
        reasons.append("source %s: asked for" % wishes.source)
        return wishes.source
    reasons.append("source nvidia: it has every branch, and Fabric Manager for each driver")
    return "nvidia"


def _choose_branch(
    observed: Observed, wishes: Wishes, source: str, repository: str, reasons: List[str]
) -> Branch:
    name = branch_name(wishes.version) if wishes.version else wishes.branch
    branch = BRANCHES.get(name)
    if branch is None:
        raise DriverPlanError(
            "branch_unknown",
            "driver branch '%s' is not in the branch table" % name,
            "Choose one of %s, or bring the table up to date." % ", ".join(BRANCHES),
            name,
        )
    first = FIRST_BRANCH_OF.get(repository)
    if source == "nvidia" and first is not None and branch.number < first:
        raise DriverPlanError(
            "branch_not_in_repository",
            "NVIDIA's repository for %s starts at branch %d" % (repository, first),
            "Set nvidia_driver_branch to %d or newer, or nvidia_driver_source to ubuntu." % first,
            name,
        )
    gone = [a for a in observed.pci.architectures if a in branch.gone]
    if gone:
        raise DriverPlanError(
            "architecture_dropped",
            "branch %s does not support %s GPUs any more" % (name, "/".join(gone)),
            "Set nvidia_driver_branch to 580, the last one for Maxwell, Pascal and Volta."
            if "kepler" not in gone
            else "Kepler's last branch is 470, which no current system carries.",
            gone,
        )
    if "blackwell" in observed.pci.architectures and not branch.first_blackwell:
        raise DriverPlanError(
            "architecture_unknown_to_branch",
            "branch %s is older than Blackwell GPUs" % name,
            "Set nvidia_driver_branch to 580 or newer.",
            name,
        )
    reasons.append("branch %s: %s" % (name, "the version asked for" if wishes.version else "asked for"))
    return branch


def _choose_flavour(observed: Observed, wishes: Wishes, branch: Branch, reasons: List[str]) -> str:
    architectures = observed.pci.architectures
    closed = [a for a in architectures if a in PRE_TURING]
    only_open = [a for a in architectures if a in OPEN_ONLY]
    if closed and only_open:
        raise DriverPlanError(
            "mixed_architectures",
            "%s needs the proprietary modules and %s the open ones; a machine has one" % (closed[0], only_open[0]),
            "Take one kind of GPU out of this machine.",
            list(architectures),
        )
    if only_open and wishes.flavour == "proprietary":
        raise DriverPlanError(
            "flavour_impossible",
            "%s GPUs run with the open kernel modules only" % only_open[0],
            "Set nvidia_driver_flavour to auto or open.",
            wishes.flavour,
        )
    if closed and wishes.flavour == "open":
        raise DriverPlanError(
            "flavour_impossible",
            "%s GPUs run with the proprietary kernel modules only" % closed[0],
            "Set nvidia_driver_flavour to auto or proprietary.",
            wishes.flavour,
        )
    if wishes.flavour == "proprietary" and "proprietary" not in branch.flavours:
        raise DriverPlanError(
            "flavour_impossible",
            "branch %s has no proprietary kernel modules" % branch.name,
            "Set nvidia_driver_flavour to auto or open.",
            wishes.flavour,
        )
    if wishes.flavour != "auto":
        reasons.append("%s modules: asked for" % wishes.flavour)
        return wishes.flavour
    if closed:
        reasons.append("proprietary modules: %s has no open ones" % "/".join(closed))
        return "proprietary"
    reasons.append("open modules: NVIDIA's choice for %s" % ("/".join(architectures) or "Turing and newer"))
    return "open"


def _choose_dkms(
    observed: Observed, wishes: Wishes, source: str, branch: Branch, flavour: str, reasons: List[str]
) -> bool:
    """Modules signed by the archive where it has them for this kernel; else built here by DKMS."""
    if source == "nvidia":
        if wishes.modules == "prebuilt":
            raise DriverPlanError(
                "modules_impossible",
                "NVIDIA's repository has no prebuilt kernel modules",
                "Set nvidia_driver_modules to auto or dkms, or nvidia_driver_source to ubuntu.",
                wishes.modules,
            )
        return True
    if wishes.modules != "auto":
        return wishes.modules == "dkms"
    needs = Needs()
    prebuilt = package_set(
        source, observed.os_id, branch.number, "", flavour, needs, observed.kernel, False
    ).modules[0]
    present = observed.packages.get(prebuilt)
    if present is not None and present.installed:
        reasons.append("prebuilt modules: %s is installed" % prebuilt)
        return False
    if observed.policies is None:
        return False
    if available(observed, prebuilt):
        reasons.append("prebuilt modules: the archive has %s" % prebuilt)
        return False
    reasons.append("modules built by DKMS: the archive has no %s" % prebuilt)
    return True


def _choose_version(
    observed: Observed, wishes: Wishes, source: str, branch: Branch, flavour: str, reasons: List[str]
) -> str:
    """The version named; else the newest that the table knows, or a newer one that is installed already."""
    if wishes.version:
        return wishes.version
    packages = package_set(
        source, observed.os_id, branch.number, "", flavour, Needs(), observed.kernel, source == "nvidia"
    )
    anchor = packages.driver[0]
    known = branch.newest
    present = observed.packages.get(anchor)
    installed = driver_version_of(present.version) if present is not None and present.installed else None
    if (
        installed
        and branch_name(installed) == branch.name
        and version_key(installed) > version_key(known)
    ):
        reasons.append("version %s: installed, and newer than the table's %s" % (installed, known))
        return installed
    if observed.policies is not None:
        offered = sorted(
            {v for v in offered_versions(observed, anchor) if branch_name(v) == branch.name}, key=version_key
        )
        if offered and known not in offered:
            reasons.append("version %s: the newest of branch %s that apt offers" % (offered[-1], branch.name))
            return offered[-1]
    reasons.append("version %s: the newest known of branch %s" % (known, branch.name))
    return known


# -- what apt offers ---------------------------------------------------------------------------------------------------


def available(observed: Observed, name: str) -> bool:
    policy = (observed.policies or {}).get(name)
    return policy is not None and bool(policy.candidate)


def offered_versions(observed: Observed, name: str) -> Tuple[str, ...]:
    """Driver versions of a package that apt offers."""
    policy = (observed.policies or {}).get(name)
    found = [driver_version_of(version) for version, _priority in policy.versions] if policy else []
    return tuple(sorted({version for version in found if version}, key=version_key))


def full_version(observed: Observed, name: str, version: str) -> Optional[str]:
    """The package version (with its revision) of a driver version; the newest revision where there are several."""
    policy = (observed.policies or {}).get(name)
    if policy is None:
        return None
    best = None
    for candidate in _matching((v for v, _priority in policy.versions), version):
        if best is None or compare_versions(candidate, best) > 0:
            best = candidate
    return best


def _matching(versions: Iterable[str], version: str) -> List[str]:
    return [candidate for candidate in versions if driver_version_of(candidate) == version]
