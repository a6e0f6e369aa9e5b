"""Random numbers that a function draws and does not use: the generator advances as in eager mode."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import godynamo

WEIGHT = torch.nn.Parameter(torch.ones(3))


def alone(x):
    torch.rand(3)
    return x.relu()


def in_place(x):
    torch.empty(3).uniform_()
    z = torch.zeros(3)
    z[:2].normal_()
    return x + z


def differentiable(x):
    F.dropout(x * WEIGHT, 0.5, True).sum()
    return x * 2


def beside_a_result(x):
    noise = torch.rand_like(x)
    noise + 1
    return (x * WEIGHT).sum()


def overwritten(x):
    x = x.clone()
    x.uniform_()
    return torch.bernoulli(x * 0 + 0.5) + 1


def without_result(x):
    torch.bernoulli(x / 2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("f", [alone, in_place, differentiable, beside_a_result, overwritten, without_result])
def test_the_generator_advances(f, backend):
    def run(g):
        WEIGHT.grad = None
        torch.manual_seed(0)
        out = g(torch.ones(3))
        if out is not None and out.requires_grad:
            out.sum().backward()
        grad = WEIGHT.grad
        values = None if out is None else out.tolist()
        return values, torch.rand(2).tolist(), None if grad is None else grad.tolist()

    optimized = godynamo.optimize(backend=backend)(f)
    expected = run(f)
    assert [run(optimized) for _ in range(2)] == [expected] * 2
    assert godynamo.cache_stats(optimized)["hits"] == 1
