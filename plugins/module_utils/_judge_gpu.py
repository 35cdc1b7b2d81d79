# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what one GPU says of itself: reachable, sensors, temperature, throttling, power, PCIe, modes, fabric."""

from __future__ import annotations

from typing import Iterable, List, Mapping, Sequence, Tuple

from ._findings import Finding
from ._findings_catalog import build_finding
from ._gpu_models import is_datacenter, model_of_name
from ._health_policy import Policy
from ._smi_fields import BY_NAME, LOST, RESET_REQUIRED, SENSOR, UNKNOWN_ERROR, VITAL
from ._smi_reading import GpuReading, malformed_fields

MASK_IDLE = 0x1
MASK_HW_SLOWDOWN = 0x8
MASK_SW_THERMAL = 0x20
MASK_HW_THERMAL = 0x40
MASK_HW_POWER_BRAKE = 0x80
HARDWARE_MASK = MASK_HW_SLOWDOWN | MASK_HW_THERMAL | MASK_HW_POWER_BRAKE
"""Clock event reasons, nvml.h. A mask: several can be set at once."""

_MASK_FIELDS = (
    ("reason_idle", MASK_IDLE),
    ("reason_app_clocks", 0x2),
    ("reason_sw_power_cap", 0x4),
    ("reason_hw_slowdown", MASK_HW_SLOWDOWN),
    ("reason_sync_boost", 0x10),
    ("reason_sw_thermal", MASK_SW_THERMAL),
    ("reason_hw_thermal", MASK_HW_THERMAL),
    ("reason_hw_power_brake", MASK_HW_POWER_BRAKE),
)


def reasons_mask(gpu: GpuReading) -> int:
    """The clock event reasons as one mask, from the single fields or the hexadecimal one."""
    mask = gpu.get("reasons_active") or 0
    for name, bit in _MASK_FIELDS:
        mask |= bit if gpu.get(name) else 0
    return mask


def is_idle(gpu: GpuReading) -> bool:
    return bool(reasons_mask(gpu) & MASK_IDLE)


def is_busy(gpu: GpuReading) -> bool:
    """Working: utilisation or a process, and the driver does not call it idle."""
    return not is_idle(gpu) and bool((gpu.get("gpu_util") or 0) > 0 or (gpu.processes or 0) > 0)


def judge_gpu(gpu: GpuReading, policy: Policy, samples: Sequence[int] = ()) -> List[Finding]:
    """Findings of one GPU, memory errors left out (`_judge_memory`). `samples` are further live reason masks."""
    unreadable = judge_unreadable(gpu)
    if gpu.lost:
        return unreadable
    return [
        *unreadable,
        *_recovery(gpu),
        *_temperature(gpu),
        *_throttle(gpu, policy, samples),
        *_power(gpu, policy),
        *_pcie(gpu, policy),
        *_modes(gpu, policy),
        *_fabric(gpu),
    ]


def judge_unreadable(gpu: GpuReading) -> List[Finding]:
    """What cannot be read, by how much it matters. One finding a GPU and degree, however many fields it takes."""
    found: List[Finding] = []
    where = dict(list(gpu.strays.items()) + list(gpu.problems.items()))
    for problem, finding_id in ((LOST, "gpu_lost"), (RESET_REQUIRED, "gpu_reset_required")):
        names = sorted(name for name, value in where.items() if value == problem)
        if names:
            found.append(
                build_finding(finding_id, _few(names), "readable", gpu.ref, detail="reads so in " + _few(names))
            )
    if gpu.lost:
        return found
    unknown = sorted(name for name, value in where.items() if value == UNKNOWN_ERROR)
    tiers = {name: BY_NAME[name].tier if name in BY_NAME else "" for name in unknown}
    for tier, finding_id in ((VITAL, "vital_unreadable"), (SENSOR, "sensor_unreadable"), ("", "field_unreadable")):
        names = [name for name in unknown if (tiers[name] == tier if tier else tiers[name] not in (VITAL, SENSOR))]
        if names:
            found.append(build_finding(finding_id, _few(names), "readable", gpu.ref, detail=_few(names)))
    absent = sorted(set(gpu.missing)) + malformed_fields(gpu)
    if absent:
        found.append(build_finding("fields_missing", _few(absent), "present", gpu.ref, detail=_few(absent)))
    return found


