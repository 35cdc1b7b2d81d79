"""What role base does on a machine: nothing where all is in force, and never over an operator's setting."""

from dataclasses import replace

import pytest
from support_base import INSTALLED, RELEASE, machine, packages, policies, settled, ubuntu, wanted

from ansible_collections.gpufleet.server.plugins.module_utils import _base_files as files
from ansible_collections.gpufleet.server.plugins.module_utils._apt_sources import Source
from ansible_collections.gpufleet.server.plugins.module_utils._base_apt import missing_packages
from ansible_collections.gpufleet.server.plugins.module_utils._base_desired import BaseError, Desired, desired_of
from ansible_collections.gpufleet.server.plugins.module_utils._base_plan import plan_and_result, plan_base
from ansible_collections.gpufleet.server.plugins.module_utils._findings import finding
from ansible_collections.gpufleet.server.plugins.module_utils._kernels import BootKernel
from ansible_collections.gpufleet.server.plugins.module_utils._observe_base import OwnFile, Unit
from ansible_collections.gpufleet.server.plugins.module_utils._settings import Setting


def content(part, path):
    return dict(part.files)[path]


def ids(result):
    return [item["id"] for item in result["findings"]]


# -- systems -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, version, arch, allowed",
    [
        ("ubuntu", "20.04", "amd64", True),
        ("ubuntu", "22.04", "arm64", True),
        ("ubuntu", "24.04", "amd64", True),
        ("ubuntu", "26.04", "amd64", True),
        ("debian", "12", "amd64", True),
        ("debian", "13", "arm64", True),
        ("ubuntu", "18.04", "amd64", False),
        ("ubuntu", "25.10", "amd64", False),
        ("debian", "11", "amd64", False),
        ("debian", "", "amd64", False),
        ("linuxmint", "22", "amd64", False),
        ("rocky", "9.4", "", False),
        ("debian", "12", "i386", False),
    ],
)
def test_only_supported_systems_are_managed(name, version, arch, allowed):
    facts = machine(os_release=ubuntu(version, name), arch=arch)
    plan, result = plan_and_result(wanted(), facts)
    assert (plan["refusal"] is None) == allowed
    if not allowed:
        assert (plan["files"], plan["packages"], plan["steps"]) == ([], [], [])
        assert (result["verdict"], ids(result)) == ("failed", ["base_unsupported"])


def test_a_refusal_says_what_was_found_and_what_is_allowed():
    refusal = plan_and_result(wanted(), machine(os_release=ubuntu("18.04")))[0]["refusal"]
    for text in ("ubuntu 18.04", "amd64", "20.04", "26.04", "Debian 12, 13", "arm64"):
        assert text in refusal


# -- nothing to do, and one thing to do --------------------------------------------------------------------------------


def test_a_settled_machine_has_nothing_to_do_and_is_healthy():
    plan, result = plan_and_result(wanted(), settled())
    assert (plan["steps"], plan["packages"], plan["pending"]) == ([], [], [])
    assert (result["verdict"], result["findings"], result["unproven"]) == ("healthy", [], [])
    assert "headers of %s, which will boot, are installed" % RELEASE in result["proven"]
    assert "vm.swappiness = 10" in result["proven"]


@pytest.mark.parametrize(
    "changes, step",
    [
        ({"sysctl": {"vm.swappiness": "60", "kernel.numa_balancing": "0"}}, "apply_sysctl"),
        ({"sysctl": {"vm.swappiness": "10", "kernel.numa_balancing": "1"}}, "apply_sysctl"),
        ({"thp": "always"}, "apply_thp"),
        ({"manager": {"DefaultLimitNOFILE": "524288", "DefaultLimitMEMLOCK": "infinity"}}, "reexec_systemd"),
        ({"journal_on_disk": False}, "restart_journald"),
        ({"units": {"systemd-journald": Unit("loaded", "active", "static", 1000.0)}}, "start_time_sync"),
        (
            {"packages": packages("kmod", "pciutils", "linux-headers-" + RELEASE, "linux-headers-generic")},
            "start_time_sync",
        ),
        ({"updates_pending": True}, "repair_dpkg"),
        ({"cloud_init_running": True}, "wait_for_cloud_init"),
    ],
    ids=[
        "swappiness",
        "numa",
        "thp",
        "manager",
        "journal-in-memory",
        "no-time-daemon",
        "no-timesyncd",
        "dpkg-journal",
        "cloud-init",
    ],
)
def test_what_is_not_in_force_is_one_step(changes, step):
    facts = settled(**changes)
    if step == "start_time_sync":
        facts = replace(facts, units={"systemd-journald": facts.units["systemd-journald"]})
    plan, result = plan_and_result(wanted(), facts)
    assert step in plan["steps"]
    assert result["verdict"] == "unknown"
    assert any(text.startswith("not applied yet") for text in result["unproven"])


