# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse `nvidia-smi -q -x`. Process names can hold raw `&`, `<` and control bytes, warnings can stand before or after
the document, and a killed process leaves half of one: what is whole is read, the rest is named as missing."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple
from xml.etree import ElementTree

from ._smi_failure import failures_in, inforom_corrupted_in
from ._smi_fields import LOST, problem_of
from ._smi_reading import GpuReading, SmiFailure, SmiReading, branch_of, build_gpu

_OPEN = "<nvidia_smi_log"
_CLOSE = "</nvidia_smi_log>"
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*(?:\[[^\]]*\][^>]*)?>")
_PROCESSES = re.compile(r"<processes>(.*?)</processes>", re.DOTALL)
_GPU_BLOCK = re.compile(r"<gpu\s[^>]*>.*?</gpu>", re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Blocks whose members repeat, or that nothing is judged by.
_SKIPPED = ("processes", "mig_devices", "supported_clocks", "accounted_processes")
_REPEATED = ("retired_page",)
LOWEST_BRANCH = 384
"""Oldest driver whose complete output was seen; a document without a driver version is held to its fields."""


def parse_smi_xml(text: str) -> SmiReading:
    """The reading of one `-q -x`. Of several documents (`-l`), the last one counts."""
    start = text.rfind(_OPEN)
    if start < 0:
        return SmiReading("xml", failures=tuple(failures_in(text)), incomplete=("no XML document",))
    end = text.find(_CLOSE, start)
    document = text[start : end + len(_CLOSE)] if end >= 0 else text[start:]
    around = text[: text.find("<")] + (text[end + len(_CLOSE) :] if end >= 0 else "")
    incomplete: List[str] = []
    if end < 0:
        incomplete.append("the document is cut off")
    root, process_counts = _parse(document)
    whole = root is not None
    if root is None:
        incomplete.append("the document is not well-formed")
        root, process_counts = _salvage(document), []
    driver = _text(root, "driver_version")
    if driver is None:
        incomplete.append("driver_version is missing")
    branch = branch_of(driver) or LOWEST_BRANCH
    gpus: List[GpuReading] = []
    for position, element in enumerate(root.findall("gpu")):
        processes = process_counts[position] if position < len(process_counts) else None
        # Where blocks are missing, the position of one is not its number.
        gpu, conflicts = _gpu(position if whole else None, element, branch, processes)
        gpus.append(gpu)
        incomplete.extend(conflicts)
    errors = [child.text or "" for child in root.findall("error_string")]
    failures = failures_in(around) + [failure for error in errors for failure in _error_string(error)]
    attached = _text(root, "attached_gpus")
    if attached is None:
        incomplete.append("attached_gpus is missing")
    return SmiReading(
        form="xml",
        gpus=tuple(gpus),
        driver_version=driver,
        cuda_version=_text(root, "cuda_version"),
        attached=int(attached) if (attached or "").isdigit() else None,
        failures=tuple(failures),
        inforom_corrupted=tuple(inforom_corrupted_in(around)),
        incomplete=tuple(incomplete),
    )


def _parse(document: str) -> Tuple[Optional[ElementTree.Element], List[Tuple[int, int]]]:
    """The tree and, per GPU, (processes, compute processes). The process list is where raw bytes stand: without it
    the document parses."""
    counts = [(block.count("<pid>"), _compute_count(block)) for block in _PROCESSES.findall(document)]
    body = _CONTROL.sub("", _PROCESSES.sub("<processes/>", _DOCTYPE.sub("", document)))
    try:
        return ElementTree.fromstring(body), counts
    except ElementTree.ParseError:
        return None, counts


def _compute_count(block: str) -> int:
    return len(re.findall(r"<type>[^<]*C[^<]*</type>", block))


def _salvage(document: str) -> ElementTree.Element:
    """A tree of the GPU blocks that are whole, and of the header."""
    root = ElementTree.Element("nvidia_smi_log")
    for name in ("driver_version", "cuda_version", "attached_gpus"):
        match = re.search("<%s>([^<]*)</%s>" % (name, name), document)
        if match:
            ElementTree.SubElement(root, name).text = match.group(1)
    body = _CONTROL.sub("", _PROCESSES.sub("<processes/>", document))
    for block in _GPU_BLOCK.findall(body):
        try:
            root.append(ElementTree.fromstring(block))
        except ElementTree.ParseError:
            continue
    return root


def _gpu(position: Optional[int], element: ElementTree.Element, branch: int, processes) -> Tuple[GpuReading, List[str]]:
    leaves: Dict[str, str] = {}
    conflicts: List[str] = []
    for child in element:
        _flatten(child, "", leaves, conflicts)
    extra: Dict[str, Any] = {}
    if processes is not None and element.find("processes") is not None:
        extra = {"processes": processes[0], "compute_processes": processes[1]}
    mig = element.find("mig_devices")
    if mig is not None:
        devices = mig.findall("mig_device")
        counts = [node.text or "" for node in mig.iter() if node.tag.startswith("sram_uncorrectable")]
        extra["mig_devices"] = len(devices)
        extra["mig_uncorrectable"] = sum(int(count) for count in counts if count.strip().isdigit())
    bus_id = element.get("id")
    where = bus_id or "GPU %s" % position
    gpu = build_gpu(position, bus_id, leaves, lambda item: item.xml, required_from=branch, **extra)
    return gpu, ["%s: %s says two things" % (where, path) for path in conflicts]


def _flatten(element: ElementTree.Element, prefix: str, leaves: Dict[str, str], conflicts: List[str]) -> None:
    if element.tag in _SKIPPED:
        text = (element.text or "").strip()
        if problem_of(text):
            leaves[prefix + element.tag] = text
        return
    path = prefix + element.tag
    children = list(element)
    if not children:
        text = (element.text or "").strip()
        if path in leaves and leaves[path] != text and element.tag not in _REPEATED:
            conflicts.append(path)
        leaves[path] = text
        return
    for child in children:
        if child.tag not in _REPEATED:
            _flatten(child, path + "/", leaves, conflicts)


def _error_string(error: str) -> List[SmiFailure]:
    found = failures_in(error)
    if found or not error.strip():
        return found
    kind = "gpu_lost" if problem_of(error) == LOST else "smi_failed"
    return [SmiFailure(kind, error.strip())]


def _text(root: ElementTree.Element, name: str) -> Optional[str]:
    node = root.find(name)
    text = (node.text or "").strip() if node is not None else ""
    return text or None