def _few(names: Iterable[str], limit: int = 6) -> str:
    names = list(names)
    more = len(names) - limit
    return ", ".join(names[:limit]) + (" and %d more" % more if more > 0 else "")


def _recovery(gpu: GpuReading) -> List[Finding]:
    found = []
    action = gpu.get("recovery_action")
    if action and action.lower() != "none":
        finding_id = "recovery_drain" if action.lower() == "drain p2p" else "recovery_action"
        found.append(build_finding(finding_id, action, "None", gpu.ref, detail=action))
    if gpu.get("reset_required"):
        found.append(build_finding("gpu_reset_required", "Yes", "No", gpu.ref))
    elif gpu.get("drain_and_reset"):
        found.append(build_finding("recovery_action", "Drain and Reset", "None", gpu.ref, detail="Drain and Reset"))
    checksum = (gpu.get("inforom_checksum") or "").lower()
    if checksum == "invalid":
        found.append(build_finding("inforom_invalid", checksum, "valid", gpu.ref))
    return found


def _temperature(gpu: GpuReading) -> List[Finding]:
    """By the card's own limits. A T.Limit margin falls to 0 at the operating limit; slowdown is below its offset."""
    temperature, margin = gpu.get("temperature"), gpu.get("tlimit_margin")
    slowdown, offset = gpu.get("slowdown_temperature"), gpu.get("tlimit_slowdown")
    if temperature is not None and slowdown and temperature >= slowdown:
        return [_hot("temperature_critical", gpu, temperature, slowdown)]
    if margin is not None and offset is not None and margin < offset:
        text = "T.Limit margin %g C, slowdown below %g C" % (margin, offset)
        return [build_finding("temperature_critical", "%g C margin" % margin, ">= %g C" % offset, gpu.ref, detail=text)]
    found = []
    operating = gpu.get("max_operating_temperature")
    if temperature is not None and operating and temperature > operating:
        found.append(_hot("temperature_high", gpu, temperature, operating))
    memory, limit = gpu.get("memory_temperature"), gpu.get("max_memory_temperature")
    if memory is not None and limit and memory > limit:
        found.append(_hot("temperature_high", gpu, memory, limit, "memory "))
    return found


def _hot(finding_id: str, gpu: GpuReading, seen: float, limit: float, what: str = "") -> Finding:
    detail = "%s%g C, limit %g C" % (what, seen, limit)
    return build_finding(finding_id, "%g C" % seen, "below %g C" % limit, gpu.ref, detail=detail)


def _throttle(gpu: GpuReading, policy: Policy, samples: Sequence[int]) -> List[Finding]:
    """Hardware throttling. A recording shows one moment and is taken at its word; live, several samples decide."""
    mask = reasons_mask(gpu)
    found: List[Finding] = []
    for finding_id, bits in _hardware_reasons(mask):
        observed = "0x%x" % mask
        if samples:
            seen = 1 + sum(1 for sample in samples if sample & bits)
            if seen < policy.get("throttle_samples_min", gpu.name):
                text = "in %d of %d samples" % (seen, len(samples) + 1)
                found.append(build_finding("throttle_transient", observed, "0x0", gpu.ref, detail=text))
                continue
        found.append(build_finding(finding_id, observed, "no hardware slowdown", gpu.ref))
    if mask & MASK_SW_THERMAL and not found:
        found.append(build_finding("throttle_software_thermal", "0x%x" % mask, "no slowdown", gpu.ref))
    return found