def test_steps_come_in_the_order_in_which_they_are_taken():
    facts = machine(updates_pending=True, thp="always", packages={}, apt_lists=())
    plan, _result = plan_and_result(wanted(), facts)
    assert plan["steps"] == ["repair_dpkg", "update_apt", "install_packages", "apply_thp", "restart_journald"]


def test_in_a_proof_what_is_not_in_force_is_a_failure():
    _plan, result = plan_and_result(wanted(), settled(thp="always"), prove=True)
    assert (result["verdict"], ids(result)) == ("failed", ["base_not_in_force"])
    assert "always instead of madvise" in result["findings"][0]["message"]


OPTIONS = {
    "apt_lock_timeout_s": 600,
    "limits_memlock": "unlimited",
    "limits_nofile": 1048576,
    "journal_max_use_mb": 4096,
    "kernel_headers": True,
    "numa_balancing": "disabled",
    "journal_storage": "persistent",
    "http_proxy": "",
    "https_proxy": "",
    "apt_mirror": "",
    "apt_security_mirror": "",
}


@pytest.mark.parametrize(
    "option, value, name, expected",
    [
        ("apt_lock_timeout_s", 0, "apt_lock_timeout_s", None),
        ("limits_nofile", 0, "limits_nofile", None),
        ("limits_memlock", "leave", "limits_memlock", None),
        ("limits_memlock", "8192", "limits_memlock", "8192"),
        ("journal_max_use_mb", 0, "journal_max_use_mb", None),
        ("journal_storage", "leave", "journal_persistent", None),
        ("journal_storage", "volatile", "journal_persistent", False),
        ("journal_storage", "persistent", "journal_persistent", True),
        ("numa_balancing", "leave", "numa_balancing", None),
        ("numa_balancing", "enabled", "numa_balancing", True),
        ("numa_balancing", "disabled", "numa_balancing", False),
        ("kernel_headers", False, "kernel_headers", None),
    ],
)
def test_how_an_option_leaves_a_matter_to_the_operator(option, value, name, expected):
    assert getattr(desired_of({**OPTIONS, option: value}), name) == expected


def test_a_memlock_that_is_no_amount_is_refused():
    with pytest.raises(BaseError, match="base_limits_memlock is '8G'; allowed are"):
        desired_of({**OPTIONS, "limits_memlock": "8G"})


# -- the role's own files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        files.APT_CONF,
        files.APT_UNATTENDED,
        files.LIMITS,
        files.SYSTEMD,
        files.SYSCTL,
        files.THP,
        files.JOURNALD,
    ],
)
@pytest.mark.parametrize("how", ["text", "mode", "link", "gone"])
def test_a_file_that_was_changed_behind_our_back_is_told_and_written_anew(path, how):
    facts = settled()
    good = facts.own[path]
    changed = {
        "text": replace(good, text=good.text + "# mine\n"),
        "mode": replace(good, attributes="0666 root:root"),
        "link": replace(good, kind="link"),
        "gone": None,
    }[how]
    own = {**facts.own, path: changed}
    if changed is None:
        del own[path]
    plan, result = plan_and_result(wanted(), replace(facts, own=own))
    assert any(text.startswith(path) for text in plan["pending"])
    assert ids(result) == ([] if how == "gone" else ["base_file_restored"])
    if how != "gone":
        assert result["findings"][0]["source"] == path


def test_a_proof_repeats_what_was_mended():
    facts = settled()
    own = {**facts.own, files.SYSCTL: OwnFile("vm.swappiness = 60\n", "0644 root:root", 2000.0, "file")}
    _plan, before = plan_and_result(wanted(), replace(facts, own=own))
    _plan, after = plan_and_result(wanted(), facts, prove=True, carried=before["findings"])
    assert (ids(after), after["verdict"]) == (["base_file_restored"], "healthy")


