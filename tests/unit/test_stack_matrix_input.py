# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stack may say and how a bad one is refused; the filter; the tables; and that each proposal helps."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, is_dataclass

import pytest

from ansible_collections.gpufleet.server.plugins.module_utils import _stack_data, _stack_data_frameworks
from ansible_collections.gpufleet.server.plugins.module_utils._findings import finding
from ansible_collections.gpufleet.server.plugins.module_utils._stack_clash import listed, nearest_first
from ansible_collections.gpufleet.server.plugins.module_utils._stack_input import (
    KEYS,
    Gpu,
    Library,
    Stack,
    StackError,
    parse_stack,
    version_key,
)
from ansible_collections.gpufleet.server.plugins.module_utils._stack_matrix import conflicts


@pytest.mark.parametrize(
    "given, parsed",
    [
        ({}, Stack()),
        ({"driver": None, "toolkits": [], "gpus": None, "gcc": ""}, Stack()),
        ({"os": "Ubuntu", "os_version": "24.04"}, Stack(os="ubuntu", os_version="24.04")),
        ({"os": "Debian", "os_version": 12}, Stack(os="debian", os_version="12")),
        ({"os": "Debian", "os_version": "13.1"}, Stack(os="debian", os_version="13")),
        ({"os_version": "13.1"}, Stack(os_version="13.1")),
        ({"architecture": "x86_64"}, Stack(architecture="amd64")),
        ({"architecture": "aarch64"}, Stack(architecture="arm64")),
        ({"driver": 580}, Stack(driver="580")),
        ({"driver": " 580.178.04 "}, Stack(driver="580.178.04")),
        ({"toolkits": "12.8"}, Stack(toolkits=("12.8",))),
        ({"toolkits": ["12.8.1", "12.8", "13.0"]}, Stack(toolkits=("12.8", "13.0"))),
        ({"default_toolkit": "12.8.1"}, Stack(default_toolkit="12.8")),
        ({"cudnn": "9.10.2"}, Stack(cudnn=Library("9.10.2", None))),
        ({"cudnn": "8.9.7.29-1+cuda12.2"}, Stack(cudnn=Library("8.9.7.29", 12))),
        ({"nccl": "2.30.4-1+cuda13.2"}, Stack(nccl=Library("2.30.4", 13))),
        ({"gcc": 13}, Stack(gcc=13)),
        ({"gcc": "13.2.0"}, Stack(gcc=13)),
        ({"python": "3.10.12"}, Stack(python="3.10")),
        ({"torch": "2.9.1"}, Stack(torch="2.9")),
        ({"torch": "2.9.1+cu128"}, Stack(torch="2.9", torch_cuda="cu128")),
        ({"torch": "2.9.1+cu128", "torch_cuda": "12.8"}, Stack(torch="2.9", torch_cuda="cu128")),
        ({"torch_cuda": "12.6"}, Stack(torch_cuda="cu126")),
        ({"tensorflow": "2.20.0"}, Stack(tensorflow="2.20")),
        ({"gpus": "Volta"}, Stack(gpus=(Gpu("volta", "volta", None),))),
        ({"gpus": ["Tesla  V100-SXM2-16GB"] * 8}, Stack(gpus=(Gpu("Tesla V100-SXM2-16GB", "volta", True),))),
        ({"gpus": ["NVIDIA GeForce RTX 4090"]}, Stack(gpus=(Gpu("NVIDIA GeForce RTX 4090", "ada", False),))),
        ({"gpus": ["NVIDIA X9000"]}, Stack(gpus=(Gpu("NVIDIA X9000", None, None),))),
    ],
)
def test_stack_is_read(given, parsed):
    assert parse_stack(given) == parsed


