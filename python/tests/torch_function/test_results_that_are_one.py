"""Whole graphs have plain tensors; results of theirs that are one tensor are one instance of the subclass."""

from __future__ import annotations

import pytest
import torch

import godynamo


class Sub(torch.Tensor):
    pass


def kept(x):
    y = x * 1
    z = y.to(y.dtype)
    return z is y, y, z


def of_an_operand(x):
    y = x.contiguous()
    return y is x, y, x + 1


def stored(x):
    y = x * 1
    z = torch.atleast_1d(y)
    y.label = "y"
    return z.label, z, y + 1


@pytest.mark.parametrize("f", [kept, of_an_operand, stored])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: x.as_subclass(Sub)])
@pytest.mark.parametrize("backend", ["eager", "graph"])
def test_results(f, make, backend):
    godynamo.reset()
    compiled = godynamo.optimize(f, backend=(lambda gm, _: gm) if backend == "graph" else backend)
    for _ in range(2):
        x = make(torch.ones(3))
        first, *want = f(x)
        got_first, *got = compiled(x)
        assert got_first == first
        assert [type(t) for t in got] == [type(t) for t in want] and all(map(torch.equal, got, want))
        assert [a is b for a in (*got, x) for b in (*got, x)] == [a is b for a in (*want, x) for b in (*want, x)]
