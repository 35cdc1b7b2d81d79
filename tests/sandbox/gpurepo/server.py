# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository server: static files of one directory over HTTP. Runs as a file of its own, standard library only.

    python3 server.py ROOT PORT
"""

from __future__ import annotations

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietHandler(SimpleHTTPRequestHandler):
    """Keeps connections open (apt pipelines its requests) and says nothing about those that went well."""

    protocol_version = "HTTP/1.1"
    extensions_map = {"": "application/octet-stream"}

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged; errors of the server itself still reach stderr as tracebacks."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # 32 hosts may start their `apt-get update` in the same second.
    request_queue_size = 128


def serve(root: str, port: int, address: str = "") -> Server:
    """A bound server; the caller runs `serve_forever`. Port 0 takes a free one (`server.server_address`)."""
    return Server((address, port), functools.partial(QuietHandler, directory=root))


def main() -> int:
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        print("usage: server.py ROOT PORT", file=sys.stderr)
        return 2
    with serve(sys.argv[1], int(sys.argv[2])) as server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
