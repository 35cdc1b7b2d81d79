# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository server: static files of one directory over HTTP. Runs as a file of its own, standard library only.

    python3 server.py ROOT PORT [CONTROL]

It is as bad as the folder CONTROL asks for: `conditions.json` there is read anew whenever it changes, and files of
`overlay` there are served in place of ROOT's. Its keys:

    status, count   the next `count` requests are answered with that status (503, 404)
    truncated       the next so many files end halfway, with a Content-Length to match
    bytes_per_s     no answer is faster than that
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Dict, Optional

PIECES_PER_S = 10


@dataclass
class Conditions:
    """What CONTROL asks for now; the counters are those of the present `conditions.json`. Used by all threads."""

    control: Optional[Path] = None
    _seen: int = 0
    _values: Dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, counter: str) -> bool:
        """Whether the counter is above zero; counts down."""
        with self._lock:
            left = self._current().get(counter, 0)
            if left > 0:
                self._values[counter] = left - 1
            return left > 0

    def value(self, name: str) -> int:
        with self._lock:
            return self._current().get(name, 0)

    def overlay(self, path: str) -> Optional[str]:
        """The file that is served in place of `path`, which is relative to ROOT."""
        if self.control is None:
            return None
        file = self.control / "overlay" / path
        return str(file) if file.is_file() else None

    def _current(self) -> Dict[str, int]:
        if self.control is not None:
            file = self.control / "conditions.json"
            try:
                changed = file.stat().st_mtime_ns
                if changed != self._seen:
                    self._seen, self._values = changed, json.loads(file.read_text(encoding="utf-8"))
            except FileNotFoundError:
                self._seen, self._values = 0, {}
        return self._values


class Handler(SimpleHTTPRequestHandler):
    """Keeps connections open (apt pipelines its requests) and says nothing about those that went well."""

    protocol_version = "HTTP/1.1"
    extensions_map = {"": "application/octet-stream"}

    def __init__(self, *arguments: Any, conditions: Conditions, directory: str) -> None:
        self.conditions = conditions
        super().__init__(*arguments, directory=directory)

    def do_GET(self) -> None:
        if self.conditions.take("count"):
            self._refuse(self.conditions.value("status"))
        elif os.path.isfile(self.translate_path(self.path)) and self.conditions.take("truncated"):
            self._send_half()
        else:
            super().do_GET()

    def _refuse(self, status: int) -> None:
        """As a proxy does: the connection stays open, and with it the client's next requests."""
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send_half(self) -> None:
        content = Path(self.translate_path(self.path)).read_bytes()
        content = content[: len(content) // 2]
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def translate_path(self, path: str) -> str:
        """The file of a request's path, from the overlay where it has one."""
        plain = super().translate_path(path)
        return self.conditions.overlay(os.path.relpath(plain, self.directory)) or plain

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """At the speed that is asked for."""
        rate = self.conditions.value("bytes_per_s")
        if rate <= 0:
            super().copyfile(source, outputfile)
            return
        while piece := source.read(max(1, rate // PIECES_PER_S)):
            outputfile.write(piece)
            time.sleep(1 / PIECES_PER_S)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged; errors of the server itself still reach stderr as tracebacks."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # 32 hosts may start their `apt-get update` in the same second.
    request_queue_size = 128


def serve(root: str, port: int, address: str = "", control: Optional[Path] = None) -> Server:
    """A bound server; the caller runs `serve_forever`. Port 0 takes a free one (`server.server_address`)."""
    return Server((address, port), functools.partial(Handler, conditions=Conditions(control), directory=root))


def main() -> int:
    if len(sys.argv) not in (3, 4) or not sys.argv[2].isdigit():
        print("usage: server.py ROOT PORT [CONTROL]", file=sys.stderr)
        return 2
    with serve(sys.argv[1], int(sys.argv[2]), control=Path(sys.argv[3]) if sys.argv[3:] else None) as server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
