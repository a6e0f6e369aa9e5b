"""Floats computed from sizes: branches on them and sizes rounded from them are conditions, which one entry covers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import entries
from test_symbols import Graphs, assert_same, assert_serves, outcome

SHAPES = [(96, 128), (100, 120), (128, 96), (90, 150), (110, 110), (33, 160)]


def resized(x: torch.Tensor) -> torch.Tensor:
    short, long = min(x.shape), max(x.shape)
    scale = min(12 / short, 20 / long)
    return torch.nn.functional.interpolate(
        x[None, None], scale_factor=scale, mode="bilinear", recompute_scale_factor=True, align_corners=False
    )


def padded(x: torch.Tensor) -> torch.Tensor:
    rows = int(math.ceil(float(x.shape[0]) / 32.0) * 32)
    y = x.new_full((rows, x.shape[1]), 0)
    y[: x.shape[0]].copy_(x)
    return y * (rows - x.shape[0])


FUNCTIONS = {
    "a scale for a resize": resized,
    "a multiple of a number": padded,
    "floor and round": lambda x: x[: math.floor(x.shape[0] * 0.3), : round(x.shape[1] / 4)] + 1,
    "trunc of a negative float": lambda x: x.sum(0) * math.trunc(-x.shape[0] / 7) * int(-x.shape[1] / 5),
    "sqrt": lambda x: x.reshape(-1)[: int(math.sqrt(x.shape[0] * x.shape[1]))] * 2,
    "extremes": lambda x: x * max(x.shape[0] / 3, x.shape[1] / 5, 1.5) - min(x.shape[0] * 0.5, 7.5),
    "a float of a float": lambda x: x[: int(-float(float(x.shape[0]) / -2.0))] * +(x.shape[1] / 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_entry_serves_all_sizes(name) -> None:
    assert_serves(FUNCTIONS[name], [(torch.randn(*shape),) for shape in SHAPES], 1)


def test_a_chain_of_sizes_after_a_resize_is_symbolic() -> None:
    net = torch.nn.Sequential(*(torch.nn.Conv2d(1, 1, 3, 2, 1) for _ in range(4)))

    def f(x: torch.Tensor) -> Any:
        y = net(resized(x))
        return y.view(y.shape[0], -1).softmax(1), y.shape[2] * y.shape[3]

    with torch.no_grad():
        assert_serves(f, [(torch.randn(*shape),) for shape in SHAPES], 1)


BRANCHES = {
    "ratio": lambda x: x + 1 if x.shape[0] / x.shape[1] > 1.0 else x - 1,
    "equal": lambda x: x + 1 if x.shape[0] / 2 == x.shape[1] / 4 else x - 1,
    "not equal": lambda x: x + 1 if x.shape[0] * 0.5 != 2 else x - 1,
    "size": lambda x: x + 1 if x.shape[0] >= x.shape[1] * 0.75 else x - 1,
    "truth": lambda x: x + 1 if x.shape[0] * 0.5 else x - 1,
    "not": lambda x: x + 1 if not x.shape[1] / 3 else x - 1,
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_has_an_entry_for_each_outcome(name) -> None:
    shapes = [(4, 6), (8, 6), (3, 5), (9, 2), (4, 8), (0, 4), (3, 4), (6, 0)]
    for backend in ("eager", Graphs()):
        f = BRANCHES[name]
        optimized = godynamo.optimize(f, backend=backend)
        for shape in shapes:
            args = (torch.randn(*shape),)
            assert_same(outcome(optimized, args), outcome(f, args))
        assert len(entries(optimized)) <= 5


def test_a_division_by_zero_is_raised_in_its_place() -> None:
    seen: list[Any] = []

    def f(x: torch.Tensor) -> Any:
        seen.append("before")
        y = x * (1.0 / x.shape[0])
        seen.append("after")
        return y

    optimized = godynamo.optimize(f)
    assert_same(optimized(torch.ones(4)), torch.full((4,), 0.25))
    seen.clear()
    with pytest.raises(ZeroDivisionError):
        optimized(torch.ones(0))
    assert seen == ["before"]


def test_ints_beyond_floats_are_not_compared_as_floats() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        return x + 1 if n / 1.0 > 2.0**53 else x - 1, int(n * 1.0)

    optimized = godynamo.optimize(f)
    for n in (3, 5, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**62 + 1, 2**70):
        assert_same(optimized(torch.ones(2), n), f(torch.ones(2), n))


def test_the_text_of_sizes_is_computed_at_run_time() -> None:
    def f(x: torch.Tensor) -> Any:
        sizes = [x.shape, (x.shape[0], "rows", None)]
        text = f"got {x.shape} and {sizes!r}"
        sizes.append(1)
        return x.relu(), text, str(x.shape[:1]), repr([*x.shape])

    assert_serves(f, [(torch.randn(*shape),) for shape in SHAPES], 1)
