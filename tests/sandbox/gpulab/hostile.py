# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions that make a run difficult: of a lab's repository server, or of the system of one of its hosts.

A host's condition is a script of ../conditions. The repository server reads its own from a folder that it mounts, see
gpurepo/server.py; where releases have to be signed anew, they lie in `overlay` there.
"""

from __future__ import annotations

import base64
import email.utils
import json
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .cache import SANDBOX, cache_dir
from .errors import LabError, UsageError
from .podman import podman

SCRIPTS = SANDBOX / "conditions"
CONTROL = Path("/run/gpulab/hostile")
"""One folder a lab, which its repository server sees. Containers end with the machine's uptime, and so may this."""

MARKS = "/var/lib/gpulab/hostile"
"""In a host: a file for each condition that is on."""

REPO = "repo"


@dataclass(frozen=True)
class Condition:
    """`default` is the value where none is given; None means that one has to be."""

    name: str
    of_repo: bool
    value: str
    default: Optional[str]
    text: str


CONDITIONS = (
    Condition("http-503", True, "N", "2", "the next N requests are answered with 503"),
    Condition("http-404", True, "N", "2", "the next N requests are answered with 404"),
    Condition("truncated", True, "N", "1", "the next N files end halfway"),
    Condition("slow", True, "BYTES", "20000", "BYTES a second, and no more"),
    Condition("rotated-key", True, "", "", "all repositories are signed with a key that no host has"),
    Condition("dated-ahead", True, "HOURS", "6", "releases are dated so far ahead: to apt, the host's clock is behind"),
    Condition("apt-lock", False, "SECONDS", "30", "another apt holds its locks for so long"),
    Condition("dpkg-interrupted", False, "", "", "dpkg was killed and a package is half-configured"),
    Condition("boot-full", False, "KIB", "0", "/boot has so much space left"),
    Condition("signed-by-clash", False, "WHICH", "archive", "two keys for one repository: archive, nvidia, mixed"),
    Condition("expired-key", False, "KEYRING", None, "this keyring file is from before its key was prolonged"),
    Condition("needrestart", False, "", "", "needrestart is installed, and has a service to ask about"),
)


def listing() -> str:
    """One line a condition: whose, name with value, what it is."""
    rows = [
        (REPO if item.of_repo else "HOST", item.name + (f"={item.value}" if item.value else ""), item.text)
        for item in CONDITIONS
    ]
    width = max(len(row[1]) for row in rows)
    return "".join(f"{whose}  {name.ljust(width)}  {text}\n" for whose, name, text in rows)


def parse(text: str, of_repo: bool) -> Tuple[Condition, str]:
    """`NAME[=VALUE]` as given on the command line; raises UsageError in words."""
    name, equals, value = text.partition("=")
    found = [item for item in CONDITIONS if item.name == name and item.of_repo == of_repo]
    if not found:
        known = ", ".join(item.name for item in CONDITIONS if item.of_repo == of_repo)
        raise UsageError(f"no condition {name} of {'the repository' if of_repo else 'a host'}; there are: {known}")
    condition = found[0]
    if equals and not condition.value:
        raise UsageError(f"{name} takes no value")
    value = value if equals else (condition.default or "")
    if not value and condition.value:
        raise UsageError(f"{name} needs a value: {name}={condition.value}")
    if condition.value in ("N", "BYTES", "HOURS", "SECONDS", "KIB") and not value.isdigit():
        raise UsageError(f"{name}={value}: a whole number of {condition.value} is wanted")
    return condition, value


# --- the repository ------------------------------------------------------------------------------------------------


def control_folder(lab: str) -> Path:
    """The folder that the lab's repository server reads; made when missing."""
    folder = CONTROL / lab
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def set_of_repo(lab: str, root: Path, condition: Condition, value: str) -> None:
    """Put a condition on the repositories in `root`, beside those that are on."""
    folder = control_folder(lab)
    if condition.name in ("rotated-key", "dated-ahead"):
        hours = int(value) if condition.name == "dated-ahead" else 0
        _sign_anew(root, folder / "overlay", hours, rotated=condition.name == "rotated-key")
        return
    values: Dict[str, int] = {}
    file = folder / "conditions.json"
    if file.exists():
        values = json.loads(file.read_text(encoding="utf-8"))
    if condition.name.startswith("http-"):
        values.update(status=int(condition.name.removeprefix("http-")), count=int(value))
    else:
        values[{"truncated": "truncated", "slow": "bytes_per_s"}[condition.name]] = int(value)
    new = folder / "conditions.new"
    new.write_text(json.dumps(values), encoding="utf-8")
    new.rename(file)


def clear_repo(lab: str) -> None:
    """End all conditions of a lab's repositories."""
    folder = CONTROL / lab
    if folder.exists():
        (folder / "conditions.json").unlink(missing_ok=True)
        shutil.rmtree(folder / "overlay", ignore_errors=True)


