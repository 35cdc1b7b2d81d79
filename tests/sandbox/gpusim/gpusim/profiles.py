# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines and GPU models as data: JSON files below data/, so that new hardware needs no code."""

import copy
import json
import os

DATA = os.path.join(os.path.dirname(os.path.realpath(__file__)), "data")


USUAL = {"nvlink_management": [], "mesh": [], "pcie_level": "NODE"}
"""What most machines have. `nvlink_management`: InfiniBand functions `{bus, numa, infiniband, management}` of NVLink 5
switches; `mesh`: `[GPU, other GPU, number of links]`; `pcie_level`: how `topo -m` calls two GPUs of one NUMA node."""


class UnknownProfile(Exception):
    """No machine of that name; the text says which there are."""


def names() -> list:
    """Return the names of all machines, sorted."""
    return sorted(entry[:-5] for entry in os.listdir(os.path.join(DATA, "profiles")) if entry.endswith(".json"))


def _read(kind: str, name: str) -> dict:
    with open(os.path.join(DATA, kind, name + ".json"), encoding="utf-8") as stream:
        return json.load(stream)


def load(name: str) -> dict:
    """Return a machine: `{name, description, numa_nodes, gpus, nvswitches, other_pci}` and the keys of :data:`USUAL`.

    Each GPU and NVSwitch is `{bus, numa, …}` with its model's data under `model`.
    """
    if name not in names():
        raise UnknownProfile(f"no profile {name!r}; there are: {', '.join(names())}")
    profile = {"name": name, **copy.deepcopy(USUAL), **_read("profiles", name)}
    models = {}
    for device in profile["gpus"] + profile["nvswitches"]:
        model = device["model"]
        if model not in models:
            models[model] = _read("models", model)
        device["model"] = models[model]
    return profile
