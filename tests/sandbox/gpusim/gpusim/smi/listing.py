# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -L` and `--version`."""

from .. import driver, mig_layout
from . import answer


def devices(machine) -> tuple:
    """One line per GPU; in place of a lost one stands the reason, and the exit code tells (captured)."""
    if not machine.gpus:
        return "No devices found.\n", answer.OK
    lines, code = [], answer.OK
    for one in machine.gpus:
        if one.lost:
            lines.append(answer.lost_text("gpu " + one.short_bus_id))
            code = answer.LOST
        else:
            lines.append(title(one) + "\n")
            devices_of = mig_layout.devices(one.uuid, mig_layout.of_model(one.model["name"]), one.mig_instances)
            for device in devices_of:
                lines.append(f"  {device['name']:<15} Device {device['index']:2}: (UUID: {device['uuid']})\n")
    return "".join(lines), code


def title(one) -> str:
    """`GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`."""
    return f"GPU {one.index}: {one.model['name']} (UUID: {one.uuid})"


def version(machine, package: str) -> str:
    """Four lines: tool, library, module, CUDA. The 610 branch renames the last two."""
    loaded = machine.loaded_version
    rows = [("NVIDIA-SMI version", package), ("NVML version", driver.nvml_style(driver.library_version()))]
    if driver.branch(package) >= 610:
        rows += [("DRIVER version", 'Deprecated, see "KMD version" instead'), ("KMD version", loaded)]
        rows.append(("CUDA UMD version", driver.cuda_version(loaded)))
    else:
        rows += [("DRIVER version", loaded), ("CUDA Version", driver.cuda_version(loaded))]
    return "".join(f"{name:<20}: {value}\n" for name, value in rows)