def test_journald_reads_a_restored_file_in_the_same_run():
    facts = settled()
    own = {**facts.own, files.JOURNALD: replace(facts.own[files.JOURNALD], text="[Journal]\nStorage=none\n")}
    assert "restart_journald" in plan_and_result(wanted(), replace(facts, own=own))[0]["steps"]


def test_journald_reads_a_file_that_a_killed_run_left_behind():
    facts = settled()
    own = {**facts.own, files.JOURNALD: replace(facts.own[files.JOURNALD], changed_s=1500.0)}
    assert plan_and_result(wanted(), replace(facts, own=own))[0]["steps"] == ["restart_journald"]


# -- left to the operator ----------------------------------------------------------------------------------------------


def test_what_is_left_to_the_operator_has_no_file_no_step_and_no_package():
    part = plan_base(Desired(), machine(thp="always", packages={}, units={}, manager={}))
    assert {text for _path, text in part.files} == {None}
    assert {path for path, _text in part.files} == set(files.OWN_PATHS)
    assert (part.steps, part.packages, part.findings, part.pending) == ([], [], [], [])


def test_a_file_goes_away_when_its_switch_is_left():
    plan, _result = plan_and_result(wanted(thp="leave"), settled())
    assert {"path": files.THP, "state": "absent"} in plan["files"]
    assert any(files.THP in text for text in plan["pending"])


@pytest.mark.parametrize(
    "facts, path, gone, source",
    [
        (
            {"apt_elsewhere": (Setting("/etc/apt/apt.conf.d/10ours", "dpkg::lock::timeout", "30"),)},
            files.APT_CONF,
            "Timeout",
            "/etc/apt/apt.conf.d/10ours",
        ),
        (
            {"sysctl_elsewhere": (Setting("/etc/sysctl.conf", "vm.swappiness", "1"),)},
            files.SYSCTL,
            "vm.swappiness",
            "/etc/sysctl.conf",
        ),
        (
            {"limits_elsewhere": (Setting("/etc/security/limits.conf", "* nofile", "hard 65536"),)},
            files.LIMITS,
            "*     -  nofile",
            "/etc/security/limits.conf",
        ),
        (
            {"manager_elsewhere": (Setting("/etc/systemd/system.conf", "Manager/DefaultLimitNOFILE", "65536"),)},
            files.SYSTEMD,
            "NOFILE",
            "/etc/systemd/system.conf",
        ),
        (
            {"journald_elsewhere": (Setting("/etc/systemd/journald.conf", "Journal/Storage", "volatile"),)},
            files.JOURNALD,
            "Storage",
            "/etc/systemd/journald.conf",
        ),
        (
            {
                "needrestart_elsewhere": "/etc/needrestart/conf.d/50-ours.conf",
                "packages": {**INSTALLED, **packages("needrestart")},
            },
            files.NEEDRESTART,
            "$nrconf{restart} =",
            "/etc/needrestart/conf.d/50-ours.conf",
        ),
        ({"thp_elsewhere": "/proc/cmdline", "thp": "always"}, files.THP, None, "/proc/cmdline"),
        ({"thp_elsewhere": "/etc/tmpfiles.d/thp.conf", "thp": "always"}, files.THP, None, "/etc/tmpfiles.d/thp.conf"),
        ({"units": {"tuned": Unit("loaded", "active", "enabled")}, "thp": "always"}, files.THP, None, "tuned"),
    ],
    ids=["apt", "sysctl", "limits", "systemd", "journald", "needrestart", "kernel-command-line", "tmpfiles", "tuned"],
)
def test_an_operators_setting_elsewhere_stands_and_is_told(facts, path, gone, source):
    part = plan_base(wanted(), machine(**facts))
    text = content(part, path)
    assert text is None or (gone is not None and gone not in text)
    told = [item for item in part.findings if item["id"] == "base_operator_setting"]
    assert [(item["severity"], item["source"]) for item in told] == [("info", source)]


def test_an_operators_equal_setting_is_no_news():
    part = plan_base(wanted(), machine(sysctl_elsewhere=(Setting("/etc/sysctl.conf", "vm.swappiness", "10"),)))
    assert "vm.swappiness" not in content(part, files.SYSCTL)
    assert part.findings == [] and "vm.swappiness = 10" in part.proven


