"""The page of `make captured`, and the verdicts of `make models MODELS_ARGS=--train`."""

from __future__ import annotations

from typing import Any

import pytest

import captured
import project_support  # noqa: F401  (makes bench importable)
import training_of_models

BRANCH = "GD0101: branch on a tensor's value"


def evaluated(name: str, graphs: int, torch_graphs: int, *breaks: str, wrong: str = "") -> dict[str, Any]:
    return {"name": name, "graphs": graphs, "torch_graphs": torch_graphs, "breaks": list(breaks), "wrong": wrong}


def trained(name: str, forward: int, step: int, verdict: str = "right", **more: Any) -> dict[str, Any]:
    row = {"name": name, "forward": forward, "step": step, "verdict": verdict, "step_breaks": [], "forward_breaks": []}
    return {**row, "us": {"eager": 10.0}, "ratios": {"godynamo": (0.8, 0.7, 0.9)}, **more}


def test_reasons_are_counted_over_programs():
    found = captured.Found()
    address = "GD0201: call that cannot be captured: <f at 0x7f0012>"
    of_two = [f"2 x {BRANCH}", f"1 x {address}"]
    captured.of_models(
        [evaluated("a", 3, 1, *of_two), evaluated("b", 1, 2), evaluated("c", 2, 2, f"1 x {BRANCH}")], found
    )
    captured.of_training([trained("a", 1, 2, step_breaks=[f"1 x {BRANCH}"], torch_step=3), trained("b", 1, 1)], found)
    nothing: dict[str, Any] = {"wrong": [], "error": "", "breaks": {}}
    captured.of_library("modules", [{**nothing, "unit": "RNN", "counted": 4, "one": 3}], found)
    assert found.splits[BRANCH] == ["a (3/1)", "c (2/2)", "a, step (2/3)"]
    assert found.splits["GD0201: call that cannot be captured: <f at N>"] == ["a (3/1)"]
    assert found.splits["only the eager call ran"] == ["RNN (3 of 4 calls)"]
    assert found.totals == [
        "models: 1 of 3 in one graph (torch.compile 1)",
        "training steps: 1 of 2 in one graph (torch.compile 0)",
        "modules: 0 of 1 in one graph",
    ]
    text = captured.page(found)
    rows = [line for line in text.splitlines() if line.startswith("| GD") or line.startswith("| only")]
    assert rows[0] == f"| {BRANCH} | 3 | a (3/1), c (2/2), a, step (2/3) |" and len(rows) == 3
    assert "Wrong" not in text


def test_what_is_wrong_is_named():
    found = captured.Found()
    captured.of_models([evaluated("a", 1, 1, wrong="outputs by 1"), {"name": "b", "error": "exit 1"}], found)
    captured.of_training([trained("c", 1, 1, "WRONG by 2")], found)
    assert found.bad == ["a: outputs by 1", "b: exit 1", "c, training: WRONG by 2"]
    assert "- c, training: WRONG by 2" in captured.page(found)


@pytest.mark.parametrize(
    ("row", "fails"),
    [
        (trained("a", 1, 2, torch_forward=1), False),
        (trained("a", 1, 3, torch_forward=1), True),
        (trained("a", 2, 2, torch_forward=1), True),
        (trained("a", 6, 6, torch_forward=11), False),
        (trained("a", 1, 1, "WRONG by 1"), True),
        ({"name": "a", "error": "longer than 1 s"}, True),
    ],
)
def test_a_model_fails_in_training(row, fails):
    assert training_of_models.failed(row) is fails
    assert row["name"] in training_of_models.line(row)
    assert "1 models" in training_of_models.summary([row])
