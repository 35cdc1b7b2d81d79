# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of `nvidia-smi`.

The tool has four ways of reading them, each with its own words and exit code for what it does not know (all seen by
running 550.163.01): a listing, a change of devices, a query of named fields, and everything else. Sub-commands are in
options_sub.py.
"""

from . import answer, options_sub
from .answer import Failure

FLAGS = {"-q": "query", "--query": "query", "-x": "xml-format", "--xml-format": "xml-format"}
VALUES = {"-d": "display", "--display": "display"}
LISTINGS = {"-L": "list", "--list-gpus": "list", "--version": "version"}
HELP_ON = ("gpu", "compute-apps", "remapped-rows", "retired-pages", "supported-clocks")
QUERIES = tuple("query-" + name for name in HELP_ON)
SETTERS = {
    "-pm": "persistence-mode", "-pl": "power-limit", "-lgc": "lock-gpu-clocks", "-lmc": "lock-memory-clocks",
    "-ac": "applications-clocks", "-c": "compute-mode", "-e": "ecc-config", "-p": "reset-ecc-errors",
    "-mig": "multi-instance-gpu",
}  # fmt: skip
RESETS = {
    "-r": "gpu-reset", "-rgc": "reset-gpu-clocks", "-rmc": "reset-memory-clocks", "-rac": "reset-applications-clocks",
}  # fmt: skip
SWITCH = {"0": False, "DISABLED": False, "1": True, "ENABLED": True}
WORDS = {
    "persistence-mode": SWITCH, "ecc-config": SWITCH, "multi-instance-gpu": SWITCH,
    "reset-ecc-errors": {"0": "volatile", "VOLATILE": "volatile", "1": "aggregate", "AGGREGATE": "aggregate"},
    "compute-mode": {
        "0": "DEFAULT", "DEFAULT": "DEFAULT", "1": "EXCLUSIVE_THREAD", "EXCLUSIVE_THREAD": "EXCLUSIVE_THREAD",
        "2": "PROHIBITED", "PROHIBITED": "PROHIBITED", "3": "EXCLUSIVE_PROCESS",
        "EXCLUSIVE_PROCESS": "EXCLUSIVE_PROCESS",
    },
}  # fmt: skip
"""Setter → the words it takes. Any other number gets to the GPU, which refuses it; any other word does not."""

BLOCKS = (
    "MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE",
    "SUPPORTED_CLOCKS", "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "SUPPORTED_GPU_TARGET_TEMP", "VOLTAGE",
    "FBC_STATS", "ROW_REMAPPER", "RESET_STATUS", "GSP_FIRMWARE_VERSION",
)  # fmt: skip
"""What `-q -d` takes, in any case of letters (nvidia-smi(1))."""

HELP = "Please run 'nvidia-smi -h' for help."
XML_WITHOUT_QUERY = (
    "Invalid combination of input arguments. Specify -q/--query and -x/--xml-format to run an XML query.  " + HELP
)
DISPLAY_WITHOUT_QUERY = (
    "Invalid combination of input arguments. Specify -q/--query and -d/--display to run a filtered query.  " + HELP
)
DISPLAY_WITH_XML = (
    "Invalid combination of input arguments: --display/-d flags can not be combined with -x/--xml-format flags."
)
TWO_SETTERS = "Invalid combination of input arguments. Only one device modification may be done at a time."
MODE_ALONE = "Invalid combination of input arguments. '--mode' can only be used with '--lock-gpu-clocks'."
NOT_A_SETTER = "Input combination for device modification is not valid."


class Wanted:
    """One call: `command` says which answer, the rest what it needs. No dataclass: importing those costs 30 ms."""

    def __init__(self, command: str, ids=(), fields=(), modifiers=(), value: str = ""):
        self.command, self.ids, self.fields, self.modifiers, self.value = command, ids, fields, modifiers, value
        self.mode = ""
        self.link = -1
        self.strict = False


def parse(argv: list) -> Wanted:
    """Return what the call wants; :class:`Failure` with the tool's words and code when it cannot be wanted."""
    if argv and argv[0] in options_sub.NAMES:
        return options_sub.parse(argv[0], argv[1:], Wanted)
    names = [argument.partition("=")[0] for argument in argv]
    if set(names) & set(LISTINGS):
        return _listing(names)
    if set(names) & set(_MODIFICATIONS):
        return _modification(argv)
    if any(name.startswith(("--query-", "--help-query-")) for name in names):
        return _selective(argv)
    return _query(argv)


def _listing(names: list) -> Wanted:
    for name in names:
        if name not in LISTINGS:
            _bad(f"ERROR: Option {name} is not valid for this command. {HELP}")
    chosen = [LISTINGS[name] for name in names]
    if len(chosen) > 1:
        _bad(f"ERROR: Only one command can be run at a time. {HELP}")
    return Wanted(chosen[0])


