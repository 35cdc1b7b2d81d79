"""A host that goes away while it is judged is unknown, not healthy and not forgotten."""

from __future__ import annotations

import json

testinfra_hosts = ["ubuntu2204"]

GONE = "/run/nvidia-smi-gone"


def test_a_host_that_goes_away_while_it_is_judged_is_unknown(host, play, tmp_path):
    # killed with its connection, as by a machine that loses power: the module answers nothing any more
    host.check_output("printf '#!/bin/sh\\npkill -KILL -f \"^sshd: root\"\\n' > %s && chmod 755 %s", GONE, GONE)
    run = play("playbooks/health.yml", "-e", "gpu_health_nvidia_smi=%s" % GONE, "-e", "report_dir=%s" % tmp_path)
    assert run.rc != 0
    report = json.loads((tmp_path / "ubuntu2204.json").read_text())
    assert report["verdict"] == "unknown", report
    assert "host_unreachable" in [item["id"] for item in report["findings"]], report["findings"]
