# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge one machine: everything that was seen of it, against its models, its peers and what was expected of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ._fabric import fabric_needed, judge_fabric_log, judge_management, judge_unit
from ._findings import Finding, sort_findings, verdict_of
from ._findings_catalog import CATALOG, build_finding, is_unread
from ._gpu_models import GpuModel, architecture_of, model_of_name
from ._health_policy import Policy
from ._judge_gpu import judge_gpu, judge_unreadable, reasons_mask
from ._judge_memory import judge_memory, uncorrectable
from ._judge_nvlink import LinkContext, judge_nvlink_errors, judge_nvlink_status, link_rows, links_by_gpu
from ._judge_peers import judge_peers
from ._judge_replays import judge_replay_rate
from ._observation import Observation
from ._pci import normal_bus_id
from ._smi_failure import GPU_LOST, GPU_UNREACHABLE, NEEDS_RESET, NO_DEVICES
from ._smi_reading import GpuReading, SmiFailure, SmiReading
from ._topology import judge_topology, topology_rows
from ._xid import judge_kernel_log

_OF_ONE_GPU = (GPU_LOST, GPU_UNREACHABLE, NEEDS_RESET)
_HINT_CLASSES = (("hopper", "NVIDIA H100 80GB HBM3"), ("blackwell b", "NVIDIA B200"))
"""A hint that names no model but a class of data-centre GPU: the board of that class is meant."""


@dataclass(frozen=True)
class Judgement:
    """The contract (docs/architecture.md): `gpus`, `links`, `topology` show what was seen, `covered` which sources."""

    verdict: str
    findings: Tuple[Finding, ...]
    gpus: Tuple[Dict[str, Any], ...]
    links: Tuple[Dict[str, Any], ...]
    topology: Tuple[Dict[str, Any], ...]
    covered: Tuple[str, ...]
    versions: Mapping[str, Any]

    def as_dict(self) -> Dict[str, Any]:
        return {
            "verdict": self.verdict,
            "findings": list(self.findings),
            "gpus": list(self.gpus),
            "links": list(self.links),
            "topology": list(self.topology),
            "covered": list(self.covered),
            "versions": dict(self.versions),
        }


def judge(
    seen: Observation,
    policy: Optional[Policy] = None,
    expected_gpus: Optional[int] = None,
    expected_model: Optional[str] = None,
    model_hint: Optional[str] = None,
) -> Judgement:
    """`expected_gpus` and `expected_model` are the operator's; `model_hint` says what a recording is of, and is
    ignored where the recording itself names the GPUs."""
    policy = policy or Policy()
    context = _context(seen, model_hint)
    findings: List[Finding] = list(seen.findings)
    findings.extend(_judge_readings(seen, policy, context, expected_gpus))
    findings.extend(_judge_counts(seen, expected_gpus))
    if expected_model:
        findings.extend(_judge_model(seen, expected_model))
    findings.extend(_judge_links(seen, context, policy, model_hint))
    if seen.kernel is not None:
        findings.extend(judge_kernel_log(seen.kernel, _ref_finder(seen), policy, seen.acknowledged, seen.xid_boots))
    findings.extend(_judge_fabric(seen, policy))
    findings.extend(_judge_bus(seen))
    findings.extend(_judge_driver(seen))
    if not seen.covered and not findings:
        findings.append(build_finding("nothing_to_judge"))
    findings = sort_findings(_once(findings))
    unread = [item["id"] for item in findings if is_unread(item)]
    return Judgement(
        verdict=verdict_of(findings, unread),
        findings=tuple(findings),
        gpus=tuple(gpu_row(gpu, seen) for gpu in all_gpus(seen)),
        links=tuple(link_rows(seen.nvlink_status, context)),
        topology=tuple(topology_rows(seen.topologies[0] if seen.topologies else None)),
        covered=seen.covered,
        versions=_versions(seen),
    )


def all_gpus(seen: Observation) -> Tuple[GpuReading, ...]:
    """The GPUs of the best reading there is: the full query, else the table or CSV, else the list."""
    for reading in (seen.smi, *seen.extra, seen.listing):
        if reading is not None and reading.gpus:
            return reading.gpus
    return ()


