# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's own kernel log: records go into the FIFO that its journald reads as /dev/kmsg."""

import errno
import os
import time

from . import paths, state

WARNING, NOTICE, INFO = 4, 5, 6


def emit(*lines: str, level: int = WARNING) -> None:
    """Log each line as the kernel would, oldest first. Without a FIFO they are remembered only (`gpusim state`).

    One write per record, in the format of /dev/kmsg: `PRIORITY,SEQUENCE,MICROSECONDS,-;TEXT`, numbers rising.
    """
    with state.changing() as machine:
        log = machine.setdefault("kernel_log", [])
        pending = machine.setdefault("kernel_log_pending", [])
        for line in lines:
            record = f"{level},{100000 + len(log)},{int(time.monotonic() * 1e6)},-;{line}\n"
            log.append(line)
            pending.append(record)
        machine["kernel_log_pending"] = _write(pending)


def _write(records: list) -> list:
    """Write the records and return those that could not be written: before journald starts nobody reads."""
    try:
        # Opened for reading too: a FIFO that nobody else holds open would otherwise refuse (ENXIO).
        fifo = os.open(paths.at(paths.KMSG_FIFO), os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENXIO, errno.ENOTDIR):
            raise
        return records
    try:
        for number, record in enumerate(records):
            try:
                os.write(fifo, record.encode())
            except BlockingIOError:
                return records[number:]
    finally:
        os.close(fifo)
    return []
