# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded outputs of a machine to judge anywhere: recognise each by its kind or content, put them together."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._fabric import parse_fabric_log, parse_lspci, parse_status, parse_unit
from ._findings_catalog import build_finding
from ._nvlink import parse_nvlink
from ._observation import Observation
from ._smi_failure import EXIT_STATUS, INFOROM, SmiFailure, failures_in, inforom_corrupted_in
from ._smi_reading import SmiReading
from ._smi_text import parse_smi_csv, parse_smi_list, parse_smi_q, parse_smi_table, query_fields
from ._smi_xml import parse_smi_xml
from ._topology import parse_topology
from ._xid import parse_kernel_log

KINDS = ("smi-xml", "smi-plain", "smi-nvlink-status", "smi-nvlink-errors", "smi-topo", "errors", "xid-logs", "fabric")

FOLDER_FORMS: Mapping[str, str] = {
    "smi-q.xml": "xml",
    "smi-L.txt": "list",
    "nvlink-s.txt": "nvlink",
    "nvlink-e.txt": "nvlink",
    "nvlink-c.txt": "nvlink_capabilities",
    "topo-m.txt": "topo",
    "query.csv": "csv",
}
"""Files of a folder that holds one machine, and what they are. `rc.json` says how the commands ended."""

_COMMANDS = (
    (r"\s-q\b.*\s-x\b|\s-x\b.*\s-q\b", "xml"),
    (r"\snvlink\b", "nvlink"),
    (r"\stopo\b", "topo"),
    (r"--query-gpu", "csv"),
    (r"\s-L\b|--list-gpus", "list"),
    (r"\s-(?:q|a)\b", "q"),
)


def recognise(text: str, kind: Optional[str] = None) -> str:
    """The form of a recording: of its kind where one is given, else of its content; `unknown` where nothing fits."""
    if kind == "smi-xml":
        return "xml"
    if kind in ("smi-nvlink-status", "smi-nvlink-errors"):
        return "nvlink"
    if kind == "smi-topo":
        return "topo"
    if kind == "errors":
        return "run" if "--- stdout ---" in text else _plain(text)
    if kind == "xid-logs":
        return "kernel"
    if kind == "fabric":
        return _fabric(text)
    if kind == "smi-plain":
        return _plain(text)
    return _guess(text)


def _guess(text: str) -> str:
    if "--- command ---" in text and "--- rc ---" in text:
        return "run"
    if "<nvidia_smi_log" in text:
        return "xml"
    if re.search(r"^\s*Link \d+[:,]", text, re.MULTILINE) or re.search(r"links are inactive", text, re.IGNORECASE):
        return "nvlink"
    if re.search(r"^\s+(?:\x1b\[4m)?GPU0\b", text, re.MULTILINE):
        return "topo"
    if re.search(r"NVRM: |SXid \(|XidCriticalError|nvidia-nvswitch\d*: ", text):
        return "kernel"
    fabric = _fabric(text)
    if fabric in ("lspci", "unit", "status"):
        return fabric
    if re.search(r"fabric ?manager|NVSwitch", text, re.IGNORECASE):
        return "fabric_log"
    return _plain(text)


def _plain(text: str) -> str:
    if "NVSMI LOG" in text or re.search(r"^\s+(?:Product Name|ECC Errors|Retired Pages|Fabric)\b", text, re.MULTILINE):
        return "q"
    if re.search(r"^\|\s+\d+\s+\S.*\|", text, re.MULTILINE):
        return "table"
    if re.search(r"^NVIDIA-SMI version\s*:", text, re.MULTILINE):
        return "version"
    if re.search(r"^GPU \d+: ", text, re.MULTILINE):
        return "list"
    first = next((line for line in text.splitlines() if line.strip()), "")
    if "," in first and not failures_in(first):
        return "csv"
    return "failure" if failures_in(text) or inforom_corrupted_in(text) else "unknown"


