"""The files of role base, word for word as their programs want them."""

from ansible_collections.gpufleet.server.plugins.module_utils import _base_files as files
from ansible_collections.gpufleet.server.plugins.module_utils._settings import (
    parse_apt_conf,
    parse_ini,
    parse_limits,
    parse_sysctl,
)


def body(text):
    head, rest = text.split("\n", 1)
    assert "Managed by gpufleet.server" in head
    return rest


def test_apt_waits_for_its_lock():
    settings = parse_apt_conf("/x", files.render_apt_conf(600))
    assert [(setting.key, setting.value) for setting in settings] == [("dpkg::lock::timeout", "600")]


def test_unattended_upgrades_get_a_list_that_adds_to_others():
    settings = parse_apt_conf("/x", files.render_unattended(["nvidia-", "linux-(generic|aws)"]))
    assert [(setting.key, setting.value) for setting in settings] == [
        ("unattended-upgrade::package-blacklist", "nvidia-"),
        ("unattended-upgrade::package-blacklist", "linux-(generic|aws)"),
    ]


def test_limits_cover_root_too():
    text = files.render_limits([("*", "memlock", "unlimited"), ("root", "memlock", "unlimited")])
    assert [(setting.key, setting.value) for setting in parse_limits("/x", text)] == [
        ("* memlock", "- unlimited"),
        ("root memlock", "- unlimited"),
    ]


def test_ini():
    text = files.render_ini("Manager", [("DefaultLimitNOFILE", "1048576")])
    assert [(s.key, s.value) for s in parse_ini("/x", text)] == [("Manager/DefaultLimitNOFILE", "1048576")]


def test_sysctl_is_sorted():
    text = files.render_sysctl({"vm.swappiness": "10", "kernel.numa_balancing": "0"})
    assert body(text) == "kernel.numa_balancing = 0\nvm.swappiness = 10\n"
    assert len(parse_sysctl("/x", text)) == 2


def test_huge_pages_are_a_line_of_tmpfiles():
    assert body(files.render_thp("madvise")) == "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n"


def test_needrestart_in_its_two_modes():
    quiet, protect = files.render_needrestart(True), files.render_needrestart(False)
    assert "$nrconf{restart} = 'l';" in quiet and "$nrconf{restart}" not in protect
    for text in (quiet, protect):
        assert "$nrconf{kernelhints} = -1;" in text
        assert "$nrconf{override_rc}{qr(^nvidia-)} = 0;" in text
        assert "$nrconf{override_rc}{qr(^containerd)} = 0;" in text


def test_every_own_file_is_a_drop_in_beside_others():
    assert all(".d/" in path and "gpufleet" in path for path in files.OWN_PATHS)
    assert len(set(files.OWN_PATHS)) == len(files.OWN_PATHS)
