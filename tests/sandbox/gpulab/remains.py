# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What podman, killed while it connects a container, leaves behind: a bridge that no network owns any more.

Podman forgets the network, but the bridge keeps its address, and every later `podman network create` of that subnet
fails with "subnet is already used on the host".
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List

from .podman import podman
from .process import run

BRIDGE_NAME = re.compile(r"(cni-)?podman[0-9]+")
"""Podman's own names; a bridge of any other name is somebody's and stays."""


def remove_remains(gateway: str) -> List[str]:
    """Remove bridges of podman's that have this address and no network; returns their names."""
    bridges = json.loads(run(["ip", "-json", "address", "show", "type", "bridge"]).stdout or "[]")
    owned = {network["network_interface"] for network in _networks()}
    found = orphans(bridges, owned, gateway)
    for bridge in found:
        for port in _ports(bridge):
            # The other end is in the namespace of a container that is gone; it goes with this one.
            run(["ip", "link", "delete", port], check=False)
        # Gone in between is as good as removed.
        run(["ip", "link", "delete", bridge], check=False)
    return found


def orphans(bridges: List[Dict[str, Any]], owned: "set[str]", gateway: str) -> List[str]:
    """Names of bridges (`ip -json address show type bridge`) that were podman's, have the address, and are unowned."""
    return [
        bridge["ifname"]
        for bridge in bridges
        if BRIDGE_NAME.fullmatch(bridge.get("ifname", ""))
        and bridge["ifname"] not in owned
        and any(address.get("local") == gateway for address in bridge.get("addr_info", []))
    ]


def _networks() -> List[Dict[str, Any]]:
    networks: List[Dict[str, Any]] = json.loads(podman("network", "ls", "--format", "json").stdout or "[]") or []
    return networks


def _ports(bridge: str) -> List[str]:
    done = run(["ip", "-json", "link", "show", "master", bridge], check=False)
    return [port["ifname"] for port in json.loads(done.stdout or "[]") if "ifname" in port]