def _hardware_reasons(mask: int) -> List[Tuple[str, int]]:
    """`HW Slowdown` stands beside the reason for it; alone it says no more than that."""
    reasons = []
    if mask & MASK_HW_THERMAL:
        reasons.append(("throttle_thermal", MASK_HW_THERMAL))
    if mask & MASK_HW_POWER_BRAKE:
        reasons.append(("throttle_power_brake", MASK_HW_POWER_BRAKE))
    if mask & MASK_HW_SLOWDOWN and not reasons:
        reasons.append(("throttle_hardware", MASK_HW_SLOWDOWN))
    return reasons


def _power(gpu: GpuReading, policy: Policy) -> List[Finding]:
    limit, default = gpu.get("power_limit"), gpu.get("power_limit_default")
    declared = policy.get("power_limit_w", gpu.name)
    found = []
    if limit is not None and declared is not None:
        if abs(limit - declared) > 1.0:
            text = "%g W, declared %g W" % (limit, declared)
            found.append(build_finding("power_limit_differs", limit, declared, gpu.ref, detail=text))
    elif limit is not None and default is not None and limit < default - 1.0:
        text = "%g W, default %g W" % (limit, default)
        found.append(build_finding("power_limit_low", limit, default, gpu.ref, detail=text))
    clock, usual = gpu.get("app_clock"), gpu.get("app_clock_default")
    if clock and usual and clock < usual and is_busy(gpu):
        text = "%g MHz, default %g MHz" % (clock, usual)
        found.append(build_finding("app_clocks_low", clock, usual, gpu.ref, detail=text))
    return found


def pcie_shortfall(gpu: GpuReading, policy: Policy) -> Mapping[str, Tuple[int, int]]:
    """What the PCIe link lacks: ``{"width": (seen, wanted), "generation": (seen, wanted)}``.

    Lanes do not change with load. The generation drops at idle to save power, so it counts only on a busy GPU in a
    high performance state.
    """
    lacks = {}
    width = gpu.get("pcie_width_current")
    wanted = policy.get("expected_pcie_width", gpu.name) or gpu.get("pcie_width_max")
    if width and wanted and width < wanted:
        lacks["width"] = (width, wanted)
    generation = gpu.get("pcie_gen_current")
    wanted = policy.get("expected_pcie_generation", gpu.name) or gpu.get("pcie_gen_max")
    if generation and wanted and generation < wanted and is_busy(gpu) and _fast_state(gpu):
        lacks["generation"] = (generation, wanted)
    return lacks


def _fast_state(gpu: GpuReading) -> bool:
    return gpu.get("performance_state") in ("P0", "P1", "P2")


def _pcie(gpu: GpuReading, policy: Policy) -> List[Finding]:
    lacks = pcie_shortfall(gpu, policy)
    if len(lacks) == 2:
        text = "generation %d of %d, %d of %d lanes" % (lacks["generation"] + lacks["width"])
        return [build_finding("pcie_degraded", text, "full speed", gpu.ref, detail=text)]
    found = []
    if "width" in lacks:
        seen, wanted = lacks["width"]
        text = "x%d of x%d" % (seen, wanted)
        found.append(build_finding("pcie_width_low", seen, wanted, gpu.ref, detail=text))
    if "generation" in lacks:
        seen, wanted = lacks["generation"]
        text = "generation %d of %d" % (seen, wanted)
        found.append(build_finding("pcie_generation_low", seen, wanted, gpu.ref, detail=text))
    return found


def _modes(gpu: GpuReading, policy: Policy) -> List[Finding]:
    datacenter = is_datacenter(gpu.name, gpu.get("product_brand"))
    found: List[Finding] = []
    if gpu.get("persistence_mode") is False:
        required = policy.get("persistence_required", gpu.name)
        wanted = required if required is not None else datacenter is not False
        finding_id = "persistence_off" if wanted else "persistence_off_desktop"
        found.append(build_finding(finding_id, "Disabled", "Enabled", gpu.ref))
    ecc, pending = gpu.get("ecc_current"), gpu.get("ecc_pending")
    if ecc is False:
        required = policy.get("ecc_required", gpu.name)
        if required if required is not None else datacenter:
            found.append(build_finding("ecc_off", "Disabled", "Enabled", gpu.ref))
    if ecc is not None and pending is not None and ecc != pending:
        found.append(build_finding("ecc_mode_pending", _mode(pending), _mode(ecc), gpu.ref))
    found.extend(_mig(gpu, policy))
    found.extend(_compute_mode(gpu, policy))
    found.extend(_memory_held(gpu, policy))
    if gpu.name and model_of_name(gpu.name) is None:
        found.append(build_finding("model_unknown", gpu.name, None, gpu.ref, detail=gpu.name))
    return found


