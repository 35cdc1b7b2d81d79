# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one list of findings: complete, used, and the page that is made of it fresh."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._findings import SEVERITIES
from ansible_collections.gpufleet.server.plugins.module_utils._findings_catalog import (
    CATALOG,
    build_finding,
    describe_gpu,
    is_unread,
)
from ansible_collections.gpufleet.server.plugins.module_utils._xid_catalog import REMEDIES, XIDS


@pytest.mark.parametrize("finding_id", sorted(CATALOG))
def test_entry_is_complete(finding_id):
    entry = CATALOG[finding_id]
    assert re.match(r"^[a-z0-9_]+$", finding_id)
    assert entry.severity in SEVERITIES
    assert entry.meaning and entry.remedy and entry.source
    assert not (entry.unread and entry.severity == "critical"), "what cannot be read is unknown, not failed"


def test_every_entry_is_used_somewhere(repository):
    sources = [
        path.read_text(encoding="utf-8")
        for path in (repository / "plugins" / "module_utils").glob("_*.py")
        if path.name != "_findings_catalog.py"
    ]
    unused = [name for name in CATALOG if not any('"%s"' % name in source for source in sources)]
    assert unused == []


def test_finding_that_is_not_listed_cannot_be_made():
    with pytest.raises(KeyError):
        build_finding("no_such_finding")


def test_finding_names_gpu_link_and_command():
    gpu = {"index": 3, "uuid": "GPU-1", "pci_bus_id": "00000000:4B:00.0"}
    item = build_finding("ecc_off", "Disabled", "Enabled", gpu, link=2)
    assert item["message"].startswith("GPU 3 (00000000:4B:00.0) link 2: ")
    assert "-i 00000000:4B:00.0" in item["remedy"]
    assert (item["gpu"], item["link"], item["observed"], item["expected"]) == (gpu, 2, "Disabled", "Enabled")


@pytest.mark.parametrize(
    "gpu, words",
    [
        (None, ""),
        ({"index": None, "uuid": None, "pci_bus_id": "00000000:4B:00.0"}, "GPU 00000000:4B:00.0"),
        ({"index": 1, "uuid": None, "pci_bus_id": None}, "GPU 1"),
        ({"index": None, "uuid": "GPU-7", "pci_bus_id": None}, "GPU GPU-7"),
    ],
)
def test_gpu_is_described_by_what_is_known(gpu, words):
    assert describe_gpu(gpu) == words


def test_only_entries_marked_so_are_unread():
    assert is_unread(build_finding("smi_timeout"))
    assert not is_unread(build_finding("gpu_lost"))
    assert not is_unread({"id": "xid_79"})


@pytest.mark.parametrize("number", sorted(XIDS))
def test_xid_has_a_meaning_a_severity_and_a_remedy(number):
    xid = XIDS[number]
    assert xid.meaning and xid.severity in ("critical", "warning", "info", "app", "by_word", "by_action")
    assert xid.remedy in REMEDIES


def test_page_of_findings_is_fresh(repository):
    tool = repository / "tools" / "generate_health_docs.py"
    if not tool.is_file():
        pytest.skip("not a clone: no tools")
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
