# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each GPU model should look like: architecture, NVLink, PCIe, power. Data, with the source of every number.

Sources, by the short name used below:

* ``open-gpu-kernel-modules``: the list of supported GPUs in its README, release 595.45.04 (PCI device ids).
* ``pci.ids``: release 2025.06.09 (PCI device ids of models the former does not list).
* ``nvlink-docs``: NVIDIA's data sheets and, for the rate as printed, outputs of `nvidia-smi nvlink -s` published by
  users. Rates are GB/s of one link in one direction, as the tool prints them; brochures add up both directions.
* ``health-validation``: docs.nvidia.com/health-validation, NVLink page (18 links, 26562 or 53125 MB/s).
* ``nvidia-smi``: `Default Power Limit` as printed by `nvidia-smi -q` of such a card.

A model that is not listed here is judged by what the card itself reports, and is said to be unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Optional, Tuple

LINKS_NONE = "none"
"""The card has no NVLink at all."""
LINKS_BRIDGE = "bridge"
"""A PCIe card: links exist only where a bridge is plugged, so none at all is healthy."""
LINKS_BOARD = "board"
"""A module on a baseboard (SXM, superchip): every link must be up."""


@dataclass(frozen=True)
class GpuModel:
    """One model. `nvlink_gb_s` is the lowest rate that healthy links print; None where it is not known."""

    name: str
    pattern: str
    architecture: str
    pci_device_ids: Tuple[str, ...]
    datacenter: bool
    links: str
    nvlink_count: int
    nvlink_gb_s: Optional[float]
    pcie_generation: int
    power_w: Optional[int]
    source: str

    @property
    def has_nvlink(self) -> bool:
        return self.links != LINKS_NONE


def _model(name, pattern, arch, ids, datacenter, links, count, rate, pcie, power, source) -> GpuModel:
    return GpuModel(name, pattern, arch, ids, datacenter, links, count, rate, pcie, power, source)


