# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi`: read the arguments, start NVML as the real tool does, hand over to the file that answers.

The real tool starts NVML before it looks at its arguments (seen by running 550.163.01 without a driver), so that even
a misspelt option ends with the driver's trouble first. Only -h works without one.
"""

import sys
import time

from .. import driver, gpu
from . import answer
from .answer import Failure
from .options import QUERIES, parse
from .selection import select


def main(argv) -> int:
    """Answer one call on stdout; return its exit code."""
    argv = list(argv)
    version = _package_version(argv)
    if argv in (["-h"], ["--help"]):
        from . import usage

        sys.stdout.write(usage.text(version))
        return answer.OK
    machine = gpu.Machine()
    text, code = _answer(machine, version, argv)
    if machine.has_fault("garbage"):
        from . import garbage

        text, code = garbage.spoil(text), answer.OK
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()
    return code


def _package_version(argv: list) -> str:
    """Take `--lab-version VERSION` off the arguments: the version of the package whose file was called."""
    if argv[:1] == ["--lab-version"]:
        version = argv[1]
        del argv[:2]
        return version
    return driver.library_version() or driver.loaded_version()


def _answer(machine, version: str, argv: list) -> tuple:
    """Return `(text, exit code)`."""
    try:
        _start_nvml(machine)
        return _run(machine, version, argv)
    except Failure as failure:
        return failure.text, failure.code


def _start_nvml(machine) -> None:
    library = driver.library_version()
    if not library:
        raise Failure(answer.NO_LIBRARY_TEXT, answer.NO_LIBRARY)
    if not machine.loaded_version:
        raise Failure(answer.NO_DRIVER_TEXT, answer.NO_DRIVER)
    if machine.loaded_version != library:
        raise Failure(answer.mismatch_text(driver.nvml_style(library)), answer.MISMATCH)
    if machine.has_fault("hang"):
        while True:  # until somebody kills it
            time.sleep(3600)


def _run(machine, version: str, argv: list) -> tuple:
    wanted = parse(argv)
    if wanted.command == "version":
        from . import listing

        return listing.version(machine, version), answer.OK
    if wanted.command == "list":
        from . import listing

        return listing.devices(machine)
    if wanted.command == "help":
        from . import field_help

        return field_help.render(wanted.value, version), answer.OK
    if wanted.command == "topo" and wanted.mode == "p2p":
        from . import p2p

        return p2p.render(machine, wanted)
    if wanted.command == "topo":
        from . import topo

        return topo.render(machine, wanted)
    gpus = select(machine, wanted.ids)
    if wanted.command == "table":
        from . import table

        return answer.with_inforom_warning(table.render(machine, gpus, version), gpus)
    if wanted.command == "xml":
        from . import xml

        return xml.render(machine, gpus, version), answer.OK
    if wanted.command == "plain":
        from . import plain

        return answer.with_inforom_warning(plain.render(machine, gpus, version, wanted.fields), gpus)
    if wanted.command in QUERIES:
        from . import query

        return query.render(machine, gpus, version, wanted), answer.OK
    if wanted.command == "nvlink":
        from . import nvlink

        return nvlink.render(gpus, version, wanted), answer.OK
    if wanted.command == "mig":
        from . import mig

        return mig.run(machine, gpus, version, wanted, argv)
    if wanted.command == "gpu-reset":
        from . import reset

        return reset.apply(machine, gpus, argv), answer.OK
    from . import setters

    return setters.apply(machine, gpus, wanted, argv), answer.OK
