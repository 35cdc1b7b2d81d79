# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox: simulated GPU servers on this machine, behind the command ``tests/sandbox/lab``.

An Ansible inventory says what a lab looks like; ``lab up INVENTORY`` makes it so. The hosts are podman containers with
systemd as PID 1 and sshd, with static addresses on a private network. Variables that a sandbox inventory sets
(those read here must be literal, without Jinja)::

    all:
      vars:
        sandbox_lab: sandbox                    # name of the lab: [a-z][a-z0-9-]*
        sandbox_subnet: 10.203.0.0/24           # .1 is this machine, .2 the repository server (repo.lab inside)
        sandbox_cache: "{{ lookup('ansible.builtin.env', 'GPUFLEET_CACHE')
                           or lookup('ansible.builtin.env', 'HOME') ~ '/.cache/gpufleet' }}"
        ansible_user: root
        ansible_ssh_common_args: "-F '{{ sandbox_cache }}/ssh/config-{{ sandbox_lab }}'"
        ansible_python_interpreter: /usr/bin/python3
      hosts:
        gpu01:
          ansible_host: 10.203.0.11             # in the subnet; .1 and .2 are taken
          sandbox_image: ubuntu2204             # a host without it is not the sandbox's
          sandbox_profile: dgx-h100-8           # `lab profiles`; default: none

The ssh configuration carries user, key, host key policy and ControlPath, and an alias for each host, so the same file
serves Ansible, testinfra (``ssh://gpu01?ssh_config=FILE``) and a person (``ssh -F FILE gpu01``).

Everything that is built is cached in ``$GPUFLEET_CACHE`` (default ``~/.cache/gpufleet``) and in podman's image store,
under a name that contains a hash of its inputs.
"""