def _once(findings: Sequence[Finding]) -> List[Finding]:
    """The same fault seen in several outputs of one machine is one finding."""
    found: Dict[Tuple[Any, ...], Finding] = {}
    for item in findings:
        gpu = item["gpu"] or {}
        where = gpu.get("pci_bus_id") or gpu.get("index")
        exact = None if item["id"] in ("gpu_lost", "gpu_reset_required", "gpu_unreachable") else str(item["observed"])
        found.setdefault((item["id"], where, item["link"], exact), item)
    return list(found.values())


# -- readings of nvidia-smi ------------------------------------------------------------------------------------------


def _judge_readings(seen: Observation, policy: Policy, context: LinkContext, expected: Optional[int]) -> List[Finding]:
    found: List[Finding] = []
    failures = _all_failures(seen)
    found.extend(_judge_failure(failure, seen, expected) for failure in failures)
    found = [item for item in found if item is not None]
    for reading in (seen.smi, *seen.extra, seen.listing):
        if reading is None:
            continue
        found.extend(_incomplete(reading, failures))
        for bus_id in reading.inforom_corrupted:
            found.append(build_finding("inforom_corrupted", bus_id, "valid", _ref_finder(seen)(bus_id)))
    main = seen.smi if seen.smi is not None and seen.smi.gpus else None
    readings = [main] if main else [reading for reading in seen.extra if reading.gpus]
    for reading in readings:
        for gpu in reading.gpus:
            found.extend(judge_gpu(gpu, policy, seen.throttle_samples.get(gpu.bus_id or "", ())))
            found.extend(judge_memory(gpu, policy))
            found.extend(judge_replay_rate(gpu, seen.replays_earlier, policy))
            found.extend(_table_doubt(reading, gpu))
        found.extend(judge_peers(reading.gpus, policy))
    if main:
        for reading in seen.extra:
            for gpu in reading.gpus:
                if gpu.lost or gpu.needs_reset:
                    found.extend(judge_unreadable(gpu))
    return found


def _all_failures(seen: Observation) -> List[SmiFailure]:
    """Failures of all outputs; the same GPU's is one, however the outputs spell it."""
    found: Dict[Tuple[Any, ...], SmiFailure] = {}
    sources = [reading.failures for reading in (seen.smi, *seen.extra, seen.listing) if reading is not None]
    sources += [reading.failures for reading in (seen.nvlink_status, seen.nvlink_errors) if reading is not None]
    sources += [topology.failures for topology in seen.topologies] + [seen.failures]
    for failure in (item for source in sources for item in source):
        found.setdefault((failure.kind, failure.index, failure.bus_id), failure)
    return list(found.values())


def _judge_failure(failure: SmiFailure, seen: Observation, expected: Optional[int]) -> Optional[Finding]:
    if failure.kind == NO_DEVICES and seen.live and not expected and seen.pci and not seen.pci.gpus:
        return None
    if failure.kind == "smi_failed" and (len(_all_failures(seen)) > 1 or _any_needs_reset(seen)):
        # "Failed to run topology matrix" beside what says why.
        return None
    gpu = None
    if failure.kind in _OF_ONE_GPU:
        gpu = _failed_gpu(failure, seen)
    return build_finding(failure.kind, failure.text, "an answer", gpu, detail=failure.text)


def _any_needs_reset(seen: Observation) -> bool:
    return any(gpu.needs_reset for gpu in all_gpus(seen))


def _failed_gpu(failure: SmiFailure, seen: Observation) -> Optional[Mapping[str, Any]]:
    """Name the GPU of a failure. An index alone is matched with the PCI bus, by what the others leave over."""
    finder = _ref_finder(seen)
    if failure.bus_id:
        named = dict(finder(failure.bus_id))
        named["index"] = failure.index if named["index"] is None else named["index"]
        return named
    for gpu in all_gpus(seen):
        if failure.index is not None and gpu.index == failure.index and gpu.bus_id:
            return gpu.ref
    left = _unanswered(seen)
    bus_id = left[0] if len(left) == 1 else None
    if failure.index is None and bus_id is None:
        return None
    return {"index": failure.index, "uuid": None, "pci_bus_id": bus_id}


