"""Attributes that programs set on tensors, if an operation may return its operand: x.to(dtype) is x or new."""

from __future__ import annotations

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter


def asks(x):
    y = x.to(torch.float32)
    return y + 2 if hasattr(y, "jax") else y + 1


def stores(x):
    y = x.to(torch.float32)
    x.jax = 3
    return hasattr(y, "jax"), y + 1


def through_two(x):
    y = x.to(torch.float32).contiguous()
    return y * getattr(y, "scale", 2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_may_be_the_operand_has_its_attributes(dtype):
    for f in (asks, stores, through_two):
        for attrs in ({}, {"jax": 1}, {"scale": 5.0}):
            x, z = torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype)
            vars(x).update(attrs), vars(z).update(attrs)
            got, want = godynamo.optimize(f)(x), f(z)
            assert str(got) == str(want), (f, attrs)


def test_that_no_operand_has_it_is_guarded_and_one_graph():
    counter = CompileCounter()
    compiled = godynamo.optimize(backend=counter)(asks)
    x = torch.ones(2)
    assert torch.equal(compiled(x), asks(x))
    assert counter.frame_count == 1
    x.jax = 1
    assert torch.equal(compiled(x), torch.full((2,), 3.0))
    assert godynamo.cache_stats(compiled)["misses"] >= 2
