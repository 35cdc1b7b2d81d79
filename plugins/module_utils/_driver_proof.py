# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the driver what it should be? Pure: the same observation that was planned from is judged here.

Proven means: the module that runs, the module on disk, the library, what nvidia-smi answers and Fabric Manager are all
at the wanted version, the modules have the wanted flavour, and nvidia-smi lists every GPU of the PCI bus. apt's word
is no proof.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ._driver_choice import Choice, branch_findings
from ._driver_facts import FABRIC_MANAGER, PERSISTENCED, DriverPlanError, Observed, Unit
from ._driver_packages import driver_version_of, is_fabric_manager
from ._driver_plan import Plan, persistence_is_on
from ._findings import Finding, finding, gpu_ref, role_result, verdict_of
from ._pci import normal_bus_id

_SOURCE = "nvidia_driver"


def judge_driver(observed: Observed, plan: Plan) -> Tuple[List[Finding], List[str], List[str]]:
    """Findings, what is proven, what could not be proven: texts for a person."""
    if plan.no_gpu:
        note = finding(
            "no_gpu", "info", "no NVIDIA GPU on the PCI bus: no driver installed", observed=0, source="PCI bus"
        )
        return [note], [], []
    choice = plan.choice
    if choice is None:
        return [], [], ["the driver: no plan"]
    findings = branch_findings(choice, observed.today)
    proven: List[str] = []
    unproven: List[str] = []
    _judge_disk(observed, choice, plan, findings, proven)
    if not observed.pci.gpus:
        unproven.append("driver %s is installed, not loaded: this machine has no GPU" % choice.version)
        return findings, proven, unproven
    _judge_loaded(observed, choice, plan, findings, proven)
    _judge_smi(observed, choice, plan, findings, proven, unproven)
    _judge_units(observed, choice, plan, findings, proven)
    return findings, proven, unproven


def versions_of(observed: Observed, plan: Plan) -> Dict[str, Any]:
    """What is there, None where it is not."""
    fabric = _fabric_package(observed)
    return {
        "wanted": plan.choice.version if plan.choice else None,
        "branch": plan.choice.branch.name if plan.choice else None,
        "source": plan.choice.source if plan.choice else None,
        "flavour": plan.choice.flavour if plan.choice else None,
        "module": observed.module_version,
        "loaded": observed.loaded_version,
        "library": observed.library_version,
        "fabric_manager": fabric,
        "boot_kernel": observed.boot_kernel,
    }


def driver_result(
    observed: Observed,
    plan: Plan,
    check_mode: bool = False,
    refusal: Optional[DriverPlanError] = None,
    notes: Sequence[Mapping[str, Any]] = (),
) -> Dict[str, Any]:
    """The role's entry in `gpufleet_results`. `notes`: findings of an earlier look in the same run (drift)."""
    findings = [dict(note) for note in notes]
    if refusal is not None:
        findings.append(
            finding(
                "driver_" + refusal.code, "critical", refusal.message,
                observed=refusal.observed, remedy=refusal.remedy, source=_SOURCE,
            )
        )
        return role_result("failed", findings=findings, unproven=["the driver"], versions=versions_of(observed, plan))
    judged, proven, unproven = judge_driver(observed, plan)
    if check_mode and (plan.pending or plan.queries or findings):
        findings.append(
            finding(
                "driver_would_change", "info", "this run would bring the driver set to the wanted state",
                observed=observed.module_version, expected=plan.choice.version if plan.choice else None,
                source=_SOURCE,
            )
        )
        unproven = ["the driver: check mode changes nothing, so the outcome was not seen"]
        return role_result(
            "unknown", findings=findings, unproven=unproven, versions=versions_of(observed, plan)
        )
    findings += judged
    return role_result(
        verdict_of(findings, unread=() if observed.pci.readable else ("PCI bus",)),
        findings=findings, proven=proven, unproven=unproven, versions=versions_of(observed, plan),
    )


