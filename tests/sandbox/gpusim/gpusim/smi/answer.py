# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the tool ends: exit codes, and the texts that stand in for an answer. All of them go to stdout."""

OK, BAD_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 0, 2, 3, 4, 6
NO_DRIVER, NO_LIBRARY, INFOROM, LOST, MISMATCH, IN_USE, NO_RESOURCES, OTHER = 9, 12, 14, 15, 18, 19, 23, 255

NO_DRIVER_TEXT = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
NO_LIBRARY_TEXT = (
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. "
    "Please make sure that the NVIDIA Display Driver is properly installed and present in your system.\n"
    "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n"
)
NO_DEVICES_TEXT = "No devices were found\n"
TOPOLOGY_FAILED_TEXT = "Failed to run topology matrix\n\n"
P2P_FAILED_TEXT = "Failed to display p2p capability matrix for the specified p2p Index\n\n"
ALL_DONE_TEXT = "All done.\n"
STOPPED_TEXT = "Terminating early due to previous errors.\n"
WARNED_TEXT = "Treating as warning and moving on.\n"


class Failure(Exception):
    """The tool gives up: what it prints (after what it has printed already) and its exit code."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.text = text
        self.code = code


class Warned(Exception):
    """One GPU cannot have a setting: the tool says so and goes on with the next one, unless `-eow` was given."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text


def mismatch_text(library: str) -> str:
    """Library and module of different versions; `library` as NVML names itself (`580.178`)."""
    return f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {library}\n"


def lost_text(where: str) -> str:
    """The handle of a GPU cannot be had: `where` is `GPU0000:4B:00.0`, or `gpu 0000:4B:00.0` in a listing."""
    return (
        f"Unable to determine the device handle for {where}: GPU is lost.  Reboot the system to recover this GPU\n\n\n"
    )


def with_inforom_warning(text: str, gpus: list) -> tuple:
    """Return `(text, exit code)` of the table and of `-q`: they warn below, with rc 14. `-q -x` and queries do not."""
    lines = [f"WARNING: infoROM is corrupted at gpu {one.short_bus_id}\n" for one in gpus if "inforom" in one.faults]
    return text + "".join(lines), INFOROM if lines else OK