def forget(lab: str) -> None:
    """The lab is gone, and so is its folder."""
    shutil.rmtree(CONTROL / lab, ignore_errors=True)


def _sign_anew(root: Path, overlay: Path, hours_ahead: int, rotated: bool) -> None:
    """Every release under `root`, dated `hours_ahead` of now, signed by its own key or, `rotated`, by a new one."""
    import gpurepo.keys as keys
    from gpurepo.schema import Key

    folder = cache_dir() / "keys"
    date = email.utils.formatdate(time.time() + hours_ahead * 3600, usegmt=True).replace("GMT", "UTC")
    by_fingerprint = {file.read_text(encoding="ascii").strip(): file.stem for file in folder.glob("*.fpr")}
    signing = keys.ensure_key("rotated", Key("Sandbox key after a rotation", "rotated@repo.lab"), folder)
    shutil.rmtree(overlay, ignore_errors=True)
    by_key: Dict[str, List[Path]] = {}
    releases = sorted(root.rglob("Release"))
    signers = {} if rotated else _signers(keys, releases)
    for release in releases:
        copy = overlay / release.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = release.read_text(encoding="utf-8")
        copy.write_text(re.sub(r"(?m)^Date: .*$", f"Date: {date}", text) if hours_ahead else text, encoding="utf-8")
        name = signing.name if rotated else by_fingerprint[signers[release]]
        by_key.setdefault(name, []).append(copy)
    for name, copies in by_key.items():
        keys.sign_releases(keys.SigningKey(name, folder), copies)


def _signers(keys: Any, releases: List[Path]) -> Dict[Path, str]:
    """Fingerprints of the keys that signed the releases. GnuPG names them even where it does not know the keys."""
    found = {}
    with keys.gpg_home() as home:
        for release in releases:
            packets = keys.gpg(home, "--list-packets", str(release.with_name("Release.gpg"))).decode()
            match = re.search(r"issuer fpr v4 ([0-9A-F]{40})", packets)
            if not match:
                raise LabError(f"{release}: its signature names no key")
            found[release] = match.group(1)
    return found


# --- hosts ---------------------------------------------------------------------------------------------------------


def set_of_host(container: str, condition: Condition, value: str) -> None:
    """Put a condition on a host; one that is on already is ended first."""
    if condition.name in of_host(container):
        _end(container, condition.name)
    options = []
    if condition.name == "expired-key":
        options = ["--env", f"KEYRING={_expired(container, value)}"]
    _script(container, condition.name, "on", value, options=options)
    _run(container, f"mkdir -p {MARKS} && : > {MARKS}/{condition.name}")


def of_host(container: str) -> List[str]:
    """The names of the conditions that are on."""
    return _run(container, f"ls {MARKS} 2> /dev/null || true").split()


def clear_host(container: str) -> None:
    """End all conditions of a host."""
    for name in of_host(container):
        _end(container, name)


def _end(container: str, name: str) -> None:
    _script(container, name, "off")
    _run(container, f"rm {MARKS}/{name}")


def _script(container: str, name: str, *arguments: str, options: Optional[List[str]] = None) -> None:
    text = (SCRIPTS / f"{name}.sh").read_text(encoding="utf-8")
    done = podman("exec", *(options or []), container, "sh", "-c", text, f"{name}.sh", *arguments, check=False)
    if done.rc != 0:
        raise LabError(f"{name}: {(done.stderr or done.stdout).strip() or f'exit status {done.rc}'}")


def _run(container: str, command: str) -> str:
    return podman("exec", container, "sh", "-c", command).stdout


def _expired(container: str, keyring: str) -> str:
    """The public key of a keyring file of the host as it was before its owner prolonged it; base64."""
    import gpurepo.keys as keys

    held = base64.b64decode(_run(container, f"base64 {keyring}"))
    folder = cache_dir() / "keys"
    for file in sorted(folder.glob("*.fpr")):
        key = keys.SigningKey(file.stem, folder)
        if held == key.binary.read_bytes() or held == key.armoured.read_bytes():
            return base64.b64encode(_with_expiry(keys, key)).decode()
    raise UsageError(f"{keyring}: no keyring of one sandbox key")


def _with_expiry(keys: Any, key: Any) -> bytes:
    """The same key, valid for one second after it was made."""
    with keys.gpg_home() as home:
        keys.gpg(home, "--import", str(key.secret))
        listed = keys.gpg(home, "--with-colons", "--list-keys").decode()
        made = next(line.split(":")[5] for line in listed.splitlines() if line.startswith("pub:"))
        # A second later: GnuPG refuses two signatures of the same moment.
        when = ("--faked-system-time", f"{int(made) + 1}!")
        keys.gpg(home, *when, "--quick-set-expire", key.fingerprint, "seconds=1")
        return bytes(keys.gpg(home, "--export", key.fingerprint))