@pytest.mark.parametrize(
    "stack, text",
    [
        ({"drivers": "580"}, "drivers: found '580'; allowed is no key of this name, only os, os_version, architecture, "
                             "gpus, driver, toolkits, default_toolkit, cudnn, nccl, gcc, python, torch, torch_cuda, "
                             "tensorflow"),
        ("580", "stack: found '580'; allowed is a mapping of any of os, "),
        (["580"], "stack: found ['580']; allowed is a mapping of any of os, "),
        ({"driver": "R580"},
         "driver: found 'R580'; allowed is a branch such as '580' or a version such as '580.178.04'"),
        ({"driver": 580.65},
         "driver: found 580.65; allowed is a branch such as '580' or a version such as '580.178.04' in quotes"),
        ({"driver": "58"}, "driver: found '58'; "),
        ({"driver": "latest"}, "driver: found 'latest'; "),
        ({"driver": True}, "driver: found True; "),
        ({"driver": ["580"]}, "driver: found ['580']; "),
        ({"toolkits": [12.1]}, "toolkits: found 12.1; allowed is a release such as '12.8' in quotes"),
        ({"toolkits": ["12"]}, "toolkits: found '12'; allowed is a release such as '12.8'"),
        ({"toolkits": ["12-8"]}, "toolkits: found '12-8'; "),
        ({"toolkits": [None]}, "toolkits: found None; "),
        ({"toolkits": {"a": 1}}, "toolkits: found {'a': 1}; "),
        ({"default_toolkit": 13}, "default_toolkit: found 13; allowed is a release such as '12.8' in quotes"),
        ({"default_toolkit": "newest"}, "default_toolkit: found 'newest'; "),
        ({"os": 12}, "os: found 12; allowed is a name such as 'ubuntu' or 'debian'"),
        ({"os_version": 24.04}, "os_version: found 24.04; allowed is a release such as '24.04' or '12' in quotes"),
        ({"os_version": "noble"}, "os_version: found 'noble'; "),
        ({"architecture": "riscv64"}, "architecture: found 'riscv64'; allowed is any of amd64, x86_64, arm64, aarch64, "
                                      "sbsa"),
        ({"gpus": [7.0]}, "gpus: found [7.0]; allowed is a list of architectures (kepler, "),
        ({"gpus": [""]}, "gpus: found ['']; "),
        ({"gpus": {"V100": 8}}, "gpus: found {'V100': 8}; "),
        ({"cudnn": "9"}, "cudnn: found '9'; allowed is a version such as '9.10.2' or '2.28.3-1+cuda12.9'"),
        ({"nccl": "2.28.3+cu129"}, "nccl: found '2.28.3+cu129'; "),
        ({"gcc": "gcc-13"}, "gcc: found 'gcc-13'; allowed is a version such as '13' or '13.2'"),
        ({"gcc": 13.2}, "gcc: found 13.2; "),
        ({"python": 3.1}, "python: found 3.1; allowed is a version such as '3.12' in quotes"),
        ({"python": "3"}, "python: found '3'; "),
        ({"torch": "nightly"}, "torch: found 'nightly'; "),
        ({"torch": "2.9.1+rocm6"}, "torch: found '2.9.1+rocm6'; "),
        ({"torch_cuda": "cuda12"}, "torch_cuda: found 'cuda12'; allowed is a build such as 'cu128' or a CUDA version "
                                   "such as '12.8'"),
        ({"torch": "2.9.1+cu128", "torch_cuda": "cu130"}, "torch_cuda: found 'cu130'; allowed is cu128, as torch "
                                                          "2.9+cu128 says"),
        ({"tensorflow": "2"}, "tensorflow: found '2'; "),
    ],
)
def test_bad_stack_is_refused_with_key_value_and_allowed(stack, text):
    with pytest.raises(StackError) as raised:
        conflicts(stack)
    assert str(raised.value).startswith(text)


def test_every_key_refuses_a_mapping_where_it_wants_text():
    for key in KEYS:
        with pytest.raises(StackError, match="^%s: found" % key):
            parse_stack({key: {"a": 1}})


@pytest.mark.controller
def test_filter_is_a_face_of_the_function():
    from ansible.errors import AnsibleFilterError

    from ansible_collections.gpufleet.server.plugins.filter.stack_conflicts import FilterModule

    face = FilterModule().filters()["stack_conflicts"]
    stack = {"driver": "535", "toolkits": ["13.0"]}
    assert face(stack) == conflicts(stack) != []
    with pytest.raises(AnsibleFilterError, match="driver: found 'R580'; allowed is a branch such as '580'"):
        face({"driver": "R580"})


@pytest.mark.controller
def test_filter_answers_in_a_playbook(repository, tmp_path):
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.assert:\n        that: >-\n          "
        "({'driver': '535', 'toolkits': ['13.0']} | gpufleet.server.stack_conflicts)[0].nearest[0].driver == '580'\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(play)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_finding_has_the_form_of_all_findings_and_what_is_nearest():
    (item,) = conflicts({"driver": "535", "toolkits": ["13.0"]})
    assert set(item) == set(finding("x", "info", "x")) | {"nearest"}
    assert all(item[name] for name in ("id", "message", "observed", "expected", "remedy", "source", "nearest"))


