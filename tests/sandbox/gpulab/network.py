# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private network of a lab."""

from __future__ import annotations

import ipaddress
import re
from typing import List

from .errors import LabError
from .inventory import Lab
from .podman import LAB_LABEL, exists, podman

SUBNET_LABEL = "gpufleet.subnet"
"""Value LAB/SUBNET: one label, because podman's versions disagree on what two label filters mean."""


def ensure_network(lab: Lab) -> bool:
    """Make the lab's network; returns whether it was made now.

    Without podman's own name server: hosts get this machine's resolvers, and the lab's names from /etc/hosts.
    """
    if lab.network in _labelled(f"{SUBNET_LABEL}={lab.name}/{lab.subnet}"):
        return False
    if lab.network in _labelled(f"{LAB_LABEL}={lab.name}"):
        raise LabError(f"lab {lab.name} is up in another subnet than {lab.subnet}; run `lab down` first")
    if exists("network", lab.network):
        raise LabError(f"a network {lab.network} exists that this tool did not make; rename sandbox_lab")
    _refuse_taken(lab)
    arguments = ["--disable-dns", "--subnet", lab.subnet, "--gateway", lab.gateway]
    arguments += ["--label", f"{LAB_LABEL}={lab.name}", "--label", f"{SUBNET_LABEL}={lab.name}/{lab.subnet}"]
    done = podman("network", "create", *arguments, lab.network, check=False)
    if done.rc != 0:
        raise LabError(f"could not make network {lab.subnet} for lab {lab.name}: {done.stderr.strip()}")
    return True


def remove_network(lab: str) -> None:
    """Remove the network of a lab if it is there and ours."""
    for network in _labelled(f"{LAB_LABEL}={lab}"):
        podman("network", "rm", network)


def _refuse_taken(lab: Lab) -> None:
    """Name the lab that is in the way; podman would only say that something is."""
    labels = podman("network", "ls", "--filter", f"label={SUBNET_LABEL}", "--format", "{{.Labels}}").stdout
    wanted = ipaddress.IPv4Network(lab.subnet)
    for other, subnet in re.findall(rf"{SUBNET_LABEL}=([^/,]+)/([0-9./]+)", labels):
        if wanted.overlaps(ipaddress.IPv4Network(subnet)):
            raise LabError(
                f"lab {lab.name} wants subnet {lab.subnet}, but {subnet} is that of lab {other}, which is up"
            )


def _labelled(label: str) -> List[str]:
    return podman("network", "ls", "--filter", f"label={label}", "--format", "{{.Name}}").stdout.split()
