"""Functions and methods under functools.lru_cache: a hit is captured and counted as in CPython.

A miss is captured if the function has no side effects. Otherwise the function runs in CPython.
"""

from __future__ import annotations

import functools
import gc
import types
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


class Methods:
    """A class with cached methods, and the list of their runs. Each side of a comparison has its own."""

    def __init__(self, maxsize: int | None = None, **names: Any) -> None:
        self.runs: list[Any] = []
        runs = self.runs

        @functools.lru_cache(maxsize)
        def said(self: Any, text: str = "") -> int:
            runs.append((type(self).__name__, text))
            return len(runs)

        self.said = said
        self.cls: Any = type("Owner", (), {"said": said, "once": property(said), "ours": classmethod(said), **names})

    def state(self) -> Any:
        return list(self.runs), told(self.said)


def compare_methods(
    make: Callable[[Any], Callable[..., Any]],
    maxsize: int | None = None,
    names: dict[str, Any] | None = None,
    **expected: Any,
) -> None:
    current: list[Methods] = []

    def fresh() -> Callable[..., Any]:
        current[:] = [Methods(maxsize, **(names or {}))]
        return make(current[0].cls)

    check_calls(fresh, CALLS, state=lambda: current[0].state(), **expected)


@pytest.mark.parametrize("maxsize", [None, 128, 1])
def test_methods(maxsize: int | None) -> None:
    def make(cls: Any) -> Callable[..., Any]:
        owner = cls()
        return lambda x, k: (x + owner.said("a")) * owner.said("a")

    compare_methods(make, maxsize, graphs=2)


def test_each_call_is_guarded() -> None:
    """Guards of several calls of one function, and of nan, do not stand for each other."""

    class Runs(Family):
        def result(self, *args: Any) -> Any:
            return len(self.runs)

    family = Runs()
    g, nans = family.g, (float("nan"), float("nan"))
    f = godynamo.optimize(lambda x: (x * 0 + g(1), g(2), g("a" * 80 + "b"), g("a" * 80 + "c"), g(nans[0]), g(nans[1])))
    x = torch.ones(1)
    for _ in range(3):
        assert [int(v) for v in f(x)] == [1, 2, 3, 4, 5, 6]
    g.cache_clear()
    for runs, args in enumerate([(1,), ("a" * 80 + "b",), (nans[0],)], 7):
        assert g(*args) == runs
    assert [int(v) for v in f(x)] == [7, 10, 8, 11, 9, 12]


def test_methods_of_several_objects() -> None:
    def make(cls: Any) -> Callable[..., Any]:
        owners = [cls(), cls(), cls()]
        return lambda x, k: (x + owners[k].said("a"), cls.said(owners[0], "a"), owners[k].said("a") + 1)

    compare_methods(make, graphs=3)
    compare_methods(make, maxsize=1, graphs=4)


def test_class_methods_and_properties() -> None:
    def make(cls: Any) -> Callable[..., Any]:
        owner = cls()
        owner.once, owner.ours("b")  # noqa: B018
        return lambda x, k: x * owner.once + owner.ours("b")

    compare_methods(make, graphs=1, translations=[1, 0, 0, 0, 0])


def test_a_property_that_misses() -> None:
    """The guards of a miss read the property's getter from the class, which is a constant of the translation."""

    def make(cls: Any) -> Callable[..., Any]:
        owners = [cls(), cls(), cls()]
        return lambda x, k: x + owners[k].once + owners[0].once

    compare_methods(make, graphs=4)


def test_objects_that_compare_by_their_own_methods() -> None:
    names = {"__eq__": lambda self, other: True, "__hash__": lambda self: 7}

    def make(cls: Any) -> Callable[..., Any]:
        owners = [cls(), cls(), cls()]
        return lambda x, k: (x + owners[k].said("a"), owners[0].said("b"))

    compare_methods(make, names=names, graphs=1)


def test_objects_without_weak_references() -> None:
    def make(cls: Any) -> Callable[..., Any]:
        owner = cls()
        return lambda x, k: x + owner.said("a")

    compare_methods(make, names={"__slots__": ()}, graphs=1)


def test_methods_of_modules() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        @functools.lru_cache  # noqa: B019
        def table(self, n: int) -> torch.Tensor:
            return torch.arange(n) * self.weight.detach()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight + self.table(3)

    x = torch.ones(3)
    nets = [Net(), Net()]
    expected = [net(x) for net in nets]
    Net.table.cache_clear()
    for net, result in zip(nets, expected, strict=True):
        compiled = godynamo.optimize(net, backend="eager")
        for hits in (0, 1, 2):
            assert compiled(x).equal(result)
            assert Net.table.cache_info().hits == hits + (2 if net is nets[1] else 0)
    assert Net.table.cache_info().misses == 2


@pytest.mark.parametrize("maxsize", [None, 8])
def test_an_entry_keeps_no_object_that_the_cache_has_forgotten(maxsize: int | None) -> None:
    methods = Methods(maxsize)
    owner, other = methods.cls(), methods.cls()

    def call(x: torch.Tensor, owner: Any) -> Any:
        return x + owner.said("a")

    f = godynamo.optimize(call, backend="eager")
    x = torch.ones(2)
    for _ in range(3):
        assert f(x, owner).equal(x + 1)
    methods.said.cache_clear()
    dead = weakref.ref(owner)
    del owner
    assert f(x, other).equal(x + 2)
    gc.collect()
    assert dead() is None


