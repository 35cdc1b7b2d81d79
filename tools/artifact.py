"""The built collection: `artifact.py build|import|install`.

build:   build/gpufleet-server-<version>.tar.gz
import:  build, then what Ansible Galaxy checks when an artifact is uploaded (galaxy-importer)
install: build, install it into an empty folder, check gpufleet.server.site from there and run gpufleet.server.validate
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from common import REPOSITORY, copy_project, run

BUILD = REPOSITORY / "build"

IMPORTER_SETTINGS = """\
[galaxy-importer]
check_required_tags = True
check_runtime_yaml = True
log_level_main = INFO
run_ansible_doc = True
run_ansible_lint = True
run_ansible_test = False
"""
"""ansible-test runs in a step of its own; everything else that the importer offers is on."""


def build(work: Path) -> Path:
    """Build from a copy of the project's files, so that nothing that lies about in the clone can slip in."""
    source = work / "source"
    copy_project(source)
    (source / "build").mkdir(exist_ok=True)
    if run(["ansible-galaxy", "collection", "build", "--force", "--output-path", BUILD, source]):
        raise SystemExit("ansible-galaxy could not build the collection")
    version = re.search(r"^version: (\S+)", (REPOSITORY / "galaxy.yml").read_text(), re.MULTILINE).group(1)
    return BUILD / ("gpufleet-server-%s.tar.gz" % version)


def import_check(artifact: Path, work: Path) -> int:
    settings = work / "importer.cfg"
    settings.write_text(IMPORTER_SETTINGS)
    log = work / "importer.log"
    with log.open("w") as stream:
        rc = run([sys.executable, "-m", "galaxy_importer.main", artifact], cwd=work, stdout=stream, stderr=stream,
                 env={"GALAXY_IMPORTER_CONFIG": str(settings)})
    text = log.read_text()
    print(text)
    # The importer ends with 0 whatever it has found; a collection that Galaxy would warn about is not clean.
    complaints = [line for line in text.splitlines() if re.match(r"(WARNING|ERROR|CRITICAL)", line)]
    if complaints:
        print("galaxy-importer complains:\n" + "\n".join(complaints))
    return rc or bool(complaints)


def install_check(artifact: Path, work: Path) -> int:
    collections = work / "collections"
    rc = run(["ansible-galaxy", "collection", "install", "--offline", "-p", collections, artifact], cwd=work)
    # Nothing of the clone but an inventory: no ansible.cfg, no link.
    settings = work / "ansible.cfg"
    settings.write_text("")
    alone = {"ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_CONFIG": str(settings)}
    for playbook in ("site", "health", "validate"):
        rc |= run(["ansible-playbook", "gpufleet.server." + playbook, "--syntax-check", "-i",
                   REPOSITORY / "inventories" / "sandbox"], cwd=work, env=alone)
    # This one runs on the controller alone: do plugins, specifications and playbooks find each other once installed?
    rc |= run(["ansible-playbook", "gpufleet.server.validate", "-i", REPOSITORY / "inventories" / "lab"], cwd=work,
              env=alone)
    return rc


def main(what: str) -> int:
    with tempfile.TemporaryDirectory(prefix="gpufleet-artifact-") as name:
        work = Path(name)
        artifact = build(work)
        if what == "import":
            return import_check(artifact, work)
        if what == "install":
            return install_check(artifact, work)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
