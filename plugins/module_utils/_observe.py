# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at this machine's GPUs, once: which commands are run and which files are read, through the `Host` handed in.

Nothing is changed. Every command has a time limit, and one that does not answer ends the questions to the same tool,
so that the whole is bounded. What cannot exist is not asked for: no NVLink query where no model has links.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Tuple

from ._fabric import NVLSM, UNIT, fabric_needed, last_error, parse_unit, subnet_manager_needed, version_of
from ._findings_catalog import build_finding
from ._gpu_models import LINKS_BOARD, is_datacenter, model_of_name
from ._health_store import acknowledged_xids, earlier_nvlink, earlier_replays, uptime_s, xids_of_earlier_boots
from ._host import CommandResult, Host
from ._judge_gpu import HARDWARE_MASK, reasons_mask
from ._nvlink import NvlinkReading, parse_nvlink
from ._observation import Observation
from ._observe_pci import observe_driver, observe_pci
from ._smi_failure import EXIT_STATUS, GPU_LOST, GPU_UNREACHABLE, NEEDS_RESET, SmiFailure, inforom_corrupted_in
from ._smi_reading import SmiReading, with_index
from ._smi_text import parse_smi_csv
from ._smi_xml import parse_smi_xml
from ._topology import MESHES, parse_topology
from ._xid import parse_kernel_log

SMI, NVLINK, TOPOLOGY, KERNEL_LOG, FABRIC = "nvidia_smi", "nvlink", "topology", "kernel_log", "fabric_manager"
ALL_SOURCES = (SMI, NVLINK, TOPOLOGY, KERNEL_LOG, FABRIC)

DEFAULT_TIMEOUT_S = 30.0
_MAX_GPUS = 16
_SMI_BYTES = 4 * 1024 * 1024
"""Bound on one answer of nvidia-smi: `-q -x` of 16 GPUs is under 1 MiB."""
_KERNEL_LINES = "100000"
_THROTTLE_SAMPLES, _THROTTLE_INTERVAL_S = 4, 5
_SETTLE_UPTIME_S, _SETTLE_TRIES, _SETTLE_INTERVAL_S = 600, 3, 10
"""A GPU registers with the fabric in seconds after boot: within this uptime `In Progress` is read again."""
_OF_ONE_GPU = (GPU_LOST, GPU_UNREACHABLE, NEEDS_RESET)


@dataclass(frozen=True)
class Questions:
    """What to ask: path of nvidia-smi, seconds a command may take, and which sources. `samples` allows waiting for more
    readings where the first one is in doubt; `sample_s` above 0 judges NVLink counters by their growth in that time."""

    nvidia_smi: str = "nvidia-smi"
    timeout_s: float = DEFAULT_TIMEOUT_S
    sources: Tuple[str, ...] = ALL_SOURCES
    samples: bool = True
    sample_s: float = 0.0


def observe(host: Host, ask: Questions) -> Observation:
    seen = Observation(live=True, pci=observe_pci(host), driver=observe_driver(host, ask_modinfo=False))
    seen = replace(seen, covered=("pci",) if seen.pci.readable else ())
    if SMI in ask.sources:
        seen = _ask_smi(host, ask, seen)
    if not _hangs(seen):
        if NVLINK in ask.sources and _may_have_links(seen):
            seen = _ask_nvlink(host, ask, seen)
        if TOPOLOGY in ask.sources and _may_have_links(seen) and _count(seen) > 1 and not _hangs(seen):
            seen = _ask_topology(host, ask, seen)
    if KERNEL_LOG in ask.sources and (seen.pci.gpus or _count(seen)):
        seen = _read_kernel_log(host, ask, seen)
    if FABRIC in ask.sources:
        seen = _ask_fabric(host, ask, seen)
    return seen


def _run(host: Host, ask: Questions, *arguments: str) -> CommandResult:
    return host.run((ask.nvidia_smi,) + arguments, timeout_s=ask.timeout_s, max_bytes=_SMI_BYTES)


def _note(seen: Observation, finding_id: str, result: CommandResult) -> Observation:
    text = result.describe()
    return replace(seen, findings=seen.findings + (build_finding(finding_id, text, "an answer", detail=text),))