def drift_findings(drift: Sequence[str], restored: Sequence[str] = ()) -> List[Finding]:
    """One info finding per thing that was changed behind the role's back. `restored`: paths of files."""
    return [
        finding("driver_drift", "info", text, observed=text, expected="as the last run left it",
                remedy="Nothing to do: the run that tells this puts it right.", source=_SOURCE)
        for text in list(drift) + ["file %s was not as it should be" % path for path in restored]
    ]


# -- on disk -----------------------------------------------------------------------------------------------------------


def _judge_disk(
    observed: Observed, choice: Choice, plan: Plan, findings: List[Finding], proven: List[str]
) -> None:
    if plan.queries:
        findings.append(
            finding(
                "driver_not_installed", "critical",
                "dpkg does not show the wanted driver set %s" % choice.version,
                observed=observed.module_version, expected=choice.version,
                remedy="Run site.yml; if it did, read the apt messages above.", source="dpkg",
            )
        )
        return
    if not observed.boot_kernel:
        findings.append(
            finding("driver_boot_kernel_unknown", "warning", "no kernel is to be seen in /boot or /lib/modules",
                    remedy="Install a kernel package, or check how this machine boots.", source="/boot")
        )
    elif (observed.module_version, observed.module_flavour) != (choice.version, choice.flavour):
        findings.append(
            finding(
                "driver_module_missing", "critical",
                "kernel %s will boot, and its nvidia module is %s" % (
                    observed.boot_kernel, _module_text(observed.module_version, observed.module_flavour)),
                observed=_module_text(observed.module_version, observed.module_flavour),
                expected=_module_text(choice.version, choice.flavour),
                remedy="Install %s and run again; the build log is /var/lib/dkms/nvidia/*/build/make.log."
                % (observed.headers_package or "the kernel's headers"),
                source="modinfo -k %s nvidia" % observed.boot_kernel,
            )
        )
    else:
        proven.append("%s module %s is on disk for kernel %s, which will boot" % (
            choice.flavour, choice.version, observed.boot_kernel))
    if plan.holds_wanted and not plan.holds_missing:
        proven.append("%d packages of the set are on hold" % len(plan.holds_wanted))
    elif plan.holds_missing:
        findings.append(
            finding("driver_hold_missing", "warning",
                    "not on hold: %s" % ", ".join(plan.holds_missing), observed=list(plan.holds_missing),
                    expected="on hold", remedy="Run site.yml.", source="dpkg")
        )


def _module_text(version: Optional[str], flavour: Optional[str]) -> str:
    return "%s (%s)" % (version, flavour) if version else "none"


# -- in memory ---------------------------------------------------------------------------------------------------------


def _judge_loaded(
    observed: Observed, choice: Choice, plan: Plan, findings: List[Finding], proven: List[str]
) -> None:
    if plan.reboot_required:
        findings.append(
            finding(
                "driver_reboot_required", "critical",
                "a reboot is needed before the driver works: %s" % plan.reboot_reason,
                observed=observed.loaded_version, expected=choice.version,
                remedy="Reboot the host when it is free, or set nvidia_driver_reboot_ok to auto and run site.yml.",
                source="/sys/module/nvidia/version",
            )
        )
        return
    loaded = (observed.loaded_version, observed.loaded_flavour)
    if loaded == (choice.version, choice.flavour):
        proven.append("%s module %s is loaded" % (choice.flavour, choice.version))
    else:
        findings.append(
            finding(
                "driver_loaded_version", "critical",
                "loaded is %s, wanted is %s" % (_module_text(*loaded), _module_text(choice.version, choice.flavour)),
                observed=_module_text(*loaded), expected=_module_text(choice.version, choice.flavour),
                remedy="Run site.yml, then reboot the host.", source="/proc/driver/nvidia/version",
            )
        )
    if observed.library_version == choice.version:
        proven.append("the library libnvidia-ml is %s" % choice.version)
    else:
        findings.append(
            finding(
                "driver_library_version", "critical",
                "the library libnvidia-ml is %s, wanted is %s"
                % (observed.library_version or "missing", choice.version),
                observed=observed.library_version, expected=choice.version,
                remedy="Run site.yml: it brings the whole set to one version.", source="libnvidia-ml.so.1",
            )
        )


