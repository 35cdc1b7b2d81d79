# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table that `nvidia-smi` prints without arguments (layout of 550 and later)."""

import time

from .. import driver

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
    lines += ["|" + "=" * 89 + "|", f"|  {'No running processes found':<87}|", line]
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
    memory = f"0MiB / {model['memory_mib']:>6}MiB"
    ecc = "0" if model["ecc"] else "N/A"
    mig = "Disabled" if model["mig"] else "N/A"
    return [
        f"|{one.index:>4}  {name:<27}    {persistence:<3} |   {one.bus_id} Off |{ecc:>21} |",
        f"| N/A {one.temperature_c:>4}C    P0 {power:>23} |{memory:>23} |{'0%':>8} {'Default':>12} |",
        f"|{'':<41}|{'':<24}|{mig:>21} |",
    ]
