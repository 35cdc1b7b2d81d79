# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the three health modules have in common: their options, one run, and the result they return."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ._findings import VERDICTS, Finding, role_result, verdict_of
from ._findings_catalog import is_unread
from ._health import Judgement, judge
from ._health_policy import Policy
from ._host import Host
from ._observe import ALL_SOURCES, DEFAULT_TIMEOUT_S, NVLINK, SMI, TOPOLOGY, Questions, observe

ARGUMENTS: Dict[str, Dict[str, Any]] = {
    "nvidia_smi": {"type": "path", "default": "nvidia-smi"},
    "timeout": {"type": "float", "default": DEFAULT_TIMEOUT_S},
    "expected_gpus": {"type": "int"},
    "expected_model": {"type": "str"},
    "policy": {"type": "dict", "default": {}},
    "fail_on": {"type": "list", "elements": "str", "choices": list(VERDICTS), "default": []},
}

_LINK_FINDINGS = (
    "nvlink_",
    "topology_",
    "p2p_",
    "fabric_",
    "sxid_",
    "smi_",
    "driver_",
    "no_",
    "nouveau_",
    "gpu_lost",
    "gpu_unreachable",
    "gpu_count_",
    "gpu_missing_",
)
"""Beginnings of the ids that `nvlink_health` keeps: links, and why they cannot be judged."""


def run_health(host: Host, params: Mapping[str, Any], sources: Tuple[str, ...] = ALL_SOURCES) -> Judgement:
    """Look at the machine and judge it. Raises PolicyError for a policy that cannot be used."""
    if params["timeout"] <= 0:
        raise ValueError("timeout must be greater than 0 seconds, not %s" % params["timeout"])
    if params["expected_gpus"] is not None and params["expected_gpus"] < 0:
        raise ValueError("expected_gpus must not be negative, not %s" % params["expected_gpus"])
    policy = Policy(params["policy"])
    ask = Questions(params["nvidia_smi"], params["timeout"], sources, sample_s=params.get("sample_s") or 0.0)
    seen = observe(host, ask)
    return judge(seen, policy, params["expected_gpus"], params["expected_model"])


def run_nvlink(host: Host, params: Mapping[str, Any]) -> Judgement:
    """The links alone: nvidia-smi is asked for names, and only findings that concern links are kept."""
    if params["sample_s"] < 0:
        raise ValueError("sample_s must not be negative, not %s" % params["sample_s"])
    found = run_health(host, params, (SMI, NVLINK, TOPOLOGY))
    kept = tuple(item for item in found.findings if item["id"].startswith(_LINK_FINDINGS))
    unread = [item["id"] for item in kept if is_unread(item)]
    return Judgement(
        verdict_of(kept, unread), kept, found.gpus, found.links, found.topology, found.covered, found.versions
    )


def module_result(found: Judgement) -> Dict[str, Any]:
    """The return values of a health module; `result` is what a role hands to the report."""
    data = found.as_dict()
    data["changed"] = False
    data["result"] = role_result(
        found.verdict,
        findings=found.findings,
        proven=_proven(found),
        unproven=_unproven(found),
        versions={name: value for name, value in found.versions.items() if value},
    )
    return data


def _proven(found: Judgement) -> Tuple[str, ...]:
    if not found.gpus or found.verdict in ("failed", "unknown"):
        return ()
    links = sum(1 for link in found.links if link["state"] == "active")
    names = sorted({gpu["name"] for gpu in found.gpus if gpu["name"]})
    text = "%d GPU(s) judged %s: %s" % (len(found.gpus), found.verdict, ", ".join(names))
    return (text, "%d NVLink(s) up" % links) if links else (text,)


def _unproven(found: Judgement) -> Tuple[str, ...]:
    if any(item["id"] == "no_gpu" for item in found.findings):
        return ("no GPU to judge",)
    return tuple(item["message"] for item in found.findings if is_unread(item))


def worst_message(found: Judgement) -> str:
    """One line for a failure: the verdict and its worst finding."""
    worst: Optional[Finding] = found.findings[0] if found.findings else None
    return "verdict %s: %s" % (found.verdict, worst["message"] if worst else "nothing was found")


def finish(module: Any, run: Callable[[], Judgement]) -> None:
    """Run, then exit or fail as `fail_on` asks; every key is returned on failure too."""
    try:
        found = run()
    except ValueError as error:
        module.fail_json(msg=str(error))
        return
    result = module_result(found)
    if found.verdict in module.params["fail_on"]:
        module.fail_json(msg=worst_message(found), **result)
        return
    module.exit_json(msg=worst_message(found), **result)
