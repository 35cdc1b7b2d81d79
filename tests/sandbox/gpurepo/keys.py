# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signing keys of the sandbox, generated once per cache and reused, so that trees can be rebuilt under one key.

Each key is a throwaway: no passphrase, used for nothing but the repositories that the sandbox serves to itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List

from .schema import Key


@dataclass(frozen=True)
class SigningKey:
    name: str
    directory: Path

    @property
    def secret(self) -> Path:
        return self.directory / (self.name + ".secret.asc")

    @property
    def armoured(self) -> Path:
        return self.directory / (self.name + ".asc")

    @property
    def binary(self) -> Path:
        return self.directory / (self.name + ".gpg")

    @property
    def fingerprint(self) -> str:
        return (self.directory / (self.name + ".fpr")).read_text(encoding="ascii").strip()


@contextlib.contextmanager
def gpg_home() -> Iterator[str]:
    """A keyring of its own, in a short path (the agent's sockets have a length limit), and no agent left behind."""
    with tempfile.TemporaryDirectory(prefix="gpgh", ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o700)
        try:
            yield home
        finally:
            stop = ["gpgconf", "--homedir", home, "--kill", "all"]
            subprocess.run(stop, check=False, capture_output=True, timeout=30)


def gpg(home: str, *arguments: str) -> bytes:
    command = ["gpg", "--homedir", home, "--batch", "--no-tty", "--quiet", "--pinentry-mode", "loopback", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr.decode(errors="replace").strip()))
    return done.stdout


def _fingerprint(listing: str) -> str:
    """The primary key's, from `gpg --with-colons`."""
    for line in listing.splitlines():
        fields = line.split(":")
        if fields[0] == "fpr":
            return fields[9]
    raise RuntimeError("gpg listed no fingerprint:\n%s" % listing)


def _write(path: Path, data: bytes, mode: int) -> None:
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.chmod(mode)
    new.replace(path)


def ensure_key(name: str, key: Key, directory: Path) -> SigningKey:
    """The key `name` in `directory`, generated when it is not there. The fingerprint's file is written last."""
    signing_key = SigningKey(name, directory)
    if (directory / (name + ".fpr")).exists():
        return signing_key
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    with gpg_home() as home:
        identity = "%s <%s>" % (key.name, key.email)
        gpg(home, "--passphrase", "", "--quick-generate-key", identity, "rsa2048", "sign", "never")
        fingerprint = _fingerprint(gpg(home, "--with-colons", "--list-keys").decode())
        _write(signing_key.secret, gpg(home, "--armor", "--export-secret-keys", fingerprint), 0o600)
        _write(signing_key.armoured, gpg(home, "--armor", "--export", fingerprint), 0o644)
        _write(signing_key.binary, gpg(home, "--export", fingerprint), 0o644)
    _write(directory / (name + ".fpr"), (fingerprint + "\n").encode("ascii"), 0o644)
    return signing_key


def sign_releases(key: SigningKey, releases: List[Path]) -> None:
    """InRelease and Release.gpg beside each Release file."""
    with gpg_home() as home:
        gpg(home, "--import", str(key.secret))
        common = ("--yes", "--local-user", key.fingerprint, "--digest-algo", "SHA512")
        for release in releases:
            gpg(home, *common, "--output", str(release.with_name("InRelease")), "--clearsign", str(release))
            detached = str(release.with_name("Release.gpg"))
            gpg(home, *common, "--armor", "--output", detached, "--detach-sign", str(release))
