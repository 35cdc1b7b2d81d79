# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of the simulator: PCI functions, limits, links, topology, and which driver drives them."""

from __future__ import annotations

import pytest
from simulated_host import running
from simulated_machine import Machine

VERSION = "580.178.04"


def functions(root, vendor: str) -> list:
    """`(class, device)` of the vendor's PCI functions, sorted."""
    folders = [one for one in root.glob("sys/bus/pci/devices/*") if (one / "vendor").read_text().strip() == vendor]
    return sorted(tuple((one / name).read_text().strip() for name in ("class", "device")) for one in folders)


@pytest.mark.parametrize(
    "profile, expected",
    [
        ("hgx-b200-8", [("0x030200", "0x2901")] * 8),
        ("l40s-4", [("0x030200", "0x26b9")] * 4),
        ("rtx4090-2", [("0x030000", "0x2684")] * 2),
        ("v100-8", [("0x030200", "0x1db1")] * 8),
    ],
)
def test_nvidia_functions_on_the_bus(tmp_path, profile, expected):
    Machine(tmp_path, profile).boot()
    assert functions(tmp_path, "0x10de") == expected


@pytest.mark.parametrize(
    "profile, expected",
    [
        # name, memory, power min/default/max, compute capability, PCIe generation and width, ECC, MIG
        ("hgx-b200-8", "NVIDIA B200, 183359, 200.00, 1000.00, 1000.00, 10.0, 5, 16, Enabled, Disabled"),
        ("l40s-4", "NVIDIA L40S, 46068, 100.00, 350.00, 350.00, 8.9, 4, 16, Enabled, [N/A]"),
        ("rtx4090-2", "NVIDIA GeForce RTX 4090, 24564, 150.00, 450.00, 600.00, 8.9, 4, 16, [N/A], [N/A]"),
        ("v100-8", "Tesla V100-SXM2-16GB, 16384, 150.00, 300.00, 300.00, 7.0, 3, 16, Enabled, [N/A]"),
    ],
)
def test_what_a_card_says_of_itself(tmp_path, profile, expected):
    fields = (
        "name,memory.total,power.min_limit,power.default_limit,power.max_limit,compute_cap,pcie.link.gen.max,"
        "pcie.link.width.max,ecc.mode.current,mig.mode.current"
    )
    assert {", ".join(row) for row in running(tmp_path, profile).query(fields)} == {expected}


@pytest.mark.parametrize("profile, count, speed", [("hgx-b200-8", 18, "53.125"), ("v100-8", 6, "25.781")])
def test_links_of_a_board(tmp_path, profile, count, speed):
    lines = running(tmp_path, profile).smi("nvlink", "-s").text.splitlines()
    assert lines[1 : count + 1] == [f"\t Link {link}: {speed} GB/s" for link in range(count)]
    assert len(lines) == 8 * (1 + count)


@pytest.mark.parametrize("profile", ["l40s-4", "rtx4090-2"])
def test_cards_without_nvlink_say_so_since_590_and_nothing_before(tmp_path, profile):
    assert running(tmp_path / "old", profile).smi("nvlink", "-s").text == ""
    lines = running(tmp_path / "new", profile, "595.91.07").smi("nvlink", "-s").text.splitlines()
    assert set(lines[1::2]) == {"Device does not have or support Nvlink"}


def cells(machine) -> list:
    rows = [line.split("\t") for line in machine.smi("topo", "-m").text.splitlines() if line.startswith("GPU")]
    return [" ".join(cell.strip() for cell in row[1 : len(rows) + 1]) for row in rows]


