#!/usr/bin/python
# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module config_files: whole configuration files, many in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: config_files
short_description: Keep whole configuration files as declared, many in one call
version_added: 0.1.0
author: The gpufleet authors (@gpufleet)
description:
  - Writes and removes whole files, usually drop-ins that a role owns, in one module execution. Twenty files cost as
    much time as one.
  - All validators run before the first file is written, so a refused file leaves everything as it was.
  - A file is written beside its place with its final owner and mode and then renamed, so a reader sees the old or
    the new one, also when the run is killed.
  - A symbolic link in a file's place is replaced by the file and never written through. Missing parent folders are
    created with mode 0755. A folder in a file's place is refused.
options:
  files:
    description: The files, each path once.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path of the file.
        type: str
        required: true
      content:
        description: Text of the file. Exactly one of O(files[].content) and O(files[].content_b64) is needed.
        type: str
      content_b64:
        description: Bytes of the file in base64, for what is not text.
        type: str
      mode:
        description: Permission bits as a quoted octal string. A number is refused, since YAML reads 0644 as 420.
        type: raw
        default: "0644"
      owner:
        description: Name or number of the owner.
        type: str
        default: root
      group:
        description: Name or number of the group.
        type: str
        default: root
      state:
        description: Whether the file should be there.
        type: str
        choices: [present, absent]
        default: present
      validate:
        description:
          - Command as a list of words that accepts the file with exit status 0. C(%s) stands for the file's name.
          - In check mode a command that is not installed yet is skipped, and named in RV(actions).
        type: list
        elements: str
        default: []
      show_diff:
        description: Whether the diff may show the content. Set to V(false) for files with secrets.
        type: bool
        default: true
attributes:
  check_mode:
    description: Can run without changing anything and predicts what would change.
    support: full
  diff_mode:
    description: Returns what changed or would change.
    support: full
  platform:
    description: Systems that the module is made for.
    support: full
    platforms: debian
"""

EXAMPLES = r"""
- name: Keep two drop-ins and remove a third
  gpufleet.server.config_files:
    files:
      - path: /etc/sysctl.d/90-site.conf
        content: |
          vm.swappiness = 10
      - path: /etc/sudoers.d/ops
        content: |
          %ops ALL=(ALL) ALL
        mode: "0440"
        validate: [/usr/sbin/visudo, -cf, "%s"]
      - path: /etc/apt/apt.conf.d/80-old
        state: absent
"""

RETURN = r"""
changed_paths:
  description: Paths that were or would be written, or whose owner or mode changed.
  returned: success
  type: list
  elements: str
  sample: [/etc/sysctl.d/90-site.conf]
removed_paths:
  description: Paths that were or would be removed.
  returned: success
  type: list
  elements: str
  sample: [/etc/apt/apt.conf.d/80-old]
actions:
  description: One line for each thing that was or would be done.
  returned: success
  type: list
  elements: str
  sample: ["create /etc/sysctl.d/90-site.conf"]
diff:
  description: One entry for each changed file.
  returned: success
  type: list
  elements: dict
  sample: [{"before": "", "after": "vm.swappiness = 10\n"}]
"""

import grp
import os
import pwd
import shutil
import stat

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.server.plugins.module_utils._config_files import (
    Change,
    ConfigFilesError,
    ObservedFile,
    WantedFile,
    parse_wanted,
    plan_files,
    validate_argv,
)
from ansible_collections.gpufleet.server.plugins.module_utils._host import Host

FILE_OPTIONS = {
    "path": {"type": "str", "required": True},
    "content": {"type": "str"},
    "content_b64": {"type": "str"},
    "mode": {"type": "raw", "default": "0644"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "validate": {"type": "list", "elements": "str", "default": []},
    "show_diff": {"type": "bool", "default": True},
}


class QuietModule(AnsibleModule):
    """The content of files has no place in the target's system log, where every start is written with its options."""

    def log(self, msg, log_args=None):
        super().log(msg.split(" with ")[0])


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def ids_of(wanted: WantedFile):
    """uid and gid of the names; a name that this machine does not have is an error."""
    try:
        uid = int(wanted.owner) if wanted.owner.isdigit() else pwd.getpwnam(wanted.owner).pw_uid
        gid = int(wanted.group) if wanted.group.isdigit() else grp.getgrnam(wanted.group).gr_gid
    except KeyError as error:
        raise ConfigFilesError("%s: %s" % (wanted.path, error.args[0])) from None
    return uid, gid


