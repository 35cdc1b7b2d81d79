# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two machines for the tests of the repositories, neither of them a container.

`PaperMachine` is a private apt root: the real apt of this machine resolves against the double repositories, and what
it would do is written into a status file of our own, so that later calls see it as installed. It needs no root.
`ScratchMachine` is an overlay over this machine's own root directory, in a mount namespace that ends with the last
command: the real dpkg really installs, maintainer scripts run, and nothing reaches the machine below. It needs root.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence

TIMEOUT_S = 120
ARCHIVE_FIELDS = ("Filename", "Size", "MD5sum", "SHA1", "SHA256", "SHA512")
"""Fields of an index that dpkg's status file does not have."""


class CommandFailed(AssertionError):
    """A command that should have worked; the message is its output."""


@dataclass
class PaperMachine:
    """`sources` are the lines of sources.list."""

    root: Path
    sources: Sequence[str]
    installed: Dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for directory in ("etc/apt/preferences.d", "etc/apt/apt.conf.d", "var/lib/apt/lists/partial", "var/lib/dpkg",
                          "var/cache/apt/archives/partial"):
            (self.root / directory).mkdir(parents=True)
        (self.root / "etc/apt/apt.conf").write_text(
            'Dir "%s/";\nDir::State::status "%s";\nDir::Etc::trusted "/nonexistent";\n'
            'Dir::Etc::trustedparts "/nonexistent/";\nAPT::Architecture "amd64";\nAPT::Architectures { "amd64"; };\n'
            'APT::Sandbox::User "";\nAcquire::Languages "none";\nAcquire::http::Proxy "DIRECT";\n'
            "Acquire::Retries 0;\n" % (self.root, self._status)
        )
        self.set_sources(self.sources)
        self._write_status()

    @property
    def _status(self) -> Path:
        return self.root / "var/lib/dpkg/status"

    def set_sources(self, sources: Sequence[str]) -> None:
        self.sources = sources
        (self.root / "etc/apt/sources.list").write_text("".join(line + "\n" for line in sources))

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "APT_CONFIG": str(self.root / "etc/apt/apt.conf"), "LC_ALL": "C"}
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)

    def must(self, *command: str) -> str:
        done = self.run(*command)
        if done.returncode != 0:
            raise CommandFailed("%s\n%s%s" % (shlex.join(command), done.stdout, done.stderr))
        return done.stdout

    def update(self) -> None:
        """`apt-get update`, where a source that cannot be verified is an error and not a warning."""
        self.must("apt-get", "update", "--error-on=any")

    def candidate(self, package: str) -> str:
        found = re.search(r"Candidate: (\S+)", self.must("apt-cache", "policy", package))
        assert found, "apt does not know %s" % package
        return found.group(1)

    def versions(self, package: str) -> List[str]:
        return [line.split("|")[1].strip() for line in self.must("apt-cache", "madison", package).splitlines()]

    def apt(self, action: str, *arguments: str) -> None:
        """`apt-get ACTION …` on paper; `installed` then is what dpkg would list."""
        output = self.must("apt-get", "--simulate", "--assume-yes", action, *arguments)
        for line in output.splitlines():
            word, _, rest = line.partition(" ")
            name = rest.split(" ")[0]
            if word == "Remv":
                self.installed.pop(name, None)
            elif word == "Inst":
                version = re.search(r"\((\S+)", rest)
                assert version, line
                self.installed[name] = version.group(1)
        self._write_status()

    def install(self, *packages: str, downgrade: bool = False) -> None:
        self.apt("install", *(["--allow-downgrades"] if downgrade else []), *packages)

    def versions_installed(self, pattern: str = "") -> List[str]:
        """The driver versions among installed packages, without the package revision: ideally one."""
        return sorted({version.split("-")[0] for name, version in self.installed.items() if re.search(pattern, name)})

    def use_pin_of(self, deb: Path) -> None:
        """What installing a pinning package does: its one file, in place of another's."""
        target = self.root / "etc/apt/preferences.d/nvidia-driver-pin"
        target.write_bytes(read_from_deb(deb, "/etc/apt/preferences.d/nvidia-driver-pin"))

    def _write_status(self) -> None:
        wanted = ["%s=%s" % item for item in sorted(self.installed.items())]
        shown = self.must("apt-cache", "show", *wanted) if wanted else ""
        stanzas: Dict[str, str] = {}
        for stanza in filter(None, shown.strip().split("\n\n")):
            lines = [line for line in stanza.splitlines() if line.split(":")[0] not in ARCHIVE_FIELDS]
            stanzas[lines[0]] = "\n".join([lines[0], "Status: install ok installed", *lines[1:]]) + "\n"
        assert len(stanzas) == len(wanted)
        self._status.write_text("\n".join(stanzas.values()))