def _unanswered(seen: Observation) -> List[str]:
    if seen.pci is None:
        return []
    answered = {gpu.bus_id for gpu in all_gpus(seen)}
    return [gpu.bus_id for gpu in seen.pci.gpus if gpu.bus_id not in answered]


def _incomplete(reading: SmiReading, failures: Sequence[SmiFailure]) -> List[Finding]:
    found: List[Finding] = []
    if reading.incomplete and not (failures and not reading.gpus):
        text = "; ".join(reading.incomplete[:3])
        finding_id = "smi_incomplete" if reading.gpus else "smi_unreadable"
        found.append(build_finding(finding_id, text, "complete", detail=text))
    elif not reading.gpus and not failures and not reading.incomplete:
        found.append(build_finding("smi_unreadable", "no GPU in it", "GPUs", detail="no GPU in it"))
    lost = sum(1 for failure in failures if failure.kind in _OF_ONE_GPU)
    if reading.attached is not None and reading.gpus and len(reading.gpus) + lost < reading.attached:
        text = "%d GPUs announced, %d shown" % (reading.attached, len(reading.gpus))
        found.append(build_finding("smi_incomplete", len(reading.gpus), reading.attached, detail=text))
    elif reading.attached is not None and len(reading.gpus) > reading.attached and reading.form != "csv":
        text = "%d GPUs announced, %d shown" % (reading.attached, len(reading.gpus))
        found.append(build_finding("smi_incomplete", len(reading.gpus), reading.attached, detail=text))
    buses = [gpu.bus_id for gpu in reading.gpus if gpu.bus_id]
    if len(set(buses)) != len(buses):
        found.append(build_finding("smi_incomplete", "a GPU is shown twice", "once", detail="a GPU is shown twice"))
    return found


def _table_doubt(reading: SmiReading, gpu: GpuReading) -> List[Finding]:
    """The table shows `ERR!` for the fan of a GPU that waits for a reset, and has no column that would say so."""
    if reading.form == "table" and gpu.problems.get("fan_speed"):
        return [
            build_finding(
                "fields_missing",
                "recovery action",
                "present",
                gpu.ref,
                detail="the table does not show the recovery action",
            )
        ]
    return []


# -- counts and models -----------------------------------------------------------------------------------------------


def _judge_counts(seen: Observation, expected: Optional[int]) -> List[Finding]:
    found: List[Finding] = []
    gpus = all_gpus(seen)
    pci = len(seen.pci.gpus) if seen.pci is not None else 0
    if not gpus and seen.live and not pci and not seen.findings:
        if expected:
            text = "0 of %d" % expected
            return [build_finding("gpu_count_low", 0, expected, detail=text)]
        found.append(build_finding("no_gpu", 0, 0))
        return found
    if not gpus:
        if expected and seen.live and seen.pci is not None and seen.pci.readable and pci < expected:
            return [build_finding("gpu_count_low", pci, expected, detail="%d of %d" % (pci, expected))]
        return []
    lost = sum(1 for failure in _all_failures(seen) if failure.kind in _OF_ONE_GPU)
    if seen.smi is not None and seen.smi.incomplete:
        # What is missing from half an answer may well be there.
        return found
    count = len(gpus) + (lost if seen.smi is not None else 0)
    if expected is not None and count < expected:
        text = "%d of %d" % (count, expected)
        found.append(build_finding("gpu_count_low", count, expected, detail=text))
    elif expected is not None and len(gpus) > expected:
        text = "%d, expected %d" % (len(gpus), expected)
        found.append(build_finding("gpu_count_high", len(gpus), expected, detail=text))
    if pci and not lost:
        for bus_id in _unanswered(seen):
            ref = {"index": None, "uuid": None, "pci_bus_id": bus_id}
            found.append(build_finding("gpu_missing_from_driver", "absent", "present", ref))
    return found


def _judge_model(seen: Observation, expected: str) -> List[Finding]:
    found = []
    for gpu in all_gpus(seen):
        model = model_of_name(gpu.name)
        if (
            gpu.name
            and expected.lower() not in gpu.name.lower()
            and not (model and model.name.lower() == expected.lower())
        ):
            found.append(build_finding("model_unexpected", gpu.name, expected, gpu.ref, detail=gpu.name))
    return found


# -- links, fabric, driver -------------------------------------------------------------------------------------------


