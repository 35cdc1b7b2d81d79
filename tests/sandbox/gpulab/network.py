"""The private network of a lab."""

from __future__ import annotations

import json

from .errors import LabError
from .inventory import Lab
from .podman import LAB_LABEL, exists, podman


def ensure_network(lab: Lab) -> bool:
    """Make the lab's network; returns whether it was made now.

    Without podman's own name server: hosts get this machine's resolvers, and names of the lab from /etc/hosts.
    """
    if exists("network", lab.network):
        found = json.loads(podman("network", "inspect", lab.network).stdout)[0]
        if found.get("labels", {}).get(LAB_LABEL) != lab.name:
            raise LabError(f"a network {lab.network} exists that this tool did not make; rename sandbox_lab")
        subnet = found["subnets"][0]["subnet"]
        if subnet == lab.subnet:
            return False
        raise LabError(
            f"lab {lab.name} is up with subnet {subnet}, the inventory now says {lab.subnet}; run `lab down` first"
        )
    label = f"{LAB_LABEL}={lab.name}"
    arguments = ["--label", label, "--disable-dns", "--subnet", lab.subnet, "--gateway", lab.gateway]
    done = podman("network", "create", *arguments, lab.network, check=False)
    if done.rc != 0:
        raise LabError(f"could not make network {lab.subnet} for lab {lab.name}: {done.stderr.strip()}")
    return True


def remove_network(name: str) -> None:
    """Remove the network of a lab if it is there and ours."""
    ours = podman("network", "ls", "--quiet", "--filter", f"label={LAB_LABEL}={name}").stdout.split()
    for network in ours:
        podman("network", "rm", network)
