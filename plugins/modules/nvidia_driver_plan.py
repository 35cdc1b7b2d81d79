#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_plan
short_description: Decide which NVIDIA driver set a machine gets, what is left to do, and whether it works
version_added: 0.1.0
description:
  - Looks at GPUs and NVSwitches on the PCI bus, the system, kernels, packages, modules on disk and in memory, units and
    apt sources, in one round trip, and compares them with what the inventory wants.
  - Asks apt only where dpkg does not show the wanted set already.
  - The same module proves the outcome. Its RV(result) is healthy only where the loaded module, the module on disk, the
    library, nvidia-smi and Fabric Manager are at the wanted version and nvidia-smi lists every GPU of the PCI bus.
  - Changes nothing.
options:
  source:
    description: Where the packages come from. V(auto) takes NVIDIA's repository.
    type: str
    choices: [auto, nvidia, ubuntu]
    default: auto
  branch:
    description: Driver branch, used where O(version) is empty.
    type: str
    default: '580'
  version:
    description: Exact driver version. Where empty, the newest of the branch that this collection knows.
    type: str
    default: ''
  flavour:
    description: Kernel modules; V(auto) decides by the GPUs.
    type: str
    choices: [auto, open, proprietary]
    default: auto
  modules:
    description: Modules built by the archive (V(prebuilt)) or on the machine (V(dkms)).
    type: str
    choices: [auto, prebuilt, dkms]
    default: auto
  fabric_manager:
    description: Whether Fabric Manager belongs to the set; V(auto) decides by the NVSwitches.
    type: str
    choices: [auto, 'true', 'false']
    default: auto
  hold:
    description: Whether the packages of the set belong on hold.
    type: bool
    default: true
  install_without_gpu:
    description: Whether a machine without a GPU gets the driver as well.
    type: bool
    default: false
  old_branch:
    description: What to do about a branch past its end of life or a version with known holes.
    type: str
    choices: [warn, refuse]
    default: warn
  key_fingerprints:
    description:
      - Fingerprints of the keys that may sign the repository. Where empty, the one that NVIDIA signs the repository of
        this distribution with.
    type: list
    elements: str
    default: []
  source_path:
    description: The role's own apt source of NVIDIA's repository; any other is reported.
    type: path
    default: /etc/apt/sources.list.d/gpufleet-nvidia.sources
  keyring_path:
    description: The key file that the source names.
    type: path
    default: /etc/apt/keyrings/gpufleet-nvidia.gpg
  initramfs_inputs:
    description: Files that the initramfs holds copies of; one newer than the initramfs makes it stale.
    type: list
    elements: path
    default: []
  updated:
    description: Apt's lists were refreshed in this run, so what is not offered now is not to be had.
    type: bool
    default: false
  settle:
    description: Seconds in which units that are starting may become active, and active ones may still die.
    type: int
    default: 0
  drift:
    description: The drift in RV(plan) of an earlier look in the same run, to be told in RV(result).
    type: list
    elements: str
    default: []
  restored:
    description: Paths of files that this run had to put right, to be told in RV(result).
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Can run in check mode and changes nothing anyway.
    support: full
  diff_mode:
    description: There is never a difference to show.
    support: none
author:
  - The gpufleet authors (@gpufleet)
"""

EXAMPLES = r"""
- name: See what the driver needs
  gpufleet.server.nvidia_driver_plan:
    version: 580.178.04
    key_fingerprints: [EB693B3035CD5710E231E123A4B469963BF863CC]
  register: driver
"""

RETURN = r"""
plan:
  description: What is chosen, and what is left to do. See the sample for its keys.
  returned: always
  type: dict
  sample:
    no_gpu: false
    gpus: [{pci_bus_id: '00000000:1B:00.0', architecture: hopper, model: H100 SXM}]
    source: nvidia
    repository: ubuntu2204
    branch: '580'
    version: 580.178.04
    flavour: open
    dkms: true
    needs: {fabric_manager: true, nvlink5: false, imex: false}
    fresh: false
    pending: false
    pin: nvidia-driver-pinning-580.178.04
    key_file: 3bf863cc.pub
    key_fingerprints: [EB693B3035CD5710E231E123A4B469963BF863CC]
    needs_keyring: false
    needs_update: false
    configure_pending: false
    transaction: false
    packages: {prepare: [], install: {}, remove: [], reinstall: []}
    holds: {wanted: [nvidia-open-580], missing: [], release: []}
    units: []
    units_reload: false
    initramfs: false
    boot_kernel: 5.15.0-164-generic
    boot_ready: true
    boot_id: 0c3f6c5e-6d0a-4d39-9a6f-0f0d8a2f6c11
    reboot_required: false
    reboot_reason: ''
    gpu_users: []
    persistenced_user: nvpd
    duplicate_sources: []
    foreign_sources: []
    drift: []
    reasons: ['open modules: NVIDIA''s choice for hopper']
