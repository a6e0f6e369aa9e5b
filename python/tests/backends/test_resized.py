"""Tensors that get more memory inside a graph that AOTAutograd would trace."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import godynamo


def a_view(s, y):
    s.resize_as_(y)
    t = s.select(1, 0)
    t.zero_()
    return t + 1


def used_at_once(s, y):
    s.resize_(2, 3).fill_(1)
    return s + y


def made_here(_, y):
    s = y.new()
    s.resize_as_(y)
    s.select(1, 0).zero_()
    s[:, 1:].fill_(2)
    return s * 2


def smaller(_, y):
    return y.clone().resize_(1, 3) * 2


def by_operator(s, y):
    torch.ops.aten.resize_.default(s, [2, 3])
    return s.fill_(3) + y


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
@pytest.mark.parametrize("fn", [a_view, used_at_once, made_here, smaller, by_operator])
def test_resized_tensors(fn, backend):
    optimized = godynamo.optimize(fn, backend=backend)
    for _ in range(2):
        results = [f(torch.empty(0), torch.arange(6.0).reshape(2, 3)) for f in (fn, optimized)]
        assert torch.equal(*results)


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_normalization_across_channels(backend, requires_grad):
    """Its autograd.Function resizes its result and what it keeps for the backward pass."""
    module = nn.CrossMapLRN2d(3)
    optimized = godynamo.optimize(module, backend=backend)
    for _ in range(2):
        inputs = [torch.linspace(-1, 2, 200).reshape(2, 4, 5, 5).requires_grad_(requires_grad) for _ in range(2)]
        results = [f(x) for f, x in zip((module, optimized), inputs, strict=True)]
        assert torch.equal(*results)
        if requires_grad:
            for r in results:
                r.sum().backward()
            assert torch.equal(inputs[0].grad, inputs[1].grad)
