"""Ints that vary between calls, as subscripts of numpy's arrays and as operands beside them: one translation serves."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import torch

import godynamo


class ReplayBuffer:
    def __init__(self, size: int) -> None:
        self.size, self.pos, self.full = size, 0, False
        self.seen = np.zeros((size, 3), np.float32)
        self.rewards = np.zeros((size, 2))

    def add(self, seen, reward):
        self.seen[self.pos] = np.array(seen).copy()
        self.rewards[self.pos, 1] = reward
        self.pos += 1
        if self.pos == self.size:
            self.full = True
            self.pos = 0
        return torch.from_numpy(self.seen[self.pos - 1]) * 2


def test_a_replay_buffer() -> None:
    ours, plain = ReplayBuffer(6), ReplayBuffer(6)
    add = godynamo.optimize(ours.add)
    for step in range(20):
        given = np.full(3, step, np.float32), 0.5
        assert torch.equal(add(*given), plain.add(*given))
        assert ours.pos == plain.pos and ours.full == plain.full
        assert np.array_equal(ours.seen, plain.seen) and np.array_equal(ours.rewards, plain.rewards)
    assert godynamo.cache_stats(add)["translations"] == 3  # the first position, the others, the last one


def outcome(fn: Any, *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            values = fn(*args)
    except Exception as error:
        return type(error), str(error)
    return [(type(v), v.dtype, repr(v.tolist()), v.strides) for v in values]


def subscripts(a, i, j):
    b = a.copy()
    b[i, j] = 7
    b[i] += 1
    return b, b[j], b[i, j], b[[i, 0]], b[..., j], b[:, i], b[(i, None, j)]


def test_subscripts() -> None:
    a, served = np.arange(12.0).reshape(3, 4), godynamo.optimize(subscripts)
    for i, j in ((0, 1), (1, 2), (2, 0), (-1, 1), (0, -3), (1, 1), (2, 2)):
        assert outcome(served, a, i, j) == outcome(subscripts, a, i, j)
    assert godynamo.cache_stats(served)["translations"] <= 3
    for i, j in ((3, 0), (0, 4), (-4, 0), (0, 3), (1 << 70, 0), (True, 0), (1, 2)):
        assert outcome(served, a, i, j) == outcome(subscripts, a, i, j)


OPERATORS = "add sub mul truediv floordiv mod pow lshift and_ eq lt iadd isub imul".split()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operands(name: str, dtype: str) -> None:
    apply = getattr(operator, name)

    def fn(a, n):
        return apply(a.copy(), n), apply(a[0], n)

    a, served = np.array([1, 0, 1, 1]).astype(dtype), godynamo.optimize(fn)
    for n in (2, 3, 1, 0, 100, -1, 300, -129, 1 << 40, 1 << 70, True, 2.5, 5):
        assert outcome(served, a, n) == outcome(fn, a, n), n


def test_one_translation_serves_all_operands() -> None:
    def scaled(a, n):
        return a * n - n, (n - a) // 2

    a, served = np.arange(4), godynamo.optimize(scaled)
    for n in range(2, 12):
        assert outcome(served, a, n) == outcome(scaled, a, n)
    assert godynamo.cache_stats(served)["translations"] == 2
