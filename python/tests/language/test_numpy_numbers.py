"""Numbers of numpy that are passed to a function and differ between calls: one translation serves them."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import godynamo

X = torch.arange(144.0).reshape(12, 12)
CASES: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "right": (lambda x, n: x * n + 1, True),
    "left": (lambda x, n: n * x - n, True),
    "index": (lambda x, n: x[n], True),
    "column": (lambda x, n: x[:, n] + n, True),
    "functions": (lambda x, n: torch.add(x, n, alpha=2).clamp(max=n), False),
    "numpy's functions": (lambda x, n: x + np.sqrt(np.abs(n)), True),
    "arithmetic": (lambda x, n: (x + (n + 1) * 2, n - 1, -n, n / 2), True),
    "attributes": (lambda x, n: (x * n, n.dtype, n.shape, n.ndim, n.itemsize), False),
    "returned": (lambda x, n: (x + 1, n, [n], {"n": n}), True),
    "class": (lambda x, n: (x * n, isinstance(n, np.number), isinstance(n, int), isinstance(n, float)), True),
    "tensor of it": (lambda x, n: x + torch.tensor(n), True),
    "item": (lambda x, n: x * n.item(), True),
    "converted": (lambda x, n: x * float(n) + int(n), False),
    "slice": (lambda x, n: x[n:] * 2, False),
    "size": (lambda x, n: x.sum() + torch.ones((n, 2)).sum(), False),
    "range": (lambda x, n: sum((x * i for i in range(n)), x), False),
    "branch": (lambda x, n: x + 1 if n > 3 else x - 1, False),
    "text": (lambda x, n: (x + 1, f"{n}", str(n), repr(n)), False),
    "key": (lambda x, n: (x + 1, {0: "a", 3: "b"}.get(n), [10, 20, 30, 40][n % 4]), False),
    "hash": (lambda x, n: (x + 1, hash(n)), False),
    "math": (lambda x, n: x * math.sqrt(n), False),
    "equal": (lambda x, n: (x + 1, n == 3, n in (1, 2)), False),
    "power": (lambda x, n: (x**n, n**2), False),
    "rounded": (lambda x, n: (x + 1, round(n), abs(n), divmod(n, 4)), False),
    "in place": (lambda x, n: x.clone().mul_(n).add_(1), False),
}


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            # torch's message names the type of an index or size; a constant is passed to it as a number of Python.
            return type(error), re.sub(r"numpy\.float\d\d", "float", str(error))
    shown = torch.utils._pytree.tree_map(lambda v: (type(v), getattr(v, "dtype", None), repr(v)), result)
    return shown, [str(w.message) for w in warned]


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8, np.float64, np.float32, np.complex64])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, kind: Any) -> None:
    f, one = CASES[name]
    optimized = godynamo.optimize(f)
    for i in (*range(11), 3, 0):
        assert outcome(optimized, X, kind(i)) == outcome(f, X, kind(i))
    if one and kind in (np.int64, np.float32) and not (kind is np.float32 and name in ("index", "column")):
        assert len(godynamo.cache_entries(optimized)) <= 2


def test_the_limits_of_a_type() -> None:
    def f(x: Any, n: Any) -> Any:
        return x + 1, n + np.int8(100), n * n

    optimized = godynamo.optimize(f)
    for i in (1, 2, 27, 28, 100, -128):
        assert outcome(optimized, X, np.int8(i)) == outcome(f, X, np.int8(i))


def test_types_that_vary() -> None:
    def f(x: Any, n: Any) -> Any:
        return x * n

    optimized = godynamo.optimize(f)
    for i, kind in enumerate([np.int64, np.int64, np.float32, np.float32, np.bool_, np.int64, float, int] * 2):
        assert outcome(optimized, X, kind(i)) == outcome(f, X, kind(i))


def test_attributes_globals_and_one_object_twice() -> None:
    def f(x: Any, state: Any, n: Any, m: Any) -> Any:
        state.n = state.n + n
        return x * state.n, n is m

    optimized = godynamo.optimize(f)
    states = [SimpleNamespace(n=np.int64(0)) for _ in range(2)]
    for i in range(6):
        n = np.int64(i)
        m = n if i % 2 else np.int64(i)
        want, got = (outcome(g, X, s, n, m) for g, s in zip((f, optimized), states, strict=True))
        assert want == got
        assert repr(states[0].n) == repr(states[1].n)


def test_whole_graphs() -> None:
    def f(x: Any, n: Any) -> Any:
        return x * n + 1

    optimized = godynamo.optimize(f, backend="aot_eager")
    for i in range(4):
        assert outcome(optimized, X, np.int64(i)) == outcome(f, X, np.int64(i))


def test_numbers_that_no_call_changes_stay_constants() -> None:
    """Only what differs is known at run time: the other number still decides a branch."""

    def f(x: Any, n: Any, mode: Any) -> Any:
        return x * n if mode == 1 else x + n

    optimized = godynamo.optimize(f)
    for i in range(6):
        assert outcome(optimized, X, np.int64(i), np.int64(1)) == outcome(f, X, np.int64(i), np.int64(1))
    assert len(godynamo.cache_entries(optimized)) == 2
    assert all(not e.info["breaks"] for e in godynamo.cache_entries(optimized) if "breaks" in e.info)
