"""Whole files, many in one call: what is planned, and what the module really does in a folder."""

import base64
import grp
import json
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils._config_files import (
    ConfigFilesError,
    ObservedFile,
    parse_wanted,
    plan_files,
)

ROOT = Path(__file__).resolve().parents[2]
OWNER = pwd.getpwuid(os.getuid()).pw_name
GROUP = grp.getgrgid(os.getgid()).gr_name


def wanted(**options):
    return parse_wanted([{"path": "/etc/x.conf", "content": "a\n", **options}])


def seen(**options):
    fields = {"kind": "file", "content": b"a\n", "mode": 0o644, "owner": "root", "group": "root"}
    return {"/etc/x.conf": ObservedFile(**{**fields, **options})}


@pytest.mark.parametrize(
    "want, have, action, text",
    [
        ({}, seen(), None, None),
        ({}, {"/etc/x.conf": ObservedFile("absent")}, "write", "create /etc/x.conf"),
        ({}, seen(content=b"b\n"), "write", "change /etc/x.conf (content)"),
        ({}, seen(mode=0o600), "attributes", "change /etc/x.conf (mode 0600 -> 0644)"),
        ({}, seen(owner="ops"), "attributes", "change /etc/x.conf (owner ops -> root)"),
        ({}, seen(content=b"", mode=0o666), "write", "change /etc/x.conf (content, mode 0666 -> 0644)"),
        (
            {},
            {"/etc/x.conf": ObservedFile("link", target="/dev/null")},
            "write",
            "replace the link /etc/x.conf -> /dev/null by a file",
        ),
        ({"content": None, "state": "absent"}, seen(), "remove", "remove /etc/x.conf"),
        ({"content": None, "state": "absent"}, {"/etc/x.conf": ObservedFile("absent")}, None, None),
        ({"content": None, "state": "absent"}, {"/etc/x.conf": ObservedFile("link", target="y")}, "remove", None),
    ],
    ids=[
        "as-it-should-be",
        "missing",
        "content",
        "mode",
        "owner",
        "content-and-mode",
        "link",
        "unwanted",
        "unwanted-and-absent",
        "unwanted-link",
    ],
)
def test_one_file_is_planned(want, have, action, text):
    changes = plan_files(wanted(**want), have)
    assert [change.action for change in changes] == ([action] if action else [])
    if text:
        assert changes[0].text == text


@pytest.mark.parametrize("kind", ["folder", "other"])
def test_what_is_no_file_is_refused(kind):
    with pytest.raises(ConfigFilesError, match="/etc/x.conf is a"):
        plan_files(wanted(), {"/etc/x.conf": ObservedFile(kind)})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"path": "etc/x.conf"}, "absolute"),
        ({"path": "/etc/../x.conf"}, "absolute"),
        ({"path": "/etc/"}, "absolute"),
        ({"mode": 420}, "quoted octal"),
        ({"mode": "u=rw"}, "quoted octal"),
        ({"mode": "0999"}, "quoted octal"),
        ({"content": None}, "exactly one"),
        ({"content_b64": "YQ=="}, "exactly one"),
        ({"content": None, "content_b64": "no base64!"}, "not valid base64"),
        ({"validate": ["/usr/sbin/visudo", "-c"]}, "%s"),
    ],
)
def test_an_option_that_makes_no_sense_names_the_file(options, message):
    with pytest.raises(ConfigFilesError, match=message) as error:
        wanted(**options)
    assert options.get("path", "/etc/x.conf") in str(error.value)


def test_one_path_twice_is_refused():
    with pytest.raises(ConfigFilesError, match="listed twice"):
        parse_wanted([{"path": "/etc/x.conf", "content": ""}] * 2)


def test_the_diff_of_a_secret_has_no_content():
    changes = plan_files(wanted(content="password\n", show_diff=False), seen(content=b"old-password\n"))
    assert "password" not in json.dumps(changes[0].diff)
    assert changes[0].diff["before"] != changes[0].diff["after"]


def test_the_diff_shows_attributes_in_its_header():
    change = plan_files(wanted(), seen(mode=0o600))[0]
    assert change.diff["before_header"] == "/etc/x.conf (0600 root:root)"
    assert change.diff["after_header"] == "/etc/x.conf (0644 root:root)"


# -- the module itself -------------------------------------------------------------------------------------------------