def hinted_model(hint: Optional[str]) -> Optional[GpuModel]:
    model = model_of_name(hint)
    if model is not None or not hint:
        return model
    return next((model_of_name(name) for word, name in _HINT_CLASSES if word in hint.lower()), None)


def _context(seen: Observation, model_hint: Optional[str]) -> LinkContext:
    gpus = all_gpus(seen)
    refs = {gpu.index: gpu.ref for gpu in gpus if gpu.index is not None}
    names = {gpu.index: gpu.name for gpu in gpus if gpu.index is not None and gpu.name}
    lost = {gpu.index for gpu in gpus if gpu.lost or gpu.needs_reset}
    lost |= {failure.index for failure in _all_failures(seen) if failure.kind in _OF_ONE_GPU}
    return LinkContext(
        refs=refs,
        names=names,
        lost=frozenset(index for index in lost if index is not None),
        mig=frozenset(gpu.index for gpu in gpus if gpu.get("mig_current") and gpu.index is not None),
        hint=None if names else hinted_model(model_hint),
        complete=bool(names) and not (seen.smi is not None and seen.smi.incomplete),
    )


def _judge_links(seen: Observation, context: LinkContext, policy: Policy, model_hint: Optional[str]) -> List[Finding]:
    found: List[Finding] = []
    status, errors = seen.nvlink_status, seen.nvlink_errors
    if status is not None and not status.failures:
        found.extend(judge_nvlink_status(status, context, policy))
    if errors is not None and not errors.failures:
        beside = status if status is not None and not status.failures else None
        found.extend(judge_nvlink_errors(errors, context, policy, seen.nvlink_earlier, beside))
    already = links_by_gpu(found)
    for topology in seen.topologies:
        silent = already | _without_fabric(seen) if topology.p2p else already
        found.extend(judge_topology(topology, context, model_hint, silent))
    return found


def _without_fabric(seen: Observation) -> FrozenSet[int]:
    """GPUs that cannot reach others because the fabric is not up, which is another finding's matter."""
    unit = seen.fabric_unit
    if unit is not None and fabric_needed(seen.pci) and (unit.active != "active" or unit.subnet_manager == "stopped"):
        return frozenset(gpu.index for gpu in all_gpus(seen) if gpu.index is not None)
    waiting = (gpu for gpu in all_gpus(seen) if (gpu.get("fabric_state") or "completed").lower() != "completed")
    return frozenset(gpu.index for gpu in waiting if gpu.index is not None)


def _judge_fabric(seen: Observation, policy: Policy) -> List[Finding]:
    found: List[Finding] = []
    needed = fabric_needed(seen.pci, tuple(gpu.name for gpu in all_gpus(seen) if gpu.name))
    if seen.fabric_log is not None:
        found.extend(judge_fabric_log(seen.fabric_log, needed))
    if seen.fabric_unit is not None:
        must = needed if needed is not None else not seen.live
        found.extend(judge_unit(seen.fabric_unit, must, _loaded_version(seen), policy))
    return found


def _judge_bus(seen: Observation) -> List[Finding]:
    if seen.pci is None:
        return []
    found: List[Finding] = []
    if seen.pci.amd_gpus:
        found.append(build_finding("amd_gpu", len(seen.pci.amd_gpus), None, detail="%d" % len(seen.pci.amd_gpus)))
    gpus = all_gpus(seen)
    waiting = [gpu for gpu in gpus if (gpu.get("fabric_state") or "completed").lower() != "completed"]
    return found + judge_management(seen.pci, completed=not waiting)


def _loaded_version(seen: Observation) -> Optional[str]:
    if seen.driver is not None and seen.driver.loaded_version:
        return seen.driver.loaded_version
    return seen.smi.driver_version if seen.smi is not None else None


def _judge_driver(seen: Observation) -> List[Finding]:
    driver = seen.driver
    if driver is None or not seen.live or seen.pci is None or not seen.pci.gpus:
        return []
    if driver.loaded_version is None and not all_gpus(seen):
        found = [build_finding("driver_not_loaded", None, "loaded")]
        if driver.nouveau_loaded:
            found.append(build_finding("nouveau_loaded", "nouveau", "nvidia"))
        return found
    shown = seen.smi.driver_version if seen.smi is not None else None
    if shown and driver.loaded_version and shown != driver.loaded_version:
        text = "nvidia-smi says %s, the module is %s" % (shown, driver.loaded_version)
        return [build_finding("driver_version_differs", shown, driver.loaded_version, detail=text)]
    return []


