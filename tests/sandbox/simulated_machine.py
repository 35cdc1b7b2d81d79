# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine in a folder, for the simulator's own tests: no container, the same programs.

Programs run inside the test's process where that can be, because starting Python a thousand times takes minutes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent / "gpusim"))

from gpusim import command, fabric, paths
from gpusim.smi import cli

PROGRAMS = Path(__file__).resolve().parent / "gpusim" / "bin"
KERNEL = "5.15.0-164-generic"


@dataclass(frozen=True)
class Answer:
    """What a program said: exit code, stdout (bytes and text), stderr."""

    rc: int
    raw: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace")


class Machine:
    """One machine below `root`. Installing changes the disk; only `boot` loads what the disk holds."""

    def __init__(self, root: Path, profile: str = "dgx-h100-8"):
        self.root = root
        self.profile = profile
        self.package = ""
        self.settings = {"GPULAB_ROOT": str(root), "LAB_SEED": "test"}

    def install(self, version: str, license_text: str = "Dual MIT/GPL", kernel: str = KERNEL) -> Machine:
        """Put kernel, module and NVML library of a driver on the disk, as the packages do."""
        self.write(f"boot/vmlinuz-{kernel}", b"")
        information = f"license={license_text}\0version={version}\0srcversion=0123456789\0"
        self.write(f"lib/modules/{kernel}/updates/dkms/nvidia.ko", b"\x7fELF\0" + information.encode())
        self.install_library(version)
        return self

    def install_library(self, version: str) -> None:
        """Put only the user-space library there: what an upgrade without a reboot amounts to."""
        folder = "usr/lib/x86_64-linux-gnu"
        self.write(f"{folder}/libnvidia-ml.so.{version}", b"")
        link = self.root / folder / "libnvidia-ml.so.1"
        link.unlink(missing_ok=True)
        link.symlink_to(f"libnvidia-ml.so.{version}")
        self.package = version

    def write(self, path: str, content: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def boot(self) -> Machine:
        """Restart: /run and /dev are new, the disk stays."""
        subprocess.run(["rm", "-rf", self.root / "run", self.root / "dev", self.root / "sys"], check=True)
        self.gpusim("boot", "--profile", self.profile)
        return self

    def gpusim(self, *arguments: str) -> str:
        answer = self.call("gpusim", *arguments)
        assert answer.rc == 0, answer.stderr
        return answer.text

    def fault(self, *arguments: str) -> dict:
        return json.loads(self.gpusim("fault", *arguments))

    def state(self) -> dict:
        return json.loads(self.gpusim("state"))

    def smi(self, *arguments: str) -> Answer:
        """`nvidia-smi` of the installed package."""
        return self.call("nvidia-smi", "--lab-version", self.package, *arguments)

    def query(self, fields: str, *arguments: str) -> list[list[str]]:
        """Cells of `--query-gpu` without header and units."""
        answer = self.smi(f"--query-gpu={fields}", "--format=csv,noheader,nounits", *arguments)
        assert answer.rc == 0, answer.text
        return [line.split(", ") for line in answer.text.splitlines()]

    @contextlib.contextmanager
    def _inside(self):
        """The simulator in this process sees this machine."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(paths, "ROOT", str(self.root)))
            stack.enter_context(mock.patch.dict(os.environ, self.settings))
            yield stack

    def call(self, program: str, *arguments: str) -> Answer:
        """Run `gpusim` or `nvidia-smi` in this process."""
        main = {"gpusim": command.main, "nvidia-smi": cli.main, "nv-fabricmanager": fabric.main}[program]
        output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
        with self._inside() as stack:
            stack.enter_context(contextlib.redirect_stdout(output))
            stack.enter_context(contextlib.redirect_stderr(errors))
            code = main(list(arguments))
        return Answer(code, output.buffer.getvalue(), errors.getvalue())

    def fabric_refusal(self) -> str:
        """Why the fabric manager would not start now, "" when it would."""
        with self._inside():
            return fabric.refusal_of_machine(self.package)

    def spawn(self, program: str, *arguments: str, timeout: float = 60) -> Answer:
        """Run any of the programs as a process of its own: daemons, and what may hang."""
        done = subprocess.run(
            [sys.executable, str(PROGRAMS / program), *arguments],
            capture_output=True,
            check=False,
            env={**os.environ, **self.settings},
            timeout=timeout,
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode())
