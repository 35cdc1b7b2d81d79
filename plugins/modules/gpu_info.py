#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Tell which GPUs, NVSwitches and driver a machine has
version_added: 0.1.0
description:
  - Reads the PCI bus, which needs no driver, and asks C(nvidia-smi) where a driver is loaded.
  - Judges nothing and changes nothing.
author:
  - The gpufleet authors (@gpufleet)
options:
  nvidia_smi:
    description: Path or name of C(nvidia-smi).
    type: path
    default: nvidia-smi
  timeout:
    description: Seconds that C(nvidia-smi) may take.
    type: float
    default: 30.0
attributes:
  check_mode:
    description: Can run in check mode and return what it would return without it.
    support: full
  diff_mode:
    description: Returns a difference in diff mode.
    support: none
    details: Nothing is ever changed.
seealso:
  - module: gpufleet.server.gpu_health
"""

EXAMPLES = r"""
- name: Which GPUs are here
  gpufleet.server.gpu_info:
  register: gpu

- name: Say so
  ansible.builtin.debug:
    msg: "{{ gpu.gpus | length }} GPUs, driver {{ gpu.driver.loaded_version }}"
"""

RETURN = r"""
gpus:
  description:
    - NVIDIA GPUs by PCI address. What only C(nvidia-smi) knows (index, uuid, name, vbios_version, memory_total_mib) is
      null where it cannot be asked.
  returned: always
  type: list
  elements: dict
  sample:
    - index: 0
      uuid: GPU-0b5a8f36-0d7c-4c5e-9d3a-6f2f1c1d9a10
      pci_bus_id: "00000000:1A:00.0"
      pci_device_id: "2330"
      name: NVIDIA H100 80GB HBM3
      model: H100 SXM
      architecture: hopper
      numa_node: 0
      vbios_version: 96.00.74.00.01
      memory_total_mib: 81559
nvswitches:
  description: NVSwitches (PCI class 0680 of NVIDIA).
  returned: always
  type: list
  elements: dict
  sample:
    - {pci_bus_id: "00000000:05:00.0", pci_device_id: 22a3, numa_node: 0}
nvlink_management:
  description: InfiniBand functions through which NVLink 5 switches are managed.
  returned: always
  type: list
  elements: str
  sample: [mlx5_4]
amd_gpus:
  description: AMD GPUs; this collection leaves them alone.
  returned: always
  type: list
  elements: dict
  sample: []
driver:
  description: Versions and flavours (V(open) or V(proprietary)) of the loaded and the installed kernel module.
  returned: always
  type: dict
  sample:
    loaded_version: 580.178.04
    loaded_flavour: open
    installed_version: 580.178.04
    installed_flavour: open
    user_space_version: 580.178.04
    cuda_version: "13.0"
    nouveau_loaded: false
kernel:
  description: Release of the running kernel.
  returned: always
  type: str
  sample: 6.8.0-90-generic
secure_boot:
  description: Whether the machine started with Secure Boot; null where it did not start by EFI.
  returned: always
  type: bool
  sample: true
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._gpu_info import gather_info
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host


def main():
    module = AnsibleModule(
        argument_spec={
            "nvidia_smi": {"type": "path", "default": "nvidia-smi"},
            "timeout": {"type": "float", "default": 30.0},
        },
        supports_check_mode=True,
    )
    if module.params["timeout"] <= 0:
        module.fail_json(msg="timeout must be greater than 0 seconds")
    module.exit_json(changed=False, **gather_info(Host(), module.params["nvidia_smi"], module.params["timeout"]))


if __name__ == "__main__":
    main()
