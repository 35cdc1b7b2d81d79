# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of `nvidia-smi`, and which GPUs `-i` means."""

from . import answer
from .answer import Failure

FLAGS = {
    "-q": "query", "--query": "query", "-x": "xml-format", "--xml-format": "xml-format",
    "-L": "list", "--list-gpus": "list", "--version": "version",
}  # fmt: skip
VALUES = {
    "-i": "id", "--id": "id", "-pm": "persistence-mode", "--persistence-mode": "persistence-mode",
    "-pl": "power-limit", "--power-limit": "power-limit", "--format": "format", "--query-gpu": "query-gpu",
    "--query-compute-apps": "query-compute-apps", "--query-remapped-rows": "query-remapped-rows",
}  # fmt: skip
QUERIES = ("query-gpu", "query-compute-apps", "query-remapped-rows")
SETTERS = ("persistence-mode", "power-limit")
MODES = {
    "nvlink": {"-s": "s", "--status": "s", "-e": "e", "--errorcounters": "e", "-c": "c", "--capabilities": "c"},
    "topo": {"-m": "m", "--matrix": "m"},
}
HELP = "Please run 'nvidia-smi -h' for help."


class Wanted:
    """One call: `command` says which answer, the rest what it needs. No dataclass: importing those costs 30 ms."""

    def __init__(self, command: str, ids=(), fields=(), modifiers=(), value: str = ""):
        self.command, self.ids, self.fields, self.modifiers, self.value = command, ids, fields, modifiers, value
        self.mode = ""
        self.link = -1


def parse(argv: list) -> Wanted:
    """Return what the call wants; :class:`Failure` (rc 2) with the tool's words when it cannot be wanted."""
    if argv and argv[0] in ("nvlink", "topo"):
        return _sub_command(argv[0], argv[1:])
    given = _read(argv)
    ids = given["id"].split(",") if "id" in given else []
    chosen = [name for name in ("list", "version", *QUERIES, *SETTERS) if name in given]
    if len(chosen) + ("query" in given) > 1:
        _bad(f"ERROR: Only one command can be run at a time. {HELP}")
    if "xml-format" in given and "query" not in given:
        _bad(
            "Invalid combination of input arguments. Specify -q/--query and -x/--xml-format to run an XML query.  "
            + HELP
        )
    if "query" in given:
        return Wanted("xml" if "xml-format" in given else "plain", ids)
    if not chosen:
        return Wanted("table", ids)
    name = chosen[0]
    if name in QUERIES:
        modifiers = given.get("format", "").split(",")
        for modifier in modifiers:
            if modifier not in ("csv", "noheader", "nounits", ""):
                _bad("Format modifier is not recognized.")
        if "csv" not in modifiers:
            _bad("Format modifier --format=csv is mandatory.")
        fields = [text.strip() for text in given[name].split(",")]
        return Wanted(name, ids, fields, modifiers)
    return Wanted(name, ids, value=given.get(name, ""))


def _read(argv: list) -> dict:
    given = {}
    rest = list(argv)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in FLAGS and not equals:
            given[FLAGS[option]] = ""
        elif option in VALUES:
            if not equals:
                if not rest:
                    _bad(f"ERROR: Option {option} is missing its value. {HELP}")
                value = rest.pop(0)
            given[VALUES[option]] = value
        else:
            _bad(f"ERROR: Option {option} is not recognized. Please run 'nvidia-smi -h'.")
    return given


def _sub_command(name: str, argv: list) -> Wanted:
    wanted = Wanted(name)
    rest = list(argv)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in MODES[name]:
            wanted.mode = MODES[name][option]
        elif option in ("-i", "--id", "-l", "--link") and (equals or rest):
            value = value if equals else rest.pop(0)
            if option in ("-i", "--id"):
                wanted.ids = value.split(",")
            elif value.isdigit():
                wanted.link = int(value)
            else:
                _bad(f"ERROR: Option {option} is invalid for {value}. {HELP}")
        else:
            _bad(f"Option {option} not found")
    if name == "topo" and wanted.ids:
        _bad("The -i command line argument must be used in conjunction with -n or -p.")
    if not wanted.mode:
        _bad(f"    Usage: nvidia-smi {name} [options]")
    return wanted


def _bad(text: str):
    raise Failure(text + "\n", answer.BAD_ARGUMENT)


def select(machine, ids: list) -> list:
    """Return the GPUs that `ids` (index, bus id, UUID, serial) name, all of them when it is empty.

    One lost GPU spoils every call that looks at all GPUs. By index the others can still be reached, by bus id and UUID
    they cannot (captured from the real tool).
    """
    if not machine.gpus:
        raise Failure(answer.NO_DEVICES_TEXT, answer.NOT_FOUND)
    chosen = [_find(machine, text.strip()) for text in ids] if ids else list(machine.gpus)
    for one in chosen:
        if one.lost:
            raise Failure(answer.lost_text("GPU" + one.short_bus_id), answer.LOST)
    return chosen


def _find(machine, text: str):
    if text.isdigit() and len(text) < 5:
        if int(text) < len(machine.gpus):
            return machine.gpus[int(text)]
        raise Failure(answer.NO_DEVICES_TEXT, answer.NOT_FOUND)
    lost = [one for one in machine.gpus if one.lost]
    if lost and text.upper().startswith("GPU-"):
        words = f"Problem with GPU {lost[0].index}: GPU is lost.  Reboot the system to recover this GPU\n"
        raise Failure(words, answer.OTHER)
    for one in machine.gpus:
        if not lost and text.lower() in _names(one):
            return one
    raise Failure(answer.NO_DEVICES_TEXT, answer.NOT_FOUND)


def _names(one) -> tuple:
    bus = one.bus_id.lower()[4:]
    return (one.uuid.lower(), one.serial, one.bus_id.lower(), bus, bus.split(":", 1)[1])