@pytest.mark.parametrize(
    "key, variable",
    [("Journal/Storage", "base_journal_storage"), ("Journal/SystemMaxUse", "base_journal_max_use_mb")],
)
def test_a_finding_names_the_variable_that_the_role_has(key, variable, repository):
    part = plan_base(wanted(), machine(journald_elsewhere=(Setting("/etc/systemd/journald.conf", key, "other"),)))
    assert variable in part.findings[0]["remedy"]
    assert "\n%s:" % variable in (repository / "roles/base/defaults/main.yml").read_text()


def test_an_operators_limit_that_is_the_same_is_no_news():
    elsewhere = tuple(Setting("/etc/security/limits.conf", "%s nofile" % who, "- 1048576") for who in ("*", "root"))
    part = plan_base(wanted(), machine(limits_elsewhere=elsewhere))
    assert part.findings == [] and "nofile" not in content(part, files.LIMITS)


# -- sources that clash, and a full /boot ------------------------------------------------------------------------------

STOCK_FILE = "/etc/apt/sources.list.d/ubuntu.sources"
BY_HAND = Source("/etc/apt/sources.list.d/by-hand.list", "http://mirror/ubuntu/", "jammy", "/etc/apt/keyrings/u.gpg")
OTHER_KEY = replace(BY_HAND, path="/etc/apt/sources.list.d/other.list", signed_by="")


def test_a_mirror_that_a_file_names_with_another_key_is_refused_before_apt_stops_working():
    with pytest.raises(BaseError, match="by-hand.list .*gpufleet-mirror.sources.*Nothing was changed"):
        plan_base(wanted(apt_mirror="http://mirror/ubuntu"), machine(sources=(BY_HAND,)))


def test_a_clash_of_two_foreign_files_stops_a_run_that_needs_apt():
    facts = machine(sources=(BY_HAND, OTHER_KEY), packages={})
    with pytest.raises(BaseError, match="by-hand.list .*other.list"):
        plan_base(wanted(), facts)


def test_a_clash_of_two_foreign_files_is_a_warning_where_apt_is_not_needed():
    _plan, result = plan_and_result(wanted(), settled(sources=(BY_HAND, OTHER_KEY)))
    assert (ids(result), result["verdict"]) == (["base_sources_clash"], "degraded")


def test_stock_sources_that_are_set_aside_do_not_clash_with_the_mirror():
    facts = machine(
        sources=(replace(BY_HAND, path=STOCK_FILE),),
        stock_sources={STOCK_FILE: "Types: deb\nURIs: http://mirror/ubuntu\nSuites: jammy\n"},
    )
    plan_base(wanted(apt_mirror="http://mirror/ubuntu", apt_stock_sources="disable"), facts)


def test_our_own_mirror_of_an_earlier_run_does_not_clash_with_itself():
    ours = replace(BY_HAND, path=files.APT_MIRROR, signed_by="/old.gpg")
    plan_base(wanted(apt_mirror="http://mirror/ubuntu"), machine(sources=(ours,)))


def test_apt_needs_the_lists_of_the_mirrors():
    desired = wanted(apt_mirror="http://mirror/{distribution}", apt_security_mirror="http://mirror/security")
    plan, _result = plan_and_result(desired, machine())
    assert plan["required_sources"] == ["http://mirror/ubuntu", "http://mirror/security"]
    assert plan_and_result(wanted(), machine())[0]["required_sources"] == []


@pytest.mark.parametrize("free_mib, told", [(10, True), (100, True), (200, False), (None, False)])
def test_a_boot_without_room_for_the_next_kernel_is_a_warning(free_mib, told):
    sizes = {"vmlinuz-" + RELEASE: 12 << 20, "initrd.img-" + RELEASE: 120 << 20}
    facts = settled(boot_files=sizes, boot_free_bytes=None if free_mib is None else free_mib << 20)
    _plan, result = plan_and_result(wanted(), facts)
    assert ids(result) == (["base_boot_space"] if told else [])


def test_a_proof_repeats_which_source_apt_could_not_read():
    told = finding("apt_source_not_read", "warning", "apt could not read http://repo")
    _plan, result = plan_and_result(wanted(), settled(), prove=True, carried=[told])
    assert (ids(result), result["verdict"]) == (["apt_source_not_read"], "degraded")


