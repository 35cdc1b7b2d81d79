# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi mig`: create and destroy instances. The listings are in mig_tables.py, the geometry in mig_layout.py."""

import os

from .. import driver, mig_layout, settings, state
from . import answer, mig_tables
from .answer import Failure

NONE_ENABLED = "No MIG-enabled devices found.\n"
NO_INSTANCES = "No GPU instances found: Not Found\n"
NO_COMPUTE = "No compute instances found: Not Found\n"


def run(_machine, gpus: list, version: str, wanted, argv: list) -> tuple:
    """Return `(text, exit code)` of one call."""
    if wanted.mode == "lgip":
        return mig_tables.profiles([one for one in gpus if one.model["mig"]], driver.branch(version)), answer.OK
    enabled = [one for one in gpus if settings.in_mig(one)]
    if not enabled:
        return NONE_ENABLED, answer.OK
    if wanted.mode in ("cgi", "dgi", "cci", "dci"):
        _need_root(wanted.mode)
    if wanted.mode == "cgi":
        return _create(enabled, wanted, argv), answer.OK
    chosen = [(one, instance) for one in enabled for instance in _chosen(one.mig_instances, wanted.instances["-gi"])]
    if not chosen:
        return NO_INSTANCES, answer.NOT_FOUND
    if wanted.mode == "lgi":
        return mig_tables.gpu_instances(chosen, driver.branch(version)), answer.OK
    if wanted.mode == "dgi":
        return _destroy(chosen, argv), answer.OK
    if wanted.mode == "cci":
        return "".join(_create_compute(one, instance, wanted.value, argv) for one, instance in chosen), answer.OK
    parts = [(*pair, compute) for pair in chosen for compute in _chosen(pair[1]["compute"], wanted.instances["-ci"])]
    if not parts:
        return NO_COMPUTE, answer.NOT_FOUND
    if wanted.mode == "lci":
        return mig_tables.compute_instances(parts), answer.OK
    return "".join(_destroy_compute(*part, argv) for part in parts), answer.OK


def _chosen(entries: list, numbers: list) -> list:
    ordered = sorted(entries, key=lambda entry: entry["id"])
    return [entry for entry in ordered if not numbers or entry["id"] in numbers]


def _need_root(mode: str) -> None:
    if os.geteuid() != 0:
        verb = "create" if mode[0] == "c" else "destroy"
        what = "GPU" if mode[1:] == "gi" else "compute"
        raise Failure(f"Failed to {verb} {what} instances: Insufficient Permissions\n", answer.NO_PERMISSION)


def _create(gpus: list, wanted, argv: list) -> str:
    text = ""
    for one in gpus:
        known = mig_layout.of_model(one.model["name"])
        for asked in wanted.value.split(","):
            name, _, start = asked.strip().partition(":")
            profile = mig_layout.find(known, name)
            with state.changing() as content:
                instances = content.setdefault("mig_instances", {}).setdefault(one.uuid, [])
                instance, why = _placed(known, instances, profile, start)
            if not instance:
                code = answer.BAD_ARGUMENT if why == "Invalid Argument" else answer.NO_RESOURCES
                text += f"Unable to create a GPU instance on GPU {one.index:2} using profile {name}: {why}\n"
                raise Failure(text + f"Failed to create GPU instances: {why}\n", code)
            _record(one, argv, "mig_instance", instance["id"])
            text += (
                f"Successfully created GPU instance ID {instance['id']:2} on GPU {one.index:2} using profile MIG "
                f"{profile['name']} (ID {profile['id']:2})\n"
            )
            if wanted.default_compute:
                text += _create_compute(one, instance, "", argv)
    return text


def _placed(known: list, instances: list, profile, start: str) -> tuple:
    """Append an instance and return `(instance, "")`, or `(None, why not)`."""
    if profile is None or (start and not start.isdigit()):
        return None, "Invalid Argument"
    if start:
        place = int(start) if int(start) in mig_layout.free_starts(known, instances, profile) else None
    else:
        place = mig_layout.place(known, instances, profile)
    if place is None:
        return None, "Insufficient Resources"
    number = mig_layout.instance_number(profile, place)
    instances.append({"id": number, "profile": profile["id"], "start": place, "compute": []})
    return instances[-1], ""


def _create_compute(one, instance: dict, asked: str, argv: list) -> str:
    known = mig_layout.of_model(one.model["name"])
    profile = mig_layout.number(known, instance["profile"])
    sizes = {slices: number for slices, number in mig_layout.COMPUTE_PROFILE.items() if slices <= profile["slices"]}
    names = {mig_layout.compute_name(profile, slices): slices for slices in sizes}
    text = ""
    for name in asked.split(",") if asked else [str(sizes[profile["slices"]])]:
        by_number = {str(number): slices for slices, number in sizes.items()}
        slices = by_number.get(name) or names.get(name) or names.get("MIG " + name)
        with state.changing() as content:
            stored = next(e for e in content["mig_instances"][one.uuid] if e["id"] == instance["id"])
            left = profile["slices"] - sum(entry["slices"] for entry in stored["compute"])
            fits = slices is not None and slices <= left
            if fits:
                used = {entry["id"] for entry in stored["compute"]}
                identity = min(set(range(profile["slices"])) - used)
                stored["compute"].append({"id": identity, "slices": slices})
        where = f"on GPU {one.index:2} GPU instance ID {instance['id']:2}"
        if not fits:
            why = "Invalid Argument" if slices is None else "Insufficient Resources"
            code = answer.BAD_ARGUMENT if slices is None else answer.NO_RESOURCES
            text += f"Unable to create a compute instance {where} using profile {name}: {why}\n"
            raise Failure(text + f"Failed to create compute instances: {why}\n", code)
        _record(one, argv, "mig_compute_instance", [instance["id"], identity])
        text += (
            f"Successfully created compute instance ID {identity:2} {where} using profile "
            f"{mig_layout.compute_name(profile, slices)} (ID {sizes[slices]:2})\n"
        )
    return text


def _destroy(chosen: list, argv: list) -> str:
    text = ""
    for one, instance in chosen:
        where = f"GPU instance ID {instance['id']:2} from GPU {one.index:2}"
        if instance["compute"]:
            why = "In use by another client"
            text += f"Unable to destroy {where}: {why}\nFailed to destroy GPU instances: {why}\n"
            raise Failure(text, answer.IN_USE)
        with state.changing() as content:
            content["mig_instances"][one.uuid].remove(instance)
        _record(one, argv, "mig_instance", None)
        text += f"Successfully destroyed {where}\n"
    return text


def _destroy_compute(one, instance: dict, compute: dict, argv: list) -> str:
    with state.changing() as content:
        stored = next(e for e in content["mig_instances"][one.uuid] if e["id"] == instance["id"])
        stored["compute"].remove(compute)
    _record(one, argv, "mig_compute_instance", None)
    where = f"from GPU {one.index:2} GPU instance ID {instance['id']:2}"
    return f"Successfully destroyed compute instance ID {compute['id']:2} {where}\n"


def _record(one, argv: list, what: str, after) -> None:
    state.record_call("nvidia-smi", argv, {"set": what, "gpu": one.bus_id, "from": None, "to": after})
