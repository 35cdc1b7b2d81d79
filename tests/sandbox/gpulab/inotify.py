# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's limit of inotify instances: raised while a lab is up, put back with the last one.

Each host's systemd takes seven of them; with the usual 128 the twelfth host would crash at its start, again and again.
"""

from __future__ import annotations

from pathlib import Path

from .cache import lock

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
FORMER = Path("/run/gpulab/inotify-max-user-instances")
"""The value found; in /run, because a reboot of this machine resets both."""
WANTED = 1024


def raise_limit() -> None:
    """Raise the limit if it is lower than a lab needs, remembering what it was."""
    with lock("inotify"):
        now = int(LIMIT.read_text(encoding="ascii"))
        if now < WANTED:
            FORMER.parent.mkdir(exist_ok=True)
            FORMER.write_text(f"{now}\n", encoding="ascii")
            LIMIT.write_text(f"{WANTED}\n", encoding="ascii")


def put_back() -> None:
    """Restore the former limit, unless somebody has changed it since."""
    with lock("inotify"):
        if not FORMER.exists():
            return
        if int(LIMIT.read_text(encoding="ascii")) == WANTED:
            LIMIT.write_text(FORMER.read_text(encoding="ascii"), encoding="ascii")
        FORMER.unlink()
