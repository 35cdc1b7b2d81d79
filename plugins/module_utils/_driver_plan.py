# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to change so that a machine holds the chosen driver set: `plan_driver(observed, wishes)`. Pure.

dpkg's answer decides whether apt is asked at all: `Plan.queries` names what to look up, and only a machine that does
not hold the wanted set has any. A set is one version of everything: a package of it that stands at another version
comes to the wanted one, or goes where the wanted version has no such package.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._driver_choice import (
    Choice,
    available,
    choose_driver,
    full_version,
    offered_versions,
    refuse_unfit_host,
)
from ._driver_facts import FABRIC_MANAGER, PERSISTENCED, DriverPlanError, Observed, Unit, Wishes
from ._driver_packages import (
    REPOSITORY_ARCHITECTURE,
    REPOSITORY_KEYS,
    driver_version_of,
    is_fabric,
    is_fabric_manager,
    is_member,
    is_other_flavour,
    is_pin,
    package_set,
    prebuilt_branch_of,
)


@dataclass(frozen=True)
class UnitAction:
    """What a unit needs: `enable`, and `state` started, restarted or empty."""

    name: str
    enable: bool = False
    unmask: bool = False
    state: str = ""


@dataclass(frozen=True)
class Plan:
    """`choice` is None on a machine that gets nothing.

    `prepare`: names for a first transaction of their own. `install`: name → exact package version (empty: whatever
    apt prefers). `drift`: what was there before and is not as it should be, in words; empty on a fresh machine.
    """

    choice: Optional[Choice] = None
    queries: Tuple[str, ...] = ()
    needs_keyring: bool = False
    needs_update: bool = False
    configure_pending: bool = False
    prepare: Tuple[str, ...] = ()
    install: Mapping[str, str] = field(default_factory=dict)
    remove: Tuple[str, ...] = ()
    reinstall: Tuple[str, ...] = ()
    holds_wanted: Tuple[str, ...] = ()
    holds_missing: Tuple[str, ...] = ()
    units: Tuple[UnitAction, ...] = ()
    initramfs: bool = False
    reboot_required: bool = False
    reboot_reason: str = ""
    boot_ready: bool = False
    fresh: bool = True
    drift: Tuple[str, ...] = ()
    no_gpu: bool = False

    @property
    def transaction(self) -> bool:
        return bool(self.prepare or self.install or self.remove or self.reinstall or self.configure_pending)

    @property
    def pending(self) -> bool:
        """Does the machine differ from the plan, reboot aside?"""
        return bool(
            self.transaction
            or self.needs_keyring
            or self.needs_update
            or self.holds_missing
            or self.units
            or self.initramfs
        )


def plan_driver(observed: Observed, wishes: Wishes, updated: bool = False) -> Plan:
    """`updated`: apt's lists are as fresh as they get in this run, so what apt lacks now is not to be had.

    Raises DriverPlanError for what needs a person.
    """
    if not observed.pci.gpus and not wishes.install_without_gpu:
        return Plan(no_gpu=True)
    choice = choose_driver(observed, wishes)
    refuse_unfit_host(observed, wishes, choice)
    members = _members(observed)
    interrupted = observed.dpkg_interrupted or any(p.broken for p in observed.packages.values())
    # An installation that was cut short is the first one still, not one that somebody changed.
    unfinished = interrupted and not _stands(observed, choice.packages.driver[0])
    plan = Plan(
        choice=choice,
        fresh=unfinished or not any(package.installed for package in members.values()),
        needs_keyring=choice.source == "nvidia" and not _keys_right(observed, wishes, choice),
        configure_pending=interrupted,
    )
    holding = _holds_set(observed, choice)
    if not holding:
        plan = _plan_packages(observed, choice, plan, updated)
    else:
        plan = _plan_repair(observed, choice, plan)
    plan = replace(plan, **_plan_holds(observed, wishes, choice, plan))
    plan = replace(plan, **_plan_boot(observed, choice, plan))
    plan = replace(plan, units=plan_units(observed, choice, plan))
    return replace(plan, drift=_drift(observed, choice, plan))


# -- packages ----------------------------------------------------------------------------------------------------------


def allowed_keys(wishes: Wishes, choice: Choice) -> Tuple[str, ...]:
    """Fingerprints of the keys that may sign the repository: those named by the inventory, else NVIDIA's."""
    return wishes.key_fingerprints or (REPOSITORY_KEYS[choice.repository][1],)


