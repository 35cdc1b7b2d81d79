# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Named thresholds of the judgement, each with its source, and how an operator overrides them.

A policy is ``{"default": {NAME: VALUE}, "models": {MODEL: {NAME: VALUE}}}``; MODEL is a name of `_gpu_models` or any
part of a product name. Unknown keys are refused, because a misspelt threshold would silently not apply.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional, Tuple

from ._gpu_models import model_of_name

NUMBER, COUNT, WORD, FLAG = "number", "count", "word", "flag"

# name: (kind, default, what it means, source)
THRESHOLDS: Dict[str, Tuple[str, Any, str, str]] = {
    "expected_pcie_width": (COUNT, None, "lanes that the PCIe link must have; unset: the card's maximum", "rules"),
    "expected_pcie_generation": (COUNT, None, "PCIe generation under load; unset: the link's maximum", "rules"),
    "expected_nvlinks": (COUNT, None, "NVLinks that must be up; unset: the model's table", "rules"),
    "power_limit_w": (NUMBER, None, "declared power limit, watts; unset: the card's default", "rules"),
    "compute_mode": (WORD, None, "declared compute mode (Default, Exclusive_Process, Prohibited)", "rules"),
    "mig_mode": (WORD, None, "declared MIG mode (enabled, disabled)", "rules"),
    "ecc_required": (FLAG, None, "ECC must be on; unset: on data-centre GPUs", "rules"),
    "persistence_required": (FLAG, None, "persistence mode must be on; unset: on data-centre GPUs", "rules"),
    "sram_correctable_max": (COUNT, 10000, "corrected SRAM errors since load", "azure-nhc: check_gpu_ecc"),
    "dram_correctable_max": (COUNT, 20000000, "corrected DRAM errors since load", "azure-nhc: check_gpu_ecc"),
    "retired_pages_max": (
        COUNT,
        60,
        "retired pages from which the GPU is replaced (the table holds 64)",
        "dcgm: 63; NVIDIA's RMA guide: 60",
    ),
    "remapped_rows_max": (COUNT, 512, "rows remapped after uncorrectable errors", "dcgm: 512"),
    "memory_held_mib": (COUNT, 1024, "memory in use without a process, MiB", "rules"),
    "memory_held_percent": (NUMBER, 5, "the same, in percent of the memory; both must be passed", "rules"),
    "pcie_replays_max": (COUNT, 10000, "PCIe replays since reset that are worth a line", "rules"),
    "pcie_replays_per_minute_max": (
        NUMBER,
        None,
        "PCIe replays a minute between two stored readings; unset: by generation and lanes",
        "dcgm: 0.15 (Gen1) to 3.84 (Gen6) per lane",
    ),
    "nvlink_rate_tolerance_percent": (NUMBER, 2, "how far below the lowest listed rate a link may be", "rules"),
    "nvlink_crc_max": (COUNT, 1000, "CRC errors of a link from which it is broken", "rules: in thousands"),
    "nvlink_effective_ber_max": (NUMBER, 1e-12, "effective bit error rate of an NVLink 5 link", "dcgm"),
    "nvlink_fec_ratio_max": (NUMBER, 1e-7, "corrected codewords of an NVLink 5 link to good ones", "rules"),
    "fabric_manager_restarts_max": (COUNT, 3, "restarts of Fabric Manager from which it is flapping", "nvsentinel"),
    "xid_repeat_max": (
        COUNT,
        5,
        "application-level Xids of one number on one GPU, by different processes",
        "nvsentinel: 5 bursts",
    ),
    "xid_bursts_max": (COUNT, 5, "bursts of one Xid on one GPU in a day from which it recurs", "nvsentinel: 5 in 24 h"),
    "xid_boots_max": (COUNT, 2, "earlier boots with the same critical Xid from which it recurs", "gpud: 2 reboots"),
    "throttle_samples_min": (COUNT, 2, "live samples, of five, that must show hardware throttling", "rules"),
}


class PolicyError(ValueError):
    """A policy that cannot be used; the text names the key and what is allowed."""


class Policy:
    """Thresholds for one machine: defaults, overridden for all models, then for one."""

    def __init__(self, overrides: Optional[Mapping[str, Any]] = None) -> None:
        overrides = dict(overrides or {})
        unknown = sorted(set(overrides) - {"default", "models"})
        if unknown:
            raise PolicyError("policy: unknown key %s; allowed are default and models" % ", ".join(map(str, unknown)))
        self._default = _checked(overrides.get("default"), "default")
        models = overrides.get("models") or {}
        if not isinstance(models, Mapping):
            raise PolicyError("policy: models must be a mapping of model names")
        self._models = {str(name): _checked(values, "models: %s" % name) for name, values in models.items()}

    def get(self, name: str, product_name: Optional[str] = None) -> Any:
        """The threshold for a GPU of this product name; the most specific one wins."""
        kind_default = THRESHOLDS[name][1]
        for values in self._of_model(product_name):
            if name in values:
                return values[name]
        return self._default.get(name, kind_default)

    def _of_model(self, product_name: Optional[str]):
        model = model_of_name(product_name)
        lower = (product_name or "").lower()
        exact = [values for name, values in self._models.items() if model and model.name.lower() == name.lower()]
        partial = [
            values
            for name, values in sorted(self._models.items(), key=lambda item: -len(item[0]))
            if lower and name.lower() in lower
        ]
        return exact + partial


def _checked(values: Any, where: str) -> Dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise PolicyError("policy: %s must be a mapping of thresholds" % where)
    checked = {}
    for name, value in values.items():
        if name not in THRESHOLDS:
            raise PolicyError(
                "policy: %s: unknown threshold %s; known are %s" % (where, name, ", ".join(sorted(THRESHOLDS)))
            )
        checked[name] = _typed(THRESHOLDS[name][0], value, "%s: %s" % (where, name))
    return checked


def _typed(kind: str, value: Any, where: str) -> Any:
    if value is None:
        return None
    if kind == WORD:
        return str(value)
    if kind == FLAG:
        if isinstance(value, bool):
            return value
        raise PolicyError("policy: %s must be true or false, not %r" % (where, value))
    if isinstance(value, bool):
        raise PolicyError("policy: %s must be a number, not %r" % (where, value))
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise PolicyError("policy: %s must be a number, not %r" % (where, value)) from None
    if number < 0 or math.isnan(number):
        raise PolicyError("policy: %s must not be negative" % where)
    if kind == COUNT and number != int(number):
        raise PolicyError("policy: %s must be a whole number, not %r" % (where, value))
    return int(number) if number == int(number) else number
