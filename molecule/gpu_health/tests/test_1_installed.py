"""The command, the timer and the metrics are there and work; the judgement is the same by module and by command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]

METRICS = "/var/lib/prometheus/node-exporter/gpu_health.prom"


def test_the_command_is_what_make_builds(host, tmp_path):
    built = tmp_path / "gpu-health"
    subprocess.run([sys.executable, str(REPOSITORY / "tools/build_gpu_health.py"), str(built)], check=True)
    file = host.file("/usr/local/bin/gpu-health")
    assert (file.mode, file.user) == (0o755, "root")
    assert file.content == built.read_bytes()


def test_the_timer_is_enabled_waits_and_is_spread(host):
    timer = host.service("gpufleet-gpu-health.timer")
    assert timer.is_enabled and timer.is_running
    assert "RandomizedDelayUSec=2min" in host.check_output("systemctl show gpufleet-gpu-health.timer")


@pytest.fixture(scope="session")
def promtool(tmp_path_factory) -> str:
    """Prometheus' own checker: the one of this machine, else that of Debian's package, unpacked and not installed."""
    found = shutil.which("promtool")
    if found:
        return found
    folder = tmp_path_factory.mktemp("prometheus")
    folder.chmod(0o755)
    subprocess.run(["apt-get", "-qq", "download", "prometheus"], cwd=folder, check=True, timeout=300)
    (package,) = folder.glob("prometheus_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True, timeout=60)
    return str(folder / "usr/bin/promtool")


def test_the_timers_service_writes_metrics_for_node_exporter(host, promtool):
    host.check_output("rm -f %s", METRICS)
    host.check_output("systemctl start gpufleet-gpu-health.service")
    text = host.file(METRICS).content_string
    assert 'gpufleet_health_verdict{verdict="healthy"} 1' in text
    assert host.file(METRICS).mode & 0o044 == 0o044
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_says_what_the_exit_status_says(host):
    answer = host.run("gpu-health check --json")
    data = json.loads(answer.stdout)
    assert (answer.rc, data["verdict"]) == (0, "healthy")
    assert set(data) >= {"schema", "host", "time", "verdict", "findings", "gpus", "links", "topology", "covered"}
    assert data["host"] == host.check_output("hostname")


def test_a_usage_error_is_not_a_failed_gpu(host):
    assert host.run("gpu-health check --expected-gpus many").rc == 3
    assert host.run("gpu-health").rc == 3
    host.check_output("echo '{\"default\": {\"power_limit\": 1}}' > /run/policy.json")
    answer = host.run("gpu-health check --policy /run/policy.json")
    assert answer.rc == 3 and "power_limit" in answer.stderr and "power_limit_w" in answer.stderr
