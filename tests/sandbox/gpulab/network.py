# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private network of a lab."""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
from typing import List

from .errors import LabError
from .inventory import Lab
from .podman import LAB_LABEL, podman
from .remains import remove_remains

SUBNET_LABEL = "gpufleet.subnet"
"""Value LAB/SUBNET: one label, because podman's versions disagree on what two label filters mean."""


def ensure_network(lab: Lab) -> str:
    """The name of the lab's network, which is made if it is not there.

    Each gets a name of its own: podman keeps the addresses of a container that it was killed with under the network's
    name, even when the network is gone, and would refuse them to the next one of that name.
    Without podman's own name server: hosts get this machine's resolvers, and the lab's names from /etc/hosts.
    """
    for network in _labelled(f"{SUBNET_LABEL}={lab.name}/{lab.subnet}"):
        return network
    if _labelled(f"{LAB_LABEL}={lab.name}"):
        raise LabError(f"lab {lab.name} is up in another subnet than {lab.subnet}; run `lab down` first")
    _refuse_taken(lab)
    remove_remains(lab.gateway)
    name = f"gpulab-{lab.name}-{secrets.token_hex(4)}"
    arguments = ["--disable-dns", "--subnet", lab.subnet, "--gateway", lab.gateway]
    arguments += ["--label", f"{LAB_LABEL}={lab.name}", "--label", f"{SUBNET_LABEL}={lab.name}/{lab.subnet}"]
    done = podman("network", "create", *arguments, name, check=False)
    if done.rc != 0:
        raise LabError(f"could not make network {lab.subnet} for lab {lab.name}: {done.stderr.strip()}")
    return name


def remove_network(lab: str) -> None:
    """Remove the network of a lab if it is there and ours, with what podman may leave of it."""
    for network in _labelled(f"{LAB_LABEL}={lab}"):
        subnets = json.loads(podman("network", "inspect", network).stdout)[0]["subnets"]
        podman("network", "rm", network)
        for subnet in subnets:
            remove_remains(subnet["gateway"])


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
