#!/usr/bin/env python3
"""CPU time of judging one 8-GPU machine: from the first byte parsed to the verdict, imports left out.

The machine is the simulator's H100 server, recorded into memory first. Prints JSON; bench.py makes the row of it.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY / "tests" / "sandbox")]

import conftest  # noqa: E402,F401  binds ansible_collections.gpufleet.server to this clone
from simulated_machine import Machine  # noqa: E402

from ansible_collections.gpufleet.server.plugins.module_utils._health import judge  # noqa: E402
from ansible_collections.gpufleet.server.plugins.module_utils._recording import observe_recordings  # noqa: E402

COMMANDS = {
    "smi-q.xml": ["-q", "-x"],
    "nvlink-s.txt": ["nvlink", "-s"],
    "nvlink-e.txt": ["nvlink", "-e"],
    "topo-m.txt": ["topo", "-m"],
}


def record() -> dict[str, str]:
    """Outputs of the commands that the live module runs."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), "dgx-h100-8").install("580.178.04").boot()
        machine.smi("-pm", "1")
        return {name: machine.smi(*arguments).text for name, arguments in COMMANDS.items()}


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    recordings = record()
    times = []
    for _turn in range(repeats + 1):
        started = time.process_time()
        judgement = judge(observe_recordings(recordings.items()))
        times.append((time.process_time() - started) * 1000)
    if len(judgement.gpus) != 8:
        sys.exit("the judgement saw %d GPUs, not 8: %s" % (len(judgement.gpus), judgement.findings))
    size = sum(len(text) for text in recordings.values()) / 1024
    what = "%d KiB, verdict %s" % (size, judgement.verdict)
    print(json.dumps({"cpu_ms": statistics.median(times[1:]), "what": what}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
