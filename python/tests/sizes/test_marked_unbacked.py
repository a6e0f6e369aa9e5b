"""Sizes marked with mark_unbacked in graphs for compilers: one graph for all sizes, 0 and 1 included."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import godynamo
from harness.capture import entries
from test_symbols import outcome
from test_unbacked import assert_serves, same


def marked(*sizes: int, dim: int = 0, **bounds: int) -> torch.Tensor:
    t = torch.randn(*sizes)
    godynamo.mark_unbacked(t, dim, **bounds)
    return t


def scaled(x: Any) -> Any:
    return x.relu() * x.shape[0], x.reshape(-1, 1).sum(0) + 1


def added(x: Any, y: Any) -> Any:
    return (x + y).sin(), x.shape[0] + y.shape[0]


def ranked(x: Any) -> Any:
    return x.sort(0).values, x.softmax(0), x @ x.t()


def selected(x: Any) -> Any:
    y = x[x > 0]
    return y.cos(), y.shape[0] * 2


SIZES = (4, 1, 7, 0, 5)


@pytest.mark.parametrize("f", [scaled, selected], ids=lambda f: f.__name__)
def test_one_graph_serves_all_sizes(f) -> None:
    assert_serves(f, [(marked(n),) for n in SIZES])


def test_a_matrix() -> None:
    assert_serves(ranked, [(marked(n, 3),) for n in SIZES])


def test_sizes_that_must_be_equal() -> None:
    assert_serves(added, [(marked(n), marked(n)) for n in SIZES])


def test_sizes_that_are_equal_or_broadcast() -> None:
    """torch assumes that the sizes are equal, which becomes a guard. For other sizes they are ordinary symbols."""
    calls = [(marked(n), marked(m)) for n, m in [(4, 4), (4, 1), (1, 4), (3, 3), (2, 3), (5, 5)]]
    assert_serves(added, calls, most=4)


def test_a_change_of_an_input() -> None:
    def f(x, y):
        x.mul_(2)
        return x + y

    optimized = godynamo.optimize(f, backend="aot_eager")
    for n, m in [(4, 4), (1, 1), (4, 1), (3, 2)]:
        x, y = marked(n), marked(m)
        left = x.clone()
        expected, found = outcome(f, (left, y)), outcome(optimized, (x, y))
        assert same(found, expected)
        assert torch.equal(x, left)


def test_a_range() -> None:
    optimized = assert_serves(scaled, [(marked(n, min=2, max=8),) for n in (4, 8, 2)])
    assert {"x.size()[0] >= 2", "x.size()[0] <= 8"} <= set(entries(optimized)[-1].parts)


def test_gradients() -> None:
    def f(x, w):
        return ((x @ w).tanh() * x.shape[0]).sum()

    w = torch.randn(3, 2, requires_grad=True)
    optimized, found = godynamo.optimize(f, backend="aot_eager"), []
    for n in (4, 1, 7):
        x = marked(n, 3)
        w.grad = None
        f(x, w).backward()
        expected, w.grad = w.grad, None
        optimized(x, w).backward()
        found.append(torch.equal(w.grad, expected))
    assert found == [True] * 3
    assert len(entries(optimized)) == 1


def test_a_compiler_that_needs_the_value_gets_an_ordinary_symbol() -> None:
    def needs_values(gm, examples):
        from torch._dynamo.backends.registry import lookup_backend

        for x in examples:
            if isinstance(x, torch.Tensor):
                [bool(size > 3) for size in x.shape]
        return lookup_backend("aot_eager")(gm, examples)

    needs_values = godynamo.register_backend(needs_values, name="needs_values", supports_dynamic_shapes=True)
    assert_serves(scaled, [(marked(n),) for n in (4, 5, 6, 2)], most=3, backend="needs_values")


def test_inductor() -> None:
    assert_serves(lambda x: (x * 2).relu() + x.shape[0], [(marked(n),) for n in (4, 1, 7)], backend="inductor")
