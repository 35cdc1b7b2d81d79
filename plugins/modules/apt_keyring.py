#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_keyring
short_description: Fetch an OpenPGP key for apt and trust it only by its fingerprint
version_added: 0.1.0
description:
  - Downloads a public key, armoured or binary, and writes it only where every primary key in it has one of
    O(fingerprints). Needs no gpg on the target. A server that does not answer well is asked four times.
  - A file that holds allowed keys already is left alone, and nothing is downloaded.
  - The form follows the name of O(dest), as apt wants it. V(.asc) is armoured, anything else binary.
options:
  url:
    description: Where the key is to be had.
    type: str
    required: true
  dest:
    description: File to write, as named by C(Signed-By) of the source.
    type: path
    required: true
  fingerprints:
    description: Full fingerprints (40 hexadecimal digits) of the primary keys that are trusted.
    type: list
    elements: str
    required: true
  timeout:
    description: Seconds to wait for the download.
    type: int
    default: 30
attributes:
  check_mode:
    description: Can run in check mode; downloads and writes nothing then.
    support: full
  diff_mode:
    description: Shows the fingerprints before and after.
    support: full
author:
  - The gpufleet authors (@gpufleet)
"""

EXAMPLES = r"""
- name: Trust NVIDIA's key for its CUDA repository
  gpufleet.server.apt_keyring:
    url: https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/3bf863cc.pub
    dest: /etc/apt/keyrings/gpufleet-nvidia.gpg
    fingerprints: [EB693B3035CD5710E231E123A4B469963BF863CC]
"""

RETURN = r"""
found:
  description: Fingerprints in the file (in check mode where it would be fetched, those of the old file).
  returned: always
  type: list
  elements: str
  sample: [EB693B3035CD5710E231E123A4B469963BF863CC]
before:
  description: Fingerprints that the file held before; empty where there was none.
  returned: always
  type: list
  elements: str
  sample: []
"""

import os
import tempfile
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ansible_collections.gpufleet.server.plugins.module_utils._apt_problems import retry_delay_s
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host
from ansible_collections.gpufleet.server.plugins.module_utils._openpgp import (
    OpenPgpError,
    normal_fingerprint,
    primary_fingerprints,
    to_armour,
    to_binary,
)

MAX_KEY_BYTES = 1024 * 1024


def fingerprints_in(data):
    try:
        return list(primary_fingerprints(data)) if data else []
    except OpenPgpError:
        return ["unreadable"]


def download(url, timeout):
    """The key's bytes. A server that does not answer well, or not at all, is asked again a few times."""
    attempt = 1
    while True:
        try:
            return open_url(url, timeout=timeout, http_agent="gpufleet-apt-keyring").read(MAX_KEY_BYTES)
        except Exception:  # pylint: disable=broad-except
            # open_url raises whatever the transport raises
            delay = retry_delay_s(attempt)
            if delay is None:
                raise
            time.sleep(delay)
            attempt += 1


def fetch(url, allowed, dest, timeout):
    """The key in the form that `dest` asks for. Raises OpenPgpError where it is not one of the allowed keys."""
    data = download(url, timeout)
    try:
        found = primary_fingerprints(data)
    except OpenPgpError as error:
        raise OpenPgpError("%s is no OpenPGP key: %s" % (url, error)) from error
    foreign = [fingerprint for fingerprint in found if fingerprint not in allowed]
    if foreign:
        raise OpenPgpError(
            "%s holds the key %s; allowed is %s. Nothing was written." % (url, ", ".join(foreign), ", ".join(allowed))
        )
    return to_armour(data) if dest.endswith(".asc") else to_binary(data)


def write(module, data, dest):
    folder = os.path.dirname(dest)
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o755)
    handle, path = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    module.atomic_move(path, dest)
    os.chmod(dest, 0o644)  # apt reads it as user _apt


def main():
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "dest": {"type": "path", "required": True},
            "fingerprints": {"type": "list", "elements": "str", "required": True, "no_log": False},
            "timeout": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    dest = module.params["dest"]
    before = fingerprints_in(Host().read_bytes(dest))
    result = {"changed": False, "before": before, "found": before}
    try:
        allowed = [normal_fingerprint(text) for text in module.params["fingerprints"]]
        if not before or any(fingerprint not in allowed for fingerprint in before):
            result["changed"] = True
            if not module.check_mode:
                data = fetch(module.params["url"], allowed, dest, module.params["timeout"])
                write(module, data, dest)
                result["found"] = fingerprints_in(data)
    except OpenPgpError as error:
        result["changed"] = False
        module.fail_json(msg=str(error), **result)
    except Exception as error:  # pylint: disable=broad-except
        # open_url raises whatever the transport raises; all of it means that there is no key
        result["changed"] = False
        module.fail_json(msg="cannot fetch %s: %s" % (module.params["url"], error), **result)
    after = allowed[0] if module.check_mode and result["changed"] else ", ".join(result["found"])
    result["diff"] = {"before": ", ".join(before) + "\n", "after": after + "\n"}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