def _hangs(seen: Observation) -> bool:
    return any(item["id"] in ("smi_timeout", "smi_missing") for item in seen.findings)


def _count(seen: Observation) -> int:
    return len(seen.smi.gpus) if seen.smi is not None else 0


# -- nvidia-smi ------------------------------------------------------------------------------------------------------


def _ask_smi(host: Host, ask: Questions, seen: Observation) -> Observation:
    result = _run(host, ask, "-q", "-x")
    if result.missing:
        return _note(seen, "smi_missing", result) if seen.pci.gpus or not seen.pci.readable else seen
    if result.timed_out:
        return _note(seen, "smi_timeout", result)
    reading = parse_smi_xml(_both(result))
    if result.truncated:
        reading = replace(reading, incomplete=reading.incomplete + ("the output is longer than is believable",))
    failures = reading.failures
    if result.rc not in (0, None) and not failures:
        failures = (SmiFailure(EXIT_STATUS.get(result.rc, "smi_failed"), result.describe()),)
    reading = replace(reading, failures=failures)
    if not reading.gpus and any(failure.kind in _OF_ONE_GPU for failure in failures):
        reading = _ask_each(host, ask, seen, reading)
    covered = seen.covered + (("nvidia_smi",) if reading.gpus else ())
    seen = replace(seen, smi=reading, replays_earlier=earlier_replays(host), covered=covered)
    if not reading.gpus:
        return seen
    seen = _settle_fabric(host, ask, seen)
    seen = _ask_table(host, ask, seen)
    return _sample_throttling(host, ask, seen) if ask.samples and not _hangs(seen) else seen


def _both(result: CommandResult) -> str:
    """Errors come on either stream."""
    return result.stdout + ("\n" + result.stderr if result.stderr.strip() else "")


def _ask_each(host: Host, ask: Questions, seen: Observation, first: SmiReading) -> SmiReading:
    """One GPU that cannot be opened makes every query fail; `-i INDEX` still answers for the others."""
    gpus: List[Any] = []
    failures = list(first.failures)
    incomplete: List[str] = []
    driver = cuda = None
    total = len(seen.pci.gpus) or _MAX_GPUS
    for index in range(total):
        result = _run(host, ask, "-q", "-x", "-i", str(index))
        if result.timed_out:
            incomplete.append("GPU %d does not answer" % index)
            break
        reading = with_index(parse_smi_xml(_both(result)), index)
        if len(reading.gpus) == 1:
            gpus.extend(reading.gpus)
            driver, cuda = driver or reading.driver_version, cuda or reading.cuda_version
            incomplete.extend(text for text in reading.incomplete if "attached_gpus" not in text)
            continue
        of_this = [replace(item, index=index) for item in reading.failures if item.kind in _OF_ONE_GPU]
        failures = [item for item in failures if not any(_same_gpu(item, this) for this in of_this)] + of_this
        if not of_this and not seen.pci.gpus:
            break
    return SmiReading("xml", tuple(gpus), driver, cuda, None, tuple(failures), (), tuple(incomplete))


def _same_gpu(one: SmiFailure, other: SmiFailure) -> bool:
    """Two texts of one GPU's failure; a text names it by number or by bus id."""
    if one.kind != other.kind:
        return False
    if one.bus_id and other.bus_id:
        return one.bus_id == other.bus_id
    return one.index is None or one.index == other.index


def _ask_table(host: Host, ask: Questions, seen: Observation) -> Observation:
    """A corrupted InfoROM is told by the plain table alone: `-q -x` exits 0 and says nothing (microsoft/pai#3756)."""
    result = _run(host, ask)
    if result.timed_out:
        return _note(seen, "smi_timeout", result)
    corrupted = tuple(inforom_corrupted_in(_both(result)))
    reading = replace(seen.smi, inforom_corrupted=tuple(sorted(set(seen.smi.inforom_corrupted + corrupted))))
    return replace(seen, smi=reading)


