#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_smi_health
short_description: Judge what nvidia-smi says of every GPU
version_added: 0.1.0
description:
  - The part of M(gpufleet.server.gpu_health) that asks C(nvidia-smi -q -x) alone. Links, kernel log and Fabric Manager
    are not looked at.
  - Changes nothing on the machine. Needs no more than Python 3.8 there.
author:
  - The gpufleet authors (@gpufleet)
extends_documentation_fragment:
  - gpufleet.server.health
seealso:
  - module: gpufleet.server.gpu_health
  - module: gpufleet.server.nvlink_health
"""

EXAMPLES = r"""
- name: Judge the GPUs
  gpufleet.server.nvidia_smi_health:
    timeout: 20
  register: smi
"""

RETURN = r"""
msg:
  description: The verdict and its worst finding in one line.
  returned: always
  type: str
  sample: "verdict degraded: GPU 3 (00000000:4B:00.0): a row remapping waits for a reset, after correctable errors only"
verdict:
  description: What the machine is worth; C(unknown) where something due could not be read.
  returned: always
  type: str
  sample: degraded
findings:
  description:
    - What was found, worst first. Each has C(id), C(severity) (V(info), V(warning), V(critical)), C(gpu) (index, uuid,
      pci_bus_id) or null, C(link) or null, C(observed), C(expected), C(message), C(remedy), C(source).
  returned: always
  type: list
  elements: dict
  sample:
    - id: remap_pending
      severity: warning
      gpu: {index: 3, uuid: GPU-0b5a8f36-0d7c-4c5e-9d3a-6f2f1c1d9a10, pci_bus_id: "00000000:4B:00.0"}
      link: null
      observed: "Yes"
      expected: "No"
      message: "GPU 3 (00000000:4B:00.0): a row remapping waits for a reset, after correctable errors only"
      remedy: Drain the GPU, then reset it.
      source: "manual: Remapped Rows"
gpus:
  description: What was seen of each GPU; units stand in the names, a value that the card does not have is null.
  returned: always
  type: list
  elements: dict
  sample:
    - index: 0
      pci_bus_id: "00000000:1A:00.0"
      name: NVIDIA H100 80GB HBM3
      temperature_c: 34
      power_limit_w: 700
links:
  description: Every NVLink with its state and rate.
  returned: always
  type: list
  elements: dict
  sample:
    - gpu: {index: 0, uuid: GPU-0b5a8f36-0d7c-4c5e-9d3a-6f2f1c1d9a10, pci_bus_id: "00000000:1A:00.0"}
      link: 0
      state: active
      gb_s: 26.562
topology:
  description: How each pair of GPUs is joined.
  returned: always
  type: list
  elements: dict
  sample:
    - gpu: 0
      peer: 1
      link: NV18
covered:
  description: The sources that were read.
  returned: always
  type: list
  elements: str
  sample: [pci, nvidia_smi, nvlink_status, nvlink_errors, topology, kernel_log, fabric_manager]
versions:
  description: Versions that were seen; null where there was none.
  returned: always
  type: dict
  sample:
    driver: 580.178.04
    fabric_manager: 580.178.04
result:
  description: The same, in the form that roles hand to the report.
  returned: always
  type: dict
  sample:
    verdict: healthy
    findings: []
    proven: ["8 GPU(s) judged healthy: NVIDIA H100 80GB HBM3"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._health_module import ARGUMENTS, finish, run_health
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host
from ansible_collections.gpufleet.server.plugins.module_utils._observe import SMI


def main():
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    finish(module, lambda: run_health(Host(), module.params, (SMI,)))


if __name__ == "__main__":
    main()
