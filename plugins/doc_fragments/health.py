# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and attributes that the health modules share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  nvidia_smi:
    description: Path or name of C(nvidia-smi).
    type: path
    default: nvidia-smi
  timeout:
    description:
      - Seconds that one command may take. A command that does not answer in time is a result, not an error of the
        module, and the same tool is not asked again.
    type: float
    default: 30.0
  expected_gpus:
    description:
      - How many GPUs the machine should have. Fewer are a fault. Without it, the GPUs on the PCI bus are expected.
    type: int
  expected_model:
    description: Part of the product name that every GPU should have, such as C(H100).
    type: str
  policy:
    description:
      - Thresholds to override. Key C(default) is for all GPUs, C(models) holds one mapping for each model name or part
        of a product name. Unknown keys are refused.
    type: dict
    default: {}
  fail_on:
    description: Verdicts at which the task fails. All return values are there then, too.
    type: list
    elements: str
    choices: [healthy, degraded, unknown, failed]
    default: []
attributes:
  check_mode:
    description: Can run in check mode and return what it would return without it.
    support: full
  diff_mode:
    description: Returns a difference in diff mode.
    support: none
    details: Nothing is ever changed.
"""
