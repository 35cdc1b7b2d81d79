#!/usr/bin/env python3
"""The ratios of the design's speed targets, measured on simulated hosts within one run.

Machines are shared and noisy, so every figure is a ratio of medians of runs that took turns, never a time alone.

    bench.py site     a no-change site.yml: module executions per host, and wall time against `ansible -m setup`
    bench.py health   health.yml over many hosts against the same nvidia-smi commands run as one task
    bench.py judge    CPU time from the first byte parsed to the verdict of an 8-GPU machine
    bench.py all      the three, one table
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "bench"
LAB = str(REPOSITORY / "tests" / "sandbox" / "lab")
BIN = Path(sys.executable).parent

MAX_MODULES = 30
MAX_SITE_RATIO = 8.0
MAX_HEALTH_RATIO = 1.3
MAX_JUDGE_MS = 50.0

QUESTIONS = ("-q -x", "", "nvlink -s", "nvlink -e", "topo -m", "topo -p2p n")
"""What the judgement of a healthy NVSwitch board asks nvidia-smi, each once (tests/unit/test_observe_health.py)."""
SAME_COMMANDS = "; ".join(("nvidia-smi " + arguments).strip() for arguments in QUESTIONS)

COMMON = """\
---
all:
  vars:
    sandbox_lab: %(lab)s
    sandbox_subnet: 10.203.7.0/24
  children:
    gpu_servers:
      hosts:
"""

HOST = """\
        %(name)s:
          ansible_host: 10.203.7.%(octet)d
          sandbox_image: ubuntu2204
          sandbox_profile: dgx-h100-8
"""


def write_inventory(lab: str, count: int) -> Path:
    """Inventory of `count` equal hosts that share the variables of the sandbox."""
    folder = BUILD / lab
    folder.mkdir(parents=True, exist_ok=True)
    hosts = "".join(HOST % {"name": "gpu%02d" % number, "octet": 10 + number} for number in range(1, count + 1))
    (folder / "hosts.yml").write_text(COMMON % {"lab": lab} + hosts)
    variables = folder / "group_vars"
    if not variables.is_symlink():
        variables.symlink_to(REPOSITORY / "inventories" / "sandbox" / "group_vars")
    return folder


def run(argv, check: bool = True) -> float:
    """Run a command from the clone; returns its wall time in seconds. Its output goes to build/bench/last.log."""
    started = time.monotonic()
    with open(BUILD / "last.log", "w", encoding="utf-8") as log:
        done = subprocess.run(
            [str(word) for word in argv], cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    if check and done.returncode:
        sys.exit("%s: exit status %d\n%s" % (argv, done.returncode, (BUILD / "last.log").read_text()[-4000:]))
    return time.monotonic() - started


def playbook(name, inventory, *more):
    return [BIN / "ansible-playbook", name, "-i", inventory, *more]


def adhoc(inventory, module, *more):
    return [BIN / "ansible", "gpu_servers", "-i", inventory, "-m", module, *more]


def take_turns(first, second, repeats):
    """Medians of two commands that take turns, so that noise of the machine meets both."""
    times = ([], [])
    for _turn in range(repeats):
        times[0].append(run(first))
        times[1].append(run(second))
    return statistics.median(times[0]), statistics.median(times[1])


def modules_on_host(lab: str, host: str, argv) -> int:
    """Module executions on a host during a command: with pipelining, each is one command of an ssh session there."""

    def sessions():
        text = subprocess.run(
            ["podman", "exec", "%s-%s" % (lab, host), "journalctl", "-u", "ssh", "-o", "cat", "--no-pager"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return text.count("Starting session: command")

    before = sessions()
    run(argv)
    return sessions() - before


def bench_site(repeats):
    inventory = write_inventory("bench-site", 2)
    run([LAB, "up", inventory])
    try:
        run(playbook("site.yml", inventory))
        site = playbook("site.yml", inventory)
        executions = modules_on_host("bench-site", "gpu01", site)
        last = (BUILD / "last.log").read_text()
        if "changed=0" not in last or "changed=1" in last:
            sys.exit("the second site.yml still changed something:\n%s" % last[-2000:])
        site_s, setup_s = take_turns(site, adhoc(inventory, "ansible.builtin.setup"), repeats)
    finally:
        run([LAB, "down", inventory], check=False)
    return [
        row("site.yml, no change: module executions per host", executions, MAX_MODULES, ""),
        row(
            "site.yml, no change / ansible -m setup",
            site_s / setup_s,
            MAX_SITE_RATIO,
            "%.1f s / %.1f s" % (site_s, setup_s),
        ),
    ]


def bench_health(repeats, hosts):
    inventory = write_inventory("bench-health", hosts)
    seconds = run([LAB, "up", inventory])
    try:
        run(playbook("site.yml", inventory, "-f", "8"))
        health = playbook("playbooks/health.yml", inventory, "-f", "16")
        same = adhoc(inventory, "ansible.builtin.shell", "-a", SAME_COMMANDS, "-f", "16", "-b")
        health_s, same_s = take_turns(health, same, repeats)
    finally:
        run([LAB, "down", inventory], check=False)
    return [
        row("lab up, %d hosts" % hosts, seconds, None, "seconds"),
        row(
            "health.yml / the same commands, %d hosts" % hosts,
            health_s / same_s,
            MAX_HEALTH_RATIO,
            "%.1f s / %.1f s" % (health_s, same_s),
        ),
    ]


def bench_judge(repeats):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("judge.py")), str(max(repeats, 5))],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    measured = json.loads(done.stdout)
    return [row("judging an 8-GPU machine, CPU ms", measured["cpu_ms"], MAX_JUDGE_MS, measured["what"])]


def row(what, value, limit, note):
    return {"what": what, "value": round(value, 2), "limit": limit, "note": note}


def render(rows) -> str:
    lines = ["%-58s %10s %8s  %s" % ("what", "measured", "target", "")]
    for item in rows:
        limit = "" if item["limit"] is None else "<= %g" % item["limit"]
        miss = item["limit"] is not None and item["value"] > item["limit"]
        lines.append(
            "%-58s %10g %8s  %s%s" % (item["what"], item["value"], limit, item["note"], "  MISSED" if miss else "")
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["site", "health", "judge", "all"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=32, help="hosts of the health bench")
    options = parser.parse_args()
    os.makedirs(BUILD, exist_ok=True)
    rows = []
    if options.what in ("judge", "all"):
        rows += bench_judge(options.repeats)
    if options.what in ("site", "all"):
        rows += bench_site(options.repeats)
    if options.what in ("health", "all"):
        rows += bench_health(options.repeats, options.hosts)
    (BUILD / "bench.json").write_text(json.dumps(rows, indent=2) + "\n")
    print(render(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
