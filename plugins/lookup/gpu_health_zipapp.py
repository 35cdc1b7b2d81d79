# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup gpu_health_zipapp: the command gpu-health as base64 text, for the module config_files."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_health_zipapp
author: The gpufleet authors (@gpufleet)
short_description: The command gpu-health, built on the controller
version_added: 0.1.0
description:
  - Builds the zipapp gpu-health of this collection's files and returns it in base64. The same files always give the
    same bytes.
  - Takes no terms and reads nothing outside the collection.
"""

EXAMPLES = r"""
- name: Install the command
  gpufleet.server.config_files:
    files:
      - path: /usr/local/bin/gpu-health
        mode: "0755"
        content_b64: "{{ lookup('gpufleet.server.gpu_health_zipapp') }}"
"""

RETURN = r"""
_raw:
  description: One element, the file in base64.
  type: list
  elements: str
"""

import base64

from ansible.plugins.lookup import LookupBase

from ansible_collections.gpufleet.server.plugins.plugin_utils._gpu_health_archive import build_archive


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        return [base64.b64encode(build_archive()).decode("ascii")]