def _keys_right(observed: Observed, wishes: Wishes, choice: Choice) -> bool:
    """One foreign key beside the right one would be trusted just as well, so every key has to be a known one."""
    found = observed.key_fingerprints
    return bool(found) and all(fingerprint in allowed_keys(wishes, choice) for fingerprint in found)


def _members(observed: Observed) -> Dict[str, Any]:
    """Packages of a driver set that dpkg has files of, by plain name."""
    return {
        name: package
        for name, package in observed.packages.items()
        if ":" not in name and is_member(name) and (package.installed or package.broken)
    }


def _stands_at(observed: Observed, name: str, version: str) -> bool:
    package = observed.packages.get(name)
    return package is not None and package.installed and driver_version_of(package.version) == version


def _unwanted(observed: Observed, choice: Choice) -> List[str]:
    """Members that the wanted set has no place for, whatever their version."""
    gone = []
    for name in _members(observed):
        prebuilt = prebuilt_branch_of(name)
        if is_fabric(name) and not choice.needs.fabric_manager:
            gone.append(name)
        elif is_other_flavour(name, choice.flavour, choice.source):
            gone.append(name)
        elif prebuilt is not None and (prebuilt != choice.branch.name or choice.dkms):
            gone.append(name)
    return gone


def _holds_set(observed: Observed, choice: Choice) -> bool:
    """Does dpkg show exactly the wanted set, every member at the wanted version and nothing besides?"""
    packages = choice.packages
    if any(not _stands_at(observed, name, choice.version) for name in packages.versioned):
        return False
    others = packages.free + ((packages.pin,) if packages.pin else ())
    if any(name not in observed.packages or not observed.packages[name].installed for name in others):
        return False
    if _unwanted(observed, choice):
        return False
    for package in _members(observed).values():
        version = driver_version_of(package.version)
        if not package.installed or version not in (None, choice.version):
            return False
    return True


def _plan_packages(observed: Observed, choice: Choice, plan: Plan, updated: bool) -> Plan:
    queries = _queries(observed, choice)
    if observed.policies is None:
        return replace(plan, queries=queries)
    missing = [name for name in choice.packages.versioned if full_version(observed, name, choice.version) is None]
    unlisted = choice.source == "nvidia" and not (observed.lists_present and observed.own_source_present)
    if (missing or unlisted) and not updated:
        # Not exact yet: after the update this is planned again. It tells check mode what would come.
        expected = dict.fromkeys(choice.packages.versioned, choice.version + "-*")
        expected.update((name, "") for name in choice.packages.free)
        prepare = () if observed.headers_present or not choice.dkms else (observed.headers_package,)
        return replace(
            plan, queries=queries, needs_update=True, install=dict(sorted(expected.items())),
            prepare=tuple(name for name in prepare + (choice.packages.pin,) if name),
        )
    if missing:
        raise _not_offered(observed, choice, missing)
    install: Dict[str, str] = {}
    remove = list(_unwanted(observed, choice))
    for name in choice.packages.versioned:
        if not _stands_at(observed, name, choice.version):
            install[name] = full_version(observed, name, choice.version) or ""
    for name in choice.packages.free:
        package = observed.packages.get(name)
        if package is None or not package.installed:
            install[name] = ""
    for name, package in _members(observed).items():
        version = driver_version_of(package.version)
        if name in remove or name in install or version in (None, choice.version) and package.installed:
            continue
        target = full_version(observed, name, choice.version)
        if target is not None:
            install[name] = target
        elif version is not None:
            remove.append(name)
    return replace(
        plan,
        queries=queries,
        prepare=_headers(observed, choice) + _pin(observed, choice),
        install=dict(sorted(install.items())),
        remove=tuple(sorted(remove)),
    )


def _queries(observed: Observed, choice: Choice) -> Tuple[str, ...]:
    names = set(choice.packages.versioned + choice.packages.free + choice.packages.modules)
    names.update(_members(observed))
    if choice.packages.pin:
        names.add(choice.packages.pin)
    if observed.headers_package:
        names.add(observed.headers_package)
    if choice.source == "ubuntu":
        names.update(
            package_set(
                choice.source, observed.os_id, choice.branch.number, choice.version, choice.flavour, choice.needs,
                observed.kernel, dkms,
            ).modules[0]
            for dkms in (True, False)
        )
    return tuple(sorted(names))


