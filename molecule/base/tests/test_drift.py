"""What somebody changed behind the role's back is told and restored by the next run, and by that run alone."""

from __future__ import annotations

testinfra_hosts = ["ubuntu2204"]

SYSCTL = "/etc/sysctl.d/90-gpufleet.conf"
LIMITS = "/etc/security/limits.d/90-gpufleet.conf"
UNATTENDED = "/etc/apt/apt.conf.d/90gpufleet-unattended-upgrades"
JOURNALD = "/etc/systemd/journald.conf.d/90-gpufleet.conf"


def test_changed_files_settings_and_packages_are_told_and_restored(host, converge):
    good = {path: host.file(path).content_string for path in (SYSCTL, LIMITS, UNATTENDED, JOURNALD)}
    started = host.check_output("systemctl show -p ExecMainStartTimestampMonotonic systemd-journald")
    host.check_output("echo 'net.core.somaxconn = 128' > %s && sysctl -q -p %s", SYSCTL, SYSCTL)
    host.check_output("chmod 0666 %s", LIMITS)
    host.check_output("rm %s", UNATTENDED)
    host.check_output("ln -sf /dev/null %s", JOURNALD)
    host.check_output("dpkg --remove lsof linux-headers-generic")
    host.check_output("sed -i '/^Package: pciutils$/,/^Status:/s/ok installed/ok unpacked/' /var/lib/dpkg/status")

    predicted = converge("--check", "--diff", "--limit", "ubuntu2204")
    assert predicted.changed("ubuntu2204") > 0
    assert host.file(SYSCTL).content_string == "net.core.somaxconn = 128\n"

    told = converge("--limit", "ubuntu2204")
    assert told.output.count("id: base_file_restored") == 3
    assert "base_dpkg_repaired" in told.output
    assert "verdict: healthy" in told.output
    assert {path: host.file(path).content_string for path in good} == good
    assert host.file(LIMITS).mode == 0o644
    assert not host.file(JOURNALD).is_symlink
    assert host.check_output("cat /proc/sys/net/core/somaxconn") == "8192"
    assert host.check_output("systemctl show -p ExecMainStartTimestampMonotonic systemd-journald") != started
    assert host.package("lsof").is_installed and host.package("linux-headers-generic").is_installed
    assert host.check_output("dpkg --audit") == ""

    assert converge("--limit", "ubuntu2204").changed("ubuntu2204") == 0
