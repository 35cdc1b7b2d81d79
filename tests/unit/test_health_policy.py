# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Thresholds are overridden for all GPUs or for one model, and nothing misspelt is accepted."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._health_policy import (
    THRESHOLDS,
    Policy,
    PolicyError,
)


def test_defaults_hold_without_a_policy():
    assert Policy().get("retired_pages_max") == 60
    assert Policy(None).get("expected_pcie_width", "NVIDIA L40S") is None


def test_default_holds_for_all_and_a_model_wins_over_it():
    policy = Policy({"default": {"power_limit_w": 500}, "models": {"L40S": {"power_limit_w": 300}}})
    assert policy.get("power_limit_w", "NVIDIA H100 80GB HBM3") == 500
    assert policy.get("power_limit_w", "NVIDIA L40S") == 300
    assert policy.get("power_limit_w") == 500


def test_model_is_named_as_in_the_table_or_by_part_of_the_product_name():
    policy = Policy({"models": {"h100 sxm": {"expected_nvlinks": 18}, "A100": {"expected_nvlinks": 12}}})
    assert policy.get("expected_nvlinks", "NVIDIA H100 80GB HBM3") == 18
    assert policy.get("expected_nvlinks", "NVIDIA A100-PCIE-40GB") == 12
    assert policy.get("expected_nvlinks", "NVIDIA H100 PCIe") is None


def test_longer_part_of_a_name_wins():
    policy = Policy({"models": {"A100": {"power_limit_w": 1}, "A100-PCIE": {"power_limit_w": 2}}})
    assert policy.get("power_limit_w", "NVIDIA A100-PCIE-40GB") == 2


@pytest.mark.parametrize(
    "policy, word",
    [
        ({"defaults": {}}, "defaults"),
        ({"default": {"pcie_width": 8}}, "pcie_width"),
        ({"models": {"L40S": {"expected_pcie_widht": 8}}}, "expected_pcie_widht"),
        ({"default": {"power_limit_w": "much"}}, "power_limit_w"),
        ({"default": {"power_limit_w": -5}}, "power_limit_w"),
        ({"default": {"power_limit_w": True}}, "power_limit_w"),
        ({"default": {"retired_pages_max": 1.5}}, "retired_pages_max"),
        ({"default": {"ecc_required": 1}}, "ecc_required"),
        ({"default": [1]}, "default"),
        ({"models": ["L40S"]}, "models"),
        ({"models": {"L40S": 8}}, "L40S"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(policy, word):
    with pytest.raises(PolicyError) as error:
        Policy(policy)
    assert word in str(error.value)


def test_number_written_as_text_is_a_number():
    assert Policy({"default": {"power_limit_w": "350"}}).get("power_limit_w") == 350


def test_every_threshold_has_a_meaning_and_a_source():
    for name, (kind, _default, meaning, source) in THRESHOLDS.items():
        assert kind in ("number", "count", "word", "flag") and meaning and source, name
