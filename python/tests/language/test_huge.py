"""Repetitions too long to be tracked, whose length does not even fit a machine word: CPython's exception."""

from __future__ import annotations

import sys

import pytest
import torch

import godynamo

HUGE = (sys.maxsize * 2 + 2) // 4  # times four items: 0 in 64 bits


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