def _pin(observed: Observed, choice: Choice) -> Tuple[str, ...]:
    pin = choice.packages.pin
    if pin is None or (pin in observed.packages and observed.packages[pin].installed):
        return ()
    if not available(observed, pin):
        raise DriverPlanError(
            "pin_unavailable",
            "apt offers no %s, so nothing would keep the set at one version" % pin,
            "Check the mirror behind gpufleet_nvidia_repo_url: it must carry the pinning packages.",
            pin,
        )
    return (pin,)


def _headers(observed: Observed, choice: Choice) -> Tuple[str, ...]:
    """DKMS exits 0 without headers and builds nothing, so they go in before the driver does."""
    if not choice.dkms or observed.headers_present or not observed.boot_kernel:
        return ()
    if observed.policies is not None and not available(observed, observed.headers_package):
        raise DriverPlanError(
            "no_headers",
            "kernel %s will boot, and apt has no %s to build modules with"
            % (observed.boot_kernel, observed.headers_package or "headers package for it"),
            "Install a current kernel (apt install linux-image-%s), reboot into it, then run again."
            % observed.kernel_flavour,
            observed.boot_kernel,
        )
    return (observed.headers_package,) if observed.headers_package else ()


def _not_offered(observed: Observed, choice: Choice, missing: List[str]) -> DriverPlanError:
    anchor = choice.packages.driver[0]
    offered = offered_versions(observed, anchor)
    if anchor in missing or not choice.packages.fabric:
        return DriverPlanError(
            "version_unavailable",
            "apt offers no %s at version %s" % (", ".join(missing), choice.version),
            "Choose nvidia_driver_version among: %s." % (", ".join(offered) or "none; check the repository's address"),
            list(offered),
        )
    both = [v for v in offered if all(v in offered_versions(observed, name) for name in choice.packages.fabric)]
    return DriverPlanError(
        "fabric_manager_unavailable",
        "driver %s is to be had, but %s of that version is not, and Fabric Manager must match exactly"
        % (choice.version, ", ".join(missing)),
        "Choose nvidia_driver_version among: %s." % (", ".join(both) or "none; check the repository's address"),
        both,
    )


# -- modules, holds, boot ----------------------------------------------------------------------------------------------


def _module_is(observed: Observed, choice: Choice) -> bool:
    """Is the wanted module on disk for the kernel that will boot? True as well where no kernel is to be seen."""
    if not observed.boot_kernel:
        return True
    return observed.module_version == choice.version and observed.module_flavour == choice.flavour


def _plan_repair(observed: Observed, choice: Choice, plan: Plan) -> Plan:
    """dpkg shows the set, and what it should have brought is not there: unpack and configure those packages again."""
    again = []
    prepare: Tuple[str, ...] = ()
    if not _module_is(observed, choice):
        again += [name for name in choice.packages.modules if _stands(observed, name)]
        prepare = _headers(observed, choice)
    unit = observed.units.get(FABRIC_MANAGER)
    if choice.needs.fabric_manager and unit is not None and not unit.known:
        again += [name for name in choice.packages.fabric if is_fabric_manager(name)]
    return replace(plan, reinstall=tuple(again), prepare=prepare)


def _plan_holds(observed: Observed, wishes: Wishes, choice: Choice, plan: Plan) -> Dict[str, Any]:
    """Exactly what is installed of the set is held; pins are not, or the next version could not bring its own."""
    members = _members(observed)
    wanted = tuple(sorted(name for name in members if name not in plan.remove)) if wishes.hold else ()
    missing = tuple(name for name in wanted if members[name].installed and not members[name].held)
    return {"holds_wanted": wanted, "holds_missing": missing}


