# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every recorded output of the corpus gives an accepted verdict and names what is faulty; replayed as commands, too."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support_health import SMI, expected_of, folder_recordings, index_rows, read_recording, replay, verdicts_of

from ansible_collections.gpufleet.server.plugins.module_utils._health import judge
from ansible_collections.gpufleet.server.plugins.module_utils._observe import Questions, observe
from ansible_collections.gpufleet.server.plugins.module_utils._recording import observe_recordings

CORPUS = Path(os.environ.get("GPUFLEET_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "corpus")
PUBLIC, CAPTURES = index_rows(CORPUS, "public"), index_rows(CORPUS, "captures")

# Rows where the index contradicts the file or the rules beside it: {row: (our verdict, why)}.
ARGUED = {
    "fabric/fm-log-multicast-chatter-ok.log": (
        "degraded",
        "its line 100 is an ERROR, NVSwitch non-fatal error 12028, which the index itself calls degraded elsewhere",
    ),
    "550.163.01-a100-bridged_pairs_shim": (
        "failed",
        "the machine has 4 GPUs and the row expects 8: fewer than expected is failed (rule 1)",
    ),
}

pytestmark = pytest.mark.corpus


def parameters(rows, key):
    if not rows:
        return [pytest.param({}, id="no-corpus")]
    return [pytest.param(row, id=row[key]) for row in rows]


def accepted(name, row):
    return [ARGUED[name][0]] if name in ARGUED else verdicts_of(row)


@pytest.mark.parametrize("row", parameters(PUBLIC, "file"))
def test_public_recording_gets_an_accepted_verdict(row, corpus):
    text = read_recording(corpus / "public" / row["file"])
    found = judge(
        observe_recordings([(row["file"], text)], row["kind"]),
        expected_gpus=expected_of(row),
        model_hint=row["gpus"],
    )
    assert found.verdict in accepted(row["file"], row), [item["message"] for item in found.findings]


@pytest.mark.parametrize("row", parameters(CAPTURES, "directory"))
def test_captured_machine_gets_an_accepted_verdict_and_names_what_is_faulty(row, corpus):
    recordings = folder_recordings(corpus / "captures" / row["directory"])
    found = judge(observe_recordings(recordings), expected_gpus=expected_of(row), model_hint=row["gpus"])
    assert found.verdict in accepted(row["directory"], row), [item["message"] for item in found.findings]
    assert_names_faulty(row, found, "\n".join(text for _name, text in recordings))


@pytest.mark.parametrize("row", parameters(CAPTURES, "directory"))
def test_replayed_machine_gets_the_same_verdict_live(row, corpus, tmp_path):
    folder = corpus / "captures" / row["directory"]
    seen = observe(replay(folder, str(tmp_path)), Questions(SMI, 1.0))
    found = judge(seen, expected_gpus=expected_of(row))
    assert found.verdict in accepted(row["directory"], row), [item["message"] for item in found.findings]
    recorded = "\n".join(text for _name, text in folder_recordings(folder))
    assert_names_faulty(row, found, recorded)


def assert_names_faulty(row, found, recorded):
    """Where the row names a GPU that the recording can name, a finding that is more than information does so too."""
    if "healthy" in verdicts_of(row):
        return
    loud = [item for item in found.findings if item["severity"] != "info"]
    for bus_id in re.findall(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d", row["faulty"]):
        if bus_id in recorded:
            assert bus_id in {(item["gpu"] or {}).get("pci_bus_id") for item in loud}
    links = re.search(r"\blinks? \[?(\d[\d, ]*)\]?", row["faulty"].replace("-", ", "))
    for link in re.findall(r"\d+", links.group(1)) if links else ():
        assert int(link) in {item["link"] for item in loud}


def test_argued_rows_are_rows():
    assert set(ARGUED) <= {row["file"] for row in PUBLIC} | {row["directory"] for row in CAPTURES}