def _settle_fabric(host: Host, ask: Questions, seen: Observation) -> Observation:
    for _try in range(_SETTLE_TRIES):
        waiting = any((gpu.get("fabric_state") or "").lower() == "in progress" for gpu in seen.smi.gpus)
        if not waiting or not ask.samples or uptime_s(host) > _SETTLE_UPTIME_S:
            break
        host.run(("sleep", str(_SETTLE_INTERVAL_S)), timeout_s=_SETTLE_INTERVAL_S + 5)
        again = _run(host, ask, "-q", "-x")
        if again.timed_out:
            return _note(seen, "smi_timeout", again)
        reading = parse_smi_xml(_both(again))
        if not reading.gpus:
            break
        seen = replace(seen, smi=reading)
    return seen


def _sample_throttling(host: Host, ask: Questions, seen: Observation) -> Observation:
    """More samples only where the first one shows hardware throttling."""
    if not any(reasons_mask(gpu) & HARDWARE_MASK for gpu in seen.smi.gpus):
        return seen
    samples: Dict[str, List[int]] = {}
    field = "clocks_event_reasons.active"
    for _sample in range(_THROTTLE_SAMPLES):
        host.run(("sleep", str(_THROTTLE_INTERVAL_S)), timeout_s=_THROTTLE_INTERVAL_S + 5)
        result = _run(host, ask, "--query-gpu=pci.bus_id,%s" % field, "--format=csv,noheader")
        if result.rc == 2:
            # Before 535.54 the field had its old name.
            field = "clocks_throttle_reasons.active"
            result = _run(host, ask, "--query-gpu=pci.bus_id,%s" % field, "--format=csv,noheader")
        reading = parse_smi_csv(result.stdout, ("pci.bus_id", field))
        for gpu in reading.gpus if result.rc == 0 and not reading.incomplete else ():
            if gpu.bus_id and gpu.get("reasons_active") is not None:
                samples.setdefault(gpu.bus_id, []).append(gpu.get("reasons_active"))
        if result.rc != 0 or reading.incomplete:
            break
    return replace(seen, throttle_samples=samples)


# -- NVLink and topology ---------------------------------------------------------------------------------------------


def _may_have_links(seen: Observation) -> bool:
    """A model with links, or one that is not known and is no desktop card."""
    for gpu in seen.smi.gpus if seen.smi is not None else ():
        model = model_of_name(gpu.name)
        if model.has_nvlink if model else is_datacenter(gpu.name, gpu.get("product_brand")) is not False:
            return True
    return False


def _ask_nvlink(host: Host, ask: Questions, seen: Observation) -> Observation:
    status, late = _nvlink_of(host, ask, seen, "-s")
    if status is None:
        return _note(seen, "smi_timeout", late)
    seen = replace(seen, nvlink_status=status, covered=seen.covered + ("nvlink_status",))
    errors, late = _nvlink_of(host, ask, seen, "-e")
    earlier = earlier_nvlink(host)
    if errors is not None and ask.sample_s > 0:
        earlier = errors
        host.run(("sleep", "%g" % ask.sample_s), timeout_s=ask.sample_s + 5)
        errors, late = _nvlink_of(host, ask, seen, "-e")
    if errors is None:
        return _note(seen, "smi_timeout", late)
    return replace(seen, nvlink_errors=errors, nvlink_earlier=earlier, covered=seen.covered + ("nvlink_errors",))


def _nvlink_of(
    host: Host, ask: Questions, seen: Observation, what: str
) -> Tuple[Optional[NvlinkReading], CommandResult]:
    """One of the two outputs, GPU by GPU where another one's handle makes the whole fail. None: no answer in time."""
    alone = seen.smi is not None and any(item.kind in _OF_ONE_GPU for item in seen.smi.failures)
    indexes = [gpu.index for gpu in seen.smi.gpus if gpu.index is not None] if alone else []
    readings = []
    for index in indexes or [None]:
        result = _run(host, ask, "nvlink", what, *(() if index is None else ("-i", str(index))))
        if result.timed_out:
            return None, result
        readings.append(_nvlink(result))
    whole = readings[0]
    for reading in readings[1:]:
        whole = replace(
            whole,
            gpus=whole.gpus + reading.gpus,
            failures=whole.failures + reading.failures,
            unknown=whole.unknown + reading.unknown,
        )
    return whole, result


