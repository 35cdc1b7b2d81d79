# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `gpu-health`: check this machine, judge recordings, acknowledge Xids.

Its edge (clock, host name, reading what is named on the command line, writing the store) is handed in, so that the
whole command runs in a test. Exit status: 0 healthy, 1 degraded, 2 failed, 3 unknown or a usage error.
"""

from __future__ import annotations

import json
import posixpath
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._health import Judgement, judge
from ._health_policy import Policy, PolicyError
from ._health_store import (
    ACKNOWLEDGED,
    EARLIER,
    XIDS,
    acknowledged_xids,
    boot_id_of,
    counters_text,
    uptime_s,
    xids_text,
)
from ._host import Host
from ._observation import Observation
from ._observe import Questions, observe
from ._pci import normal_bus_id
from ._prometheus import render_prometheus
from ._recording import observe_recordings
from ._xid import critical_xids

SCHEMA = "gpufleet.health/1"
EXIT_STATUS = {"healthy": 0, "degraded": 1, "failed": 2, "unknown": 3}
USAGE_ERROR = 3


class Edge:
    """What the command needs of its surroundings. `write(path, text)` replaces a file as a whole."""

    def __init__(
        self,
        host: Host,
        write: Callable[[str, str], None],
        now: Callable[[], float],
        host_name: str,
        out: Callable[[str], None],
        err: Callable[[str], None],
        absolute: Callable[[str], str],
        is_dir: Callable[[str], bool],
    ) -> None:
        self.host, self.write, self.now, self.host_name = host, write, now, host_name
        self.out, self.err, self.absolute, self.is_dir = out, err, absolute, is_dir


class UsageError(Exception):
    """A command line or a file named on it that cannot be used."""


def run(options: Any, edge: Edge) -> int:
    """Run the parsed command line (attributes as argparse names them); returns the exit status."""
    try:
        return {"check": _check, "judge": _judge, "ack": _ack}[options.command](options, edge)
    except (UsageError, PolicyError) as error:
        edge.err("gpu-health: %s" % error)
        return USAGE_ERROR


def _policy(options: Any, edge: Edge) -> Policy:
    if not options.policy:
        return Policy()
    text = edge.host.read_text(edge.absolute(options.policy))
    if text is None:
        raise UsageError("policy: %s cannot be read" % options.policy)
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError("policy: %s is not JSON: %s" % (options.policy, error)) from None
    if not isinstance(data, dict):
        raise UsageError("policy: %s must hold an object" % options.policy)
    return Policy(data)


# -- check -----------------------------------------------------------------------------------------------------------


def _check(options: Any, edge: Edge) -> int:
    if options.timeout <= 0:
        raise UsageError("--timeout must be greater than 0")
    policy = _policy(options, edge)
    ask = Questions(options.nvidia_smi, options.timeout)
    seen = observe(edge.host, ask)
    found = judge(seen, policy, options.expected_gpus, options.expected_model)
    if options.store:
        _store(edge, ask, seen)
    if options.prometheus:
        edge.out(render_prometheus(found, edge.now()))
    else:
        _print(found, options.json, edge)
    return EXIT_STATUS[found.verdict]


def _store(edge: Edge, ask: Questions, seen: Observation) -> None:
    """Keep the counters of this moment, and the Xids so far, with the boot they belong to."""
    boot = boot_id_of(edge.host)
    if not boot:
        return
    if seen.kernel is not None:
        edge.write(XIDS, xids_text(edge.host, edge.now(), critical_xids(seen.kernel)))
    links = None
    if seen.nvlink_errors is not None and not seen.nvlink_errors.failures:
        result = edge.host.run((ask.nvidia_smi, "nvlink", "-e"), timeout_s=ask.timeout_s)
        links = result.stdout if result.ok else None
    gpus = seen.smi.gpus if seen.smi is not None else ()
    replays = {
        gpu.bus_id: gpu.get("pcie_replays") for gpu in gpus if gpu.bus_id and gpu.get("pcie_replays") is not None
    }
    if links is not None or replays:
        edge.write(EARLIER, counters_text(boot, edge.now(), uptime_s(edge.host), links, replays))


# -- judge -----------------------------------------------------------------------------------------------------------


def _judge(options: Any, edge: Edge) -> int:
    policy = _policy(options, edge)
    recordings: List[Tuple[str, str]] = []
    for path in options.paths:
        recordings.extend(_recordings(path, edge))
    seen = observe_recordings(recordings, options.kind)
    found = judge(seen, policy, options.expected_gpus, model_hint=options.model)
    _print(found, options.json, edge)
    return EXIT_STATUS[found.verdict]


def _recordings(path: str, edge: Edge) -> List[Tuple[str, str]]:
    full = edge.absolute(path)
    if not edge.is_dir(full):
        text = edge.host.read_text(full)
        if text is None:
            raise UsageError("%s cannot be read" % path)
        return [(path, text)]
    names = [name for name in edge.host.list_dir(full) if not edge.is_dir(posixpath.join(full, name))]
    found = [(name, edge.host.read_text(posixpath.join(full, name))) for name in names]
    if not found:
        raise UsageError("%s holds no file" % path)
    return [(name, text) for name, text in found if text is not None]


# -- ack -------------------------------------------------------------------------------------------------------------


def _ack(options: Any, edge: Edge) -> int:
    if not options.reason.strip():
        raise UsageError("--reason must say something")
    name = "*"
    if options.gpu:
        name = normal_bus_id(options.gpu) or ""
        if not name:
            raise UsageError("--gpu: %r is not a PCI bus id" % options.gpu)
    until = dict(acknowledged_xids(edge.host))
    until[name] = edge.now()
    text = edge.host.read_text(ACKNOWLEDGED)
    history = _history(text)
    history.append({"time": edge.now(), "gpu": name, "reason": options.reason.strip()})
    edge.write(ACKNOWLEDGED, json.dumps({"until": until, "history": history[-100:]}, sort_keys=True, indent=1) + "\n")
    edge.out("Xids of %s until now are acknowledged: %s\n" % ("all GPUs" if name == "*" else name, options.reason))
    return 0


def _history(text: Optional[str]) -> List[Mapping[str, Any]]:
    try:
        history = json.loads(text or "{}").get("history")
    except (ValueError, AttributeError):
        return []
    return list(history) if isinstance(history, list) else []


# -- output ----------------------------------------------------------------------------------------------------------


def document(found: Judgement, edge: Edge) -> Dict[str, Any]:
    """The JSON of `--json`."""
    data = found.as_dict()
    data.update(schema=SCHEMA, host=edge.host_name, time=edge.now())
    return data


def _print(found: Judgement, as_json: bool, edge: Edge) -> None:
    if as_json:
        edge.out(json.dumps(document(found, edge), sort_keys=True) + "\n")
        return
    lines = [found.verdict.upper()]
    for item in found.findings:
        lines.append("%-8s %s: %s" % (item["severity"], item["id"], item["message"]))
        if item["severity"] != "info" and item["remedy"]:
            lines.append("         -> %s" % item["remedy"])
    lines.append("looked at: %s" % (", ".join(dict.fromkeys(found.covered)) or "nothing"))
    edge.out("\n".join(lines) + "\n")
