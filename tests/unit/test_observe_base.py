"""What role base reads of a machine, from a folder with the files of one and a stand-in for its commands."""

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils import _base_files as files
from ansible_collections.gpufleet.server.plugins.module_utils._host import CommandResult, Host
from ansible_collections.gpufleet.server.plugins.module_utils._observe_base import (
    observe_base,
    parse_os_release,
    parse_stat,
    parse_units,
    selected,
    with_candidates,
)

DPKG = "dpkg\tamd64\t1.21.22\tinstall\tinstalled\tok\nkmod\tamd64\t30\tinstall\thalf-configured\tok\n"
UNITS = """\
Id=chrony.service
Names=chronyd.service chrony.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
ExecMainStartTimestampMonotonic=2500000

Id=systemd-journald.service
Names=systemd-journald.service
LoadState=loaded
ActiveState=active
UnitFileState=static
ExecMainStartTimestampMonotonic=0
"""


class Machine(Host):
    """Files under `root`; `answers` maps the beginning of a command line to its output."""

    def __init__(self, root, answers):
        super().__init__(str(root))
        self.answers = answers

    def run(self, argv, **_options):
        line = " ".join(argv)
        for beginning, output in self.answers.items():
            if line.startswith(beginning):
                return CommandResult(tuple(argv), 0, output, "", 0.0)
        return CommandResult(tuple(argv), None, "", "", 0.0, missing=True)


ANSWERS = {
    "dpkg-query -W": DPKG,
    "systemctl show -p Id": UNITS,
    "systemctl show -p Default": "DefaultLimitNOFILE=524288\nDefaultLimitMEMLOCK=infinity\n",
    "timedatectl": "yes\n",
    "find /boot": "12582912\tvmlinuz-5.15.0-164-generic\n7\tconfig\n",
    "df --block-size=1": "    Avail\n104857600\n",
    "runuser -u nobody": "1048576\nunlimited\n",
    "runuser -u root": "65536\n8192\n",
}

TREE = {
    "etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n',
    "etc/machine-id": "abc\n",
    "etc/apt/apt.conf.d/10lock": 'DPkg::Lock::Timeout "30";\n',
    "etc/apt/apt.conf.d/90gpufleet": 'DPkg::Lock::Timeout "600";\n',
    "etc/sysctl.conf": "vm.swappiness=1\nvm.overcommit_memory=1\n",
    "etc/sysctl.d/90-gpufleet.conf": "vm.swappiness = 10\n",
    "etc/security/limits.conf": "* hard nofile 65536\n",
    "etc/security/limits.d/90-gpufleet.conf": "* - nofile 1048576\n",
    "etc/systemd/journald.conf": "[Journal]\n#Storage=auto\n",
    "etc/systemd/journald.conf.d/ours.conf": "[Journal]\nStorage=volatile\n",
    "etc/systemd/system.conf": "[Manager]\nDefaultLimitNOFILE=65536\n",
    "etc/systemd/timesyncd.conf": "[Time]\nNTP=ntp.ours\n",
    "etc/chrony/chrony.conf": "pool ntp.ubuntu.com\nsourcedir /etc/chrony/sources.d\n",
    "etc/needrestart/conf.d/ours.conf": "$nrconf{restart} = 'a';\n",
    "etc/default/grub": "GRUB_DEFAULT=0\n",
    "etc/default/grub.d/50-ours.cfg": 'GRUB_DEFAULT="1>2"\n',
    "etc/tmpfiles.d/thp.conf": "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\n",
    "etc/apt/sources.list": "deb http://archive.ubuntu.com/ubuntu jammy main\n",
    "proc/1/status": "Name:\tsystemd\nCapBnd:\t000001ffffffffff\n",
    "proc/1/limits": "Max locked memory         8388608              8388608              bytes\n"
    "Max open files            1024                 524288               files\n",
    "proc/sys/kernel/osrelease": "5.15.0-91-generic\n",
    "proc/sys/fs/nr_open": "1048576\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz quiet\n",
    "proc/4711/comm": "containerd-shim\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "boot/vmlinuz-5.15.0-91-generic": "",
    "boot/vmlinuz-5.15.0-164-generic": "",
    "lib/modules/5.15.0-164-generic/build/Makefile": "",
    "var/lib/apt/lists/archive.ubuntu.com_ubuntu_dists_jammy_InRelease": "",
    "var/lib/apt/lists/lock": "",
    "var/log/journal/abc/system.journal": "",
    "run/cloud-init/enabled": "",
}


@pytest.fixture
def facts_of(tmp_path):
    def observe(tree=None, answers=None):
        for path, text in {**TREE, **(tree or {})}.items():
            if text is not None:
                (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / path).write_text(text)
        return observe_base(Machine(tmp_path, {**ANSWERS, **(answers or {})}), 1000.0, ["vm.swappiness", "kernel.none"])

    return observe