# Order matters: the first pattern that is found in the product name wins.
# fmt: off
MODELS: Tuple[GpuModel, ...] = (
    # -- Blackwell: NVLink 5, 18 links; 50 and 53.125 are both printed on healthy boards -----------------------------
    _model("GB300", r"\bgb300\b", "blackwell", ("31c2",), True, LINKS_BOARD, 18, 50.0, 6, 1400,
           "health-validation; nvidia-smi"),
    _model("GB200", r"\bgb200\b", "blackwell", ("2941",), True, LINKS_BOARD, 18, 50.0, 5, 1200,
           "health-validation; open-gpu-kernel-modules; nvidia-smi"),
    _model("B300", r"\bb300\b", "blackwell", ("3182",), True, LINKS_BOARD, 18, 50.0, 6, None,
           "health-validation; open-gpu-kernel-modules"),
    _model("B200", r"\bb200\b", "blackwell", ("2901",), True, LINKS_BOARD, 18, 50.0, 5, 1000,
           "health-validation; open-gpu-kernel-modules; nvidia-smi"),
    _model("RTX PRO Blackwell", r"\brtx pro \d+ blackwell", "blackwell", ("2bb1", "2bb4", "2bb5"), False, LINKS_NONE,
           0, None, 5, None, "open-gpu-kernel-modules"),
    # -- Hopper: NVLink 4, 26.562 ------------------------------------------------------------------------------------
    _model("GH200", r"\bgh200\b", "hopper", ("2342", "2348"), True, LINKS_NONE, 0, None, 5, 700,
           "open-gpu-kernel-modules; nvidia-smi"),
    _model("H200 NVL", r"\bh200 nvl\b", "hopper", ("233b",), True, LINKS_BRIDGE, 18, 26.562, 5, 600,
           "open-gpu-kernel-modules; nvlink-docs"),
    _model("H200", r"\bh200\b", "hopper", ("2335",), True, LINKS_BOARD, 18, 26.562, 5, 700,
           "health-validation; open-gpu-kernel-modules; nvidia-smi"),
    _model("H100 PCIe", r"\bh100 pcie\b", "hopper", ("2331",), True, LINKS_BRIDGE, 18, 26.562, 5, 350,
           "open-gpu-kernel-modules; nvlink-docs; nvidia-smi"),
    _model("H100 NVL", r"\bh100 nvl\b", "hopper", ("2321",), True, LINKS_BRIDGE, 18, 26.562, 5, None,
           "open-gpu-kernel-modules; nvlink-docs"),
    _model("H800", r"\bh800\b", "hopper", ("2324",), True, LINKS_BOARD, 8, 26.562, 5, None, "pci.ids; nvlink-docs"),
    _model("H20", r"\bh20\b", "hopper", ("2329", "232c"), True, LINKS_BOARD, 18, 26.562, 5, None,
           "open-gpu-kernel-modules; nvlink-docs"),
    _model("H100 SXM", r"\bh100\b", "hopper", ("2330",), True, LINKS_BOARD, 18, 26.562, 5, 700,
           "health-validation; open-gpu-kernel-modules; nvidia-smi"),
    # -- Ada: no NVLink ----------------------------------------------------------------------------------------------
    _model("L40S", r"\bl40s\b", "ada", ("26b9",), True, LINKS_NONE, 0, None, 4, 350,
           "open-gpu-kernel-modules; nvidia-smi"),
    _model("L40", r"\bl40\b", "ada", ("26b5",), True, LINKS_NONE, 0, None, 4, 300, "open-gpu-kernel-modules"),
    _model("L4", r"\bl4\b", "ada", ("27b8",), True, LINKS_NONE, 0, None, 4, 72, "open-gpu-kernel-modules; nvidia-smi"),
    _model("RTX Ada", r"\brtx \d+ (sff )?ada\b", "ada", ("26b1", "27b0"), False, LINKS_NONE, 0, None, 4, None,
           "pci.ids"),
    _model("GeForce RTX 40", r"\brtx 40\d\d\b", "ada", ("2684",), False, LINKS_NONE, 0, None, 4, None, "pci.ids"),
    # -- Ampere: NVLink 3, 25 (also printed 25.781) ------------------------------------------------------------------
    _model("A100 PCIe", r"\ba100[- ]pcie\b|\ba100 80gb pcie\b", "ampere", ("20b5", "20f1"), True, LINKS_BRIDGE, 12,
           25.0, 4, 250, "open-gpu-kernel-modules; nvlink-docs"),
    _model("A800 SXM", r"\ba800[- ]sxm4?\b|\ba800\b", "ampere", ("20bd", "20f3"), True, LINKS_BOARD, 8, 25.0, 4, None,
           "pci.ids; nvlink-docs"),
    _model("A100 SXM", r"\ba100\b", "ampere", ("20b0", "20b2"), True, LINKS_BOARD, 12, 25.0, 4, 400,
           "open-gpu-kernel-modules; nvlink-docs; nvidia-smi"),
    _model("A30", r"\ba30\b", "ampere", ("20b7",), True, LINKS_BRIDGE, 4, 25.0, 4, 165,
           "open-gpu-kernel-modules; nvlink-docs"),
    _model("A40", r"\ba40\b", "ampere", ("2235",), True, LINKS_BRIDGE, 4, 14.062, 4, 300,
           "open-gpu-kernel-modules; nvlink-docs; nvidia-smi"),
    _model("A10", r"\ba10g?\b", "ampere", ("2236", "2237"), True, LINKS_NONE, 0, None, 4, None,
           "open-gpu-kernel-modules; pci.ids"),
    _model("A16", r"\ba16\b|\ba2\b", "ampere", ("25b6",), True, LINKS_NONE, 0, None, 4, None, "pci.ids"),
    _model("RTX A6000", r"\brtx a[56]\d00\b", "ampere", ("2230", "2231"), False, LINKS_BRIDGE, 4, 14.062, 4, None,
           "pci.ids; nvlink-docs"),
    _model("GeForce RTX 3090", r"\brtx 3090\b", "ampere", ("2204", "2203"), False, LINKS_BRIDGE, 4, 14.062, 4, None,
           "pci.ids; nvlink-docs"),
    _model("GeForce RTX 30", r"\brtx 30\d\d\b", "ampere", ("2206", "2208", "2216"), False, LINKS_NONE, 0, None, 4,
           None, "pci.ids"),
    # -- Turing: NVLink 2 --------------------------------------------------------------------------------------------
    _model("T4", r"\bt4\b", "turing", ("1eb8",), True, LINKS_NONE, 0, None, 3, 70, "pci.ids; nvidia-smi"),
    _model("GeForce RTX 2080", r"\brtx 2080\b", "turing", ("1e04", "1e07", "1e81", "1e87"), False, LINKS_BRIDGE, 2,
           25.0, 3, None, "pci.ids; nvlink-docs"),
    _model("GeForce RTX 20", r"\brtx 20\d\d\b", "turing", ("1f02",), False, LINKS_NONE, 0, None, 3, None, "pci.ids"),
    _model("Quadro RTX", r"\bquadro rtx [5-8]000\b", "turing", ("1e30", "1e78"), False, LINKS_BRIDGE, 2, 25.0, 3,
           None, "pci.ids; nvlink-docs"),
    # -- Volta: NVLink 2 ---------------------------------------------------------------------------------------------
    _model("V100 SXM", r"\bv100-sxm[23]", "volta", ("1db1", "1db5", "1db8"), True, LINKS_BOARD, 6, 25.0, 3, 300,
           "pci.ids; nvlink-docs; nvidia-smi"),
    _model("V100 PCIe", r"\bv100\b", "volta", ("1db4", "1db6"), True, LINKS_NONE, 0, None, 3, 250, "pci.ids"),
    _model("TITAN V", r"\btitan v\b", "volta", ("1d81",), False, LINKS_NONE, 0, None, 3, 250, "pci.ids; nvidia-smi"),
    # -- Pascal and older --------------------------------------------------------------------------------------------
    _model("P100 SXM", r"\bp100-sxm2\b", "pascal", ("15f9",), True, LINKS_BOARD, 4, 20.0, 3, 300,
           "pci.ids; nvlink-docs"),
    _model("P100 PCIe", r"\bp100\b", "pascal", ("15f7", "15f8"), True, LINKS_NONE, 0, None, 3, 250,
           "pci.ids; nvidia-smi"),
    _model("P40", r"\bp40\b|\bp4\b", "pascal", ("1b38", "1bb3"), True, LINKS_NONE, 0, None, 3, None, "pci.ids"),
    _model("GeForce RTX 50", r"\brtx 50\d\d\b", "blackwell", ("2b85",), False, LINKS_NONE, 0, None, 5, None, "pci.ids"),
)
# fmt: on