def test_a_proxys_password_is_not_told():
    elsewhere = (Setting("/etc/apt/apt.conf", "acquire::http::proxy", "http://me:s3cret@proxy:1"),)
    part = plan_base(wanted(http_proxy="http://you:g3heim@proxy:2"), machine(apt_elsewhere=elsewhere))
    assert content(part, files.APT_PROXY) is None
    assert "s3cret" not in str(part.findings) and "g3heim" not in str(part.findings)
    assert "/etc/apt/apt.conf" in str(part.findings)


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["chrony", "ntpsec", "ntp", "openntpd", "timemaster"])
@pytest.mark.parametrize("state", [("active", "enabled"), ("inactive", "enabled"), ("active", "disabled")])
def test_an_operators_time_daemon_is_kept(unit, state):
    facts = settled(
        units={unit: Unit("loaded", *state), "systemd-journald": Unit("loaded", "active", "static", 1000.0)}
    )
    plan, _result = plan_and_result(wanted(), facts)
    assert (plan["time_daemon"], plan["steps"]) == (unit, [])
    assert "systemd-timesyncd" not in missing_packages(wanted(), replace(facts, packages={}))


@pytest.mark.parametrize("unit", [Unit("not-found", "inactive", ""), Unit("loaded", "inactive", "disabled")])
def test_a_time_daemon_that_is_not_set_up_does_not_count(unit):
    facts = machine(units={"chrony": unit}, packages={})
    assert "systemd-timesyncd" in missing_packages(wanted(), facts)
    assert "start_time_sync" in plan_base(wanted(), facts).steps


def test_another_time_daemon_than_the_declared_one_is_not_replaced():
    facts = machine(units={"ntpsec": Unit("loaded", "active", "enabled")})
    part = plan_base(wanted(time_sync="systemd-timesyncd"), facts)
    assert not [step for step in part.steps if "time" in step]
    assert part.findings[0]["source"] == "ntpsec.service"


def test_chrony_on_request_is_installed_and_started():
    part = plan_base(wanted(time_sync="chrony"), machine(units={}))
    assert part.packages == ["chrony"]
    assert "start_time_sync" in part.steps


CHRONY = {"units": {"chrony": Unit("loaded", "active", "enabled", 5.0)}}


def test_servers_go_to_the_daemon_that_keeps_the_clock():
    servers = ["ntp1.example.org", "ntp2.example.org"]
    part = plan_base(wanted(ntp_servers=servers), settled())
    assert content(part, files.TIMESYNCD).endswith("[Time]\nNTP=ntp1.example.org ntp2.example.org\n")
    assert content(part, files.CHRONY) is None
    assert part.steps == ["restart_time_sync"]
    part = plan_base(wanted(ntp_servers=servers), settled(**CHRONY, chrony_reads_sources=True))
    assert content(part, files.TIMESYNCD) is None
    assert content(part, files.CHRONY).endswith("server ntp1.example.org iburst\nserver ntp2.example.org iburst\n")


def test_a_chrony_that_reads_no_other_file_is_told_and_gets_none():
    part = plan_base(wanted(ntp_servers=["ntp1.example.org"]), settled(**CHRONY, chrony_reads_sources=False))
    assert content(part, files.CHRONY) is None
    assert [(item["id"], item["severity"]) for item in part.findings] == [("base_ntp_servers_not_set", "warning")]


def test_a_chrony_that_comes_with_this_run_has_the_folder_for_its_servers():
    part = plan_base(wanted(ntp_servers=["ntp1.example.org"], time_sync="chrony"), settled(units={}))
    assert content(part, files.CHRONY) is not None and part.findings == []


@pytest.mark.parametrize("theirs, told", [("ntp9.example.org", True), ("ntp1.example.org", False), ("", False)])
def test_an_operators_time_servers_stand(theirs, told):
    elsewhere = (Setting("/etc/systemd/timesyncd.conf", "Time/NTP", theirs),)
    part = plan_base(wanted(ntp_servers=["ntp1.example.org"]), settled(timesyncd_elsewhere=elsewhere))
    assert (content(part, files.TIMESYNCD) is None) == bool(theirs)
    assert [item["id"] for item in part.findings] == (["base_operator_setting"] if told else [])


