# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edge of the command gpu-health: command line, clock, host name, paths, the store. The zipapp's `__main__.py`."""

import argparse
import os
import socket
import sys
import tempfile
import time

from gpu_health._gpu_health_cli import USAGE_ERROR, Edge, run
from gpu_health._host import Host
from gpu_health._observe import DEFAULT_TIMEOUT_S
from gpu_health._recording import KINDS


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """A usage error must not look like a failed GPU, as argparse's own status 2 would."""
        self.print_usage(sys.stderr)
        self.exit(USAGE_ERROR, "%s: %s\n" % (self.prog, message))


def count(text):
    if not text.isdigit():
        raise argparse.ArgumentTypeError("%r is not a number of GPUs" % text)
    return int(text)


def parser():
    top = Parser(
        prog="gpu-health",
        description="Judge the health of NVIDIA GPUs and their links.",
        epilog="Exit status: 0 healthy, 1 degraded, 2 failed, 3 unknown or a usage error.",
    )
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    check = commands.add_parser("check", help="judge this machine; changes nothing without --store")
    form = check.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--prometheus", action="store_true", help="metrics for node_exporter's textfile collector")
    check.add_argument("--store", action="store_true", help="keep the error counters for the next check")
    check.add_argument("--nvidia-smi", default="nvidia-smi", metavar="PATH")
    check.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT_S, metavar="S", help="seconds a command")
    check.add_argument("--expected-gpus", type=count, metavar="N")
    check.add_argument("--expected-model", metavar="TEXT")
    check.add_argument("--policy", metavar="FILE")
    judge = commands.add_parser("judge", help="judge recorded outputs: files, or a folder that holds one machine")
    judge.add_argument("--json", action="store_true")
    judge.add_argument("--kind", choices=KINDS, help="what the files are; without it, their content tells")
    judge.add_argument("--model", metavar="TEXT", help="what GPUs they are of, where they do not say so")
    judge.add_argument("--expected-gpus", type=count, metavar="N")
    judge.add_argument("--policy", metavar="FILE")
    judge.add_argument("paths", nargs="+", metavar="FILE|DIR")
    ack = commands.add_parser("ack", help="leave out the Xids that were logged until now")
    ack.add_argument("--reason", required=True, metavar="TEXT")
    ack.add_argument("--gpu", metavar="BUS_ID", help="only those of this GPU")
    return top


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


def main():
    options = parser().parse_args()
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
        status = run(options, edge)
        stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; the verdict is still in the exit status.
        status = 3
    except OSError as error:
        print("gpu-health: %s" % error, file=sys.stderr)
        status = 3
    return status


if __name__ == "__main__":
    sys.exit(main())