def _judge_smi(
    observed: Observed, choice: Choice, plan: Plan, findings: List[Finding], proven: List[str], unproven: List[str]
) -> None:
    if plan.reboot_required or observed.loaded_version is None:
        unproven.append("the GPUs: the driver is not running yet")
        return
    smi = observed.smi
    if smi is None or smi.rc != 0:
        findings.append(
            finding(
                "driver_nvidia_smi", "critical",
                "nvidia-smi does not answer: %s" % (smi.text if smi else "it is not installed"),
                observed=smi.rc if smi else None, expected=0,
                remedy="Run playbooks/health.yml: it names the GPU and the cause.", source="nvidia-smi",
            )
        )
        return
    if set(smi.versions) == {choice.version}:
        proven.append("nvidia-smi answers with driver %s" % choice.version)
    else:
        findings.append(
            finding("driver_user_space", "critical",
                    "nvidia-smi names driver %s, wanted is %s" % (", ".join(smi.versions) or "none", choice.version),
                    observed=list(smi.versions), expected=choice.version, remedy="Run site.yml.", source="nvidia-smi")
        )
    on_bus = {gpu.bus_id for gpu in observed.pci.gpus}
    listed = {normal_bus_id(bus_id) for bus_id in smi.bus_ids}
    for bus_id in sorted(on_bus - listed):
        findings.append(
            finding("driver_gpu_not_listed", "critical",
                    "the GPU at %s is on the PCI bus and nvidia-smi does not list it" % bus_id,
                    observed=len(listed), expected=len(on_bus), gpu=gpu_ref(None, None, bus_id),
                    remedy="Run playbooks/health.yml; the host's kernel log (Xid) tells more.", source="nvidia-smi")
        )
    if on_bus == listed:
        proven.append("nvidia-smi lists all %d GPUs of the PCI bus" % len(on_bus))


# -- services ----------------------------------------------------------------------------------------------------------


def _judge_units(
    observed: Observed, choice: Choice, plan: Plan, findings: List[Finding], proven: List[str]
) -> None:
    if choice.needs.fabric_manager:
        version = _fabric_package(observed)
        if version == choice.version:
            proven.append("Fabric Manager is %s" % version)
        elif not plan.queries:
            findings.append(
                finding("driver_fabric_manager_version", "critical",
                        "Fabric Manager is %s, the driver %s" % (version or "missing", choice.version),
                        observed=version, expected=choice.version, remedy="Run site.yml.", source="dpkg")
            )
        _judge_unit(observed, FABRIC_MANAGER, "critical", plan, findings, proven)
    _judge_unit(observed, PERSISTENCED, "warning", plan, findings, proven)
    unit = observed.units.get(PERSISTENCED)
    if unit is not None and unit.known and not persistence_is_on(unit):
        findings.append(
            finding("driver_persistence_off", "warning", "nvidia-persistenced runs with persistence mode off",
                    observed=unit.running_argv or unit.exec_start, expected="--persistence-mode",
                    remedy="Run site.yml.", source=PERSISTENCED)
        )


def _judge_unit(
    observed: Observed, name: str, severity: str, plan: Plan, findings: List[Finding], proven: List[str]
) -> None:
    if plan.reboot_required or plan.queries:
        return
    unit = observed.units.get(name) or Unit()
    if unit.active == "active" and unit.sub != "auto-restart" and unit.enabled.startswith("enabled"):
        proven.append("%s is active" % name)
        return
    state = "%s (%s), %s" % (unit.active, unit.sub, unit.enabled or unit.load)
    findings.append(
        finding(
            "driver_unit_" + ("fabric_manager" if name == FABRIC_MANAGER else "persistenced"), severity,
            "%s is %s" % (name, state), observed=state, expected="active, enabled",
            remedy="Read journalctl -u %s -b on the host." % name, source="systemctl show",
        )
    )


def _fabric_package(observed: Observed) -> Optional[str]:
    for name, package in sorted(observed.packages.items()):
        if is_fabric_manager(name) and package.installed:
            return driver_version_of(package.version)
    return None