def _query(argv: list) -> Wanted:
    given = read(argv, FLAGS, {**VALUES, **_ID}, "Please run 'nvidia-smi -h'.")
    if "query" not in given:
        if "xml-format" in given:
            _bad(XML_WITHOUT_QUERY)
        if "display" in given:
            _bad(DISPLAY_WITHOUT_QUERY)
        return Wanted("table", _ids(given))
    if "display" not in given:
        return Wanted("xml" if "xml-format" in given else "plain", _ids(given))
    if "xml-format" in given:
        _bad(DISPLAY_WITH_XML, "\n")
    blocks = given["display"].upper().split(",")
    if not set(blocks) <= set(BLOCKS):
        _bad("Failed to parse --display/-d flags", "\n")
    return Wanted("plain", _ids(given), fields=blocks)


def _modification(argv: list) -> Wanted:
    flags = {**_both(RESETS), "-eow": "strict", "--error-on-warning": "strict"}
    given = read(argv, flags, {**_both(SETTERS), **_ID, "--mode": "mode", "-m": "mode"}, HELP)
    chosen = [name for name in given if name in (*SETTERS.values(), *RESETS.values())]
    if len(chosen) > 1:
        _bad(TWO_SETTERS)
    if "mode" in given and chosen != ["lock-gpu-clocks"]:
        _bad(MODE_ALONE)
    name = chosen[0]
    wanted = Wanted(name, _ids(given), value=given[name])
    wanted.mode = given.get("mode", "")
    wanted.strict = "strict" in given
    _check_value(name, wanted.value, next(text for text in argv if _MODIFICATIONS.get(text.partition("=")[0]) == name))
    return wanted


def _check_value(name: str, value: str, option: str) -> None:
    option = option.partition("=")[0]
    if name in WORDS and value not in WORDS[name] and not value.isdigit():
        _bad(f"ERROR: Option {value} is invalid for {option}. {HELP}")
    if name == "power-limit":
        try:
            watts = float(value)
        except ValueError:
            _bad(f"ERROR: Option {value} is invalid for {option}. {HELP}")
        if watts < 0:
            raise Failure(NOT_A_SETTER + "\n\n", answer.OTHER)


def _selective(argv: list) -> Wanted:
    flags = {f"--help-query-{name}": f"help-query-{name}" for name in HELP_ON}
    values = {**{"--" + name: name for name in QUERIES}, **_ID, "--format": "format"}
    given = read(argv, flags, values, HELP, answer.BAD_ARGUMENT)
    asked = [name for name in given if name.startswith("help-query-")]
    if asked:
        return Wanted("help", value=asked[0][len("help-") :])
    chosen = [name for name in QUERIES if name in given]
    if len(chosen) > 1:
        _bad("Only one --query-* switch can be used at a time.", "\n")
    if "format" not in given:
        _bad(f'"--format=" switch is missing. {HELP}')
    modifiers = given["format"].split(",")
    for modifier in modifiers:
        if modifier not in ("csv", "noheader", "nounits", ""):
            _bad("Format modifier is not recognized.", "\n")
    if "csv" not in modifiers:
        _bad("Format modifier --format=csv is mandatory.", "\n")
    fields = [text.strip() for text in given[chosen[0]].split(",") if text.strip()]
    return Wanted(chosen[0], _ids(given), fields, modifiers)


def read(argv: list, flags: dict, values: dict, advice: str, unknown: int = answer.OTHER) -> dict:
    """Return `{name: value}` in the order given; refuse unknown options and missing values as the tool does."""
    given = {}
    rest = list(argv)
    while rest:
        argument = rest.pop(0)
        option, equals, value = argument.partition("=")
        if option in flags and not equals:
            given[flags[option]] = ""
        elif option in values:
            if not equals:
                if not rest:
                    raise Failure(f"ERROR: Option {option} is missing its value. {HELP}\n\n", answer.OTHER)
                value = rest.pop(0)
            given[values[option]] = value
        else:
            raise Failure(f"ERROR: Option {argument} is not recognized. {advice}\n\n", unknown)
    return given


def _ids(given: dict) -> list:
    return given["id"].split(",") if "id" in given else []


def _bad(text: str, end: str = "\n\n"):
    raise Failure(text + end, answer.BAD_ARGUMENT)


def _both(short: dict) -> dict:
    return {**short, **{"--" + name: name for name in short.values()}}


_ID = {"-i": "id", "--id": "id"}
_MODIFICATIONS = {**_both(SETTERS), **_both(RESETS), "--mode": "mode"}