@dataclass(frozen=True)
class ScratchMachine:
    """Each call of `run` starts from this machine's own root directory, with an empty dpkg database: what is installed
    below is there as files, and only doubles are there as packages. `repos` is seen at /srv/repos.
    """

    work: Path
    repos: Path

    PREPARE = """
set -eu
mount -t tmpfs -o mode=755 scratch {work}
mkdir {work}/upper {work}/work {work}/root
mount -t overlay scratch -o lowerdir=/,upperdir={work}/upper,workdir={work}/work {work}/root
cd {work}/root
mount --bind /proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=755 scratch run
for directory in var/lib/dpkg var/lib/apt var/cache/apt; do mount -t tmpfs -o mode=755 scratch "$directory"; done
mkdir -p srv/repos var/lib/dpkg/info var/lib/dpkg/updates var/lib/dpkg/triggers var/lib/dpkg/alternatives
: > var/lib/dpkg/status
mount --bind {repos} srv/repos
rm -rf etc/apt/sources.list etc/apt/sources.list.d/* etc/apt/preferences.d/* lib/modules/* boot/*
exec chroot . /bin/sh -eu
"""

    @staticmethod
    def obstacle() -> Optional[str]:
        """Why this cannot be had here, or None."""
        if os.geteuid() != 0:
            return "needs root, to mount an overlay"
        probe = "mount -t tmpfs x /mnt && mkdir /mnt/u /mnt/w && mount -t overlay x -o lowerdir=/,upperdir=/mnt/u,"
        probe += "workdir=/mnt/w /mnt"
        done = subprocess.run(["unshare", "--mount", "sh", "-c", probe], check=False, capture_output=True, text=True,
                              timeout=TIMEOUT_S)
        return None if done.returncode == 0 else "no overlay over /: %s" % done.stderr.strip()

    def run(self, script: str) -> str:
        """The output of a shell script, which stops at its first error and runs as root inside."""
        prepare = self.PREPARE.format(work=shlex.quote(str(self.work)), repos=shlex.quote(str(self.repos)))
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            ["unshare", "--mount", "--kill-child", "--fork", "--pid", "--mount-proc", "sh", "-c", prepare],
            check=False, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=TIMEOUT_S, env=environment,
        )
        if done.returncode != 0:
            raise CommandFailed("%s\n%s" % (script, done.stdout))
        return done.stdout


def read_from_deb(deb: Path, path: str) -> bytes:
    """The content of one file of a package."""
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], check=True, capture_output=True, timeout=TIMEOUT_S)
    done = subprocess.run(["tar", "--extract", "--to-stdout", "." + path], input=tar.stdout, check=True,
                          capture_output=True, timeout=TIMEOUT_S)
    return done.stdout


def files_of_deb(deb: Path) -> List[str]:
    """The paths of a package's files and links, without directories."""
    done = subprocess.run(["dpkg-deb", "--contents", str(deb)], check=True, capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("d")]
    return sorted(line.split(None, 5)[5].split(" -> ")[0].lstrip(".") for line in lines)


def field_of_deb(deb: Path, name: str) -> str:
    done = subprocess.run(["dpkg-deb", "--field", str(deb), name], check=True, capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    return done.stdout.strip()


def source(url: str, path: str, suites: str, keyring: Path) -> str:
    """A line of sources.list."""
    return "deb [signed-by=%s] %s/%s %s" % (keyring, url, path, suites)


def archive_sources(url: str, keyring: Path, *suites: str) -> List[str]:
    """Lines of sources.list for suites of the Ubuntu archive double."""
    return [source(url, "ubuntu", suite + " main restricted universe multiverse", keyring) for suite in suites]