_BY_PCI_ID = {pci_id: model for model in MODELS for pci_id in model.pci_device_ids}

# First device id of each range, ascending. Source: the blocks in which pci.ids lists the chips (GK, GM, GP, GV, TU,
# GA, GH, AD, GB); exact ids above win.
_ARCHITECTURE_RANGES: Tuple[Tuple[int, str], ...] = (
    (0x0FC0, "kepler"),
    (0x1340, "maxwell"),
    (0x15F0, "pascal"),
    (0x1600, "maxwell"),
    (0x1700, "maxwell"),
    (0x1B00, "pascal"),
    (0x1D81, "volta"),
    (0x1E00, "turing"),
    (0x2000, "ampere"),
    (0x2180, "turing"),
    (0x2200, "ampere"),
    (0x2300, "hopper"),
    (0x2480, "ampere"),
    (0x2600, "ada"),
    (0x2900, "blackwell"),
)

# Words of `Product Brand` for cards made for desktops; an empty brand says nothing.
_DESKTOP_BRANDS = ("geforce", "titan", "quadro", "nvidia rtx", "nvs")
_DESKTOP_NAMES = re.compile(r"\b(geforce|titan|quadro|rtx|gtx|gt \d{3,4})\b", re.IGNORECASE)
_VIRTUAL_NAMES = re.compile(r"^(nvidia )?grid\b|-\d+[qbca]$", re.IGNORECASE)


@lru_cache(maxsize=256)
def model_of_name(product_name: Optional[str]) -> Optional[GpuModel]:
    """The model of a product name as nvidia-smi prints it, e.g. ``NVIDIA H100 80GB HBM3``; None where unknown."""
    if not product_name:
        return None
    text = " ".join(product_name.lower().split())
    if _VIRTUAL_NAMES.search(text):
        return None
    for model in MODELS:
        if re.search(model.pattern, text):
            return model
    return None


def normal_pci_device_id(pci_device_id: Optional[str]) -> Optional[str]:
    """Four lower-case hex digits of the device half of ``0x2330``, ``2330``, ``233010DE`` or ``0x233010DE``."""
    text = (pci_device_id or "").strip().lower()
    text = text[2:] if text.startswith("0x") else text
    if len(text) == 8 and text.endswith("10de"):
        text = text[:4]
    return text if re.match(r"^[0-9a-f]{4}$", text) else None


def model_of_pci_id(pci_device_id: Optional[str]) -> Optional[GpuModel]:
    return _BY_PCI_ID.get(normal_pci_device_id(pci_device_id) or "")


def architecture_of(pci_device_id: Optional[str]) -> Optional[str]:
    """Architecture of a GPU by its PCI device id, without a driver: ``volta``, ``turing``, ``ampere``, ``ada``,
    ``hopper``, ``blackwell``, ``pascal``, ``maxwell``, ``kepler``; None where the id says nothing.

    Exact ids come first, then the block of ids that the chips of one generation share.
    """
    device = normal_pci_device_id(pci_device_id)
    if device is None:
        return None
    if device in _BY_PCI_ID:
        return _BY_PCI_ID[device].architecture
    found = None
    for first, architecture in _ARCHITECTURE_RANGES:
        if int(device, 16) < first:
            break
        found = architecture
    return found


def is_virtual(product_name: Optional[str]) -> bool:
    """True for the GPU of a vGPU guest (``GRID P4-1Q``): nearly nothing can be read there, and nothing is a fault."""
    return bool(product_name and _VIRTUAL_NAMES.search(" ".join(product_name.lower().split())))


@lru_cache(maxsize=256)
def is_datacenter(product_name: Optional[str], product_brand: Optional[str] = None) -> Optional[bool]:
    """True for a data-centre GPU, False for a desktop or workstation one, None where nothing tells."""
    model = model_of_name(product_name)
    if model is not None:
        return model.datacenter
    brand = (product_brand or "").strip().lower()
    if brand.startswith(_DESKTOP_BRANDS) or _DESKTOP_NAMES.search(product_name or ""):
        return False
    if brand in ("tesla", "nvidia"):
        return True
    return None