def test_a_clock_that_is_not_synchronised_yet_is_unproven():
    _plan, result = plan_and_result(wanted(), settled(clock_synchronised=False))
    assert result["verdict"] == "healthy"
    assert any("not synchronised" in text for text in result["unproven"])


# -- containers and limits ---------------------------------------------------------------------------------------------


def test_in_a_container_what_belongs_to_its_host_is_unproven_and_left_alone():
    desired = wanted(sysctl={"vm.swappiness": 10, "net.core.somaxconn": 8192})
    facts = settled(desired, container="podman", sysctl={"vm.swappiness": "60", "net.core.somaxconn": "8192"}, units={})
    plan, result = plan_and_result(desired, facts)
    assert plan["steps"] == [] and result["verdict"] == "healthy"
    assert content(plan_base(desired, facts), files.SYSCTL).splitlines()[1:] == ["net.core.somaxconn = 8192"]
    assert content(plan_base(desired, facts), files.THP) is None
    for what in ("vm.swappiness", "kernel.numa_balancing", "huge pages", "time"):
        assert [text for text in result["unproven"] if what in text], what


def test_limits_that_a_container_may_not_raise_are_not_asked_for():
    facts = machine(container="podman", raises_limits=False, hard_limits={"nofile": "20000", "memlock": "8388608"})
    part = plan_base(wanted(limits_nofile=16384), facts)
    assert content(part, files.LIMITS).splitlines()[1:] == ["*     -  nofile   16384", "root  -  nofile   16384"]
    assert [text for text in part.unproven if text.startswith("memlock unlimited")]


@pytest.mark.parametrize(
    "memlock, raises, hard, written",
    [
        ("8192", False, "8388608", True),
        ("8193", False, "8388608", False),
        ("unlimited", False, "unlimited", True),
        ("unlimited", False, "8388608", False),
        ("unlimited", True, "8388608", True),
    ],
)
def test_memlock_counts_in_kib(memlock, raises, hard, written):
    facts = machine(raises_limits=raises, hard_limits={"memlock": hard})
    text = content(plan_base(wanted(limits_memlock=memlock, limits_nofile=None), facts), files.LIMITS)
    assert (text is not None) == written


def test_a_limit_above_what_the_kernel_allows_is_refused_before_it_locks_everybody_out():
    with pytest.raises(BaseError, match="base_limits_nofile is 2000000.*1048576"):
        plan_base(wanted(limits_nofile=2000000), machine())
    plan_base(wanted(limits_nofile=2000000, sysctl={"fs.nr_open": 2000000}), machine())


def test_a_session_without_its_limits_is_a_warning():
    facts = settled(login_limits={"nobody nofile": "1024", "root nofile": "1048576", "root memlock": "unlimited"})
    _plan, result = plan_and_result(wanted(), facts)
    assert (result["verdict"], ids(result)) == ("degraded", ["base_login_limit"])
    assert "1024 instead of 1048576" in result["findings"][0]["message"]
    assert any(text.startswith("* memlock") for text in result["unproven"])


@pytest.mark.parametrize(
    "ok, containers, step",
    [("auto", False, True), ("auto", True, False), ("true", True, True), ("false", False, False)],
)
def test_systemd_is_not_reexecuted_under_running_containers(ok, containers, step):
    facts = settled(manager={"DefaultLimitNOFILE": "1024", "DefaultLimitMEMLOCK": "1"}, gpu_containers=containers)
    plan, result = plan_and_result(wanted(daemon_reexec_ok=ok), facts)
    assert ("reexec_systemd" in plan["steps"]) == step
    assert ids(result) == ([] if step else ["base_limits_wait"])
    assert result["verdict"] == ("unknown" if step else "degraded")


def test_memlock_in_kib_is_bytes_for_systemd():
    part = plan_base(wanted(limits_memlock="1024", limits_nofile=None), machine())
    assert content(part, files.SYSTEMD).endswith("[Manager]\nDefaultLimitMEMLOCK=1048576\n")


# -- packages and kernel -----------------------------------------------------------------------------------------------


