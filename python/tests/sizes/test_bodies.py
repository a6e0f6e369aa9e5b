"""Operations that take functions (torch.cond, torch.vmap, ...) at other sizes: one entry serves all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from functorch.experimental.control_flow import map as torch_map
from torch.utils.checkpoint import checkpoint

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_symbols import assert_same, outcome


def branches(x: Any) -> Any:
    y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
    return y * y.shape[0]


def branches_of_two(x: Any) -> Any:
    w = x + 1
    y, z = torch.cond(x.sum() > 0, lambda t: (t @ w.t(), t.sum(0)), lambda t: (t @ t.t(), t.sum(0) - 1), (x,))
    return y.relu(), z


def rows(x: Any) -> Any:
    return torch.vmap(lambda t: t * 2 + t.sum())(x)


def columns(x: Any) -> Any:
    return torch.vmap(lambda t: t.cumsum(0), in_dims=1, out_dims=1)(x)


def gradients(x: Any) -> Any:
    return torch.func.grad(lambda t: (t.sin() * t).sum())(x)


def jacobian(x: Any) -> Any:
    return torch.func.jacrev(lambda t: t.sum(0) * 2)(x)


def each(x: Any) -> Any:
    return torch_map(lambda t: t.cos() + t.sum(), x)


def again(x: Any) -> Any:
    return checkpoint(lambda t: t.exp() / t.exp().sum(-1, keepdim=True), x, use_reentrant=False) + x.shape[0]


FUNCTIONS = [branches, branches_of_two, rows, columns, gradients, jacobian, each, again]


@pytest.mark.parametrize(("backend", "most"), [("eager", 1), ("aot_eager", 2)])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_entry_serves_all_sizes(f, backend, most) -> None:
    optimized = godynamo.optimize(f, backend=backend)
    for n in (4, 5, 2, 7):
        for x in (torch.randn(n, 3).abs(), -torch.randn(n, 3).abs()):
            assert_same(optimized(x), f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= most, [e.parts for e in entries(optimized)]


@pytest.mark.parametrize("f", [rows, gradients, again], ids=lambda f: f.__name__)
def test_empty_and_single_rows(f) -> None:
    optimized = godynamo.optimize(f)
    for n in (3, 1, 0, 2):
        x = torch.randn(n, 3)
        assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert len(entries(optimized)) <= 2


def test_a_size_read_in_a_body_is_a_constant() -> None:
    def f(x):
        return torch.cond(x.sum() > 0, lambda t: t * t.shape[0], lambda t: t - t.shape[0], (x,))

    optimized = godynamo.optimize(f)
    for n in (3, 4, 5):
        assert_same(optimized(x := torch.randn(n)), f(x))
    assert len(entries(optimized)) == 3


def test_a_branch_in_a_body_is_a_condition() -> None:
    def f(x):
        return torch.vmap(lambda t: t.sum() if t.shape[0] > 4 else t.prod())(x)

    optimized = godynamo.optimize(f)
    for n in (3, 4, 5, 6):
        assert_same(optimized(x := torch.randn(2, n)), f(x))


def test_whether_operands_share_memory_depends_on_the_layout() -> None:
    """torch.cond's functions must not get one tensor twice: x.t().reshape(-1) is a view if x has one row."""

    def f(x):
        y = x.t().reshape(-1)
        return torch.cond(x.sum() > 0, lambda a, b: a.sum() + b, lambda a, b: a.sum() - b, (x, y))

    optimized = godynamo.optimize(f)
    for n in (3, 1, 2):
        x = torch.randn(n, 4)
        assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
