# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines and wishes for the tests of the driver planner: a fluent way to say what differs from an ordinary one."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, Mapping, Optional, Sequence, Tuple

from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import Package, Policy
from ansible_collections.gpufleet.server.plugins.module_utils._driver_facts import (
    FABRIC_MANAGER,
    PERSISTENCED,
    Observed,
    SmiAnswer,
    Unit,
    Wishes,
)
from ansible_collections.gpufleet.server.plugins.module_utils._pci import classify_pci, pci_device

KEY = "EB693B3035CD5710E231E123A4B469963BF863CC"
WISHES = Wishes(key_fingerprints=(KEY,))

# PCI device ids, domain-facts 1.3
A100, H100, H200, B200, L40S, T4, V100, P100 = "20b2", "2330", "2335", "2901", "26b9", "1eb8", "1db5", "15f8"
RTX_PRO_6000 = "2bb5"
GB200, GB300 = "2941", "31c2"
# NVSwitch ids, domain-facts 2.2
SWITCH_A100, SWITCH_H100 = "1af1", "22a3"


def pci(gpus: Sequence[str] = (H100,) * 8, switches: Sequence[str] = (), nvlink5: Sequence[str] = ()):
    """A PCI bus with GPUs (class 0302) and NVSwitches (class 0680), one bus number each."""
    devices = []
    functions = [(gpu, "0x030200") for gpu in gpus] + [(switch, "0x068000") for switch in switches]
    for number, (device, class_code) in enumerate(functions):
        attributes = {"vendor": "0x10de", "device": "0x" + device, "class": class_code}
        devices.append(pci_device("0000:%02x:00.0" % (0x10 + number), attributes))
    return classify_pci(devices, nvlink5)


def installed(name: str, version: str, held: bool = True) -> Package:
    return Package(name, version, "amd64", "hold" if held else "install", "installed")


def packages(versions: Mapping[str, str], held: bool = True) -> Dict[str, Package]:
    return {name: installed(name, version, held) for name, version in versions.items()}


def policy(name: str, *versions: str, installed_version: Optional[str] = None) -> Policy:
    return Policy(name, installed_version, versions[0] if versions else None, tuple((v, 600) for v in versions))


def offers(names: Iterable[str], *versions: str) -> Dict[str, Policy]:
    return {name: policy(name, *versions) for name in names}


# What NVIDIA's repository for Ubuntu offers of branch 580 (domain-facts 1.6: suffixed driver, unsuffixed fabric).
OFFERED_580: Dict[str, Policy] = {}
OFFERED_580.update(
    offers(
        ("nvidia-open-580", "cuda-drivers-580", "nvidia-driver-580-open", "nvidia-driver-580", "nvidia-dkms-580-open",
         "nvidia-dkms-580", "libnvidia-compute-580", "nvidia-kernel-common-580", "nvidia-utils-580"),
        "580.178.04-1ubuntu1", "580.159.03-1ubuntu1",
    )
)
OFFERED_580.update(
    offers(
        ("nvidia-fabricmanager", "libnvidia-nscq", "libnvsdm", "nvidia-imex", "nvidia-modprobe"),
        "595.91.07-1ubuntu1", "595.71.05-1ubuntu1", "580.178.04-1ubuntu1", "580.159.03-1ubuntu1",
    )
)
OFFERED_580.update(offers(("nvlsm",), "2025.10.11-1"))
OFFERED_580.update(offers(("infiniband-diags",), "39.0-1"))
for _version in ("580.178.04", "580.159.03", "595.91.07", "595.71.05"):
    OFFERED_580["nvidia-driver-pinning-" + _version] = policy("pin", _version + "-1ubuntu1")
OFFERED_580.update(offers(("linux-headers-5.15.0-164-generic",), "5.15.0-164.174"))
OFFERED = dict(OFFERED_580)
OFFERED.update(
    offers(
        ("nvidia-open", "cuda-drivers", "nvidia-driver-open", "nvidia-dkms-open", "nvidia-dkms", "libnvidia-compute",
         "nvidia-kernel-common", "nvidia-utils"),
        "595.91.07-1ubuntu1", "595.71.05-1ubuntu1",
    )
)

# A machine that carries branch 580 with Fabric Manager, as a run leaves it.
SET_580 = dict.fromkeys(
    ("nvidia-open-580", "nvidia-driver-580-open", "nvidia-dkms-580-open", "libnvidia-compute-580",
     "nvidia-kernel-common-580", "nvidia-utils-580", "nvidia-fabricmanager", "libnvidia-nscq"),
    "580.178.04-1ubuntu1",
)
UNITS_UP = {
    PERSISTENCED: Unit("loaded", "active", "running", "enabled",
                       "/usr/bin/nvidia-persistenced --user nvpd --persistence-mode --verbose", 0, False,
                       "/usr/bin/nvidia-persistenced --user nvpd --persistence-mode --verbose"),
    FABRIC_MANAGER: Unit("loaded", "active", "running", "enabled"),
}


def bare(os_id: str = "ubuntu", os_version: str = "22.04", **changes) -> Observed:
    """A machine fresh from the installer: GPUs, a kernel, headers, no driver; apt's lists are fresh."""
    base = Observed(
        os_id=os_id, os_version=os_version, pci=pci(), running_kernel="5.15.0-164-generic",
        boot_kernel="5.15.0-164-generic", kernel_flavour="generic", headers_present=True,
        headers_package="linux-headers-5.15.0-164-generic", own_source_present=True, lists_present=True,
        key_fingerprints=(KEY,), policies=OFFERED, today="2026-11-30",
    )
    return replace(base, **changes)


def driven(version: str = "580.178.04", without: Sequence[str] = (), extra: Optional[Mapping[str, str]] = None,
           held: bool = True, **changes) -> Observed:
    """A machine with eight H100 and four NVSwitches that runs the whole set of branch 580; apt was not asked."""
    versions = {name: version + "-1ubuntu1" for name in SET_580 if name not in without}
    versions.update(extra or {})
    found = packages(versions, held)
    if "nvidia-driver-pinning-" + version not in without:
        pin = "nvidia-driver-pinning-" + version
        found[pin] = installed(pin, version + "-1ubuntu1", held=False)
    machine = bare(
        pci=pci((H100,) * 8, (SWITCH_H100,) * 4), packages=found, policies=None,
        module_version=version, module_flavour="open", loaded_version=version, loaded_flavour="open",
        library_version=version, units=UNITS_UP,
    )
    machine = replace(machine, smi=SmiAnswer(0, tuple(g.bus_id for g in machine.pci.gpus), (version,)))
    return replace(machine, **changes)


def wishes(**changes) -> Wishes:
    return replace(WISHES, **changes)


def names(*items: str) -> Tuple[str, ...]:
    return tuple(items)