def _plan_boot(observed: Observed, choice: Choice, plan: Plan) -> Dict[str, Any]:
    """A reboot is due when what is loaded is not what is installed, or nouveau sits on the GPUs; not before."""
    ready = _module_is(observed, choice) and bool(observed.boot_kernel) and not plan.transaction
    reason = ""
    if plan.queries or plan.prepare or not observed.pci.gpus:
        reason = ""  # packages first; a module that could not be built again is told, not waited for
    elif observed.nouveau_loaded:
        reason = "the nouveau module is loaded"
    elif observed.loaded_version is None:
        reason = "no nvidia module is loaded; installed is %s" % choice.version
    elif observed.loaded_version != choice.version:
        reason = "loaded is %s, installed is %s" % (observed.loaded_version, choice.version)
    elif observed.loaded_flavour not in (None, choice.flavour):
        reason = "loaded are the %s modules, installed are the %s ones" % (observed.loaded_flavour, choice.flavour)
    return {
        "boot_ready": ready,
        "reboot_required": bool(reason),
        "reboot_reason": reason,
        "initramfs": observed.initramfs_stale,
    }


# -- services ----------------------------------------------------------------------------------------------------------


def plan_units(observed: Observed, choice: Choice, plan: Plan) -> Tuple[UnitAction, ...]:
    """Units that are not as they should be. Nothing is started before the loaded module is the wanted one: the
    daemons of another version would only fail, and after the reboot they start by themselves."""
    if plan.transaction or plan.queries:
        return ()
    return _units(observed, choice, startable=bool(observed.pci.gpus) and not plan.reboot_required)


def _units(observed: Observed, choice: Choice, startable: bool) -> Tuple[UnitAction, ...]:
    actions = []
    if _known(observed, PERSISTENCED):
        actions.append(_unit_action(PERSISTENCED, observed.units[PERSISTENCED], startable, persistence_is_on))
    if choice.needs.fabric_manager and _known(observed, FABRIC_MANAGER):
        actions.append(_unit_action(FABRIC_MANAGER, observed.units[FABRIC_MANAGER], startable, lambda unit: True))
    return tuple(action for action in actions if action is not None)


def persistence_is_on(unit: Unit) -> bool:
    """Ubuntu's unit starts the daemon with persistence mode off; a daemon from before the drop-in runs on so."""
    if "--no-persistence-mode" in unit.running_argv:
        return False
    return "--no-persistence-mode" not in unit.exec_start


def persistenced_user(observed: Observed) -> str:
    """The account that the shipped unit names (``nvpd``, ``nvidia-persistenced``); empty: not installed yet."""
    unit = observed.units.get(PERSISTENCED)
    words = unit.exec_start.split() if unit else []
    for index, word in enumerate(words[:-1]):
        if word == "--user":
            return words[index + 1]
    return ""


def _known(observed: Observed, name: str) -> bool:
    return name in observed.units and observed.units[name].known


def _unit_action(name: str, unit: Unit, startable: bool, right) -> Optional[UnitAction]:
    enable = unit.enabled not in ("enabled", "enabled-runtime", "alias")
    state = ""
    if startable and (unit.active != "active" or unit.sub == "auto-restart"):
        state = "started" if unit.active in ("inactive", "failed") else "restarted"
    elif startable and not right(unit):
        state = "restarted"
    unmask = unit.load == "masked"
    if enable or state or unmask:
        return UnitAction(name, enable, unmask, state)
    return None


# -- drift -------------------------------------------------------------------------------------------------------------


def _drift(observed: Observed, choice: Choice, plan: Plan) -> Tuple[str, ...]:
    """Differences of a machine that had a driver already, in words. An upgrade is not drift: it says so itself."""
    if plan.fresh:
        return ()
    if not _stands_at(observed, choice.packages.driver[0], choice.version):
        there = {driver_version_of(package.version) for package in _members(observed).values()} - {None}
        return (
            "the driver set was %s (%s), wanted is %s (%s)"
            % (" and ".join(sorted(there)) or "of no version", observed.module_flavour or "no modules",
               choice.version, choice.flavour),
        )
    return tuple(
        _package_drift(observed, choice, plan)
        + _trust_drift(observed, choice, plan)
        + _service_drift(observed, choice, plan)
    )


def _package_drift(observed: Observed, choice: Choice, plan: Plan) -> List[str]:
    words = ["package %s was missing" % name for name in choice.packages.versioned if not _stands(observed, name)]
    for name, package in sorted(_members(observed).items()):
        if package.installed and driver_version_of(package.version) not in (None, choice.version):
            words.append("package %s was at %s, wanted is %s" % (name, package.version, choice.version))
    words += ["package %s has no place in the set" % name for name in plan.remove if _stands(observed, name)]
    words += ["package %s was not on hold" % name for name in plan.holds_missing]
    return words


