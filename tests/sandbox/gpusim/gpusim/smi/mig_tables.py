# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The three listings of `nvidia-smi mig`. Their name column is two characters wider in newer drivers."""

from .. import mig_layout

WIDER_SINCE = 570
"""First branch whose tables were seen with the wider column; 550 has the narrow one. The change may be older."""


def profiles(gpus: list, branch: int) -> str:
    """`mig -lgip`: what could be created, and how often."""
    wide = 2 if branch >= WIDER_SINCE else 0
    rule = "+" + "-" * (77 + wide) + "+\n"
    text = rule + _line("GPU instance profiles:", 77 + wide)
    text += _line(
        "GPU   Name             " + " " * wide + "ID    Instances   Memory     P2P    SM    DEC   ENC", 77 + wide
    )
    text += _line(" " * (29 + wide) + "Free/Total   GiB              CE    JPEG  OFA", 77 + wide)
    text += "|" + "=" * (77 + wide) + "|\n"
    for one in gpus:
        known = mig_layout.of_model(one.model["name"])
        for profile in known:
            free = mig_layout.count_free(known, one.mig_instances, profile)
            total = mig_layout.count_free(known, [], profile)
            gib = f"{profile['memory_mib'] / 1024:.2f}"
            name = f"MIG {profile['name']}"
            text += _line(
                f"{one.index:3}  {name:<{17 + wide}} {profile['id']:2}    {free:2}/{total:<2}       {gib:<11}No     "
                f"{profile['sm']:<7}{profile['dec']:<6}0",
                77 + wide,
            )
            text += _line(f"{' ' * (60 + wide)}{profile['ce']:<6}{profile['jpeg']:<6}{profile['ofa']}", 77 + wide)
            text += rule
    return text


def gpu_instances(chosen: list, branch: int) -> str:
    """`mig -lgi`: pairs of GPU and instance."""
    wide = 2 if branch >= WIDER_SINCE else 0
    rule = "+" + "-" * (55 + wide) + "+\n"
    text = rule + _line("GPU instances:", 55 + wide)
    text += _line("GPU   Name             " + " " * wide + "Profile  Instance   Placement", 55 + wide)
    text += _line(" " * (25 + wide) + "ID       ID       Start:Size", 55 + wide)
    text += "|" + "=" * (55 + wide) + "|\n"
    for one, instance in chosen:
        profile = mig_layout.number(mig_layout.of_model(one.model["name"]), instance["profile"])
        name = f"MIG {profile['name']}"
        place = f"{instance['start']:2}:{profile['size']:<2}"
        row = f"{one.index:3}  {name:<{16 + wide}} {profile['id']:5} {instance['id']:8}         {place}"
        text += _line(row, 55 + wide) + rule
    return text


def compute_instances(parts: list) -> str:
    """`mig -lci`: triples of GPU, GPU instance and compute instance."""
    rule = "+" + "-" * 68 + "+\n"
    text = rule + _line("Compute instances:", 68)
    text += _line("GPU     GPU       Name             Profile   Instance   Placement", 68)
    text += _line("      Instance                       ID        ID       Start:Size", 68)
    text += _line("        ID", 68) + "|" + "=" * 68 + "|\n"
    for one, instance, compute in parts:
        profile = mig_layout.number(mig_layout.of_model(one.model["name"]), instance["profile"])
        start = sum(entry["slices"] for entry in instance["compute"] if entry["id"] < compute["id"])
        text += _line(
            f"{one.index:3}     {instance['id']:2}       {mig_layout.compute_name(profile, compute['slices']):<18}  "
            f"{mig_layout.COMPUTE_PROFILE[compute['slices']]:2}        {compute['id']:2}         "
            f"{start:2}:{compute['slices']:<2}",
            68,
        )
        text += rule
    return text


def _line(text: str, width: int) -> str:
    return f"| {text:<{width - 1}}|\n"
