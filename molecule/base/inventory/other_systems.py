#!/usr/bin/env python3
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other systems that the role supports, where GPUFLEET_ALL_SYSTEMS is set (make test-full)."""

import json
import os

SYSTEMS = ("debian13", "ubuntu2004", "ubuntu2404", "ubuntu2604")
FIRST = 13

wanted = SYSTEMS if os.environ.get("GPUFLEET_ALL_SYSTEMS") else ()
hosts = {
    name: {"ansible_host": "10.203.1.%d" % (FIRST + number), "sandbox_image": name}
    for number, name in enumerate(wanted)
}
print(json.dumps({"_meta": {"hostvars": hosts}, "cpu_only": {"hosts": list(hosts)}}))