@pytest.mark.parametrize(
    "profile, expected",
    [
        ("l40s-4", ["X NODE SYS SYS", "NODE X SYS SYS", "SYS SYS X NODE", "SYS SYS NODE X"]),
        ("rtx4090-2", ["X PHB", "PHB X"]),
        (
            "v100-8",  # the hybrid cube mesh of a DGX-1
            [
                "X NV1 NV1 NV2 NV2 SYS SYS SYS",
                "NV1 X NV2 NV1 SYS NV2 SYS SYS",
                "NV1 NV2 X NV2 SYS SYS NV1 SYS",
                "NV2 NV1 NV2 X SYS SYS SYS NV1",
                "NV2 SYS SYS SYS X NV1 NV1 NV2",
                "SYS NV2 SYS SYS NV1 X NV2 NV1",
                "SYS SYS NV1 SYS NV1 NV2 X NV2",
                "SYS SYS SYS NV1 NV2 NV1 NV2 X",
            ],
        ),
    ],
)
def test_topology(tmp_path, profile, expected):
    assert cells(running(tmp_path, profile)) == expected


def test_a_dead_link_of_a_mesh_is_dead_at_both_ends(tmp_path):
    machine = running(tmp_path, "v100-8")
    machine.fault("--gpu", "0", "--link", "4", "nvlink_down")  # to GPU 4, whose first link it is
    assert cells(machine)[0] == "X NV1 NV1 NV2 NV1 SYS SYS SYS"
    assert cells(machine)[4] == "NV1 SYS SYS SYS X NV1 NV1 NV2"
    down = [line for line in machine.smi("nvlink", "-s").text.splitlines() if "inactive" in line]
    assert down == ["\t Link 4: <inactive>", "\t Link 0: <inactive>"]


def test_management_of_nvlink_5_is_seen_where_mlx5_ib_is_loaded(tmp_path):
    machine = running(tmp_path, "hgx-b200-8")
    marked = [one for one in tmp_path.glob("sys/class/infiniband/*/device/vpd") if b"SW_MNG" in one.read_bytes()]
    assert [one.parts[-3] for one in sorted(marked)] == ["mlx5_0", "mlx5_1"]
    assert functions(tmp_path, "0x15b3") == [("0x020700", "0x1021")] * 4
    machine.fault("mlx5_ib_missing")
    assert list(tmp_path.glob("sys/class/infiniband/*")) == []
    assert len(functions(tmp_path, "0x15b3")) == 4


def test_a_healthy_fabric_of_b200_says_so(tmp_path):
    text = running(tmp_path, "hgx-b200-8").smi("-q", "-x", "-i", "0").text
    assert "<summary>Healthy</summary>" in text and "<peer_type>Switch Connected</peer_type>" in text


def test_geforce_leaves_out_what_it_does_not_have(tmp_path):
    machine = running(tmp_path, "rtx4090-2")
    text = machine.smi("-q", "-x", "-i", "0").text
    for expected in (
        "<product_brand>GeForce<", "<serial>N/A<", "<board_part_number>N/A<", "<current_ecc>N/A<",
        "<sram_correctable>N/A<", "<fan_speed>0 %<", "<performance_state>P8<", "<current_link_gen>1<",
        "<gpu_target_temperature>84 C<", "<memory_temp>N/A<", "<state>N/A<",
    ):  # fmt: skip
        assert expected in text
    machine.fault("load")
    busy = machine.smi("-q", "-x", "-i", "0").text
    assert "<performance_state>P2<" in busy and "<current_link_gen>4<" in busy and "<fan_speed>62 %<" in busy


@pytest.mark.parametrize(
    "profile, version, license_text, words",
    [
        ("v100-8", VERSION, "Dual MIT/GPL", "is not supported by open"),
        ("v100-8", "595.91.07", "NVIDIA", "580.xx Legacy drivers"),
        ("hgx-b200-8", VERSION, "NVIDIA", "requires use of the NVIDIA open kernel modules"),
    ],
)
def test_a_driver_that_cannot_drive_a_gpu_shows_none_and_says_why(tmp_path, profile, version, license_text, words):
    machine = Machine(tmp_path, profile).install(version, license_text).boot()
    answer = machine.smi("-q", "-x")
    assert (answer.rc, answer.text) == (6, "No devices were found\n")
    assert words in "\n".join(machine.state()["kernel_log"])
    assert len(functions(tmp_path, "0x10de")) == 8
