#!/usr/bin/env python3
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edge of the command gpu-health: clock, host name, paths, the store. It is `__main__.py` of the zipapp."""

import os
import socket
import sys
import tempfile
import time

from gpu_health._gpu_health_cli import Edge, main
from gpu_health._host import Host


def write(path, text):
    """Replace a file as a whole, so that a reader sees the old one or the new one."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".gpu-health-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def run():
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    edge = Edge(
        host=Host(),
        write=write,
        now=time.time,
        host_name=socket.gethostname(),
        out=stdout.write,
        err=lambda text: print(text, file=sys.stderr),
        absolute=os.path.abspath,
        is_dir=os.path.isdir,
    )
    try:
        status = main(sys.argv[1:], edge)
        stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; the verdict is still in the exit status.
        status = 3
    except OSError as error:
        print("gpu-health: %s" % error, file=sys.stderr)
        status = 3
    return status


if __name__ == "__main__":
    sys.exit(run())
