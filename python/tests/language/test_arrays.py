"""numpy arrays: torch.from_numpy of an array from outside is a graph input; numpy's computations run in CPython."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter


def told(value: Any) -> Any:
    """Return a result with arrays and scalars as plain data, including their exact types."""
    if isinstance(value, np.ndarray):
        return "array", type(value).__name__, str(value.dtype), value.shape, value.tolist()
    if isinstance(value, np.generic):
        return type(value).__name__, repr(value)
    return tuple(told(v) for v in value) if isinstance(value, tuple) else value


def plainly(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fn`` with its result and its array argument as plain data."""
    return lambda *args: (told(fn(*args)), told(args[1]))


CALLS = [(1.0, np.float32), (1.0, np.float32), (2.0, np.float32), (3.0, np.float64)]


def compare(fn: Callable[..., Any], graphs: int, translations: list[int] | None = None) -> None:
    def call(value: float, dtype: Any) -> Callable[[], tuple[Any, ...]]:
        return lambda: (torch.full((3,), value), np.full((3,), value, dtype))

    expected = [plainly(fn)(*call(*c)()) for c in CALLS]
    for backend in ("eager", CompileCounter()):
        godynamo.reset()
        ours = plainly(godynamo.optimize(fn, backend=backend))
        started = []
        for c, want in zip(CALLS, expected, strict=True):
            before = _C.counters()["translations"]
            got = ours(*call(*c)())
            started.append(_C.counters()["translations"] - before)
            assert repr(got) == repr(want)
        assert _C.counters()["internal_errors"] == 0
        assert translations is None or started == translations
        assert isinstance(backend, str) or backend.frame_count == graphs, backend.frame_count


def as_a_tensor(x, a):
    return x + torch.from_numpy(a), a


def changed_in_place(x, a):
    t = torch.from_numpy(a)
    t.add_(1)
    return t * 2, a


def twice(x, a):
    s, t = torch.from_numpy(a), torch.from_numpy(a)
    s.mul_(3)
    return t + x, a


def passed_on(x, a):
    return x + 1, a


def test_an_array_of_the_frames_is_an_input():
    compare(as_a_tensor, 2, [1, 0, 0, 1])
    compare(changed_in_place, 2, [1, 0, 0, 1])
    compare(twice, 2, [1, 0, 0, 1])
    compare(passed_on, 1, [1, 0, 0, 0])


TABLE = np.array([1.0, 2.0, 3.0])


def a_table(x, a):
    return x * torch.from_numpy(TABLE)


def test_a_global_array_whose_contents_change():
    ours = godynamo.optimize(a_table)
    x = torch.ones(3)
    assert ours(x, None).equal(a_table(x, None))
    TABLE[0] = 5
    try:
        assert ours(x, None).equal(a_table(x, None))
    finally:
        TABLE[0] = 1


def arithmetic(x, a):
    return x + 1, a * 2 + 1, a.sum(), a.shape, a.dtype, a[0], float(a[1])


def made_inside(x, a):
    z = np.zeros(3)
    z[0] = 5
    return x + torch.from_numpy(z), z, np.arange(3)


def of_a_tensor(x, a):
    return (x + 1).numpy() * 2


def refused(x, a):
    try:
        return x + torch.from_numpy(a[::-1])
    except ValueError as e:
        return x + 1, str(e)[:20]


@pytest.mark.parametrize("fn,graphs", [(arithmetic, 2), (made_inside, 1), (of_a_tensor, 1), (refused, 1)])
def test_what_numpy_computes(fn, graphs):
    compare(fn, graphs)
