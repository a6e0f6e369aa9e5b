"""Functions wrapped by functools.lru_cache: a hit is captured, and counted as in CPython; a miss runs the function."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo._translator import caches
from harness.cases import check_calls

CALLS = [lambda k=k: (torch.ones(3), k) for k in (1, 1, 2, 1, 1)]


def told(g: Any) -> tuple[int, ...]:
    return tuple(g.cache_info())


class Family:
    """A cached function, its calls, and a function that uses it; created anew for each side."""

    def __init__(self, maxsize: int | None = None, **options: Any) -> None:
        self.runs: list[Any] = []

        @functools.lru_cache(maxsize=maxsize, **options)
        def g(*args: Any) -> Any:
            self.runs.append(args)
            return self.result(*args)

        self.g = g

    def result(self, *args: Any) -> Any:
        return len(args) + 1


def compare(
    make: Callable[[Family], Callable[..., Any]], family: Callable[[], Family] = Family, **expected: Any
) -> None:
    """Compare the results, the number of runs, and the cache's counts after each call."""
    current: list[Family] = []

    def fresh() -> Callable[..., Any]:
        current[:] = [family()]
        return make(current[0])

    check_calls(fresh, CALLS, state=lambda: (list(current[0].runs), told(current[0].g)), **expected)


@pytest.mark.parametrize("maxsize", [None, 128, 1])
def test_a_hit_is_captured(maxsize: int | None) -> None:
    def make(family: Family) -> Callable[..., Any]:
        g = family.g
        return lambda x, k: (x + g(3)) * g(3)

    # the first call misses, which breaks the graph; from the second on there is one graph
    compare(make, lambda: Family(maxsize), graphs=2, translations=[4, 1, 0, 0, 0])


def test_a_warm_cache_gives_one_graph() -> None:
    def make(family: Family) -> Callable[..., Any]:
        g = family.g
        g("a", 2.5), g(None)
        return lambda x, k: x * g("a", 2.5) + g(None)

    compare(make, graphs=1, translations=[1, 0, 0, 0, 0])


def test_arguments_that_vary() -> None:
    def make(family: Family) -> Callable[..., Any]:
        g = family.g
        return lambda x, k: x + g(k)

    compare(make, graphs=2)


def test_a_full_cache_forgets() -> None:
    def make(family: Family) -> Callable[..., Any]:
        g = family.g
        return lambda x, k: (x + g(1), g(k), g(2))

    compare(make, lambda: Family(2), graphs=3)
    compare(make, lambda: Family(1), graphs=2)


def test_the_cache_is_emptied_and_filled_from_outside() -> None:
    family = Family()
    g = family.g
    f = godynamo.optimize(lambda x: x * g(7), backend="eager")
    x = torch.ones(2)
    for change, runs in [
        (lambda: None, 1),
        (lambda: None, 1),
        (g.cache_clear, 2),
        (lambda: g(8), 3),
        (lambda: g(7), 3),
    ]:
        change()
        assert f(x).equal(x * 2)
        assert len(family.runs) == runs
    assert g.cache_info().hits == 3


def test_what_it_returns_is_the_object_in_the_cache() -> None:
    class Lists(Family):
        def result(self, *args: Any) -> Any:
            return [args, torch.arange(3)]

    def make(family: Family) -> Callable[..., Any]:
        g = family.g

        def f(x: torch.Tensor, k: int) -> Any:
            found = g(k)
            return x + found[1], found is g(k), found[0]

        return f

    compare(make, Lists, graphs=4)


def test_a_cached_function_that_calls_itself() -> None:
    @functools.cache
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    f = godynamo.optimize(lambda x: x + fib(20))
    x = torch.ones(2)
    assert f(x).equal(x + 6765) and told(fib) == (18, 21, None, 21)
    assert f(x).equal(x + 6765) and told(fib) == (19, 21, None, 21)


def test_exceptions_are_not_kept() -> None:
    class Fails(Family):
        def result(self, *args: Any) -> Any:
            raise ValueError(len(self.runs))

    def make(family: Family) -> Callable[..., Any]:
        g = family.g

        def f(x: torch.Tensor, k: int) -> Any:
            try:
                g(1)
            except ValueError as e:
                return x + 1, str(e)

        return f

    compare(make, Fails, graphs=1)


def test_what_is_left_to_cpython() -> None:
    def typed(family: Family) -> Callable[..., Any]:
        g = family.g
        return lambda x, k: (x + g(1), g(1.0), g(True), tuple(g.cache_info()))

    compare(typed, lambda: Family(typed=True), graphs=1)

    def cleared(family: Family) -> Callable[..., Any]:
        g = family.g

        def f(x: torch.Tensor, k: int) -> Any:
            y, before = x + g(k), tuple(g.cache_info())
            g.cache_clear()
            return y, before, tuple(g.cache_info())

        return f

    compare(cleared, graphs=1)

    def of_tensors(family: Family) -> Callable[..., Any]:
        g = family.g
        return lambda x, k: (g(x) is g(x), g(x) + 1)

    check_calls(lambda: of_tensors(Family()), CALLS, graphs=0)


def test_a_wrapper_that_the_function_makes_is_no_reason_to_translate() -> None:
    def f(x: torch.Tensor, k: int) -> Any:
        @functools.cache
        def g(n: int) -> int:
            return n * 2

        return x + g(3) + g(3), tuple(g.cache_info())

    check_calls(lambda: f, CALLS[:2], graphs=2, translations=[6, 0])


@pytest.mark.parametrize("maxsize", [None, 4, 0])
def test_looking_leaves_no_trace(maxsize: int | None) -> None:
    family = Family(maxsize)
    g = family.g
    g(1), g("k"), g(1, 2)
    before = told(g)
    for args in [(1,), ("k",), (1, 2), (5,)]:
        found = caches.peek(g, args)
        assert found is not None and found[0] is (maxsize != 0 and args != (5,)) and found[2](g)
    assert told(g) == before
    found = caches.peek(g, (1,))
    assert found is not None
    dead = weakref.ref(g)
    del g, family
    gc.collect()
    assert dead() is None, "a predicate holds no wrapper"