def test_headers_are_those_of_the_kernel_that_will_boot():
    waiting = BootKernel("5.15.0-170-generic", "generic", "boot", RELEASE, (RELEASE, "5.15.0-170-generic"))
    facts = machine(kernel=waiting, headers_built=False)
    assert missing_packages(wanted(), facts) == ["linux-headers-5.15.0-170-generic"]
    found = plan_base(wanted(), facts).findings
    assert [(item["id"], item["severity"]) for item in found] == [("base_kernel_waits", "info")]


@pytest.mark.parametrize(
    "kernel, container, finding_id",
    [
        (BootKernel(None, None, "none", RELEASE), None, "base_no_kernel"),
        (BootKernel(None, None, "none", RELEASE), "podman", None),
        (BootKernel("6.18.44-mine", None, "boot", "6.18.44-mine"), None, "base_kernel_unknown"),
    ],
    ids=["no-kernel", "container", "own-build"],
)
def test_a_kernel_whose_headers_cannot_be_named(kernel, container, finding_id):
    part = plan_base(wanted(), machine(kernel=kernel, container=container))
    assert not [name for name in part.packages if name.startswith("linux-headers")]
    assert [item["id"] for item in part.findings] == ([finding_id] if finding_id else [])
    assert finding_id or any("no kernel in /boot" in text for text in part.unproven)


def test_installed_headers_without_a_build_folder_are_a_warning():
    _plan, result = plan_and_result(wanted(), settled(headers_built=False))
    assert (result["verdict"], ids(result)) == ("degraded", ["base_headers_incomplete"])


def test_a_metapackage_that_the_archive_lacks_does_not_stop_the_exact_headers():
    facts = machine(
        packages=packages("kmod", "pciutils", "systemd-timesyncd"),
        policies=policies(linux_headers_generic=None, **{"linux-headers-" + RELEASE: "5.15.0-164.174"}),
    )
    part = plan_base(wanted(), facts)
    assert part.packages == ["linux-headers-" + RELEASE]
    assert any("linux-headers-generic" in text for text in part.unproven)


def test_check_mode_leaves_out_what_apt_does_not_know_yet_and_says_so():
    facts = machine(packages=packages("kmod", "systemd-timesyncd"), policies=policies(pciutils="1:3.7"))
    part = plan_base(wanted(), facts, check_mode=True)
    assert part.packages == ["pciutils"]
    assert any("linux-headers-" + RELEASE in text for text in part.unproven)
    assert "linux-headers-" + RELEASE in plan_base(wanted(), facts).packages


@pytest.mark.parametrize(
    "lists, known, update",
    [((), True, True), (("x_dists_jammy_InRelease",), True, False), (("x_dists_jammy_InRelease",), False, True)],
    ids=["no-lists", "known", "unknown-package"],
)
def test_lists_are_read_anew_only_where_that_can_help(lists, known, update):
    candidate = {"pciutils": "1:3.7"} if known else {}
    facts = settled(apt_lists=lists, policies=policies(**candidate))
    facts = replace(facts, packages={name: facts.packages[name] for name in facts.packages if name != "pciutils"})
    plan, _result = plan_and_result(wanted(), facts)
    assert plan["steps"] == (["update_apt"] if update else []) + ["install_packages"]


def test_packages_of_an_interrupted_dpkg_are_configured_first():
    plan, result = plan_and_result(wanted(), settled(packages=packages("kmod", pciutils="half-configured")))
    assert plan["steps"][0] == "repair_dpkg"
    assert "pciutils" in [item for item in result["findings"] if item["id"] == "base_dpkg_repaired"][0]["message"]


@pytest.mark.parametrize("where, written", [("installed", True), ("declared", True), ("absent", False)])
def test_needrestart_has_a_file_where_it_is_or_will_be(where, written):
    extra = packages("needrestart") if where == "installed" else {}
    desired = wanted(packages=["kmod", "needrestart"] if where == "declared" else ["kmod"])
    text = content(plan_base(desired, machine(packages={**machine().packages, **extra})), files.NEEDRESTART)
    assert (text is not None) == written
    assert not written or "$nrconf{restart} = 'l';" in text


def test_needrestarts_mode_is_the_operators_where_set():
    facts = machine(packages=packages("needrestart"), needrestart_elsewhere="/etc/needrestart/conf.d/ours.conf")
    part = plan_base(wanted(), facts)
    assert "{restart}" not in content(part, files.NEEDRESTART)
    assert "qr(^nvidia-)" in content(part, files.NEEDRESTART)
    assert part.findings[0]["source"] == "/etc/needrestart/conf.d/ours.conf"


