# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the texts of nvidia-smi: `-q` (whole, with `-d`, or an excerpt), the default table, `-L`, and CSV queries.

Lines that are not understood are passed over; a value that is not understood makes the reading incomplete.
"""

from __future__ import annotations

import csv
import re
from typing import Dict, List, Optional, Sequence, Tuple

from ._smi_failure import failures_in, inforom_corrupted_in
from ._smi_reading import GpuReading, SmiReading, branch_of, build_gpu
from ._smi_xml import LOWEST_BRANCH

_Q_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_Q_LINE = re.compile(r"^(\s*)(.*?)\s*:(?:\s(.*))?$")
_Q_ELISION = re.compile(r"^\s*\[?\.\.\.\]?\s*$")
_VERSION = re.compile(r"^(\d{3}\.\d+(?:\.\d+)?)")
_FULL_MARKS = ("product name", "gpu uuid", "vbios version")
_NO_ATTACHED = "the number of attached GPUs is missing"


def parse_smi_q(text: str) -> SmiReading:
    """`nvidia-smi -q`. A block that carries identity must be whole, unless its author left out parts (`[...]`)."""
    lines = text.splitlines()
    head, blocks = _split_q(lines)
    driver = _version(head.get("kmd version") or head.get("driver version"))
    elided = any(_Q_ELISION.match(line) for line in lines)
    whole = not elided and any(mark in leaves for _bus, leaves, _extra in blocks for mark in _FULL_MARKS)
    branch = (branch_of(driver) or LOWEST_BRANCH) if whole else None
    gpus = [
        build_gpu(position, bus_id, leaves, lambda item: item.text, required_from=branch, **extra)
        for position, (bus_id, leaves, extra) in enumerate(blocks)
    ]
    incomplete = []
    attached = head.get("attached gpus")
    if whole:
        if driver is None:
            incomplete.append("the driver version is missing")
        if attached is None:
            incomplete.append(_NO_ATTACHED)
        if any("processes" not in leaves for _bus, leaves, _extra in blocks):
            incomplete.append("a GPU's block has no end (Processes)")
    elif not elided:
        incomplete.extend(_uneven(blocks))
    return SmiReading(
        form="q",
        gpus=tuple(gpus),
        driver_version=driver,
        cuda_version=head.get("cuda version") or head.get("cuda umd version"),
        attached=int(attached) if (attached or "").isdigit() and not elided else None,
        failures=tuple(failures_in(text)),
        inforom_corrupted=tuple(inforom_corrupted_in(text)),
        incomplete=tuple(incomplete),
    )


def _split_q(lines: Sequence[str]):
    """(header, [(bus id, leaves, extra)]): paths are lower case, joined by `/`, found by indentation alone."""
    head: Dict[str, str] = {}
    blocks: List[Tuple[Optional[str], Dict[str, str], Dict[str, int]]] = []
    stack: List[Tuple[int, str]] = []
    for line in lines:
        started = _Q_GPU.match(line)
        if started:
            blocks.append((started.group(1), {}, {}))
            stack = []
            continue
        if not line.strip() or line.lstrip().startswith(("=", "[", "#", "+", "|")):
            continue
        match = _Q_LINE.match(line) if " :" in line else None
        indent = len(line) - len(line.lstrip())
        label = " ".join((match.group(2) if match else line).split()).lower()
        value = (match.group(3) or "").strip() if match else None
        if indent == 0 and not blocks:
            if value is not None:
                head[label] = value
            continue
        if not blocks:
            blocks.append((None, {}, {}))
        while stack and stack[-1][0] >= indent:
            stack.pop()
        path = "/".join([name for _indent, name in stack] + [label])
        stack.append((indent, label))
        _note_q(blocks[-1], path, label, value)
    return head, blocks


def _note_q(block, path: str, label: str, value: Optional[str]) -> None:
    _bus, leaves, extra = block
    if path.startswith("processes"):
        leaves.setdefault("processes", value or "")
        extra.setdefault("processes", 0)
        extra.setdefault("compute_processes", 0)
        if label == "process id":
            extra["processes"] += 1
        if label == "type" and "c" in (value or "").lower():
            extra["compute_processes"] += 1
    elif path.startswith("mig device"):
        if label == "index":
            extra["mig_devices"] = extra.get("mig_devices", 0) + 1
        if label.startswith("sram uncorrectable") and (value or "").isdigit():
            extra["mig_uncorrectable"] = extra.get("mig_uncorrectable", 0) + int(value or 0)
    elif value is not None:
        leaves[path] = value


def _uneven(blocks) -> List[str]:
    """A selection (`-q -d …`) has the same fields for every GPU; where one has fewer, the text was cut off."""
    if len(blocks) < 2:
        return []
    most = max(len(leaves) for _bus, leaves, _extra in blocks)
    last_bus, last_leaves, _extra = blocks[-1]
    if len(last_leaves) < most and len(blocks[0][1]) == most:
        return ["the block of %s ends early" % (last_bus or "the last GPU")]
    return []


def _version(text: Optional[str]) -> Optional[str]:
    match = _VERSION.match((text or "").strip())
    return match.group(1) if match else None


# -- default table ---------------------------------------------------------------------------------------------------

_ROW1 = re.compile(
    r"^\|\s*(\d+)\s+(\S.*?)\s+(On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|"
    r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+\S+\s*\|\s*(\S.*?)\s*\|\s*$"
)
_ROW2 = re.compile(
    r"^\|\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)\s+(\S.*?)\s*\|\s*$"
)
_ROW3 = re.compile(r"^\|\s+\|\s+\|\s*(Enabled\*?|Disabled\*?|N/A)\s*\|\s*$")
_TABLE_HEAD = re.compile(r"NVIDIA-SMI\s+\S+\s+(?:Driver|KMD) Version:\s*(\d{3}\.\S+)")
_TABLE_PROCESS = re.compile(r"^\|\s+(\d+)\s+\S+\s+\S+\s+(\d+)\s+([CGM+]+)\s")


def parse_smi_table(text: str) -> SmiReading:
    """The table that nvidia-smi prints without arguments; product names in it are cut to fit."""
    lines = text.splitlines()
    head = next((match for match in map(_TABLE_HEAD.search, lines) if match), None)
    gpus: List[GpuReading] = []
    incomplete: List[str] = []
    listed = any("Processes:" in line for line in lines)
    for position, line in enumerate(lines):
        first = _ROW1.match(line)
        if not first:
            continue
        second = _ROW2.match(lines[position + 1]) if position + 1 < len(lines) else None
        third = _ROW3.match(lines[position + 2]) if position + 2 < len(lines) else None
        if second is None:
            incomplete.append("GPU %s: its second line is missing" % first.group(1))
        gpus.append(_table_gpu(first, second, third, lines if listed else None))
    if head and not listed and not any("No running" in line for line in lines):
        incomplete.append("the table has no process part")
    numbers = [gpu.index for gpu in gpus]
    if head and numbers != list(range(len(numbers))):
        incomplete.append("GPU numbers are not consecutive: %s" % numbers)
    return SmiReading(
        form="table",
        gpus=tuple(gpus),
        driver_version=_version(head.group(1)) if head else None,
        failures=tuple(failures_in(text)),
        inforom_corrupted=tuple(inforom_corrupted_in(text)),
        incomplete=tuple(incomplete),
    )


def _table_gpu(first, second, third, lines: Optional[Sequence[str]]) -> GpuReading:
    ecc = first.group(5)
    leaves = {
        "product_name": first.group(2).rstrip("."),
        "persistence_mode": first.group(3) if first.group(3) in ("On", "Off", "ERR!") else "N/A",
        "ecc_current": {"Off": "Off", "N/A": "N/A", "ERR!": "ERR!"}.get(ecc, "On"),
        "volatile_uncorrected_total": "N/A" if ecc == "Off" else ecc,
    }
    if second:
        fan, temperature, state, draw, limit, used, total, util, mode = second.groups()
        leaves.update(
            fan_speed=fan,
            temperature=temperature,
            performance_state=state,
            power_draw=draw,
            power_limit=limit,
            memory_used=used,
            memory_total=total,
            gpu_util=util,
            compute_mode=mode,
        )
    if third:
        leaves["mig_current"] = third.group(1).rstrip("*")
        if third.group(1).endswith("*"):
            leaves["mig_pending"] = "Disabled" if leaves["mig_current"] == "Enabled" else "Enabled"
    index = int(first.group(1))
    extra = {}
    if lines is not None:
        types = [match.group(3) for match in map(_TABLE_PROCESS.match, lines) if match and int(match.group(1)) == index]
        extra = {"processes": len(types), "compute_processes": sum("C" in kind for kind in types)}
    return build_gpu(index, first.group(4), leaves, lambda item: (item.name,), **extra)


# -- list ------------------------------------------------------------------------------------------------------------

_LIST = re.compile(r"^GPU (\d+): (.+?)(?: \(UUID: (\S+)\))?\s*$")


def parse_smi_list(text: str) -> SmiReading:
    """`nvidia-smi -L`: one line a GPU; indented lines are its MIG devices."""
    gpus = []
    for line in text.splitlines():
        match = _LIST.match(line)
        if match:
            leaves = {"product_name": match.group(2), "uuid": match.group(3) or "N/A"}
            gpus.append(build_gpu(int(match.group(1)), None, leaves, lambda item: (item.name,)))
    return SmiReading("list", gpus=tuple(gpus), failures=tuple(failures_in(text)))


# -- CSV -------------------------------------------------------------------------------------------------------------

_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")
_QUERY = re.compile(r"--query-gpu[= ](\S+)")


def query_fields(command: str) -> List[str]:
    """The field names of a `nvidia-smi --query-gpu=…` command line; empty where there are none."""
    match = _QUERY.search(command)
    return match.group(1).split(",") if match else []


def parse_smi_csv(text: str, columns: Sequence[str] = ()) -> SmiReading:
    """A `--query-gpu` table. `columns` are its field names where it was asked for without a header.

    The line of a GPU that cannot be reached replaces its row and has no commas.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    names = [_UNIT.sub("", name).strip() for name in (_cells(lines[0]) if lines else [])]
    if _is_header(names):
        lines = lines[1:]
    else:
        names = [name.strip() for name in columns]
    failures = failures_in(text)
    if not names:
        return SmiReading("csv", failures=tuple(failures), incomplete=("the columns have no names",))
    gpus, incomplete, counts = [], [], set()
    for line in lines:
        if any(failure.text == line.strip() for failure in failures):
            continue
        cells = _cells(line)
        if len(cells) != len(names):
            incomplete.append("a row has %d values for %d columns" % (len(cells), len(names)))
            continue
        leaves = {name: cell.strip() for name, cell in zip(names, cells)}
        index = leaves.get("index", "")
        counts.add(leaves.get("count", ""))
        position = int(index) if index.isdigit() else len(gpus) + len(incomplete)
        bus_id = leaves.get("pci.bus_id") or leaves.get("gpu_bus_id")
        gpus.append(build_gpu(position, bus_id, leaves, lambda item: item.csv))
    attached = next((int(count) for count in counts if count.isdigit()), None)
    if not gpus and not failures:
        incomplete.append("the table has no rows")
    return SmiReading(
        form="csv",
        gpus=tuple(gpus),
        driver_version=_csv_driver(gpus, lines, names),
        attached=attached,
        failures=tuple(failures),
        incomplete=tuple(incomplete),
    )


def _is_header(names: Sequence[str]) -> bool:
    known = sum(1 for name in names if re.match(r"^[a-z][A-Za-z0-9_.]*$", name))
    return bool(names) and known == len(names) and any("." in name or name in ("index", "name") for name in names)


def _cells(line: str) -> List[str]:
    return next(csv.reader([line], skipinitialspace=True), [])


def _csv_driver(gpus, lines: Sequence[str], names: Sequence[str]) -> Optional[str]:
    if "driver_version" not in names or not gpus:
        return None
    cells = _cells(lines[0])
    return _version(cells[names.index("driver_version")]) if len(cells) == len(names) else None