def test_a_machine_is_read(facts_of):
    facts = facts_of()
    assert (facts.distribution, facts.arch, facts.container) == ("ubuntu", "amd64", None)
    assert (facts.kernel.running, facts.kernel.release) == ("5.15.0-91-generic", "5.15.0-164-generic")
    assert (facts.headers_built, facts.grub_default) == (True, "1>2")
    assert (facts.nr_open, facts.raises_limits) == (1048576, True)
    assert facts.hard_limits == {"memlock": "8388608", "nofile": "524288"}
    assert facts.packages["kmod"].broken and facts.policies is None
    assert facts.apt_lists == ("archive.ubuntu.com_ubuntu_dists_jammy_InRelease",)
    assert facts.sysctl == {"vm.swappiness": "60", "kernel.none": None}
    assert facts.manager == {"DefaultLimitNOFILE": "524288", "DefaultLimitMEMLOCK": "infinity"}
    assert (facts.thp, facts.thp_elsewhere) == ("madvise", "/etc/tmpfiles.d/thp.conf")
    assert (facts.journal_on_disk, facts.clock_synchronised, facts.gpu_containers) == (True, True, True)
    assert facts.cloud_init_running
    assert facts.needrestart_elsewhere == "/etc/needrestart/conf.d/ours.conf"
    assert facts.stock_sources == {"/etc/apt/sources.list": TREE["etc/apt/sources.list"]}
    assert facts.boot_files == {"vmlinuz-5.15.0-164-generic": 12582912, "config": 7}
    assert facts.boot_free_bytes == 104857600
    assert [(source.path, source.uri, source.suite) for source in facts.sources] == [
        ("/etc/apt/sources.list", "http://archive.ubuntu.com/ubuntu/", "jammy")
    ]
    assert facts.login_limits["nobody memlock"] == "unlimited" and facts.login_limits["root nofile"] == "65536"


@pytest.mark.parametrize(
    "name, path, key, value",
    [
        ("apt_elsewhere", "/etc/apt/apt.conf.d/10lock", "dpkg::lock::timeout", "30"),
        ("sysctl_elsewhere", "/etc/sysctl.conf", "vm.swappiness", "1"),
        ("limits_elsewhere", "/etc/security/limits.conf", "* nofile", "hard 65536"),
        ("manager_elsewhere", "/etc/systemd/system.conf", "Manager/DefaultLimitNOFILE", "65536"),
        ("timesyncd_elsewhere", "/etc/systemd/timesyncd.conf", "Time/NTP", "ntp.ours"),
        ("journald_elsewhere", "/etc/systemd/journald.conf.d/ours.conf", "Journal/Storage", "volatile"),
    ],
)
def test_settings_of_others_are_read_and_ours_are_not(facts_of, name, path, key, value):
    settings = getattr(facts_of(), name)
    assert [(setting.path, setting.key, setting.value) for setting in settings] == [(path, key, value)]


@pytest.mark.parametrize(
    "text, reads",
    [
        ("sourcedir /etc/chrony/sources.d\n", True),
        ("#sourcedir /etc/chrony/sources.d\n", False),
        ("pool ntp.ubuntu.com\n", False),
    ],
)
def test_whether_chrony_reads_our_file_is_in_its_configuration(facts_of, text, reads):
    assert facts_of({"etc/chrony/chrony.conf": text}).chrony_reads_sources is reads


def test_a_packages_own_unchanged_file_is_not_the_operators(facts_of):
    owned = {"dpkg-query -S /etc/sysctl.conf": "procps: /etc/sysctl.conf\n"}
    assert facts_of(answers={**owned, "dpkg --verify procps": ""}).sysctl_elsewhere == ()
    changed = {**owned, "dpkg --verify procps": "??5?????? c /etc/sysctl.conf\n"}
    assert len(facts_of(answers=changed).sysctl_elsewhere) == 1


def test_a_container_is_recognised_and_its_clock_is_not_asked(facts_of):
    facts = facts_of(answers={"systemd-detect-virt --container": "podman\n"})
    assert (facts.container, facts.clock_synchronised) == ("podman", None)


def test_without_the_capability_limits_cannot_be_raised(facts_of):
    assert not facts_of({"proc/1/status": "CapBnd:\t000001fffcfeffff\n"}).raises_limits


def test_a_machine_on_which_nothing_answers_is_read_too(tmp_path):
    facts = observe_base(Machine(tmp_path, {}), 0.0, ["vm.swappiness"])
    assert (facts.boot_files, facts.boot_free_bytes, facts.chrony_reads_sources) == ({}, None, None)
    assert (facts.distribution, facts.arch, facts.kernel.release) == ("", "", None)
    assert (dict(facts.manager), dict(facts.units), facts.thp, facts.journal_on_disk) == ({}, {}, None, False)


def test_candidates_are_asked_for_missing_packages_alone(facts_of, tmp_path):
    facts = facts_of()
    assert with_candidates(Machine(tmp_path, {}), facts, []).policies == {}
    assert with_candidates(Machine(tmp_path, {}), facts, ["vim"]).policies is None
    answer = {"apt-cache policy vim": "vim:\n  Installed: (none)\n  Candidate: 2:9\n"}
    assert with_candidates(Machine(tmp_path, answer), facts, ["vim"]).policies["vim"].candidate == "2:9"


def test_units_know_when_they_started_and_their_aliases():
    units = parse_units(UNITS, 900.0)
    assert (units["chrony"].active, units["chrony"].enabled, units["chrony"].started_s) == ("active", "enabled", 902.5)
    assert units["chronyd"] == units["chrony"]
    assert units["systemd-journald"].started_s is None


def test_own_files_have_mode_owner_and_kind():
    text = "%s\t644\troot:root\t1000\tregular file\n/x\t777\troot:root\t5\tsymbolic link\nbad line\n" % files.SYSCTL
    found = parse_stat(text)
    assert (found[files.SYSCTL].attributes, found[files.SYSCTL].kind) == ("0644 root:root", "file")
    assert found["/x"].kind == "link" and len(found) == 2


@pytest.mark.parametrize(
    "text, word",
    [("always [madvise] never\n", "madvise"), ("[always] madvise never", "always"), ("", None), (None, None)],
)
def test_the_chosen_word_of_sysfs(text, word):
    assert selected(text) == word


def test_os_release_with_and_without_quotes():
    assert parse_os_release("ID=debian\nVERSION_ID='12'\nX=\"a b\"\n#ID=no\n") == {
        "ID": "debian",
        "VERSION_ID": "12",
        "X": "a b",
    }
