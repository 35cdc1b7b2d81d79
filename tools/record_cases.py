"""Write tests/unit/cases anew: outputs of the GPU simulator that the unit tests judge (`python tools/record_cases.py`).

They are recorded, because the simulator does not run on the oldest Python that the judgement runs on.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CASES = REPOSITORY / "tests" / "unit" / "cases"
VERSION = "580.178.04"
COMMANDS = {
    "smi-q.xml": ("-q", "-x", "-i", "0,1"),
    "smi-q.txt": ("-q", "-i", "0,1"),
    "smi-table.txt": (),
    "smi-L.txt": ("-L",),
    "nvlink-s.txt": ("nvlink", "-s"),
    "nvlink-e.txt": ("nvlink", "-e"),
    "topo-m.txt": ("topo", "-m"),
}
"""Two of eight GPUs are enough where every GPU has hundreds of lines; the announced number is made to agree."""
ATTACHED = re.compile(rb"(<attached_gpus>|Attached GPUs\s+: )8")


def main() -> int:
    sys.path.insert(0, str(REPOSITORY / "tests" / "sandbox"))
    from simulated_machine import Machine

    # The outputs carry the time: a fixed one keeps a new recording comparable with the old.
    os.environ["TZ"] = "UTC"
    time.tzset()
    for profile in ("dgx-h100-8", "hgx-a100-8"):
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(Path(folder), profile).install(VERSION).boot()
            path = machine.root / "run/gpulab/state.json"
            state = json.loads(path.read_text())
            state["fabric_started"] = time.time() - 60
            path.write_text(json.dumps(state))
            machine.smi("-pm", "1")
            target = CASES / profile
            target.mkdir(parents=True, exist_ok=True)
            for name, arguments in COMMANDS.items():
                answer = machine.smi(*arguments)
                if answer.rc != 0:
                    raise SystemExit("%s: %s: exit status %d: %s" % (profile, name, answer.rc, answer.text))
                raw = ATTACHED.sub(rb"\g<1>2", answer.raw) if name.startswith("smi-q") else answer.raw
                (target / name).write_bytes(raw)
            print("wrote %s" % target.relative_to(REPOSITORY))
    return 0


if __name__ == "__main__":
    sys.exit(main())