# -- naming and showing ----------------------------------------------------------------------------------------------


def _ref_finder(seen: Observation):
    by_name: Dict[str, Mapping[str, Any]] = {}
    for gpu in all_gpus(seen):
        for name in (gpu.bus_id, gpu.uuid):
            if name:
                by_name[name] = gpu.ref

    def find(name: Optional[str]) -> Mapping[str, Any]:
        if name in by_name:
            return by_name[name]
        bus_id = normal_bus_id(name)
        return {"index": None, "uuid": None if bus_id else name, "pci_bus_id": bus_id}

    return find


def gpu_row(gpu: GpuReading, seen: Observation) -> Dict[str, Any]:
    """One GPU as results show it: plain names, units in the names, None where the card has no such value."""
    model = model_of_name(gpu.name)
    device = gpu.get("pci_device_id")
    node = next((item.numa_node for item in (seen.pci.gpus if seen.pci else ()) if item.bus_id == gpu.bus_id), None)
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pci_bus_id": gpu.bus_id,
        "name": gpu.name,
        "model": model.name if model else None,
        "architecture": model.architecture if model else architecture_of(_device_half(device)),
        "lost": gpu.lost,
        "numa_node": node,
        "vbios_version": gpu.get("vbios_version"),
        "performance_state": gpu.get("performance_state"),
        "temperature_c": gpu.get("temperature"),
        "tlimit_margin_c": gpu.get("tlimit_margin"),
        "memory_temperature_c": gpu.get("memory_temperature"),
        "power_draw_w": gpu.get("power_draw"),
        "power_limit_w": gpu.get("power_limit"),
        "utilization_percent": gpu.get("gpu_util"),
        "memory_total_mib": gpu.get("memory_total"),
        "memory_used_mib": gpu.get("memory_used"),
        "processes": gpu.processes,
        "persistence_mode": gpu.get("persistence_mode"),
        "compute_mode": gpu.get("compute_mode"),
        "ecc_mode": gpu.get("ecc_current"),
        "mig_mode": gpu.get("mig_current"),
        "mig_devices": gpu.mig_devices,
        "pcie_generation": gpu.get("pcie_gen_current"),
        "pcie_generation_max": gpu.get("pcie_gen_max"),
        "pcie_width": gpu.get("pcie_width_current"),
        "pcie_width_max": gpu.get("pcie_width_max"),
        "pcie_replays": gpu.get("pcie_replays"),
        "clock_event_reasons": reasons_mask(gpu),
        "ecc_uncorrectable_volatile": uncorrectable(gpu, "volatile"),
        "ecc_uncorrectable_aggregate": uncorrectable(gpu, "aggregate"),
        "remapped_rows_uncorrectable": gpu.get("remapped_uncorrectable"),
        "remapped_rows_pending": gpu.get("remapped_pending"),
        "remapped_rows_failure": gpu.get("remapped_failure"),
        "retired_pages_pending": gpu.get("retired_pending"),
        "recovery_action": gpu.get("recovery_action"),
        "fabric_state": gpu.get("fabric_state"),
    }


def _device_half(text: Optional[str]) -> Optional[str]:
    match = re.match(r"^(?:0x)?([0-9A-Fa-f]{4})(?:10DE)?$", text or "", re.IGNORECASE)
    return match.group(1) if match else None


def _versions(seen: Observation) -> Dict[str, Any]:
    driver = seen.driver
    shown = seen.smi or next(iter(seen.extra), None)
    return {
        "driver": shown.driver_version if shown else None,
        "cuda": shown.cuda_version if shown else None,
        "kernel_module": driver.loaded_version if driver else None,
        "kernel_module_flavour": driver.loaded_flavour if driver else None,
        "kernel": driver.kernel if driver else None,
        "fabric_manager": seen.fabric_unit.version if seen.fabric_unit else None,
    }


ALL_FINDING_IDS = tuple(sorted(CATALOG))
