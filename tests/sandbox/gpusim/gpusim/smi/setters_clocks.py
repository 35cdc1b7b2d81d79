# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`-lgc`, `-lmc`, `-ac` and their resets. What is locked shows only in the current clocks: no field names the lock."""

from .. import driver, settings
from . import answer
from .answer import Failure, Warned

BAD_GPU_CLOCKS = (
    "Specified clocks \"{}\" are not valid. Please format input as 'gpuClkMin,gpuClkMax' or 'gpuClkVal' e.g. "
    "'--lock-gpu-clocks=1500,1500', '--lock-gpu-clocks=1500', or '--lock-gpu-clocks=tdp,unlimited'\n"
)
BAD_MEMORY_CLOCKS = (
    "Specified clocks \"{}\" are not valid. Please format input as 'memClkMin,memClkMax' or 'memClkVal' e.g. "
    "--lock-memory-clocks=5100,5100 or --lock-memory-clocks=5100\n"
)
BAD_APPLICATION_CLOCKS = (
    'Specified clocks "{}" are not valid. Please format input as memClk,smClk e.g. --applications-clocks=2000,300\n'
)
NOT_THESE = (
    "Specified clock combination \"{}\" is not supported for GPU {}. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see "
    "list of supported clock combinations\n"
)
NO_RIGHT = "The current user does not have permission to change clocks for GPU {}."
NO_MEMORY_LOCK = ("Volta", "Turing")
"""Architectures without a lock of the memory clock (it came with Ampere)."""


def _lock_gpu(call, one) -> str:
    texts = _pair(call.wanted.value, BAD_GPU_CLOCKS, ("base", "tdp", "unlimited"))
    clocks = one.model["clocks_mhz"]
    top = clocks["graphics_max"]
    low, high = (int(text) if text.isdigit() else top for text in texts)  # base and tdp are this card's maximum
    if low > high:
        raise Warned(NOT_THESE.format(f"(gpuClkMin {texts[0]}, gpuClkMax {texts[1]})", one.bus_id))
    call.need_root(NO_RIGHT.format(one.bus_id))
    value = [_nearest(low, clocks["graphics_min"], top), _nearest(high, clocks["graphics_min"], top)]
    _set(call, one, "gpu_clocks", value)
    return f'GPU clocks set to "(gpuClkMin {texts[0]}, gpuClkMax {texts[1]})" for GPU {one.bus_id}\n'


def _lock_memory(call, one) -> str:
    if one.model["architecture"] in NO_MEMORY_LOCK:
        raise Failure(f"Setting locked Memory clocks is not supported for GPU {one.bus_id}.\n", answer.OTHER)
    texts = _pair(call.wanted.value, BAD_MEMORY_CLOCKS)
    low, high = int(texts[0]), int(texts[1])
    if low > high:
        raise Warned(NOT_THESE.format(f"(memClkMin {low}, memClkMax {high})", one.bus_id))
    call.need_root(NO_RIGHT.format(one.bus_id))
    clocks = one.model["clocks_mhz"]
    lowest = clocks["memory_low"] or clocks["memory"]
    _set(
        call, one, "memory_clocks", [_nearest(low, lowest, clocks["memory"]), _nearest(high, lowest, clocks["memory"])]
    )
    return f'Memory clocks set to "(memClkMin {low}, memClkMax {high})" for GPU {one.bus_id}\n'


def _applications(call, one) -> str:
    texts = call.wanted.value.split(",")
    if len(texts) != 2 or not all(text.isdigit() for text in texts):
        raise Failure(BAD_APPLICATION_CLOCKS.format(call.wanted.value), answer.BAD_ARGUMENT)
    if not has_application_clocks(one):
        raise Warned(f"Setting applications clocks is not supported for GPU {one.bus_id}.\n")
    memory, graphics = int(texts[0]), int(texts[1])
    clocks = one.model["clocks_mhz"]
    steps = range(clocks["graphics_max"], clocks["graphics_min"] - 1, -clocks["step"])
    if memory not in (clocks["memory"], clocks["memory_low"]) or graphics not in steps:
        raise Warned(NOT_THESE.format(f"(MEM {memory}, SM {graphics})", one.bus_id))
    call.need_root(NO_RIGHT.format(one.bus_id))
    _set(call, one, "application_clocks", [memory, graphics])
    return f'Applications clocks set to "(MEM {memory}, SM {graphics})" for GPU {one.bus_id}\n'


def has_application_clocks(one) -> bool:
    """False for models without them, and for every GPU under a driver of branch 590 or later, which deprecates them."""
    return one.default_application_clocks_mhz is not None and driver.branch(one.machine.loaded_version) < 590


def _reset(name: str, words: str):
    def change(call, one) -> str:
        if name == "application_clocks" and not has_application_clocks(one):
            raise Warned(words.format(one.bus_id))
        if name == "memory_clocks" and one.model["architecture"] in NO_MEMORY_LOCK:
            raise Warned(words.format(one.bus_id))
        call.need_root(NO_RIGHT.format(one.bus_id))
        _set(call, one, name, None)
        return ""

    return change


def _set(call, one, name: str, value) -> None:
    before = settings.driver_setting(one, name)
    settings.set_driver_setting(one, name, value)
    call.record(one, name, before, value)


def _pair(value: str, words: str, names: tuple = ()) -> list:
    """`1000` → `["1000", "1000"]`, `1000,1500` → both."""
    texts = value.split(",")
    if len(texts) > 2 or not all(text.isdigit() or text in names for text in texts):
        raise Failure(words.format(value), answer.BAD_ARGUMENT)
    return [texts[0], texts[-1]]


def _nearest(value: int, lowest: int, highest: int) -> int:
    return max(lowest, min(value, highest))


CHANGES = {
    "lock-gpu-clocks": _lock_gpu,
    "lock-memory-clocks": _lock_memory,
    "applications-clocks": _applications,
    "reset-gpu-clocks": _reset("gpu_clocks", "Setting locked gpu clocks is not supported for GPU {}.\n"),
    "reset-memory-clocks": _reset("memory_clocks", "Setting locked Memory clocks is not supported for GPU {}.\n"),
    "reset-applications-clocks": _reset(
        "application_clocks", "Setting applications clocks is not supported for GPU {}.\n"
    ),
}
