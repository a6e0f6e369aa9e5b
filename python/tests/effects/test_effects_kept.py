"""Under whole-graph backends, effects before an operation that raises remain, including in-place changes and draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo


def in_place(x: Any, log: list[Any], bad: Any) -> Any:
    log.append(1)
    x += 1
    log.append(2)
    y = x @ bad
    log.append(3)
    return y


def random_numbers(x: Any, log: list[Any], bad: Any) -> Any:
    y = F.dropout(x, 0.5, True)
    log.append(1)
    z = y @ bad
    log.append(2)
    return z


def prints(x: Any, log: list[Any], bad: Any) -> Any:
    x.mul_(2)
    print("here")
    log.append(x @ bad)
    return x


@pytest.mark.parametrize("fn", [in_place, random_numbers, prints])
@pytest.mark.parametrize("fits", [True, False])
def test_effects_before_the_failure_are_kept(
    fn: Callable[..., Any], fits: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = torch.ones(3, 2) if fits else torch.ones(77, 2)
    optimized = godynamo.optimize(fn, backend=lambda gm, example_inputs: gm.forward)

    def outcome(f: Callable[..., Any]) -> Any:
        torch.manual_seed(0)
        x, log = torch.randn(2, 3), []
        try:
            result: Any = f(x, log, bad).tolist()
        except RuntimeError as error:
            result = str(error)
        return (
            result,
            x.tolist(),
            [v.tolist() if isinstance(v, torch.Tensor) else v for v in log],
            capsys.readouterr().out,
        )

    expected = outcome(fn)
    for _ in range(3):
        assert outcome(optimized) == expected