def observe(path: str) -> ObservedFile:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ObservedFile("absent")
    if stat.S_ISLNK(status.st_mode):
        return ObservedFile("link", target=os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return ObservedFile("folder")
    if not stat.S_ISREG(status.st_mode):
        return ObservedFile("other")
    with open(path, "rb") as handle:
        content = handle.read()
    return ObservedFile(
        kind="file",
        content=content,
        mode=stat.S_IMODE(status.st_mode),
        owner=user_name(status.st_uid),
        group=group_name(status.st_gid),
    )


def with_names(wanted: WantedFile) -> WantedFile:
    """Owner and group as names where given as numbers, so that they compare with what is observed."""
    owner = user_name(int(wanted.owner)) if wanted.owner.isdigit() else wanted.owner
    group = group_name(int(wanted.group)) if wanted.group.isdigit() else wanted.group
    return WantedFile(wanted.path, wanted.content, wanted.mode, owner, group, wanted.validate, wanted.show_diff)


def check_content(module: AnsibleModule, change: Change):
    """Run the validator on a copy; returns a line for `actions` where it could not run in check mode."""
    wanted = change.wanted
    if change.action != "write" or not wanted.validate:
        return None
    if module.check_mode and not os.path.exists(wanted.validate[0]) and not shutil.which(wanted.validate[0]):
        return "%s: not validated, %s is not installed yet" % (wanted.path, wanted.validate[0])
    # The folder is the copy's own, so that a validator that looks at neighbours or at the name sees no others.
    folder = os.path.join(module.tmpdir, "validate-%d" % abs(hash(wanted.path)))
    os.mkdir(folder, 0o700)
    copy = os.path.join(folder, os.path.basename(wanted.path))
    write_new(copy, wanted.content, 0o600)
    result = Host().run(validate_argv(wanted, copy))
    shutil.rmtree(folder)
    if not result.ok:
        detail = (result.stderr.strip() or result.stdout.strip())[:2000]
        raise ConfigFilesError("%s is refused by its validator: %s\n%s" % (wanted.path, result.describe(), detail))
    return None


def write_new(path: str, content: bytes, mode: int, ids=None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        if ids:
            os.fchown(stream.fileno(), *ids)
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())


def apply(change: Change) -> None:
    """One change. The name of the new file is fixed, so that what a killed run left is taken over by the next."""
    wanted = change.wanted
    if change.action == "remove":
        os.unlink(wanted.path)
        return
    if change.action == "attributes":
        os.chown(wanted.path, *ids_of(wanted))
        os.chmod(wanted.path, wanted.mode)
        return
    folder, name = os.path.split(wanted.path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    new = os.path.join(folder, ".%s.gpufleet-new" % name)
    if os.path.lexists(new):
        os.unlink(new)
    write_new(new, wanted.content, wanted.mode, ids_of(wanted))
    os.rename(new, wanted.path)


def main() -> None:
    module = QuietModule(
        argument_spec={"files": {"type": "list", "elements": "dict", "required": True, "options": FILE_OPTIONS}},
        supports_check_mode=True,
    )
    os.umask(0o022)  # a login's stricter umask would make new parent folders unreadable to the services concerned
    try:
        wanted = [with_names(item) for item in parse_wanted(module.params["files"])]
        for item in wanted:
            if item.present:
                ids_of(item)
        changes = plan_files(wanted, {item.path: observe(item.path) for item in wanted})
        notes = [note for note in [check_content(module, change) for change in changes] if note]
        if not module.check_mode:
            for change in changes:
                apply(change)
    except (ConfigFilesError, OSError) as error:
        module.fail_json(msg=str(error), invocation={"module_args": {}})
    module.exit_json(
        changed=bool(changes),
        changed_paths=[change.wanted.path for change in changes if change.action != "remove"],
        removed_paths=[change.wanted.path for change in changes if change.action == "remove"],
        actions=[change.text for change in changes] + notes,
        diff=[change.diff for change in changes],
        invocation={"module_args": {"files": [item.path for item in wanted]}},
    )


if __name__ == "__main__":
    main()
