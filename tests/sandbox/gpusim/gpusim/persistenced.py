# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-persistenced`: while it lives it holds the GPUs, so that the driver keeps their state."""

import os
import pwd
import sys

from . import daemon, driver, gpu, paths, state


def main(argv) -> int:
    """Start the daemon; exit 0 when it runs, 1 when there is no driver or no such user."""
    argv = list(argv)
    version = driver.library_version()
    if argv[:1] == ["--lab-version"]:
        version = argv[1]
        del argv[:2]
    if {"-v", "--version"} & set(argv):
        print(f"nvidia-persistenced:  version {version}")
        return 0
    user, persistent = _read(argv)
    machine = gpu.Machine()
    if not machine.loaded_version or not machine.gpus:
        return _fail("Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist")
    if user:
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            return _fail(f"Failed to find user ID of user '{user}'")
    if daemon.running(paths.PERSISTENCED_PID):
        return _fail("Failed to lock PID file: another instance is running")

    def hold_and_drop():
        _hold(machine, persistent)
        if user and os.geteuid() == 0:
            os.chown(os.path.dirname(paths.at(paths.PERSISTENCED_PID)), account.pw_uid, account.pw_gid)
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)

    return daemon.start(paths.PERSISTENCED_PID, lambda: None, hold_and_drop)


def _hold(machine, persistent: bool) -> None:
    """Note this process as the holder. When it dies, whatever the way, persistence is over: see Gpu.persistence."""
    with state.changing() as content:
        held = content.setdefault("persistence", {})
        for one in machine.gpus:
            held[one.uuid] = {"by": os.getpid()} if persistent and not one.lost else None
    state.record_call("nvidia-persistenced", sys.argv[1:], {"set": "persistence", "gpu": "all", "to": persistent})


def _read(argv: list) -> tuple:
    """Return `(user, persistence mode)`; the mode is on unless --no-persistence-mode is given."""
    user, persistent = "", True
    rest = list(argv)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in ("-u", "--user"):
            user = value if equals else rest.pop(0)
        elif option in ("-p", "--persistence-mode"):
            persistent = True
        elif option == "--no-persistence-mode":
            persistent = False
        elif option not in ("-V", "--verbose", "--uvm-persistence-mode", "--no-uvm-persistence-mode"):
            print(f"nvidia-persistenced: unrecognized option: {option}", file=sys.stderr)
            sys.exit(1)
    return user, persistent


def _fail(reason: str) -> int:
    print(reason, file=sys.stderr)
    print("nvidia-persistenced failed to initialize. Check syslog for more details.", file=sys.stderr)
    return 1
