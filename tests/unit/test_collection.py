"""What the collection promises as a whole: its artifact, its action group, its clone, its documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

REPOSITORY = Path(__file__).resolve().parents[2]

ARTIFACT = [
    "CHANGELOG.md", "FILES.json", "LICENSE", "MANIFEST.json", "README*.md", "changelogs/changelog.yaml", "docs/*.md",
    "inventories/lab/*.yml", "inventories/lab/*/*.yml", "inventories/lab/*/*/*.yml", "meta/runtime.yml",
    "playbooks/*.yml", "plugins/*/*.py", "roles/*/README.md", "roles/*/defaults/main.yml", "roles/*/files/*",
    "roles/*/handlers/main.yml", "roles/*/meta/*.yml", "roles/*/tasks/*.yml", "roles/*/templates/*",
    "roles/*/vars/*.yml",
]
"""What a user needs. A file that matches nothing here must be left out by galaxy.yml's build_ignore."""

NEEDED = [
    "README.md", "LICENSE", "playbooks/site.yml", "playbooks/health.yml", "playbooks/validate.yml",
    "plugins/module_utils/_host.py", "meta/runtime.yml",
]


def load(name):
    return yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def artifact_files(tmp_path_factory):
    """Names in an artifact that is built right here, in a clone full of other things."""
    folder = tmp_path_factory.mktemp("artifact")
    command = [str(Path(sys.executable).parent / "ansible-galaxy"), "collection", "build", "--output-path", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as contents:
        return sorted(member.name for member in contents.getmembers() if not member.isdir())


def unexpected(names):
    return [name for name in names if not any(
        fnmatch(name, pattern) and name.count("/") == pattern.count("/") for pattern in ARTIFACT)]


@pytest.mark.controller
def test_the_artifact_holds_only_what_a_user_needs(artifact_files):
    assert unexpected(artifact_files) == []


@pytest.mark.controller
def test_the_artifact_holds_what_a_user_needs(artifact_files):
    assert [name for name in NEEDED if name not in artifact_files] == []
    for folder in ("plugins/modules", "plugins/module_utils"):
        present = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / folder).glob("*.py")}
        assert present - set(artifact_files) == set()


@pytest.mark.parametrize("name", ["tests/unit/x.py", "tools/x", "roles/base/molecule/x.yml", "playbooks/x/y.yml",
                                  ".ansible/x", "plugins/modules/__pycache__/x.pyc", "Makefile"])
def test_a_file_that_no_user_needs_is_told(name):
    assert unexpected([name]) == [name]


def test_the_action_group_has_every_module():
    modules = sorted(path.stem for path in (REPOSITORY / "plugins" / "modules").glob("*.py"))
    assert load("meta/runtime.yml")["action_groups"]["all"] == modules


def test_the_version_is_the_one_of_the_changelog():
    releases = load("changelogs/changelog.yaml")["releases"]
    newest = max(releases, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
    assert load("galaxy.yml")["version"] == newest
    assert "v" + newest in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").replace("\\", "")


def test_a_clone_is_its_own_collection_path():
    link = REPOSITORY / ".ansible/collections/ansible_collections/gpufleet/server"
    assert os.readlink(str(link)) == "../../../.."
    assert link.resolve() == REPOSITORY


def test_the_playbook_at_the_root_is_the_collections():
    assert [play.get("ansible.builtin.import_playbook") for play in load("site.yml")] == ["playbooks/site.yml"]


@pytest.mark.parametrize("name", ["requirements-dev.txt", "tools/requirements/units-3.8.txt",
                                  "tools/requirements/ansible-core-next.txt"])
def test_requirements_are_exact_and_name_no_index(name):
    lines = [line for line in (REPOSITORY / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
    # They break every pytest run beside testinfra.
    assert {"pytest-ansible", "tox-ansible", "ansible-dev-tools"} & {line.split("==")[0] for line in lines} == set()


@pytest.mark.controller
def test_role_readmes_are_what_their_specifications_say():
    done = subprocess.run([sys.executable, str(REPOSITORY / "tools" / "generate_docs.py"), "--check"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("roles/*/README.md")])


@pytest.mark.parametrize("document", [pytest.param(path, id=str(path.relative_to(REPOSITORY))) for path in DOCUMENTS])
def test_links_between_documents_lead_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (document.parent / target).exists()] == []


def sandbox_inventories():
    return sorted([*REPOSITORY.glob("molecule/*/inventory"), *REPOSITORY.glob("inventories/sandbox"),
                   *REPOSITORY.glob("tests/*/inventory*.yml")])


def sandbox_values(inventory, name):
    """The values that an inventory, one file or a folder of them, gives to a variable of the sandbox."""
    files = [inventory] if inventory.is_file() else sorted(inventory.rglob("*.yml"))
    line = re.compile(r"^\s*%s: *([^#\s]+)" % name, re.MULTILINE)
    return {value for path in files for value in line.findall(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", ["sandbox_lab", "sandbox_subnet"])
def test_labs_do_not_share(name):
    seen = {}
    for inventory in sandbox_inventories():
        for value in sandbox_values(inventory, name):
            assert seen.setdefault(value, inventory) == inventory, value
    assert len(seen) >= 3


@pytest.mark.parametrize(
    "scenario", [pytest.param(path.parent, id=path.parent.name) for path in REPOSITORY.glob("molecule/*/molecule.yml")]
)
def test_a_scenario_is_whole(scenario):
    assert (scenario / "converge.yml").is_file()
    assert (scenario / "inventory").is_dir()
    assert list(scenario.glob("tests/test_*.py"))


def test_every_role_has_a_scenario():
    roles = {path.name for path in (REPOSITORY / "roles").iterdir() if path.is_dir()}
    scenarios = {path.parent.name for path in REPOSITORY.glob("molecule/*/molecule.yml")}
    assert roles | {"default", "site"} <= scenarios
