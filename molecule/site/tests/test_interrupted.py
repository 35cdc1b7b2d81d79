"""ansible-playbook killed with SIGKILL while apt runs on the host: started again, it converges."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

SCENARIO = Path(__file__).resolve().parents[1]
REPOSITORY = SCENARIO.parents[1]
INVENTORY = SCENARIO / "interrupted"
CONTAINER = "molecule-killed-gpu01"


def on_host(*argv: str) -> str:
    return subprocess.run(["podman", "exec", CONTAINER, *argv], capture_output=True, text=True, check=False).stdout


def lab(*argv: str) -> None:
    subprocess.run([str(REPOSITORY / "tests/sandbox/lab"), *argv], check=True, capture_output=True, timeout=300)


def test_killed_run_converges_when_started_again(tmp_path):
    site = ["ansible-playbook", "site.yml", "-i", str(INVENTORY), "-e", "report_dir=%s" % tmp_path]
    lab("up", str(INVENTORY), "--fresh")
    try:
        on_host("sh", "-c", "echo 30 > /run/gpulab/dkms-seconds")
        run = subprocess.Popen(
            site,
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 240
        while "configur" not in on_host("sh", "-c", "ps -eo args | grep '[d]pkg .*--configure'"):
            assert run.poll() is None, "site.yml ended before apt was seen at work"
            assert time.monotonic() < deadline, "apt was never seen at work"
            time.sleep(0.3)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        # the worst case: the packages' scripts die as well
        on_host(
            "sh", "-c", "pkill -9 apt-get; pkill -9 dpkg; rm -f /run/gpulab/dkms-seconds; sleep 1; pkill -9 -f postinst"
        )
        assert on_host("dpkg", "--audit"), "nothing was left half done, so that this test would prove nothing"

        again = subprocess.run(site, cwd=REPOSITORY, capture_output=True, text=True, timeout=500, check=False)
        assert again.returncode == 0, again.stdout + again.stderr
        assert on_host("dpkg", "--audit") == ""
        assert len(on_host("nvidia-smi", "-L").splitlines()) == 8
    finally:
        lab("down", str(INVENTORY))