def _nvlink(result: CommandResult) -> NvlinkReading:
    reading = parse_nvlink(_both(result))
    if result.rc not in (0, None) and not reading.failures:
        return replace(reading, failures=(SmiFailure("smi_failed", result.describe()),))
    return reading


def _ask_topology(host: Host, ask: Questions, seen: Observation) -> Observation:
    result = _run(host, ask, "topo", "-m")
    if result.timed_out:
        return _note(seen, "smi_timeout", result)
    seen = replace(seen, topologies=(parse_topology(_both(result)),), covered=seen.covered + ("topology",))
    return _ask_p2p(host, ask, seen) if _is_board(seen) else seen


def _is_board(seen: Observation) -> bool:
    """Whether every pair of some GPUs is joined by NVLink, so that each must reach each."""
    models = (model_of_name(gpu.name) for gpu in seen.smi.gpus)
    boards = [model for model in models if model and model.links == LINKS_BOARD and model.architecture not in MESHES]
    return len(boards) > 1


def _ask_p2p(host: Host, ask: Questions, seen: Observation) -> Observation:
    """Whether the pairs can use their links. A tool that does not know the question leaves it open."""
    result = _run(host, ask, "topo", "-p2p", "n")
    if result.timed_out:
        return _note(seen, "smi_timeout", result)
    topology = parse_topology(_both(result))
    if result.rc != 0 or not topology.p2p:
        return seen
    return replace(seen, topologies=seen.topologies + (topology,), covered=seen.covered + ("p2p",))


# -- kernel log and Fabric Manager -----------------------------------------------------------------------------------


def _read_kernel_log(host: Host, ask: Questions, seen: Observation) -> Observation:
    """The journal of this boot, with times; the ring buffer where there is no journal of the kernel."""
    commands = (
        ("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-unix", "-n", _KERNEL_LINES),
        ("dmesg",),
    )
    for command in commands:
        result = host.run(command, timeout_s=ask.timeout_s)
        if result.rc == 0 and result.stdout.strip():
            acknowledged = acknowledged_xids(host)
            return replace(
                seen,
                kernel=parse_kernel_log(result.stdout),
                acknowledged=acknowledged,
                xid_boots=xids_of_earlier_boots(host, acknowledged),
                covered=seen.covered + ("kernel_log",),
            )
    return _note(seen, "kernel_log_unreadable", result)


def _ask_fabric(host: Host, ask: Questions, seen: Observation) -> Observation:
    if not fabric_needed(seen.pci):
        return seen
    show = ("systemctl", "show", UNIT, "--no-pager", "-p", "LoadState,ActiveState,SubState,NRestarts,Result")
    result = host.run(show, timeout_s=ask.timeout_s)
    unit = parse_unit(result.stdout)
    if not unit.readable:
        return _note(seen, "fabric_manager_unreadable", result)
    if unit.load == "loaded":
        version = host.run(("nv-fabricmanager", "--version"), timeout_s=ask.timeout_s)
        unit = replace(unit, version=version_of(_both(version)))
    if subnet_manager_needed(seen.pci):
        unit = replace(unit, subnet_manager=_subnet_manager(host, ask))
    if unit.load == "loaded" and unit.active != "active":
        # Its own words on why: a machine with A100 shows nothing else.
        words = ("journalctl", "-u", UNIT, "-b", "-q", "--no-pager", "-o", "cat", "-n", "50")
        unit = replace(unit, reason=last_error(host.run(words, timeout_s=ask.timeout_s).stdout))
    return replace(seen, fabric_unit=unit, covered=seen.covered + ("fabric_manager",))


def _subnet_manager(host: Host, ask: Questions) -> Optional[str]:
    """nvlsm has no unit of its own: Fabric Manager's start script starts it."""
    if not host.exists(NVLSM):
        return "missing"
    result = host.run(("pgrep", "-x", "nvlsm"), timeout_s=ask.timeout_s)
    return {0: "running", 1: "stopped"}.get(result.rc if result.rc is not None else -1)