def test_worst_comes_first():
    severities = [item["severity"] for item in conflicts(
        {"gpus": ["X9000", "V100"], "driver": "580", "toolkits": ["13.5"], "torch": "3.0"})]
    assert severities == ["critical", "warning", "warning", "info"]


def entries():
    for module in (_stack_data, _stack_data_frameworks):
        for name, table in vars(module).items():
            if name.isupper() and isinstance(table, (dict, tuple)):
                values = table.values() if isinstance(table, dict) else table
                for entry in values:
                    if is_dataclass(entry):
                        yield pytest.param(entry, id="%s %s" % (name, list(asdict(entry).values())[:3]))


ENTRIES = list(entries())


def test_tables_are_found():
    assert len(ENTRIES) >= 90


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_has_a_source_that_is_explained(entry):
    explained = set(re.findall(r"^\* ``([a-z-]+)``", (_stack_data.__doc__ + _stack_data_frameworks.__doc__), re.M))
    assert re.split(r"[;:, ]", entry.source)[0] in explained | {"architectures"}


@pytest.mark.parametrize("module", [_stack_data, _stack_data_frameworks])
def test_tables_say_when_they_were_reviewed(module):
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", module.REVIEWED)


def test_tables_refer_to_each_other():
    for one in _stack_data.REPOSITORIES:
        assert set(one.toolkits + one.unconfirmed) <= set(_stack_data.TOOLKITS)
        assert not set(one.toolkits) & set(one.unconfirmed)
    for table in (_stack_data.TOOLKITS, _stack_data_frameworks.TORCH, _stack_data_frameworks.TENSORFLOW):
        assert list(table) == sorted(table, key=version_key), "tables ascend: the nearest is found by place"
    names = {build.name for build in _stack_data_frameworks.TORCH_BUILDS}
    for release in _stack_data_frameworks.TORCH.values():
        assert {release.default, *release.builds, *release.unconfirmed} <= names
    for build in _stack_data_frameworks.TORCH_BUILDS:
        assert "cu" + build.cuda.replace(".", "") == build.name


@pytest.mark.parametrize(
    "given, expected",
    [("12.4", ["12.5", "12.3", "12.6", "12.8"]), ("12.8", ["12.6", "12.5", "12.4", "12.3"]),
     ("12.7", ["12.8", "12.6", "12.5", "12.4", "12.3"]), ("11.0", ["12.3", "12.4", "12.5", "12.6", "12.8"])],
)
def test_nearest_by_steps(given, expected):
    assert nearest_first(["12.3", "12.4", "12.5", "12.6", "12.8"], given, version_key) == expected


@pytest.mark.parametrize("names, text", [([], "nothing"), (["a"], "a"), (["a", "b"], "a and b"),
                                         ([1, 2, 3], "1, 2 and 3")])
def test_names_in_a_sentence(names, text):
    assert listed(names) == text


SYSTEMS = [(None, None), ("ubuntu", "26.04"), ("debian", "13")]
DRIVERS = [None, "470", "535", "620"]
GPUS = [[], ["kepler"], ["volta"], ["blackwell"]]
STACKS = [
    {"os": os, "os_version": version, "driver": driver, "gpus": gpus, "toolkits": toolkits}
    for (os, version), driver, gpus, toolkits in itertools.product(
        SYSTEMS, DRIVERS, GPUS, [["12.4"], ["13.0"], ["11.8", "13.0"]])
] + [
    {"driver": driver, "gpus": gpus, "torch": torch, "torch_cuda": build, "python": python}
    for driver, gpus, torch, build, python in itertools.product(
        ["470", "595"], GPUS, ["2.2", "2.7", "2.15"], [None, "cu118"], [None, "3.9"])
]


def kinds(stack):
    return Counter(item["id"] for item in conflicts(stack) if item["severity"] in ("critical", "warning"))


def test_each_proposal_resolves_its_conflict_and_makes_no_other():
    proposals = 0
    for stack in STACKS:
        before = kinds(stack)
        for item in conflicts(stack):
            assert item["severity"] == "critical" or item["nearest"] == []
            for change in item["nearest"]:
                proposals += 1
                after = kinds(dict(stack, **change))
                assert after[item["id"]] < before[item["id"]], (stack, change)
                assert not after - before, (stack, change)
    assert proposals > 200