def _mode(value: bool) -> str:
    return "Enabled" if value else "Disabled"


def _mig(gpu: GpuReading, policy: Policy) -> List[Finding]:
    found = []
    mig, pending = gpu.get("mig_current"), gpu.get("mig_pending")
    if mig is not None and pending is not None and mig != pending:
        found.append(build_finding("mig_mode_pending", _mode(pending), _mode(mig), gpu.ref))
    declared = policy.get("mig_mode", gpu.name)
    if declared is not None and mig is not None and mig != declared.lower().startswith(("en", "on", "tr", "ye")):
        found.append(build_finding("mig_mode_differs", _mode(mig), declared, gpu.ref))
    return found


def _compute_mode(gpu: GpuReading, policy: Policy) -> List[Finding]:
    mode = gpu.get("compute_mode")
    if mode is None:
        return []
    plain = mode.lower().replace("_", " ").rstrip(".")
    declared = policy.get("compute_mode", gpu.name)
    if declared is not None and plain == declared.lower().replace("_", " "):
        return []
    if plain.startswith("prohibited"):
        return [build_finding("compute_prohibited", mode, declared or "Default", gpu.ref)]
    if plain.startswith(("exclusive", "e. process", "e. thread")):
        return [build_finding("compute_exclusive", mode, declared or "Default", gpu.ref)]
    return []


def _memory_held(gpu: GpuReading, policy: Policy) -> List[Finding]:
    used, total = gpu.get("memory_used"), gpu.get("memory_total")
    if gpu.processes != 0 or gpu.get("mig_current") or gpu.get("gpu_util") != 0 or not used or not total:
        return []
    percent = 100.0 * used / total
    if used < policy.get("memory_held_mib", gpu.name) or percent < policy.get("memory_held_percent", gpu.name):
        return []
    text = "%d of %d MiB" % (used, total)
    return [build_finding("memory_held", used, 0, gpu.ref, detail=text)]


def _fabric(gpu: GpuReading) -> List[Finding]:
    """State and health of the NVLink fabric. N/A and Not Supported are what PCIe cards, A100 and VMs say."""
    state, status = gpu.get("fabric_state"), gpu.get("fabric_status")
    if state and state.lower() not in ("completed", "not supported", "none"):
        text = "%s%s" % (state, " (%s)" % status if status else "")
        return [build_finding("fabric_not_completed", state, "Completed", gpu.ref, detail=text)]
    if status and status.lower() != "success":
        return [build_finding("fabric_not_completed", status, "Success", gpu.ref, detail=status)]
    worse, bad = [], []
    summary = (gpu.get("fabric_summary") or "").lower()
    if summary == "unhealthy":
        worse.append("summary Unhealthy")
    elif summary not in ("", "healthy", "none"):
        bad.append("summary %s" % gpu.get("fabric_summary"))
    if (gpu.get("fabric_bandwidth") or "full").lower() != "full":
        bad.append("bandwidth %s" % gpu.get("fabric_bandwidth"))
    if gpu.get("fabric_route_unhealthy"):
        worse.append("route unhealthy")
    if gpu.get("fabric_access_timeout"):
        worse.append("access timeout recovery")
    if gpu.get("fabric_route_recovery"):
        bad.append("route recovery in progress")
    configuration = gpu.get("fabric_configuration")
    if configuration and configuration.lower() != "none":
        worse.append("configuration: %s" % configuration)
    if not worse and not bad:
        return []
    text = ", ".join(worse + bad)
    return [build_finding("fabric_unhealthy" if worse else "fabric_degraded", text, "healthy", gpu.ref, detail=text)]
