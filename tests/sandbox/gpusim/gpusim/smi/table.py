# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table that `nvidia-smi` prints without arguments (layout of 550 and later)."""

import time

from .. import driver, settings

WIDTH = (41, 24, 22)


def render(machine, gpus: list, version: str) -> str:
    """Return the table of these GPUs and their processes."""
    number = driver.branch(version)
    rule = "+" + "+".join("-" * width for width in WIDTH) + "+"
    line = "+" + "-" * (sum(WIDTH) + 2) + "+"
    lines = [time.strftime("%a %b %e %H:%M:%S %Y") + "       ", line, _versions(machine, version)]
    lines.append(rule if number >= 575 else "|" + rule[1:-1] + "|")
    lines += [
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|" + "+".join("=" * width for width in WIDTH) + "|",
    ]
    for one in gpus:
        lines += [*_gpu(one), rule]
    lines += [" " * 89 if number < 610 else "", line]
    lines.append(f"| {'Processes:':<88}|")
    if number >= 570:
        lines.append("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |")
        lines.append("|        ID   ID                                                               Usage      |")
    else:
        lines.append("|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |")
        lines.append("|        ID   ID                                                               Usage      |")
    lines.append("|" + "=" * 89 + "|")
    lines += [_process(one, entry, number) for one in gpus for entry in one.processes] or [
        f"|  {'No running processes found':<87}|"
    ]
    lines.append(line)
    return "\n".join(lines) + "\n"


def _versions(machine, version: str) -> str:
    loaded = machine.loaded_version
    cuda = driver.cuda_version(loaded)
    if driver.branch(version) >= 610:
        words = f"NVIDIA-SMI {version:<22} KMD Version: {loaded:<13} CUDA UMD Version: {cuda}"
    else:
        words = f"NVIDIA-SMI {version:<22} Driver Version: {loaded:<14} CUDA Version: {cuda}"
    return f"| {words:<88}|"


def _gpu(one) -> list:
    model = one.model
    name = model["name"] if len(model["name"]) <= 27 else model["name"][:24] + "..."
    persistence = "On" if one.persistence else "Off"
    power = f"{one.power_draw_w:.0f}W / {one.power_limit_w:>4.0f}W"
    memory = f"{one.memory_used_mib}MiB / {model['memory_mib']:>6}MiB"
    ecc = "0" if (settings.ecc(one) or (False,))[0] else "N/A" if settings.ecc(one) is None else "Off"
    mig = settings.words(settings.mig(one))[0]
    compute = {"DEFAULT": "Default", "PROHIBITED": "Prohibited", "EXCLUSIVE_PROCESS": "E. Process"}
    mode = compute[settings.compute_mode(one)]
    return [
        f"|{one.index:>4}  {name:<27}    {persistence:<3} |   {one.bus_id} Off |{ecc:>21} |",
        f"| N/A {one.temperature_c:>4}C    P0 {power:>23} |{memory:>23} |{'0%':>8} {mode:>12} |",
        f"|{'':<41}|{'':<24}|{mig:>21} |",
    ]


def _process(one, entry: dict, branch: int) -> str:
    """A line of the list of processes; its column of process numbers grew with branch 570."""
    width = 16 if branch >= 570 else 10
    name = entry["name"] if len(entry["name"]) <= 38 else "..." + entry["name"][-35:]
    head = f"|{one.index:>5}   N/A  N/A {entry['pid']:>{width}}      C   {name}"
    return f"{head:<79}{entry['memory_mib']:>7}MiB |"
