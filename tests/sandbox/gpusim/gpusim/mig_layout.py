# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How MIG instances share a GPU: profiles, placements, numbers. Pure; data in data/mig.json (NVIDIA's MIG user guide).

A GPU instance is `{id, profile (a number), start, compute: [{id, slices}]}`. A GPU has 7 compute and 8 memory slices.
"""

import hashlib
import json
import os
import uuid

from . import profiles

COMPUTE_SLICES = 7
COMPUTE_PROFILE = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}
"""Slices of a compute instance → number of its profile (nvml.h)."""


def of_model(name: str) -> list:
    """Return the GPU instance profiles of a model by its product name, `[]` for one whose profiles are not known."""
    with open(os.path.join(profiles.DATA, "mig.json"), encoding="utf-8") as stream:
        return json.load(stream).get(name, [])


def find(known: list, text: str):
    """Return the profile that `19`, `1g.10gb` or `MIG 1g.10gb` names, None when there is none."""
    short = text[len("MIG ") :] if text.startswith("MIG ") else text
    for profile in known:
        if short in (str(profile["id"]), profile["name"]):
            return profile
    return None


def number(known: list, identity: int) -> dict:
    """Return the profile of that number."""
    return next(profile for profile in known if profile["id"] == identity)


def free_starts(known: list, instances: list, profile: dict) -> list:
    """Return the starts at which one more instance of the profile fits."""
    taken = set()
    for instance in instances:
        size = number(known, instance["profile"])["size"]
        taken.update(range(instance["start"], instance["start"] + size))
    used = sum(number(known, instance["profile"])["slices"] for instance in instances)
    if used + profile["slices"] > COMPUTE_SLICES:
        return []
    if profile["name"].endswith("+me") and any(instance["profile"] == profile["id"] for instance in instances):
        return []  # the media engines exist once
    return [start for start in profile["starts"] if not taken & set(range(start, start + profile["size"]))]


def place(known: list, instances: list, profile: dict):
    """Return where the driver puts one more instance: where it spoils the fewest other placements, the lowest of these.

    None when it fits nowhere. Reproduces the placements of every example of the user guide.
    """
    starts = free_starts(known, instances, profile)
    if not starts:
        return None
    others = [other for other in known if other is not profile]

    def spoils(start: int) -> int:
        own = set(range(start, start + profile["size"]))
        count = 0
        for other in others:
            for place_of_other in free_starts(known, instances, other):
                count += bool(own & set(range(place_of_other, place_of_other + other["size"])))
        return count

    return min(starts, key=lambda start: (spoils(start), start))


def count_free(known: list, instances: list, profile: dict) -> int:
    """Return how many more instances of the profile fit."""
    added = list(instances)
    while True:
        start = place(known, added, profile)
        if start is None:
            return len(added) - len(instances)
        added.append({"profile": profile["id"], "start": start})


def instance_number(profile: dict, start: int) -> int:
    """The driver's number for a place: 0 the whole GPU, 1 and 2 its halves, 3 to 6 quarters, 7 to 13 single slices."""
    return {8: 0, 4: 1, 2: 3, 1: 7}[profile["size"]] + start // profile["size"]


def compute_name(profile: dict, slices: int) -> str:
    """`MIG 3g.40gb`, or `MIG 1c.3g.40gb` for a compute instance that is a part of its GPU instance."""
    whole = slices == profile["slices"]
    return f"MIG {profile['name']}" if whole else f"MIG {slices}c.{profile['name']}"


def devices(gpu_uuid: str, known: list, instances: list) -> list:
    """Return the MIG devices in the tool's order: `{index, gi, ci, name, uuid, profile, slices}`."""
    found = []
    for instance in sorted(instances, key=lambda one: one["id"]):
        profile = number(known, instance["profile"])
        for compute in sorted(instance["compute"], key=lambda one: one["id"]):
            digest = hashlib.sha256(f"{gpu_uuid} {instance['id']} {compute['id']}".encode()).digest()
            found.append(
                {
                    "index": len(found),
                    "gi": instance["id"],
                    "ci": compute["id"],
                    "name": compute_name(profile, compute["slices"]),
                    "uuid": "MIG-" + str(uuid.UUID(bytes=digest[:16], version=5)),
                    "profile": profile,
                    "slices": compute["slices"],
                }
            )
    return found
