"""Sizes of custom operators' results, after sizes of the operands have differed between calls."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_ints import bits


@pytest.fixture(scope="module", autouse=True)
def library():
    with torch.library._scoped_library("open_sizes", "FRAGMENT") as lib:

        def define(name, results, real, fake):
            lib.define(f"{name}(Tensor x, Tensor w) -> {results}")
            lib.impl(name, real, "CPU")
            lib._register_fake(name, fake)

        define(
            "joined",
            "Tensor",
            lambda x, w: torch.cat([x, x[:1]]) @ w,
            lambda x, w: x.new_empty(x.shape[0] + 1, w.shape[1]),
        )
        define(
            "pair",
            "(Tensor, Tensor)",
            lambda x, w: (x @ w, x.sum(1)),
            lambda x, w: (x.new_empty(x.shape[0], w.shape[1]), x.new_empty(x.shape[0])),
        )
        define("squeezed", "Tensor", lambda x, w: (x @ w).squeeze(), lambda x, w: (x @ w).squeeze())
        yield


def sizes(y):
    return y * y.shape[0], y.shape, y.dtype


FUNCTIONS = {
    "a size read at run time": lambda x, w: sizes(torch.ops.open_sizes.joined(x, w)),
    "several results": lambda x, w: [sizes(y) for y in torch.ops.open_sizes.pair(x, w)],
    "taken apart": lambda x, w: [sizes(y) for y in torch.ops.open_sizes.joined(x, w).chunk(2, -1)],
    "after another operation": lambda x, w: sizes(torch.ops.open_sizes.joined(x * 2, w).relu()),
}


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_entry_serves_all_sizes(name, backend) -> None:
    f, w = FUNCTIONS[name], torch.ones(3, 2)
    optimized = godynamo.optimize(f, backend=backend)
    for n in (4, 5, 6, 7, 1, 2):
        x = torch.arange(n * 3.0).reshape(n, 3)
        assert bits(optimized(x, w)) == bits(f(x, w))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 2, [e.parts for e in entries(optimized)]


def test_a_rank_that_depends_on_sizes_makes_them_constants() -> None:
    def f(x, w):
        y = torch.ops.open_sizes.squeezed(x, w)
        return y * y.dim(), y.shape

    optimized, w = godynamo.optimize(f), torch.ones(3, 2)
    for n in (4, 5, 6, 1, 2):
        x = torch.arange(n * 3.0).reshape(n, 3)
        assert bits(optimized(x, w)) == bits(f(x, w))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 5