def run_module(files, check=False, expect_failure=False):
    for item in files:
        item.setdefault("owner", OWNER)
        item.setdefault("group", GROUP)
    arguments = {"ANSIBLE_MODULE_ARGS": {"files": files, "_ansible_check_mode": check}}
    result = subprocess.run(
        [sys.executable, str(ROOT / "plugins/modules/config_files.py"), json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / ".ansible/collections"), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(result.stdout)
    assert bool(answer.get("failed")) == expect_failure, answer
    return answer


def test_files_are_written_and_a_second_run_changes_nothing(tmp_path):
    one, two = tmp_path / "sub/folder/one.conf", tmp_path / "two.bin"
    files = [
        {"path": str(one), "content": "é\n", "mode": "0640"},
        {"path": str(two), "content_b64": base64.b64encode(b"\x00\xff").decode()},
    ]
    first = run_module(files)
    assert first["changed"]
    assert first["changed_paths"] == [str(one), str(two)]
    assert one.read_text(encoding="utf-8") == "é\n"
    assert stat.S_IMODE(one.stat().st_mode) == 0o640
    assert stat.S_IMODE(one.parent.stat().st_mode) == 0o755
    assert two.read_bytes() == b"\x00\xff"
    second = run_module(files)
    assert not second["changed"]
    assert (second["changed_paths"], second["diff"], second["actions"]) == ([], [], [])


def test_check_mode_predicts_and_writes_nothing(tmp_path):
    old, new = tmp_path / "old.conf", tmp_path / "new.conf"
    old.write_text("x")
    files = [{"path": str(old), "state": "absent"}, {"path": str(new), "content": "y\n"}]
    predicted = run_module(files, check=True)
    assert old.exists() and not new.exists()
    done = run_module(files)
    assert not old.exists() and new.exists()
    for key in ("changed", "changed_paths", "removed_paths", "actions", "diff"):
        assert predicted[key] == done[key]


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link.conf"
    target.write_text("precious")
    link.symlink_to(target)
    run_module([{"path": str(link), "content": "mine\n"}])
    assert target.read_text() == "precious"
    assert not link.is_symlink() and link.read_text() == "mine\n"


def test_a_refused_file_leaves_all_as_it_was(tmp_path):
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    second.write_text("good\n")
    files = [
        {"path": str(first), "content": "fine\n", "validate": ["/bin/grep", "-q", "fine", "%s"]},
        {"path": str(second), "content": "bad\n", "validate": ["/bin/grep", "good", "%s"]},
    ]
    answer = run_module(files, expect_failure=True)
    assert str(second) in answer["msg"] and "/bin/grep" in answer["msg"]
    assert not first.exists() and second.read_text() == "good\n"


@pytest.mark.parametrize("check, fails", [(True, False), (False, True)], ids=["check", "real"])
def test_a_validator_that_is_missing_is_named_in_check_mode_and_fails_otherwise(tmp_path, check, fails):
    files = [{"path": str(tmp_path / "x"), "content": "", "validate": ["/nonexistent/checker", "%s"]}]
    answer = run_module(files, check=check, expect_failure=fails)
    told = answer["msg"] if fails else "\n".join(answer["actions"])
    assert "/nonexistent/checker" in told
    assert not (tmp_path / "x").exists()


def test_what_a_killed_run_left_is_taken_over(tmp_path):
    (tmp_path / ".x.conf.gpufleet-new").write_text("half of")
    run_module([{"path": str(tmp_path / "x.conf"), "content": "whole\n"}])
    assert [path.name for path in tmp_path.iterdir()] == ["x.conf"]
    assert (tmp_path / "x.conf").read_text() == "whole\n"


def test_only_the_mode_is_mended(tmp_path):
    path = tmp_path / "x.conf"
    path.write_text("same\n")
    path.chmod(0o666)
    inode = path.stat().st_ino
    answer = run_module([{"path": str(path), "content": "same\n"}])
    assert answer["actions"] == ["change %s (mode 0666 -> 0644)" % path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 and path.stat().st_ino == inode


def test_an_owner_that_does_not_exist_fails_before_anything_is_written(tmp_path):
    files = [
        {"path": str(tmp_path / "a"), "content": ""},
        {"path": str(tmp_path / "b"), "content": "", "owner": "no-such-user"},
    ]
    answer = run_module(files, expect_failure=True)
    assert "no-such-user" in answer["msg"]
    assert list(tmp_path.iterdir()) == []


def test_the_answer_does_not_repeat_the_content(tmp_path):
    files = [{"path": str(tmp_path / "x"), "content": "s3cret\n", "show_diff": False}]
    assert "s3cret" not in json.dumps(run_module(files))