# -- mirrors -----------------------------------------------------------------------------------------------------------

MIRROR = "http://mirror.lab/{distribution}"
STOCK = {"/etc/apt/sources.list": "deb http://archive.ubuntu.com/ubuntu jammy main\n"}


def test_a_mirror_is_a_source_of_its_own_and_the_stock_ones_stay():
    part = plan_base(wanted(apt_mirror=MIRROR), machine(stock_sources=STOCK))
    assert content(part, files.APT_MIRROR).splitlines()[1:] == [
        "Types: deb",
        "URIs: http://mirror.lab/ubuntu",
        "Suites: jammy jammy-updates jammy-security",
        "Components: main restricted universe multiverse",
        "Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg",
    ]
    assert not [
        path for path, _text in part.files if path.startswith("/etc/apt/sources.list") and "gpufleet" not in path
    ]
    assert "update_apt" in part.steps


def test_debians_security_suite_has_its_own_mirror_or_is_told():
    facts = machine(os_release=ubuntu("12", "debian", "bookworm"))
    part = plan_base(wanted(apt_mirror=MIRROR, kernel_headers=None), facts)
    assert "security" not in content(part, files.APT_MIRROR)
    assert [item["id"] for item in part.findings] == ["base_no_security_mirror"]
    security = "http://mirror.lab/debian-security"
    part = plan_base(wanted(apt_mirror=MIRROR, apt_security_mirror=security, kernel_headers=None), facts)
    assert "URIs: http://mirror.lab/debian-security\nSuites: bookworm-security\n" in content(part, files.APT_MIRROR)
    assert part.findings == []


def test_stock_sources_are_set_aside_whole_and_put_back_whole():
    desired = wanted(apt_mirror=MIRROR, apt_stock_sources="disable")
    aside = dict(plan_base(desired, machine(stock_sources=STOCK)).files)
    assert aside["/etc/apt/sources.list"] is None
    kept = aside["/etc/apt/sources.list.disabled"]
    assert kept.endswith(STOCK["/etc/apt/sources.list"])
    own = {"/etc/apt/sources.list.disabled": OwnFile(kept, "0644 root:root", 1.0, "file")}
    for later in (wanted(), wanted(apt_mirror=MIRROR)):
        back = dict(plan_base(later, machine(own=own)).files)
        assert back["/etc/apt/sources.list"] == STOCK["/etc/apt/sources.list"]
        assert back["/etc/apt/sources.list.disabled"] is None


def test_a_disabled_source_of_the_operators_is_never_put_back():
    own = {"/etc/apt/sources.list.disabled": OwnFile("deb http://old jammy main\n", "0644 root:root", 1.0, "file")}
    assert "/etc/apt/sources.list" not in dict(plan_base(wanted(), machine(own=own)).files)


def test_a_mirror_whose_lists_are_there_needs_no_update():
    desired = wanted(apt_mirror=MIRROR)
    text = content(plan_base(desired, machine()), files.APT_MIRROR)
    own = {files.APT_MIRROR: OwnFile(text, "0644 root:root", 1.0, "file")}
    facts = settled(desired, own=own, apt_lists=("mirror.lab_ubuntu_dists_jammy_InRelease",))
    assert plan_and_result(desired, facts)[0]["steps"] == []


def test_a_proxy_with_its_exceptions():
    desired = wanted(http_proxy="http://proxy:3128", no_proxy=["repo.lab", ".example.org", "10.0.0.0/8", ""])
    assert content(plan_base(desired, machine()), files.APT_PROXY).splitlines()[1:] == [
        'Acquire::http::Proxy "http://proxy:3128";',
        'Acquire::http::Proxy::repo.lab "DIRECT";',
    ]


@pytest.mark.parametrize(
    "changes, variable",
    [
        ({"unattended_upgrades_keep_out": ['a";b']}, "base_unattended_upgrades_keep_out"),
        ({"http_proxy": 'http://x";'}, "base_http_proxy"),
    ],
)
def test_a_value_that_would_break_apts_configuration_is_refused(changes, variable):
    with pytest.raises(BaseError, match=variable):
        plan_base(wanted(**changes), machine())
