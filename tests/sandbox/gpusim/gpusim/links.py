# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVLinks of a machine: through switches to every other GPU, or in a mesh where each link ends at a certain GPU."""


def mesh_ends(mesh: list) -> dict:
    """Both ends of each link of a mesh: (GPU, link) → (other GPU, its link).

    `mesh` holds `[GPU, other GPU, number of links]`. Links are numbered on each GPU in the order of that list.
    """
    ends, used = {}, {}
    for one, other, count in mesh:
        for _ in range(count):
            pair = []
            for gpu in (one, other):
                pair.append((gpu, used.get(gpu, 0)))
                used[gpu] = used.get(gpu, 0) + 1
            ends[pair[0]], ends[pair[1]] = pair[1], pair[0]
    return ends


def down(machine, position: int, faulty: dict) -> list:
    """Links of the GPU in `position` that are dead: its own and, in a mesh, those whose other end is.

    `faulty` is the position of a GPU → its links with the fault.
    """
    found = set(faulty.get(position, ()))
    for (gpu, link), (other, far) in machine.mesh.items():
        if gpu == position and far in faulty.get(other, ()):
            found.add(link)
    return sorted(found)


def joined(machine, one, other) -> int:
    """Living NVLinks of `one` that lead to `other`."""
    up = [link for link, alive in one.links.items() if alive]
    if machine.mesh:
        return sum(1 for link in up if machine.mesh[one.position, link][0] == other.position)
    return len(up) if machine.switched and any(other.links.values()) else 0
