"""Repetitions that are too long to track, or even to count in a machine word, raise CPython's exception."""

from __future__ import annotations

import sys
from collections import deque

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter

HUGE = (sys.maxsize * 2 + 2) // 4  # times four items: overflows to 0 in 64 bits


@pytest.mark.parametrize("items", [[4, 5, 6, 7], (4, 5, 6, 7)], ids=["list", "tuple"])
@pytest.mark.parametrize("form", ["left", "right", "in place"])
def test_a_repetition_that_does_not_fit_memory_raises(items, form):
    def repeated(x, values, n):
        y = x + 1
        if form == "left":
            values = n * values
        elif form == "right":
            values = values * n
        else:
            values *= n
        return y, values

    optimized = godynamo.optimize(repeated)
    for _ in range(2):
        with pytest.raises(MemoryError):
            optimized(torch.ones(2), type(items)(items), HUGE)


def test_nothing_repeated_is_nothing():
    optimized = godynamo.optimize(lambda x, n: (x + 1, [] * n, () * n))
    assert optimized(torch.ones(2), sys.maxsize)[1:] == ([], ())


@pytest.mark.parametrize("step", [sys.maxsize, -sys.maxsize, sys.maxsize - 1, 2**70, -(2**70), 5, -5])
def test_a_huge_step_of_a_slice(step):
    def sliced(x, values, n):
        return x + 1, values[1::n], values[::n], tuple(values)[1::n], "abcd"[1::n], values[n : n + 2]

    optimized = godynamo.optimize(sliced)
    expected = sliced(torch.ones(2), [1, 2, 3, 4], step)
    for _ in range(2):
        assert optimized(torch.ones(2), [1, 2, 3, 4], step)[1:] == expected[1:]
    assert godynamo.explain(sliced)(torch.ones(2), [1, 2, 3, 4], step).graph_count == 1


@pytest.mark.parametrize("kind", [list, tuple, dict.fromkeys, set, deque])
def test_a_container_too_large_to_track_is_left_to_cpython(kind):
    """Each item that is read would have a guard of its own."""

    def reads(x, values):
        y = x + 1
        return y, len(values), 7 in values, len(repr(values))

    values = kind(range(100_001))
    counter = CompileCounter()
    optimized = godynamo.optimize(reads, backend=counter)
    for _ in range(2):
        assert optimized(torch.ones(2), values)[1:] == reads(torch.ones(2), values)[1:]
    assert counter.op_count == 1


def test_a_value_nested_too_deep_is_left_to_cpython():
    """The name of a place has the names of all places around it."""
    nested = ()
    for _ in range(5_000):
        nested = (nested,)
    counter = CompileCounter()
    optimized = godynamo.optimize(lambda x, t: (x + 1, hash(t)), backend=counter)
    assert optimized(torch.ones(2), nested)[1] == hash(nested) and counter.op_count == 1
