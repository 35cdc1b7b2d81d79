# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the driver planner is given: the machine as observed, and the inventory's wishes. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from ._dpkg import Package, Policy
from ._driver_packages import Kernel
from ._pci import PciInventory

PERSISTENCED = "nvidia-persistenced.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
UNITS = (PERSISTENCED, FABRIC_MANAGER)


class DriverPlanError(Exception):
    """A refusal: nothing may be changed until a person decides. `code` is stable, `remedy` tells the way out."""

    def __init__(self, code: str, message: str, remedy: str, observed: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.observed = observed

    def as_dict(self) -> Dict[str, Any]:
        return {"code": self.code, "message": self.message, "remedy": self.remedy, "observed": self.observed}


@dataclass(frozen=True)
class Wishes:
    """The inventory's wishes; ``auto`` and empty mean "decide from what the machine is"."""

    source: str = "auto"
    branch: str = "580"
    version: str = ""
    flavour: str = "auto"
    modules: str = "auto"
    fabric_manager: str = "auto"
    hold: bool = True
    install_without_gpu: bool = False
    old_branch: str = "warn"
    key_fingerprints: Tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceEntry:
    """An apt source of NVIDIA's CUDA repository. `alone`: its file holds nothing else, so that it can go.

    `other_key`: it says that another keyring than the role's own signs the repository, which stops apt.
    """

    path: str
    uri: str
    alone: bool = True
    other_key: bool = False


@dataclass(frozen=True)
class Unit:
    """A systemd unit. `exec_start`: the command line that systemd would run; `user`: its ``--user``."""

    load: str = "not-found"
    active: str = "inactive"
    sub: str = "dead"
    enabled: str = ""
    exec_start: str = ""
    restarts: int = 0
    needs_reload: bool = False
    running_argv: str = ""

    @property
    def known(self) -> bool:
        return self.load in ("loaded", "masked")


@dataclass(frozen=True)
class SmiAnswer:
    """What `nvidia-smi` said. `bus_ids`: one per GPU that it lists; `versions`: driver versions it names."""

    rc: Optional[int]
    bus_ids: Tuple[str, ...] = ()
    versions: Tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Observed:
    """One machine. Kernel `boot` is the one that the next boot takes; `module_*` belong to it, `loaded_*` run now."""

    os_id: str
    os_version: str
    architecture: str = "amd64"
    pci: PciInventory = PciInventory()
    running_kernel: Optional[str] = None
    boot_kernel: Optional[str] = None
    kernel_flavour: str = "generic"
    headers_present: bool = False
    headers_package: str = ""
    packages: Mapping[str, Package] = field(default_factory=dict)
    dpkg_interrupted: bool = False
    module_version: Optional[str] = None
    module_flavour: Optional[str] = None
    loaded_version: Optional[str] = None
    loaded_flavour: Optional[str] = None
    nouveau_loaded: bool = False
    library_version: Optional[str] = None
    smi: Optional[SmiAnswer] = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    secure_boot: Optional[bool] = None
    key_enrolled: Optional[bool] = None
    run_installer: Optional[str] = None
    sources: Tuple[SourceEntry, ...] = ()
    own_source_present: bool = False
    key_fingerprints: Tuple[str, ...] = ()
    lists_present: bool = False
    initramfs_stale: bool = False
    gpu_users: Tuple[str, ...] = ()
    boot_id: Optional[str] = None
    today: str = ""
    policies: Optional[Mapping[str, Policy]] = None

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.kernel_flavour, self.boot_kernel or "")