def _fabric(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    if re.match(r"^index, ", first):
        return "csv"
    if parse_lspci(text):
        return "lspci"
    if re.search(r"^LoadState=", text, re.MULTILINE):
        return "unit"
    if re.search(r"^\s*Active: ", text, re.MULTILINE) and re.search(r"^\s*Loaded: ", text, re.MULTILINE):
        return "status"
    if re.search(r"^\s+(?:Fabric|State)\b", text, re.MULTILINE) and "[" not in first:
        return "q"
    return "fabric_log"


# -- putting recordings together -------------------------------------------------------------------------------------


def observe_recordings(recordings: Iterable[Tuple[str, str]], kind: Optional[str] = None) -> Observation:
    """One machine of (name, text) pairs, e.g. the files of a folder. The name tells what an empty file is of."""
    seen = Observation()
    status: Mapping[str, Any] = {}
    pairs = sorted(recordings)
    for name, text in pairs:
        if name.rpartition("/")[2] == "rc.json":
            status = _exit_statuses(text)
    for name, text in pairs:
        base = name.rpartition("/")[2]
        if base == "rc.json":
            continue
        form = FOLDER_FORMS.get(base) or recognise(text, kind)
        entry = status.get(base) or {}
        command = " ".join(entry.get("cmd") or ())
        seen = add_recording(seen, form, text, command=command, rc=entry.get("rc"), main=base == "smi-q.xml")
    return seen


def _exit_statuses(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return {name: entry for name, entry in data.items() if isinstance(entry, dict)} if isinstance(data, dict) else {}


def add_recording(
    seen: Observation, form: str, text: str, command: str = "", rc: Optional[int] = None, main: bool = True
) -> Observation:
    """The observation with one more recording. `rc` counts only for the `main` one, and only where no text tells."""
    if form == "run":
        return _add_run(seen, text)
    adders = {
        "xml": lambda: _add_smi(seen, parse_smi_xml(text), "nvidia_smi"),
        "q": lambda: _add_smi(seen, parse_smi_q(text), "nvidia_smi"),
        "table": lambda: _add_extra(seen, parse_smi_table(text)),
        "csv": lambda: _add_extra(seen, parse_smi_csv(text, query_fields(command))),
        "list": lambda: replace(seen, listing=parse_smi_list(text), covered=seen.covered + ("gpu_list",)),
        "nvlink": lambda: _add_nvlink(seen, text),
        # Its "Link is supported: false" stands on working links: the capabilities say nothing about health.
        "nvlink_capabilities": lambda: seen,
        "topo": lambda: replace(
            seen, topologies=seen.topologies + (parse_topology(text),), covered=seen.covered + ("topology",)
        ),
        "kernel": lambda: _add_kernel(seen, text),
        "fabric_log": lambda: _add_fabric_log(seen, text),
        "unit": lambda: replace(seen, fabric_unit=parse_unit(text), covered=seen.covered + ("fabric_manager",)),
        "status": lambda: replace(seen, fabric_unit=parse_status(text), covered=seen.covered + ("fabric_manager",)),
        "lspci": lambda: replace(seen, covered=seen.covered + ("pci",)),
        "failure": lambda: _add_failure(seen, text),
        "version": lambda: seen,
    }
    adder = adders.get(form)
    if adder is None:
        return _with_finding(seen, "smi_unreadable", "nothing that is known")
    after = adder()
    if main and rc not in (None, 0):
        after = _add_status(after, int(rc), text)
    return after


def _with_finding(seen: Observation, finding_id: str, text: str) -> Observation:
    return replace(seen, findings=seen.findings + (build_finding(finding_id, text, None, detail=text),))


def _add_smi(seen: Observation, reading: SmiReading, name: str) -> Observation:
    """The richest reading stands; another one of the same machine is kept beside it."""
    if seen.smi is None or (reading.gpus and not seen.smi.gpus):
        return replace(seen, smi=reading, covered=seen.covered + (name,))
    return replace(seen, extra=seen.extra + (reading,))


def _add_extra(seen: Observation, reading: SmiReading) -> Observation:
    return replace(seen, extra=seen.extra + (reading,), covered=seen.covered + ("nvidia_smi_%s" % reading.form,))


def _add_failure(seen: Observation, text: str) -> Observation:
    reading = SmiReading("text", failures=tuple(failures_in(text)), inforom_corrupted=tuple(inforom_corrupted_in(text)))
    if reading.inforom_corrupted and not reading.failures:
        return replace(seen, failures=seen.failures + (SmiFailure(INFOROM, text.strip()[:200]),))
    return replace(seen, failures=seen.failures + reading.failures)


def _add_nvlink(seen: Observation, text: str) -> Observation:
    reading = parse_nvlink(text)
    if reading.what == "errors":
        return replace(seen, nvlink_errors=reading, covered=seen.covered + ("nvlink_errors",))
    if reading.what == "capabilities":
        return replace(seen, covered=seen.covered + ("nvlink_capabilities",))
    if seen.nvlink_status is not None:
        return seen
    return replace(seen, nvlink_status=reading, covered=seen.covered + ("nvlink_status",))


def _add_kernel(seen: Observation, text: str) -> Observation:
    log = parse_kernel_log(text)
    if not log.lines:
        return _with_finding(seen, "kernel_log_unreadable", "the log is empty")
    return replace(seen, kernel=log, covered=seen.covered + ("kernel_log",))


def _add_fabric_log(seen: Observation, text: str) -> Observation:
    log = parse_fabric_log(text)
    if not log.alive and not log.errors and not log.nothing_to_do:
        return _with_finding(seen, "fabric_manager_unreadable", "no line of Fabric Manager")
    return replace(seen, fabric_log=log, covered=seen.covered + ("fabric_manager",))


# -- one run: command, exit status, both streams ---------------------------------------------------------------------

_SECTION = re.compile(r"^--- (command|rc|stdout|stderr) ---\s*$", re.MULTILINE)


def parse_run(text: str) -> Dict[str, str]:
    parts = _SECTION.split(text)
    return {name: body.strip("\n") for name, body in zip(parts[1::2], parts[2::2])}


def _add_run(seen: Observation, text: str) -> Observation:
    run = parse_run(text)
    command, rc = run.get("command", "").strip(), run.get("rc", "").strip()
    output = run.get("stdout", "") + ("\n" + run["stderr"] if run.get("stderr", "").strip() else "")
    form = next((form for pattern, form in _COMMANDS if re.search(pattern, command)), None)
    if not output.strip():
        form = "nothing"
    elif form in (None, "topo") and failures_in(output) and _plain(output) == "failure":
        form = "failure"
    elif form is None:
        form = _guess(output)
    status = int(rc) if re.match(r"^-?\d+$", rc) else None
    if form == "nothing":
        if status in (None, 0):
            return _with_finding(seen, "smi_unreadable", "the output is empty")
        return _add_status(seen, status, output)
    return add_recording(seen, form, output, command=command, rc=status)


def _add_status(seen: Observation, rc: int, text: str) -> Observation:
    """An exit status other than 0 counts where the output did not already say why."""
    if _failure_kinds(seen) or inforom_corrupted_in(text):
        return seen
    kind = EXIT_STATUS.get(rc, "smi_failed")
    return replace(seen, failures=seen.failures + (SmiFailure(kind, "exit status %d" % rc),))


def _failure_kinds(seen: Observation) -> List[str]:
    readings: Sequence[Any] = [reading for reading in (seen.smi, *seen.extra, seen.listing) if reading is not None]
    readings = list(readings) + [item for item in (seen.nvlink_status, seen.nvlink_errors) if item is not None]
    kinds = [failure.kind for reading in readings for failure in reading.failures]
    kinds += [failure.kind for topology in seen.topologies for failure in topology.failures]
    return kinds + [failure.kind for failure in seen.failures]
