"""Optimized functions as values inside captured code: distinct from the functions they wrap."""

from __future__ import annotations

import functools

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter


def g(x):
    """What g says."""
    return x + 1


class Model:
    def forward(self, x):
        return x * 2


w = godynamo.optimize(g)
model = Model()
bound = godynamo.optimize(model.forward)


def identity(x):
    same = w is g, w is w, w is bound, [w] == [g], [w] == [w], w == g, w != g
    return w(x), same, {w: 1}.get(g), {w: 1}[w], w in (g, w), w in (g,)


def texts(x):
    return (
        bound(x),
        w.__name__,
        w.__qualname__,
        w.__doc__,
        bool(w),
        callable(w),
        isinstance(w, type(bound)),
        type(w) is type(g),
    )


def escapes(x):
    return bound(w(x)), w, [w, bound], {"w": w}, (w,)


def mapped(x):
    return sum(map(w, [x, x])), functools.reduce(lambda a, f: f(a), [w, bound, w], x), functools.partial(w)(x)


def attributes(x):
    return w(x), w.__wrapped__ is g, getattr(w, "nothing", 3)


@pytest.mark.parametrize("fn", [identity, texts, escapes, mapped, attributes], ids=lambda f: f.__name__)
def test_values(fn):
    expected = fn(torch.ones(1))
    counter = CompileCounter()
    for compiled in (godynamo.optimize(fn), godynamo.optimize(fn, backend=counter)):
        for _ in range(2):
            actual = compiled(torch.ones(1))
            assert actual == expected
    assert counter.op_count >= 1
    if fn is not attributes:
        assert counter.frame_count == 1
    if fn is escapes:
        assert actual[1] is w and actual[2][0] is w and actual[2][1] is bound and actual[3]["w"] is w


def test_another_optimized_function_is_another_translation():
    def call(f, x):
        return f(x) * 2, f is w

    compiled = godynamo.optimize(call)
    assert compiled(w, torch.ones(1)) == (4, True)
    assert compiled(godynamo.optimize(g), torch.ones(1)) == (4, False)
    assert compiled(bound, torch.ones(1)) == (4, False)
    assert compiled(g, torch.ones(1)) == (4, False)


@torch.jit.script
def scripted(x):
    return x + 3


def test_scripted_functions():
    def call(x):
        return scripted(x), scripted is w, scripted is scripted

    compiled = godynamo.optimize(call)
    for _ in range(2):
        assert compiled(torch.ones(1)) == (4, False, True)
