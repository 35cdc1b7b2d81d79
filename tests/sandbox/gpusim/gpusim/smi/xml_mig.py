# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""XML section mig_devices: the word None, or a block for each MIG device."""

from .. import mig_layout


def write(xml, one) -> None:
    """Write the MIG devices of a GPU."""
    devices = mig_layout.devices(one.uuid, mig_layout.of_model(one.model["name"]), one.mig_instances)
    with xml.block("mig_devices"):
        if not devices:
            xml.lines.append("\t" * xml.depth + "None")
        for device in devices:
            _device(xml, one, device)


def _device(xml, one, device: dict) -> None:
    profile = device["profile"]
    identity = (("index", device["index"]), ("gpu_instance_id", device["gi"]), ("compute_instance_id", device["ci"]))
    with xml.block("mig_device", *identity):
        with xml.block("device_attributes"):
            xml.group(
                "shared",
                ("multiprocessor_count", profile["sm"] * device["slices"] // profile["slices"]),
                ("copy_engine_count", profile["ce"]),
                ("encoder_count", 0),
                ("decoder_count", profile["dec"]),
                ("ofa_count", profile["ofa"]),
                ("jpg_count", profile["jpeg"]),
            )
        with xml.block("ecc_error_count"):
            xml.group("volatile_count", ("sram_uncorrectable", 0))
        total = profile["memory_mib"]
        memory = (("total", total), ("reserved", 0), ("used", 0), ("free", total))
        xml.group("fb_memory_usage", *((name, f"{value} MiB") for name, value in memory))
        bar = one.model["bar1_mib"] * profile["size"] // 8
        xml.group("bar1_memory_usage", ("total", f"{bar} MiB"), ("used", "0 MiB"), ("free", f"{bar} MiB"))
