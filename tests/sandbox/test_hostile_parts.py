# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of `lab hostile` that need no host: the bad server, and what is refused on the command line."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Callable, Iterator

import pytest

from gpulab import hostile
from gpulab.errors import UsageError
from gpurepo.server import serve

CONTENT = b"0123456789" * 1000


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "file").write_bytes(CONTENT)
    (tmp_path / "control").mkdir()
    server = serve(str(tmp_path / "www"), 0, "127.0.0.1", tmp_path / "control")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:%d/file" % server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., None]:
    """Set conditions, as `lab hostile repo` does: the file is replaced."""

    def write(**values: int) -> None:
        new = tmp_path / "control" / "new"
        new.write_text(json.dumps(values))
        new.rename(tmp_path / "control" / "conditions.json")

    return write


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


@pytest.mark.parametrize("status", [503, 404])
def test_the_next_requests_fail_and_the_one_after_is_answered(url, ask, status):
    assert get(url) == CONTENT
    ask(status=status, count=2)
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as error:
            get(url)
        assert error.value.code == status
    assert get(url) == CONTENT


def test_the_next_file_is_cut_in_the_middle_and_says_that_it_is_whole(url, ask):
    ask(truncated=1)
    assert get(url) == CONTENT[: len(CONTENT) // 2]
    assert get(url) == CONTENT


def test_a_slow_answer_is_whole(url, ask):
    ask(bytes_per_s=20000)
    started = time.monotonic()
    assert get(url) == CONTENT
    assert time.monotonic() - started >= 0.4


def test_a_file_of_the_overlay_comes_first(url, ask, tmp_path):
    (tmp_path / "control" / "overlay").mkdir()
    (tmp_path / "control" / "overlay" / "file").write_bytes(b"other")
    assert get(url) == b"other"


def test_conditions_end_with_their_file(url, ask, tmp_path):
    ask(status=503, count=9)
    (tmp_path / "control" / "conditions.json").unlink()
    assert get(url) == CONTENT


@pytest.mark.parametrize(
    "text, of_repo, value",
    [("http-503", True, "2"), ("http-503=7", True, "7"), ("apt-lock=9", False, "9"), ("rotated-key", True, "")],
)
def test_a_condition_has_a_value_or_its_default(text, of_repo, value):
    assert hostile.parse(text, of_repo)[1] == value


@pytest.mark.parametrize(
    "text, of_repo, words",
    [
        ("http-503", False, "no condition http-503 of a host; there are: apt-lock"),
        ("apt-lock", True, "no condition apt-lock of the repository; there are: http-503"),
        ("slow=fast", True, "a whole number of BYTES"),
        ("rotated-key=7", True, "takes no value"),
        ("expired-key", False, "needs a value: expired-key=KEYRING"),
        ("boot-full=-1", False, "a whole number of KIB"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(text, of_repo, words):
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        hostile.parse(text, of_repo)


def test_every_condition_of_a_host_has_its_script_and_every_script_its_condition():
    names = {item.name for item in hostile.CONDITIONS if not item.of_repo}
    assert names == {path.stem for path in hostile.SCRIPTS.glob("*.sh")}
    assert len(hostile.listing().splitlines()) == len(hostile.CONDITIONS)
