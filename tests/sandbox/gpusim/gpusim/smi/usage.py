# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -h`: what the simulator can do, under the real tool's first line."""


def text(version: str) -> str:
    """Return the help text for the package's version."""
    return f"""NVIDIA System Management Interface -- v{version}

This is the sandbox's simulator. It answers:

    nvidia-smi                          table of all GPUs
    -L,  --list-gpus                    one line per GPU
    -q,  --query [-x, --xml-format]     everything, as text or XML
    --query-gpu=FIELDS --format=csv[,noheader][,nounits]
    --query-compute-apps=FIELDS --format=csv
    --query-remapped-rows=FIELDS --format=csv
    -i,  --id=                          index, UUID, serial or PCI bus id, separated by commas
    -pm, --persistence-mode=            0/DISABLED, 1/ENABLED
    -pl, --power-limit=                 watts
    --version
    topo -m                             topology matrix
    nvlink -s | -e | -c [-i ID]         link state, error counters, capabilities
"""