refusals:
  description: Why nothing may be changed, and the way out. Empty where the plan can be carried out.
  returned: always
  type: list
  elements: dict
  sample: []
result:
  description: The role's entry in C(gpufleet_results).
  returned: always
  type: dict
  sample: {verdict: healthy, changed: false, findings: [], proven: [], unproven: [], versions: {}}
"""

import time
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._driver_facts import DriverPlanError, Wishes
from ansible_collections.gpufleet.server.plugins.module_utils._driver_observe import (
    observe_machine,
    observe_units,
    with_gpu_users,
    with_policies,
)
from ansible_collections.gpufleet.server.plugins.module_utils._driver_plan import Plan, plan_as_dict, plan_driver
from ansible_collections.gpufleet.server.plugins.module_utils._driver_proof import drift_findings, driver_result
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host

WISHES = ("source", "branch", "version", "flavour", "modules", "fabric_manager", "hold", "install_without_gpu",
          "old_branch")
POLL_S = 1.0
STEADY_S = 2.0


def argument_spec():
    return {
        "source": {"type": "str", "choices": ["auto", "nvidia", "ubuntu"], "default": "auto"},
        "branch": {"type": "str", "default": "580"},
        "version": {"type": "str", "default": ""},
        "flavour": {"type": "str", "choices": ["auto", "open", "proprietary"], "default": "auto"},
        "modules": {"type": "str", "choices": ["auto", "prebuilt", "dkms"], "default": "auto"},
        "fabric_manager": {"type": "str", "choices": ["auto", "true", "false"], "default": "auto"},
        "hold": {"type": "bool", "default": True},
        "install_without_gpu": {"type": "bool", "default": False},
        "old_branch": {"type": "str", "choices": ["warn", "refuse"], "default": "warn"},
        "key_fingerprints": {"type": "list", "elements": "str", "default": [], "no_log": False},
        "source_path": {"type": "path", "default": "/etc/apt/sources.list.d/gpufleet-nvidia.sources"},
        "keyring_path": {"type": "path", "default": "/etc/apt/keyrings/gpufleet-nvidia.gpg", "no_log": False},
        "initramfs_inputs": {"type": "list", "elements": "path", "default": []},
        "updated": {"type": "bool", "default": False},
        "settle": {"type": "int", "default": 0},
        "drift": {"type": "list", "elements": "str", "default": []},
        "restored": {"type": "list", "elements": "str", "default": []},
    }


def settle_units(host, observed, seconds):
    """Wait until no unit is starting any more, then a moment longer: a daemon may die right after its start."""
    deadline = time.monotonic() + seconds
    units = observed.units
    while time.monotonic() < deadline and any(
        unit.active in ("activating", "reloading") or unit.sub == "auto-restart" for unit in units.values()
    ):
        time.sleep(POLL_S)
        units = observe_units(host)
    if seconds:
        time.sleep(min(STEADY_S, seconds))
        units = observe_units(host)
    return replace(observed, units=units)


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    wishes = Wishes(
        key_fingerprints=tuple("".join(text.split()).upper() for text in options["key_fingerprints"]),
        **{name: options[name] for name in WISHES}
    )
    host = Host()
    observed = observe_machine(
        host, options["source_path"], options["keyring_path"], options["initramfs_inputs"]
    )
    observed = replace(settle_units(host, observed, options["settle"]), today=time.strftime("%Y-%m-%d"))
    plan, refusal = Plan(), None
    try:
        plan = plan_driver(observed, wishes, options["updated"])
        if plan.queries:
            observed = with_policies(host, observed, plan.queries)
            plan = plan_driver(observed, wishes, options["updated"])
        if plan.reboot_required:
            observed = with_gpu_users(host, observed)
    except DriverPlanError as error:
        refusal = error
    notes = drift_findings(options["drift"] or plan.drift, options["restored"])
    module.exit_json(
        changed=False,
        plan=plan_as_dict(observed, wishes, plan),
        refusals=[refusal.as_dict()] if refusal else [],
        result=driver_result(observed, plan, module.check_mode, refusal, notes),
    )


if __name__ == "__main__":
    main()
