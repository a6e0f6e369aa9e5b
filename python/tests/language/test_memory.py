"""An unused tensor is freed before the next operation: captured code needs no more memory than eager.

torch's profiler counts the peaks, in tensors of one size.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter

SIDE = 256
TENSOR = SIDE * SIDE * 4


def peak(call: Callable[[], Any]) -> float:
    """Return the largest number of the call's tensors that are alive at the same time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        result = call()
    now = most = 0
    for event in profile.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    del result
    return round(most / TENSOR, 1)


def chain(x: Any) -> Any:
    y = x + 1
    z = (x * y).relu()
    z = (z + 1).relu().sin().cos()
    return z


def many_names(x: Any) -> Any:
    a = x + 1
    b = a * a
    c = (b * b).sin().cos().tan()
    d = (c * c).sin().cos().tan()
    return d


def residual(x: Any) -> Any:
    for _ in range(4):
        x = x + x.sin().cos().exp()
    return x


def behind_a_split(x: Any) -> Any:
    a = x + 1
    print(end="")
    a = a * a
    os.getpid()
    a = a * a
    a = a * a
    return (a * a).sin().cos()


def behind_a_branch(x: Any) -> Any:
    a = x + 1
    if a.sum() > 1e30:
        a = -a
    a = a * 2
    a = a * 2
    return a.sin().cos()


def an_effect_between(x: Any) -> Any:
    log = []
    a = x + 1
    log.append(a.sum())
    a = a.sin().cos()
    a = a.sin().cos()
    return a, len(log)


@pytest.mark.parametrize(
    ("function", "least"),
    [(chain, 2), (many_names, 2), (residual, 3), (behind_a_split, 2), (behind_a_branch, 2), (an_effect_between, 2)],
)
def test_no_more_tensors_than_needed(function: Callable[[Any], Any], least: int) -> None:
    x = torch.randn(SIDE, SIDE)
    fast = godynamo.optimize(function)
    assert repr(fast(x)) == repr(function(x))
    fast(x)
    assert peak(lambda: fast(x)) == least <= peak(lambda: function(x))


@pytest.mark.parametrize("backend", ["eager", CompileCounter()], ids=["inline", "graph"])
def test_a_weak_reference_sees_a_variable_that_is_read_no_more(backend: Any) -> None:
    def f(x: Any) -> Any:
        a = x + 1
        w = weakref.ref(a)
        print(end="")
        b = a * 2
        b = b.sin().cos()
        alive = w() is not None
        a = b
        b = a.sin().cos()
        return b, alive, w() is None

    x = torch.randn(3)
    fast = godynamo.optimize(f, backend=backend)
    for _ in range(3):
        want, got = f(x), fast(x)
        assert torch.equal(want[0], got[0])
        assert want[1:] == got[1:] == (True, True)
