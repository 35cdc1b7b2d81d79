"""What role base did is in force on the machine, not only in its files."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "path",
    [
        "/etc/apt/apt.conf.d/90gpufleet",
        "/etc/apt/apt.conf.d/90gpufleet-unattended-upgrades",
        "/etc/needrestart/conf.d/90-gpufleet.conf",
        "/etc/security/limits.d/90-gpufleet.conf",
        "/etc/systemd/system.conf.d/90-gpufleet.conf",
        "/etc/sysctl.d/90-gpufleet.conf",
        "/etc/systemd/journald.conf.d/90-gpufleet.conf",
    ],
)
def test_own_files_are_readable_by_all_and_written_by_root(host, path):
    file = host.file(path)
    assert (file.mode, file.user, file.group) == (0o644, "root", "root")
    assert "Managed by gpufleet.server" in file.content_string


def test_apt_has_taken_over_its_settings(host):
    settings = host.check_output("apt-config dump")
    assert 'DPkg::Lock::Timeout "600";' in settings
    for pattern in ("nvidia-", "docker-ce", "linux-image"):
        assert 'Unattended-Upgrade::Package-Blacklist:: "%s";' % pattern in settings


NEEDRESTART = """\
our %nrconf = (verbosity => 1);
eval do { local(@ARGV, $/) = q(/etc/needrestart/needrestart.conf); <> };
die $@ if $@;
print "$nrconf{restart} $nrconf{override_rc}{qr(^containerd)} $nrconf{override_rc}{qr(^nvidia-)}";
"""


def test_needrestart_reads_its_file_and_restarts_nothing(host):
    assert host.check_output("perl -e %s", NEEDRESTART) == "l 0 0"


def test_packages_are_there_and_none_is_half_done(host):
    for name in ("ca-certificates", "kmod", "lsof", "needrestart", "pciutils"):
        assert host.package(name).is_installed
    assert host.check_output("dpkg --audit") == ""


def test_headers_of_the_kernel_that_will_boot(host):
    kernels = host.check_output("ls /boot").split()
    if not [name for name in kernels if name.startswith("vmlinuz-")]:
        assert host.check_output("dpkg-query -W -f '${Package} ' 'linux-headers-*' || true") == ""
        return
    release = sorted(name[len("vmlinuz-") :] for name in kernels if name.startswith("vmlinuz-"))[-1]
    assert release != host.check_output("uname -r")
    assert host.package("linux-headers-%s" % release).is_installed
    assert host.package("linux-headers-generic").is_installed
    assert host.file("/lib/modules/%s/build" % release).exists


def test_logins_have_their_limits(host):
    for user in ("nobody", "root"):
        limits = host.check_output("su %s -s /bin/sh -c 'ulimit -Hn; ulimit -Sn; ulimit -Hl'", user)
        assert limits.split() == ["16384", "16384", "4096"]


def test_services_that_start_now_have_their_limits(host):
    limits = host.check_output("systemd-run --quiet --wait --pipe /bin/sh -c 'ulimit -Hn; ulimit -Hl'")
    assert limits.split() == ["16384", "4096"]


def test_a_setting_of_the_container_is_in_force_and_its_hosts_are_left_alone(host):
    assert host.check_output("cat /proc/sys/net/core/somaxconn") == "8192"
    text = host.file("/etc/sysctl.d/90-gpufleet.conf").content_string
    assert "net.core.somaxconn = 8192" in text
    assert "vm.swappiness" not in text and "numa_balancing" not in text
    assert not host.file("/etc/tmpfiles.d/90-gpufleet-thp.conf").exists


def test_the_journal_is_on_disk(host):
    host.check_output("logger -t gpufleet-test written-to-disk && journalctl --sync")
    assert "written-to-disk" in host.check_output("journalctl -D /var/log/journal -t gpufleet-test -o cat")
    assert host.service("systemd-journald").is_running


def test_no_unit_failed(host):
    assert host.check_output("systemctl list-units --failed --plain --no-legend") == ""


def test_the_system_log_does_not_repeat_what_is_in_the_files(host):
    log = host.check_output(
        "journalctl --boot -o cat -t ansible-gpufleet.server.base_plan -t ansible-gpufleet.server.config_files"
    )
    assert "Invoked" in log
    assert "Lock::Timeout" not in log and "apt_lock_timeout_s" not in log
