"""Bad input stops the run before anything is changed, and the message names variable, value and what is allowed."""

import pytest

pytestmark = pytest.mark.controller
pytest.importorskip("ansible.plugins")

from ansible_collections.gpufleet.server.plugins.plugin_utils import _inventory_rules as rules  # noqa: E402

SPECS = {
    "base": {
        "base_time_sync": {"type": "str", "choices": ["auto", "leave"]},
        "base_packages": {"type": "list", "elements": "str"},
    },
    "gpu_health": {
        "gpu_health_expected_gpus": {"type": "int"},
        "gpu_health_rules": {
            "type": "list",
            "elements": "dict",
            "options": {"name": {"type": "str", "required": True}},
        },
    },
}


def texts(problems):
    return [problem.text for problem in problems]


@pytest.mark.parametrize(
    "name, value, words",
    [
        (
            "base_time_snyc",
            "auto",
            ["base_time_snyc = 'auto'", "no such variable of base", "Did you mean base_time_sync?"],
        ),
        ("base_zzz", 1, ["base_zzz = 1", "Variables of base: base_packages, base_time_sync"]),
        ("gpu_health_gpus", 8, ["gpu_health_gpus = 8", "no such variable of gpu_health"]),
        ("gpufleet_proxy", "x", ["gpufleet_proxy = 'x'", "gpufleet_http_proxy"]),
        ("base_time_sync", "never", ["base_time_sync = 'never'", "allowed: auto, leave"]),
        ("gpu_health_expected_gpus", "many", ["gpu_health_expected_gpus = 'many'", "int"]),
        ("base_packages", {"a": 1}, ["base_packages = {'a': 1}", "list of str"]),
        ("gpu_health_rules", [{"nam": "x"}], ["gpu_health_rules", "name"]),
    ],
    ids=["typo", "unknown", "longest-prefix", "shared-unknown", "choice", "type", "list", "sub-option"],
)
def test_a_bad_variable_is_refused(name, value, words):
    problems = texts(rules.check_variables("gpu01", {name: value}, SPECS))
    assert problems
    for word in words:
        assert word in " ".join(problems)


@pytest.mark.parametrize(
    "variables",
    [
        {"base_time_sync": "auto", "gpu_health_expected_gpus": 8, "base_packages": ["vim"]},
        {"gpu_health_expected_gpus": "8"},
        {"base_time_sync": None},
        {"basement": 1, "baseline_x": 2, "my_base_thing": 3},
        {"gpufleet_http_proxy": "http://proxy:3128", "gpufleet_results": {}},
    ],
    ids=["right", "number-as-text", "left-empty", "other-prefix", "shared"],
)
def test_a_good_variable_is_silent(variables):
    assert texts(rules.check_variables("gpu01", variables, SPECS)) == []


@pytest.mark.parametrize(
    "groups, refused",
    [
        ({"all": ["a"], "ungrouped": ["a"]}, True),
        ({"all": ["a"], "gpus": ["a"]}, True),
        ({"all": [], "gpu_servers": []}, True),
        ({"all": ["a"], "gpu_servers": ["a"]}, False),
        ({"all": ["a"], "cpu_only": ["a"]}, False),
    ],
)
def test_an_inventory_without_hosts_to_manage_is_refused(groups, refused):
    problems = texts(rules.check_groups(groups))
    assert bool(problems) is refused
    if refused:
        assert "gpu_servers" in problems[0]


def test_the_groups_that_were_found_are_named():
    assert "Groups with hosts found: gpus." in texts(rules.check_groups({"all": ["a"], "gpus": ["a"]}))[0]


@pytest.mark.parametrize(
    "variables, refused",
    [
        ({"ansible_connection": "local"}, True),
        ({"ansible_host": "127.0.0.1"}, True),
        ({"ansible_host": "192.0.2.7"}, False),
        ({}, False),
    ],
)
def test_the_controller_is_never_a_managed_host(variables, refused):
    assert bool(rules.check_connection("gpu01", variables, ["localhost", "127.0.0.1"])) is refused


def test_the_same_problem_on_many_hosts_is_told_once():
    problems = [rules.Problem("gpu01", "x"), rules.Problem("gpu02", "x"), rules.Problem("gpu01", "y")]
    assert rules.merge_problems(problems) == [("x", ["gpu01", "gpu02"]), ("y", ["gpu01"])]