def _trust_drift(observed: Observed, choice: Choice, plan: Plan) -> List[str]:
    words = []
    pin = choice.packages.pin
    if pin is not None and not _stands(observed, pin):
        others = sorted(name for name in observed.packages if is_pin(name) and observed.packages[name].installed)
        words.append("%s was missing%s" % (pin, " (there was %s)" % ", ".join(others) if others else ""))
    if plan.needs_keyring:
        words.append("the repository's key was %s" % ("another one" if observed.key_fingerprints else "missing"))
    return words


def _service_drift(observed: Observed, choice: Choice, plan: Plan) -> List[str]:
    words = []
    if plan.reinstall and not _module_is(observed, choice):
        words.append(
            "the %s module %s was not there for kernel %s" % (choice.flavour, choice.version, observed.boot_kernel)
        )
    if any(is_fabric_manager(name) for name in plan.reinstall):
        words.append("the unit %s was missing" % FABRIC_MANAGER)
    for action in _units(observed, choice, startable=observed.loaded_version == choice.version):
        states = (
            action.unmask and "masked", action.enable and "not enabled", action.state and "not running as it should"
        )
        words.append("unit %s was not as it should be (%s)" % (action.name, ", ".join(filter(None, states))))
    return words


def _stands(observed: Observed, name: str) -> bool:
    return name in observed.packages and observed.packages[name].installed


# -- for the role ------------------------------------------------------------------------------------------------------


def plan_as_dict(observed: Observed, wishes: Wishes, plan: Plan) -> Dict[str, Any]:
    """The plan as a role reads it: plain types, the same keys whatever the plan."""
    choice = plan.choice
    members = _members(observed)
    return {
        "no_gpu": plan.no_gpu,
        "gpus": [
            {"pci_bus_id": gpu.bus_id, "architecture": gpu.architecture, "model": gpu.model}
            for gpu in observed.pci.gpus
        ],
        "source": choice.source if choice else "",
        "repository": choice.repository if choice else "",
        "architecture": REPOSITORY_ARCHITECTURE.get(observed.architecture, observed.architecture),
        "branch": choice.branch.name if choice else "",
        "version": choice.version if choice else "",
        "flavour": choice.flavour if choice else "",
        "dkms": choice.dkms if choice else False,
        "needs": {
            "fabric_manager": choice.needs.fabric_manager if choice else False,
            "nvlink5": choice.needs.nvlink5 if choice else False,
            "imex": choice.needs.imex if choice else False,
        },
        "fresh": plan.fresh,
        "pending": plan.pending,
        "pin": (choice.packages.pin if choice else None) or "",
        "key_file": REPOSITORY_KEYS[choice.repository][0] if choice else "",
        "key_fingerprints": list(allowed_keys(wishes, choice)) if choice else [],
        "needs_keyring": plan.needs_keyring,
        "needs_update": plan.needs_update,
        "configure_pending": plan.configure_pending,
        "transaction": plan.transaction,
        "packages": {
            "prepare": list(plan.prepare),
            "install": dict(plan.install),
            "remove": list(plan.remove),
            "reinstall": list(plan.reinstall),
        },
        "holds": {
            "wanted": list(plan.holds_wanted),
            "missing": list(plan.holds_missing),
            "release": sorted(name for name, package in members.items() if package.held),
        },
        "units": [
            {"name": unit.name, "enable": unit.enable, "unmask": unit.unmask, "state": unit.state}
            for unit in plan.units
        ],
        "units_reload": any(unit.needs_reload for unit in observed.units.values()),
        "initramfs": plan.initramfs,
        "boot_kernel": observed.boot_kernel or "",
        "boot_ready": plan.boot_ready,
        "boot_id": observed.boot_id or "",
        "reboot_required": plan.reboot_required,
        "reboot_reason": plan.reboot_reason,
        "gpu_users": list(observed.gpu_users),
        "persistenced_user": persistenced_user(observed),
        "duplicate_sources": [{"path": entry.path, "state": "absent"} for entry in observed.sources if entry.alone],
        "foreign_sources": [entry.path for entry in observed.sources if not entry.alone],
        "drift": list(plan.drift),
        "reasons": list(choice.reasons) if choice else [],
    }
