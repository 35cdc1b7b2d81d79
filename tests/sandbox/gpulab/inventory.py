# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading an Ansible inventory: which hosts the sandbox is to bring up, and how."""

from __future__ import annotations

import ipaddress
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from .errors import LabError, UsageError
from .process import run

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")


@dataclass(frozen=True)
class SandboxHost:
    """One host that the sandbox plays."""

    name: str
    address: str
    image: str
    profile: str


@dataclass(frozen=True)
class Lab:
    """What an inventory asks for. Hosts are sorted by name."""

    name: str
    subnet: str
    gateway: str
    repo_address: str
    hosts: Tuple[SandboxHost, ...]

    @property
    def repo_container(self) -> str:
        """The repository server's container."""
        return f"{self.name}-repo"

    def container(self, host: str) -> str:
        """The container that plays `host`."""
        return f"{self.name}-{host}"


def load(inventory: str) -> Lab:
    """Ask ansible-inventory, the only reader that understands every kind of inventory."""
    if not Path(inventory).exists():
        raise UsageError(f"no inventory at {inventory}")
    command = Path(sys.executable).with_name("ansible-inventory")
    if not command.exists():
        raise LabError(f"{command} is missing; 'make setup' installs it")
    done = run(
        [str(command), "-i", inventory, "--list"],
        env={"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true", "ANSIBLE_DEPRECATION_WARNINGS": "false"},
        check=False,
    )
    if done.rc != 0:
        raise UsageError(f"{inventory}: Ansible cannot read this inventory\n{done.stderr.strip()}")
    return parse(inventory, json.loads(done.stdout))


def parse(inventory: str, listing: Mapping[str, Any]) -> Lab:
    """Turn the output of ``ansible-inventory --list`` into a Lab.

    Every mistake is found here, before anything is started: all of them are named in one UsageError.
    """
    hostvars: Dict[str, Mapping[str, Any]] = listing.get("_meta", {}).get("hostvars", {})
    ours = {name: values for name, values in sorted(hostvars.items()) if "sandbox_image" in values}
    if not ours:
        raise UsageError(
            f"{inventory}: no host has the variable sandbox_image, so there is nothing for the sandbox to do"
        )
    mistakes: List[str] = []
    lab_name = _one_value(ours, "sandbox_lab", mistakes)
    if lab_name and not NAME.fullmatch(lab_name):
        mistakes.append(f"sandbox_lab is {lab_name!r}; it must be literal and match {NAME.pattern}")
    network = _subnet(_one_value(ours, "sandbox_subnet", mistakes), mistakes)
    hosts = tuple(_host(name, values, network, mistakes) for name, values in ours.items())
    by_address: Dict[str, str] = {}
    for host in hosts:
        if host.address in by_address:
            mistakes.append(f"{host.name}: address {host.address} is also that of {by_address[host.address]}")
        by_address[host.address] = host.name
    if mistakes:
        raise UsageError("\n".join(f"{inventory}: {mistake}" for mistake in mistakes))
    assert network is not None
    return Lab(
        name=lab_name,
        subnet=str(network),
        gateway=str(network[1]),
        repo_address=str(network[2]),
        hosts=hosts,
    )


def _one_value(ours: Mapping[str, Mapping[str, Any]], variable: str, mistakes: List[str]) -> str:
    """The value that all hosts share, or "" with a mistake noted."""
    values = {str(hostvars.get(variable, "")) for hostvars in ours.values()}
    if values == {""}:
        mistakes.append(f"{variable} is not set; set it for group all")
        return ""
    if len(values) > 1:
        mistakes.append(f"{variable} differs between hosts ({', '.join(sorted(values))}); set it once, for group all")
        return ""
    return values.pop()


def _subnet(text: str, mistakes: List[str]) -> "ipaddress.IPv4Network | None":
    if not text:
        return None
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        mistakes.append(f"sandbox_subnet: {error}; a literal IPv4 network such as 10.203.0.0/24 is wanted")
        return None
    if network.prefixlen > 28 or not network.is_private:
        mistakes.append(f"sandbox_subnet {text}: a private network of /28 or larger is wanted")
    return network


def _host(
    name: str, hostvars: Mapping[str, Any], network: "ipaddress.IPv4Network | None", mistakes: List[str]
) -> SandboxHost:
    address = str(hostvars.get("ansible_host", ""))
    if not HOST_NAME.fullmatch(name):
        mistakes.append(f"{name}: a sandbox host's name must match {HOST_NAME.pattern}")
    if name == "repo":
        mistakes.append("repo: this name is taken by the repository server")
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        mistakes.append(f"{name}: ansible_host is {address!r}; a literal IPv4 address in sandbox_subnet is wanted")
    else:
        if network and (parsed not in network or parsed == network.broadcast_address):
            mistakes.append(f"{name}: ansible_host {address} is not a host address of {network}")
        elif network and int(parsed) - int(network.network_address) < 3:
            mistakes.append(f"{name}: ansible_host {address} is taken (.1 is this machine, .2 the repository server)")
    return SandboxHost(
        name=name,
        address=address,
        image=str(hostvars["sandbox_image"]),
        profile=str(hostvars.get("sandbox_profile") or "none"),
    )
