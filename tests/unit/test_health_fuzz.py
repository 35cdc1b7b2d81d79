# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Valid outputs, mutated: never a traceback, and never `healthy` where something that is judged is missing.

`GPUFLEET_FUZZ_EXAMPLES` sets the number of examples of each of the nine properties. Five of them run out of different
examples (at 6, 32, 124, 600 and 988): the default of 70 gives 528 in all, 4600 gives 20,150.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.server.plugins.module_utils._findings import VERDICTS
from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._observation import Observation
from ansible_collections.gpufleet.server.plugins.module_utils._recording import add_recording
from ansible_collections.gpufleet.server.plugins.module_utils._smi_fields import FIELDS

CASES = Path(__file__).resolve().parent / "cases"
PROFILES = ("dgx-h100-8", "hgx-a100-8")
EXAMPLES = int(os.environ.get("GPUFLEET_FUZZ_EXAMPLES") or 70)
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)

FORMS = {
    "smi-q.xml": "xml",
    "smi-q.txt": "q",
    "smi-table.txt": "table",
    "smi-L.txt": "list",
    "nvlink-s.txt": "nvlink",
    "nvlink-e.txt": "nvlink",
    "topo-m.txt": "topo",
}
HINT = {"dgx-h100-8": "NVIDIA H100 80GB HBM3", "hgx-a100-8": "NVIDIA A100-SXM4-80GB"}
JUNK = ["", "\x00", "\x1b[31m", "<", "&", "�", "%s", "-1", "Ko", "Unknown Error", "\n", "9" * 40, "N/A"]


@lru_cache(maxsize=None)
def case(profile, name):
    return (CASES / profile / name).read_bytes().decode("utf-8")


def verdict(profile, form, text):
    seen = add_recording(Observation(), form, text, main=False)
    return judge(seen, model_hint=HINT[profile]).verdict


profiles = st.sampled_from(PROFILES)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("profile", PROFILES)
def test_unchanged_output_is_healthy(profile, name):
    assert verdict(profile, FORMS[name], case(profile, name)) == "healthy"


@fuzz
@given(profiles, st.sampled_from(sorted(FORMS)), st.data())
def test_any_garbled_output_gives_a_verdict(profile, name, data):
    text = case(profile, name)
    for _count in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + data.draw(st.sampled_from(JUNK) | st.text(max_size=6)) + text[end:]
    form = data.draw(st.sampled_from([FORMS[name], "kernel", "fabric_log", "csv", "run", "q", "xml", "topo", "nvlink"]))
    assert verdict(profile, form, text) in VERDICTS


@fuzz
@given(profiles, st.data())
def test_cut_document_is_not_healthy(profile, data):
    text = case(profile, "smi-q.xml")
    end = data.draw(st.integers(0, text.index("</nvidia_smi_log>") + 15))
    assert verdict(profile, "xml", text[:end]) != "healthy"


@fuzz
@given(profiles, st.data())
def test_document_without_a_judged_element_is_not_healthy(profile, data):
    text = case(profile, "smi-q.xml")
    path = data.draw(st.sampled_from(due_elements(profile)))
    spots = [match.span() for match in re.finditer(r"[ \t]*<(%s)>[^<]*</\1>\n" % path, text)]
    start, end = data.draw(st.sampled_from(spots))
    assert verdict(profile, "xml", text[:start] + text[end:]) != "healthy"


@lru_cache(maxsize=None)
def due_elements(profile):
    """Leaves that occur once a GPU, that a complete reading must have, and that no other element stands in for."""
    text = case(profile, "smi-q.xml")
    names = set()
    for field in FIELDS:
        there = {path.rpartition("/")[2] for path in field.xml if "<%s>" % path.rpartition("/")[2] in text}
        if field.since is not None and len(there) == 1:
            names |= there
    names |= {"attached_gpus", "driver_version"}
    counts = {name: len(re.findall(r"<%s>[^<]*</%s>" % (name, name), text)) for name in names}
    return sorted(name for name, count in counts.items() if count == 2 or (count and name.endswith("s_gpus")))


@fuzz
@given(profiles, st.data())
def test_garbled_value_of_a_judged_element_is_not_healthy(profile, data):
    text = case(profile, "smi-q.xml")
    typed = sorted(set(due_elements(profile)) & {
        path.rpartition("/")[2] for field in FIELDS if field.kind != "word" for path in field.xml
    })
    name = data.draw(st.sampled_from(typed))
    spots = [match.span(1) for match in re.finditer(r"<%s>([^<]*)</%s>" % (name, name), text)]
    start, end = data.draw(st.sampled_from(spots))
    junk = data.draw(st.sampled_from(["Ko", "", "zz C", "1e9x", "unknown return value: 32765", "Uninitialized"]))
    assert verdict(profile, "xml", text[:start] + junk + text[end:]) != "healthy"


@fuzz
@given(profiles, st.sampled_from(("drop", "repeat", "swap")))
def test_gpu_block_that_is_missing_or_doubled_is_not_healthy(profile, change):
    text = case(profile, "smi-q.xml")
    first, second = (match.span() for match in re.finditer(r"\t<gpu id.*?</gpu>\n", text, re.DOTALL))
    one, two = text[slice(*first)], text[slice(*second)]
    body = {"drop": one, "repeat": one + two + one, "swap": two + one}[change]
    expected = "healthy" if change == "swap" else None
    found = verdict(profile, "xml", text[: first[0]] + body + text[second[1] :])
    assert found == expected if expected else found != "healthy"


@fuzz
@given(profiles, st.data())
def test_text_cut_before_its_end_is_not_healthy(profile, data):
    text = case(profile, "smi-q.txt")
    end = data.draw(st.integers(0, text.rindex("    Processes")))
    assert verdict(profile, "q", text[:end]) != "healthy"


@fuzz
@given(profiles, st.sampled_from(("nvlink-s.txt", "nvlink-e.txt")), st.data())
def test_link_output_without_one_of_its_lines_is_not_healthy(profile, name, data):
    lines = case(profile, name).splitlines(True)
    spots = [number for number, line in enumerate(lines) if "Link" in line or line.startswith("GPU")]
    number = data.draw(st.sampled_from(spots[1:]))
    assert verdict(profile, "nvlink", "".join(lines[:number] + lines[number + 1 :])) != "healthy"


@fuzz
@given(profiles, st.sampled_from(("nvlink-s.txt", "nvlink-e.txt")), st.data())
def test_cut_link_output_is_not_healthy(profile, name, data):
    text = case(profile, name).rstrip()
    # Cut between two GPUs, it is the whole output of a smaller machine.
    ends = [end for end in range(len(text) - 6) if not text[end:].lstrip().startswith("GPU")]
    assert verdict(profile, "nvlink", text[: data.draw(st.sampled_from(ends))]) != "healthy"


@fuzz
@given(profiles, st.data())
def test_matrix_without_a_row_or_cell_is_not_healthy(profile, data):
    lines = case(profile, "topo-m.txt").splitlines(True)
    rows = [number for number, line in enumerate(lines) if line.startswith("GPU")]
    number = data.draw(st.sampled_from(rows))
    if data.draw(st.booleans()):
        lines[number] = lines[number].split("\t", 2)[0] + "\t" + lines[number].split("\t", 2)[2]
    else:
        del lines[number]
    assert verdict(profile, "topo", "".join(lines)) != "healthy"