def test_a_missing_text_runs_no_repr() -> None:
    said: list[Any] = []
    methods = Methods(__repr__=lambda self: said.append(self) or "")
    owner = methods.cls()
    f = godynamo.optimize(lambda x: x + owner.said("a"), backend="eager")
    assert f(torch.ones(2)).tolist() == [2.0, 2.0] and not said


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
        found = caches.peek(g, args, (True,) * len(args), ())
        assert found is not None and found[0] is (maxsize != 0 and args != (5,)) and found[2](g)
    assert told(g) == before
    found = caches.peek(g, (1,), (True,), ())
    assert found is not None
    dead = weakref.ref(g)
    del g, family
    gc.collect()
    assert dead() is None, "a predicate holds no wrapper"


class Pure:
    """A cached function without side effects. Each side of a comparison has its own."""

    def __init__(self, fn: Callable[..., Any], maxsize: int | None) -> None:
        self.g = functools.lru_cache(maxsize)(types.FunctionType(fn.__code__, fn.__globals__))
        self.g.__wrapped__.__kwdefaults__ = fn.__kwdefaults__


def compare_pure(fn: Callable[..., Any], use: Callable[..., Any], maxsize: int | None = 8, **expected: Any) -> None:
    """Compare calls of use(g, x, k), where g is fn under a cache that is empty at first, and the cache's counts."""
    current: list[Pure] = []

    def fresh() -> Callable[..., Any]:
        current[:] = [Pure(fn, maxsize)]
        g = current[0].g
        return lambda x, k: use(g, x, k)

    check_calls(fresh, CALLS, state=lambda: told(current[0].g), **expected)


def pairs(*args: Any, **kwargs: Any) -> list[Any]:
    return [*args, *kwargs.items()]


@pytest.mark.parametrize("maxsize", [None, 8])
def test_a_miss_without_side_effects_is_captured(maxsize: int | None) -> None:
    def use(g: Any, x: torch.Tensor, k: int) -> Any:
        found = g("a", (2, 3))
        return x + found[1][0], found is g("a", (2, 3)), len(g(x.shape, x.device, x.dtype)), found

    compare_pure(pairs, use, maxsize, graphs=1, translations=[1, 0, 0, 0, 0])


def test_keywords_of_cached_calls() -> None:
    def use(g: Any, x: torch.Tensor, k: int) -> Any:
        return x + 1, g(1, b=k, a=2), g(1, a=2, b=k), g(b=1), g(b=1) is g(b=1), g(1, "b", 1) is g(1, b=1)

    compare_pure(pairs, use, None, graphs=2)


def test_the_cached_object_is_read_in_each_call() -> None:
    g = functools.lru_cache(8)(pairs)
    f = godynamo.optimize(lambda x: x * g(2)[0], backend="eager")
    x = torch.ones(2)
    assert f(x).equal(x * 2) and told(g)[:2] == (0, 1)
    g(2)[0] = 5
    assert f(x).equal(x * 5) and told(g)[:2] == (2, 1)
    g.cache_clear()
    assert f(x).equal(x * 2) and told(g)[:2] == (0, 1)
    f(x)
    assert told(g)[:2] == (1, 1)


OFFSETS = {"now": 1}


def offset(name: str) -> int:
    return OFFSETS[name]


def test_what_the_program_has_changed_before_a_miss() -> None:
    def use(g: Any, x: torch.Tensor, k: int) -> Any:
        OFFSETS["now"] = k + 3
        return x + g("now")

    compare_pure(offset, use, graphs=3)


def mode(n: int) -> Any:
    return torch.is_grad_enabled(), torch.get_default_dtype()


def test_modes_that_the_program_has_switched_before_a_miss() -> None:
    def use(g: Any, x: torch.Tensor, k: int) -> Any:
        y = x.relu()
        with torch.no_grad():
            found = g(k)
        return y + 1, found

    compare_pure(mode, use, graphs=4)

    def dtype(g: Any, x: torch.Tensor, k: int) -> Any:
        torch.set_default_dtype(torch.float64)
        try:
            return x + 1, g(k)
        finally:
            torch.set_default_dtype(torch.float32)

    compare_pure(mode, dtype, graphs=1)


def fails(n: int) -> int:
    if n > 0:
        raise KeyError(n)
    return n


def test_a_miss_that_raises() -> None:
    def use(g: Any, x: torch.Tensor, k: int) -> Any:
        try:
            return x + g(0) + g(k)
        except KeyError as e:
            return x * 2, e.args

    compare_pure(fails, use, graphs=2)


def steps(n: int) -> int:
    return n if n < 2 else int(str(n - 1)) + steps(n - 2)


def test_a_miss_after_a_call_that_cannot_be_made_ahead() -> None:
    said: list[int] = []

    def use(g: Any, x: torch.Tensor, k: int) -> Any:
        said.append(k)
        return x + g(7) + g(8)

    compare_pure(steps, use, graphs=3)


def table(n: int) -> torch.Tensor:
    return torch.arange(n)


def test_cached_tensors_are_made_in_their_place() -> None:
    compare_pure(table, lambda g, x, k: (x + g(3), g(3) is g(3)), graphs=3)


def test_a_call_made_ahead_is_counted_where_the_program_makes_it() -> None:
    """An operation before the call raises, so the program does not get there; the next run does."""
    g = functools.lru_cache(8)(pairs)

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        z = x @ y
        return z + len(g(1))

    compiled, good = godynamo.optimize(f, backend="eager"), torch.ones(2, 2)
    assert compiled(good, good).equal(f(good, good))
    assert told(g)[:2] == (1, 1)
    compiled(good, good)
    assert told(g)[:2] == (2, 1)
