# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models by name and by PCI id; ids from pci.ids and the driver's list of supported GPUs."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._gpu_models import (
    LINKS_BOARD,
    LINKS_BRIDGE,
    LINKS_NONE,
    MODELS,
    architecture_of,
    is_datacenter,
    is_virtual,
    model_of_name,
    model_of_pci_id,
)


@pytest.mark.parametrize(
    "pci_id, architecture",
    [
        ("2330", "hopper"),
        ("0x20b2", "ampere"),
        ("1DB110DE", "volta"),
        ("0x1EB810DE", "turing"),
        ("2684", "ada"),
        ("2901", "blackwell"),
        ("3182", "blackwell"),
        ("15f8", "pascal"),
        ("13f2", "maxwell"),
        ("102d", "kepler"),
        ("2182", "turing"),
        ("2488", "ampere"),
        ("2c02", "blackwell"),
        ("", None),
        (None, None),
        ("zz", None),
        ("0001", None),
    ],
)
def test_architecture_by_pci_id(pci_id, architecture):
    assert architecture_of(pci_id) == architecture


@pytest.mark.parametrize(
    "name, model, links, count, datacenter",
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM", LINKS_BOARD, 18, True),
        ("NVIDIA H100 PCIe", "H100 PCIe", LINKS_BRIDGE, 18, True),
        ("NVIDIA H100 NVL", "H100 NVL", LINKS_BRIDGE, 18, True),
        ("NVIDIA H200", "H200", LINKS_BOARD, 18, True),
        ("NVIDIA H800", "H800", LINKS_BOARD, 8, True),
        ("NVIDIA H20", "H20", LINKS_BOARD, 18, True),
        ("NVIDIA GH200 480GB", "GH200", LINKS_NONE, 0, True),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM", LINKS_BOARD, 12, True),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe", LINKS_BRIDGE, 12, True),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe", LINKS_BRIDGE, 12, True),
        ("NVIDIA A800-SXM4-80GB", "A800 SXM", LINKS_BOARD, 8, True),
        ("NVIDIA A10G", "A10", LINKS_NONE, 0, True),
        ("NVIDIA B200", "B200", LINKS_BOARD, 18, True),
        ("NVIDIA GB200", "GB200", LINKS_BOARD, 18, True),
        ("NVIDIA L40S", "L40S", LINKS_NONE, 0, True),
        ("NVIDIA L4", "L4", LINKS_NONE, 0, True),
        ("Tesla T4", "T4", LINKS_NONE, 0, True),
        ("Tesla V100-SXM2-16GB", "V100 SXM", LINKS_BOARD, 6, True),
        ("Tesla V100-PCIE-16GB", "V100 PCIe", LINKS_NONE, 0, True),
        ("NVIDIA RTX A6000", "RTX A6000", LINKS_BRIDGE, 4, False),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 40", LINKS_NONE, 0, False),
        ("NVIDIA RTX 6000 Ada Generation", "RTX Ada", LINKS_NONE, 0, False),
    ],
)
def test_model_by_product_name(name, model, links, count, datacenter):
    found = model_of_name(name)
    assert (found.name, found.links, found.nvlink_count, is_datacenter(name)) == (model, links, count, datacenter)


@pytest.mark.parametrize("name", ["NVIDIA X9000", "", None, "GRID P4-1Q", "GeForce GT 730"])
def test_unknown_model_is_said_to_be_unknown(name):
    assert model_of_name(name) is None


@pytest.mark.parametrize(
    "name, brand, expected",
    [
        ("GeForce GT 730", "GeForce", False),
        ("Quadro P2000", "Quadro", False),
        ("NVIDIA X9000", "NVIDIA", True),
        ("NVIDIA X9000", "NVIDIA RTX", False),
        ("NVIDIA X9000", None, None),
    ],
)
def test_unknown_model_is_of_the_kind_that_its_brand_says(name, brand, expected):
    assert is_datacenter(name, brand) is expected


def test_vgpu_guest_is_recognised():
    assert is_virtual("GRID P4-1Q") and not is_virtual("NVIDIA H100 80GB HBM3")


def test_table_is_consistent():
    ids = [pci_id for model in MODELS for pci_id in model.pci_device_ids]
    assert len(ids) == len(set(ids)) and len({model.name for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert model.source
        assert (model.nvlink_count > 0) == (model.links != LINKS_NONE) == (model.nvlink_gb_s is not None)
        assert model_of_pci_id(model.pci_device_ids[0]) is model
