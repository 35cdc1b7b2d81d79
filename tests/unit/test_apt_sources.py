# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's sources as it reads them, and where two of them stop it (sources.list(5))."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._apt_sources import (
    find_clashes,
    parse_all,
    parse_sources,
)

LINE = "deb [arch=amd64 signed-by=/k/a.gpg] http://repo/ubuntu jammy main\n"
STANZA = "Types: deb\nURIs: http://repo/ubuntu/\nSuites: jammy jammy-updates\nComponents: main\nSigned-By: /k/b.gpg\n"


@pytest.mark.parametrize(
    "path, text, expected",
    [
        ("a.list", LINE, [("http://repo/ubuntu/", "jammy", "/k/a.gpg")]),
        ("a.list", "deb http://repo/ubuntu/ jammy main # deb http://x y\n", [("http://repo/ubuntu/", "jammy", "")]),
        ("a.list", "deb [Signed-By=/k/a.gpg] http://repo/cuda/ /\n", [("http://repo/cuda/", "/", "/k/a.gpg")]),
        ("a.list", "deb-src http://repo/ubuntu jammy main\n", [("http://repo/ubuntu/", "jammy", "")]),
        ("a.list", "# " + LINE, []),
        ("a.list", "nonsense\n", []),
        (
            "a.sources",
            STANZA,
            [("http://repo/ubuntu/", "jammy", "/k/b.gpg"), ("http://repo/ubuntu/", "jammy-updates", "/k/b.gpg")],
        ),
        ("a.sources", "# " + STANZA.replace("\n", "\n# "), []),
        ("a.sources", STANZA + "Enabled: no\n", []),
        (
            "a.sources",
            "Types: deb\nURIs: http://a http://b\nSuites: /\n\n\nTypes: deb\nURIs: http://c\nSuites: /\n",
            [("http://a/", "/", ""), ("http://b/", "/", ""), ("http://c/", "/", "")],
        ),
        (
            "a.sources",
            "Types: deb\nURIs: http://a\nSuites: /\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n",
            [("http://a/", "/", "an embedded key")],
        ),
        ("a.sources", LINE, []),
    ],
)
def test_sources_of_both_forms(path, text, expected):
    assert [(source.uri, source.suite, source.signed_by) for source in parse_sources(path, text)] == expected


@pytest.mark.parametrize(
    "texts, clashes",
    [
        ({"a.list": LINE, "b.sources": STANZA}, ["jammy"]),
        ({"a.list": LINE, "b.list": LINE}, []),
        ({"a.list": LINE, "b.list": "deb http://repo/ubuntu jammy universe\n"}, ["jammy"]),
        ({"a.list": LINE, "b.list": "deb [signed-by=/k/b.gpg] http://repo/ubuntu noble main\n"}, []),
        ({"a.list": LINE, "b.list": "deb [signed-by=/k/b.gpg] http://other/ubuntu jammy main\n"}, []),
        ({"a.list": LINE, "b.sources": STANZA + "Enabled: no\n"}, []),
    ],
    ids=["two-keys", "one-key", "key-and-none", "another-suite", "another-repository", "switched-off"],
)
def test_two_keys_for_one_repository_clash(texts, clashes):
    assert [clash.suite for clash in find_clashes(parse_all(texts))] == clashes


def test_a_clash_names_both_files_and_both_keys():
    text = find_clashes(parse_all({"a.list": LINE, "b.sources": STANZA}))[0].text
    for words in ("http://repo/ubuntu/ jammy", "a.list (/k/a.gpg)", "b.sources (/k/b.gpg)"):
        assert words in text
