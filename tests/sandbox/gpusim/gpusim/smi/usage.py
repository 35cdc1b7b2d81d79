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
    -q   -d, --display=BLOCK,...        parts of it, as text: ECC, POWER, CLOCK, SUPPORTED_CLOCKS, ...
    --query-gpu=FIELDS --format=csv[,noheader][,nounits]
    --query-compute-apps=, --query-remapped-rows=, --query-retired-pages=, --query-supported-clocks=
    --help-query-gpu, ...               the fields of each of these switches
    -i,  --id=                          index, UUID, serial or PCI bus id, separated by commas
    -pm, --persistence-mode=            0/DISABLED, 1/ENABLED
    -pl, --power-limit=                 watts
    -lgc, --lock-gpu-clocks=            MHz: minimum,maximum or one value [--mode=0|1]; -rgc undoes it
    -lmc, --lock-memory-clocks=         the same for the memory; -rmc undoes it
    -ac, --applications-clocks=         memory,graphics; -rac undoes it
    -c,  --compute-mode=                0/DEFAULT, 2/PROHIBITED, 3/EXCLUSIVE_PROCESS
    -e,  --ecc-config=                  0/DISABLED, 1/ENABLED
    -p,  --reset-ecc-errors=            0/VOLATILE, 1/AGGREGATE
    -mig, --multi-instance-gpu=         0/DISABLED, 1/ENABLED
    -r,  --gpu-reset                    reset GPUs
    -eow, --error-on-warning            a setting that a card lacks is an error
    --version
    topo -m | -p2p r|w|n|a|p            topology matrix, peer-to-peer matrix
    nvlink -s | -e | -c [-i ID]         link state, error counters, capabilities
    mig -lgip | -cgi | -lgi | -dgi | -cci | -lci | -dci
"""
