# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of the sub-commands `nvlink`, `topo` and `mig`: one reader, other words than the main command's."""

from . import answer
from .answer import Failure

MODES = {
    "nvlink": {"-s": "s", "--status": "s", "-e": "e", "--errorcounters": "e", "-c": "c", "--capabilities": "c"},
    "topo": {"-m": "m", "--matrix": "m"},
    "mig": {
        "-lgip": "lgip", "--list-gpu-instance-profiles": "lgip", "-lgi": "lgi", "--list-gpu-instances": "lgi",
        "-dgi": "dgi", "--destroy-gpu-instance": "dgi", "-lci": "lci", "--list-compute-instances": "lci",
        "-dci": "dci", "--destroy-compute-instance": "dci",
    },
}  # fmt: skip
WITH_VALUE = {
    "nvlink": {},
    "topo": {"-p2p": "p2p", "--p2pstatus": "p2p"},
    "mig": {"-cgi": "cgi", "--create-gpu-instance": "cgi"},
}
"""Modes that need a value. `mig -cci` may have one."""

P2P = "rwnap"
NAMES = tuple(MODES)


def parse(name: str, argv: list, wanted_class):
    """Return what the sub-command wants; without any mode the tool prints its help and ends with 0."""
    wanted = wanted_class(name)
    wanted.instances = {"-gi": [], "-ci": []}
    wanted.default_compute = False
    rest = list(argv)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in MODES[name]:
            wanted.mode = MODES[name][option]
        elif name == "mig" and option in ("-C", "--default-compute-instance"):
            wanted.default_compute = True
        elif name == "mig" and option in ("-cci", "--create-compute-instance"):
            wanted.mode = "cci"
            wanted.value = value if equals else (rest.pop(0) if rest and rest[0][:1] != "-" else "")
        elif option in _values(name):
            if not equals and not rest:
                raise Failure(f'Option "{option}" is missing its value.\n', answer.BAD_ARGUMENT)
            _take(wanted, name, option, value if equals else rest.pop(0))
        else:
            raise Failure(f'Option "{option}" is not recognized.\n', answer.BAD_ARGUMENT)
    if name == "topo" and wanted.ids:
        words = "The -i command line argument must be used in conjunction with -n or -p."
        raise Failure(words + "\n\n", answer.OTHER)
    if not wanted.mode:
        raise Failure(f"\n    Usage: nvidia-smi {name} [options]\n\n", answer.OK)
    return wanted


def _values(name: str) -> tuple:
    own = {"nvlink": ("-l", "--link"), "topo": (), "mig": ("-gi", "--gpu-instance-id", "-ci", "--compute-instance-id")}
    return (*WITH_VALUE[name], "-i", "--id", *own[name])


def _take(wanted, name: str, option: str, value: str) -> None:
    if option in ("-i", "--id"):
        wanted.ids = value.split(",")
    elif option in WITH_VALUE[name]:
        wanted.mode, wanted.value = WITH_VALUE[name][option], value
        if wanted.mode == "p2p" and value[:1] not in tuple(P2P):  # only the first letter counts
            raise Failure("Invalid p2p capability index specified at the command-line\n", answer.BAD_ARGUMENT)
    elif not all(part.isdigit() for part in value.split(",")):
        raise Failure(f'Option "{value}" is invalid for "{option}".\n', answer.BAD_ARGUMENT)
    elif option in ("-l", "--link"):
        wanted.link = int(value)
    else:
        key = {"-gi": "-gi", "--gpu-instance-id": "-gi"}.get(option, "-ci")
        wanted.instances[key] = [int(part) for part in value.split(",")]
