"""`make sizes`: its bounds, its tables, and one short run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

import project_support  # noqa: F401 the paths
import sizes_cases
import sizes_child
import sizes_report
import sizes_run

SMALL = [name for name, case in sizes_cases.CASES.items() if not case.needs and not case.flag]


def result(**changed):
    figures = {"case": "mlp", "engine": "inline", "graphs": 1, "breaks": 0, "cpu_ms": 50.0, "eager_ms": 1.0}
    return figures | {"by_call": [1] * 10, "imports": [], "limit": False, "right": True} | changed


def test_every_bound_is_on_a_case_and_an_engine_that_exist():
    for goal in sizes_report.goals():
        assert goal.case in sizes_cases.CASES
        assert goal.engine in sizes_report.OURS
        assert isinstance(goal.bound, (int, float)) or goal.bound in sizes_report.ENGINES


def test_a_bound_is_met_or_not_and_no_failure():
    results = {("mlp", "inline"): result(graphs=2)}
    judged = {goal.figure: met for goal, _, _, met in sizes_report.judged(results)}
    assert judged == {"graphs": False, "breaks": True, "cpu_ms": True, "imports": True}
    assert not sizes_report.failed(results["mlp", "inline"])
    assert "2 ≤ 1 not met" in sizes_report.text(results)


@pytest.mark.parametrize("changed", [{"right": False, "wrong": "call 2: differs"}, {"error": "exit -11"}])
def test_only_our_own_failures_fail(changed):
    assert sizes_report.failed(result(**changed))
    assert not sizes_report.failed(result(engine="torch", **changed))
    assert list(changed.values())[-1] in sizes_report.text({("mlp", "inline"): result(**changed)})


def test_bits_include_the_sign_of_zero_and_nan():
    nan = torch.tensor([float("nan")])
    assert sizes_child.bits_equal((nan, [3]), (nan.clone(), [3]))
    assert not sizes_child.bits_equal(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not sizes_child.bits_equal(torch.ones(2, 3).t(), torch.ones(3, 2))
    assert not sizes_child.bits_equal(True, 1)


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_the_same_each_time_it_is_made(name):
    runs = []
    for _ in range(2):
        torch.manual_seed(0)
        target, steps = sizes_cases.CASES[name].make()
        runs.append(list(steps(target)))
    assert len(runs[0]) > 1
    assert sizes_child.bits_equal(*runs)


def test_a_short_run(tmp_path):
    target = tmp_path / "sizes.json"
    command = [sys.executable, sizes_run.__file__, "--only", "slice", "--engines", "godynamo,inline", "--rounds", "0"]
    run = subprocess.run([*command, "--json", str(target)], capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 0, run.stderr
    assert all(len(line) <= 120 for line in run.stdout.splitlines())
    assert "sizes: 1/1 slice, inline" in run.stderr
    assert [r["right"] for r in json.loads(target.read_text())["results"]] == [True, True]
    assert "slice end (6)" in target.with_suffix(".html").read_text()
