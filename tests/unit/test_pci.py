# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in /sys/bus/pci/devices becomes GPUs and NVSwitches, with addresses as nvidia-smi writes them."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._host import Host
from ansible_collections.gpufleet.server.plugins.module_utils._observe_pci import observe_driver, observe_pci
from ansible_collections.gpufleet.server.plugins.module_utils._pci import classify_pci, normal_bus_id, pci_device


@pytest.mark.parametrize(
    "text, bus_id",
    [
        ("0000:4b:00.0", "00000000:4B:00.0"),
        ("00000000:4B:00.0", "00000000:4B:00.0"),
        ("PCI:0000:91:00", "00000000:91:00.0"),
        ("0000:10:1c", "00000000:10:1C.0"),
        ("00001580:00:00.0", "00001580:00:00.0"),
        ("0008:01:00", "00000008:01:00.0"),
        ("4b:00.0", "00000000:4B:00.0"),
        ("GPU0000:20:00.0", "00000000:20:00.0"),
        ("GPU-1234", None),
        ("", None),
        (None, None),
        ("0000:4b", None),
    ],
)
def test_every_spelling_of_an_address_is_one(text, bus_id):
    assert normal_bus_id(text) == bus_id


def device(address, vendor="0x10de", device_id="0x2330", class_code="0x030200", **more):
    return pci_device(address, dict({"vendor": vendor, "device": device_id, "class": class_code}, **more))


def test_functions_are_sorted_by_what_they_are():
    found = classify_pci(
        [
            device("0000:c1:00.0", device_id="0x22a3", class_code="0x068000"),
            device("0000:4b:00.0"),
            device("0000:1a:00.0", class_code="0x030000"),
            device("0000:1a:00.1", device_id="0x22ba", class_code="0x040300"),
            device("0000:05:00.0", vendor="0x1002", device_id="0x740f", class_code="0x038000"),
            device("0000:02:00.0", device_id="0x22b1", class_code="0x060400"),
        ]
    )
    assert [gpu.bus_id for gpu in found.gpus] == ["00000000:1A:00.0", "00000000:4B:00.0"]
    assert [switch.device for switch in found.nvswitches] == ["22a3"]
    assert [gpu.device for gpu in found.amd_gpus] == ["740f"]
    assert found.has_nvswitch and found.architectures == ("hopper",)


@pytest.mark.parametrize("text, node", [("1\n", 1), ("0", 0), ("-1\n", None), ("", None), (None, None)])
def test_numa_node_that_the_kernel_does_not_know_is_null(text, node):
    assert device("0000:4b:00.0", numa_node=text).numa_node == node


def test_address_that_is_none_is_no_device():
    assert pci_device("version", {"vendor": "0x10de"}) is None


def write(root, path, text):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_bus_is_read_without_a_driver(tmp_path):
    folder = "/sys/bus/pci/devices/0000:4b:00.0/"
    for name, text in {
        "vendor": "0x10de\n", "device": "0x2901\n", "class": "0x030200\n", "numa_node": "1\n",
        "current_link_width": "8\n", "max_link_width": "16\n",
    }.items():
        write(tmp_path, folder + name, text)
    write(tmp_path, "/sys/class/infiniband/mlx5_3/device/vpd", b"\x82\x10\x00SW_MNG\x00")
    write(tmp_path, "/sys/class/infiniband/mlx5_0/device/vpd", b"\x82\x10\x00ConnectX")
    found = observe_pci(Host(str(tmp_path)))
    gpu = found.gpus[0]
    assert (gpu.bus_id, gpu.numa_node, gpu.current_link_width, gpu.max_link_width) == ("00000000:4B:00.0", 1, 8, 16)
    assert (gpu.architecture, gpu.model) == ("blackwell", "B200")
    assert found.nvlink_management == ("mlx5_3",) and found.readable


def test_machine_without_a_bus_is_not_readable(tmp_path):
    assert not observe_pci(Host(str(tmp_path))).readable


@pytest.mark.parametrize(
    "line, flavour",
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.178.04  Release Build  (x)", "open"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024", "proprietary"),
    ],
)
def test_loaded_module_tells_version_and_flavour(tmp_path, line, flavour):
    write(tmp_path, "/proc/driver/nvidia/version", line + "\nGCC version: 12\n")
    found = observe_driver(Host(str(tmp_path)), ask_modinfo=False)
    assert found.loaded_version == ("580.178.04" if flavour == "open" else "550.90.07")
    assert found.loaded_flavour == flavour


@pytest.mark.parametrize("data, state", [(b"\x06\x00\x00\x00\x01", True), (b"\x06\x00\x00\x00\x00", False)])
def test_secure_boot_is_read_from_its_variable(tmp_path, data, state):
    write(tmp_path, "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", data)
    assert observe_driver(Host(str(tmp_path)), ask_modinfo=False).secure_boot is state


def test_machine_without_efi_has_no_secure_boot_state(tmp_path):
    assert observe_driver(Host(str(tmp_path)), ask_modinfo=False).secure_boot is None
