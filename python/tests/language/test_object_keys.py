"""Modules, parameters and other objects that equal only themselves, as keys of dicts and members of sets."""

from __future__ import annotations

import collections
import dataclasses
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from harness.capture import break_reasons, check, describe, nb, no_translation, translations
from harness.graph_counts import one_graph

X = torch.ones(3)


class Thing:
    def __init__(self, v: float) -> None:
        self.v = v


@dataclasses.dataclass(frozen=True)
class Point:
    at: int


class Sly:
    """Equals everything, and has the hash of another object."""

    def __init__(self, victim: object) -> None:
        self.hash = hash(victim)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return True


class Model(nn.Module):
    """Keeps tables about its modules and parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.scales = {self.a: 2.0, self.b: 3.0}
        self.names = {p: name for name, p in self.named_parameters()}
        self.seen = {self.a}

    def forward(self, x: torch.Tensor) -> Any:
        for module, scale in self.scales.items():
            x = module(x) * scale
        if self.a in self.seen:
            x = x + 1
        if self.b in self.seen:
            x = x + 2
        return x * self.scales[self.b], self.names[self.a.weight], self.scales.get(self.a)


def items(x: torch.Tensor, d: dict[Any, float]) -> Any:
    for k, v in d.items():
        x = x * v + (k if isinstance(k, torch.Tensor) else 1)
    return x


def item(x: torch.Tensor, d: dict[Any, float], k: Any) -> Any:
    return x * d[k]


def get(x: torch.Tensor, d: dict[Any, float], k: Any) -> Any:
    return x * d.get(k, 7.0)


def contains(x: torch.Tensor, d: Any, k: Any) -> Any:
    return x * 2 if k in d else x * 3


def listed(x: torch.Tensor, s: Any) -> Any:
    return x + 1, list(s)


def stored(x: torch.Tensor, d: dict[Any, Any], k: Any) -> Any:
    d[k] = x + 1
    return x * len(d)


def added(x: torch.Tensor, s: set[Any], k: Any) -> Any:
    s.add(k)
    return x * len(s), k in s


def removed(x: torch.Tensor, d: dict[Any, Any], k: Any) -> Any:
    return x * d.pop(k), len(d), list(d)


def made(x: torch.Tensor, params: list[torch.Tensor]) -> Any:
    numbers = {p: i for i, p in enumerate(params)}
    seen = set()
    for p in params + params:
        if p in seen:
            x = x + p * numbers[p]
        seen.add(p)
    return x


def distinct_modules(x: torch.Tensor, model: nn.Module) -> Any:
    seen: set[nn.Module] = set()
    order = {id(m): i for i, m in enumerate(model.modules())}
    for m in [*model.modules(), *model.children()]:
        if m in seen:
            x = x * 2 + order[id(m)]
        seen.add(m)
    return x


A, B, P, Q = nn.Linear(3, 3), nn.ReLU(), nn.Parameter(torch.ones(3)), nn.Parameter(torch.full((3,), 2.0))
T, U, MODEL = Thing(1), Thing(2), Model()

CASES: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (MODEL.forward, lambda: ()),
    (items, lambda: ({A: 1.0, B: 2.0},)),
    (items, lambda: ({P: 1.0, Q: 2.0, "a": 3.0, 4: 5.0, Thing: 6.0, len: 7.0},)),
    (items, lambda: (collections.OrderedDict({T: 1.0, U: 2.0}),)),
    (items, lambda: ({Point(1): 1.0, Point(2): 2.0},)),
    (items, lambda: ({(T, "a"): 1.0, (U, "a"): 2.0},)),
    (item, lambda: ({A: 1.0, B: 2.0}, B)),
    (item, lambda: ({P: 1.0, Q: 2.0}, Q)),
    (item, lambda: (collections.defaultdict(float, {T: 3.0}), T)),
    (item, lambda: (collections.defaultdict(float, {T: 3.0}), U)),
    (get, lambda: ({T: 3.0}, T)),
    (get, lambda: ({T: 3.0}, U)),
    (contains, lambda: ({A: 1}, B)),
    (contains, lambda: ({A, P}, A)),
    (contains, lambda: ({A, P}, B)),
    (contains, lambda: (frozenset([A, P]), P)),
    (listed, lambda: ({A, "x", P},)),
    (listed, lambda: (frozenset([T, U]),)),
    (stored, lambda: ({A: X}, A)),
    (stored, lambda: ({A: X}, B)),
    (added, lambda: ({A}, B)),
    (removed, lambda: ({T: 2.0, U: 3.0, A: 4.0}, U)),
    (made, lambda: ([P, Q],)),
    (distinct_modules, lambda: (MODEL,)),
]


def arguments(f: Callable[..., Any], args: Callable[[], tuple[Any, ...]], wrap: Any, calls: int = 2) -> list[Any]:
    """Return what ``wrap(f)`` returns and does to its arguments."""
    g = wrap(f)
    out = []
    for _ in range(calls):
        given = args()
        result = g(X, *given)
        out.append(describe((result, given)))
    return out


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("f, args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_one_graph(f, args, whole):
    godynamo.reset()
    backend: Any = nb() if whole else "eager"
    with translations(1):
        ours = arguments(f, args, lambda f: godynamo.optimize(f, backend=backend))
    assert ours == arguments(f, args, lambda f: f)
    assert not break_reasons()
    assert not whole or len(backend) == 1


@pytest.mark.parametrize("f", [items, listed])
def test_other_objects_of_one_kind_are_no_recompile(f):
    g = godynamo.optimize(f)
    with translations(1):
        for _ in range(3):
            one = {Thing(0): 2.0}
            assert describe(g(X, one)) == describe(f(X, one))


CHANGES: list[Callable[[dict[Any, float]], Any]] = [
    lambda d: d.update({A: 5.0}),
    lambda d: d.update({T: 5.0}),
    lambda d: d.pop(A),
    lambda d: d.update({A: d.pop(A)}),  # another order
    lambda d: (d.pop(B), d.update({Thing(1): 6.0})),
    lambda d: (d.pop(A), d.update(b=6.0)),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("f", [items, listed, lambda x, d: item(x, d, B), lambda x, d: get(x, d, A)])
def test_a_changed_dict_is_seen(f, change):
    d: dict[Any, float] = {A: 2.0, "k": 4.0, B: 3.0}
    g = godynamo.optimize(f)

    def run(f):
        try:
            return describe(f(X, d))
        except KeyError:
            return "KeyError"

    assert run(g) == run(f)
    with no_translation():
        assert run(g) == run(f)
    change(d)
    assert run(g) == run(f)
    assert run(g) == run(f)


@pytest.mark.parametrize("f", [listed, lambda x, s: contains(x, s, A), lambda x, s: contains(x, s, T)])
def test_a_changed_set_is_seen(f):
    s: set[Any] = {A, B}
    g = godynamo.optimize(f)
    for change in (s.copy, lambda: s.discard(A), lambda: s.add(T), lambda: s.add(A), s.clear):
        change()
        for _ in range(2):
            assert describe(g(X, s)) == describe(f(X, s))


def test_other_keys_cause_no_recompile():
    d, s = {A: 2.0, B: 3.0}, {A, B}
    g = godynamo.optimize(lambda x: x * d[A] + (A in s) + (T in s) + (T in d))
    check(g.function, X, optimized=g)
    with no_translation():
        d[U], d[B] = 4.0, 5.0
        s.add(U)
        s.discard(B)
        check(g.function, X, optimized=g)
    d[A] = 6.0
    check(g.function, X, optimized=g)
    d[T] = 6.0
    check(g.function, X, optimized=g)


@pytest.mark.parametrize("known", [False, True])
def test_keys_that_equal_every_object_of_their_hash(known):
    """A class with such a comparison decides; neither guards nor the translator may run it."""
    thing = Thing(1)
    for f, container in ((get, {}), (contains, {}), (contains, set())):
        if known:
            container |= {thing: 2.0} if isinstance(container, dict) else {thing}
        g = godynamo.optimize(f)
        assert describe(g(X, container, thing)) == describe(f(X, container, thing))
        sly = Sly(thing)
        container |= {sly: 9.0} if isinstance(container, dict) else {sly}
        for _ in range(2):
            assert describe(g(X, container, thing)) == describe(f(X, container, thing))


@pytest.mark.parametrize("one, other", [(T, U), (P, Q), (A, nn.Linear(3, 3))])
def test_one_object_in_two_places(one, other):
    """Two arguments that were distinct at the first call may be one object at the next."""

    def in_dicts(x, a, b):
        d, e = {a: 1}, {b: 2}
        return x + (b in d) + (a in e) * 2

    def in_sets(x, a, b):
        return x + len({a} & {b}), {a} == {b}

    def passed(x, a, b, d={one: 3}):
        return x + (3 if a in d else 4) + len({a, b})

    for f in (in_dicts, in_sets, passed):
        g = godynamo.optimize(f)
        for a, b in ((one, other), (one, one), (other, one), (other, other)):
            assert describe(g(X, a, b)) == describe(f(X, a, b))


@pytest.mark.parametrize("n", [10, 40])
def test_many_objects(n):
    """Many objects are guarded by their identity, a few by comparisons of each pair."""
    things = [Thing(i) for i in range(n)]

    def f(x, things):
        numbers = {t: i for i, t in enumerate(things)}
        return x * len(numbers) + numbers[things[3]]

    g = godynamo.optimize(f)
    with translations(1):
        for _ in range(2):
            assert describe(g(X, things)) == describe(f(X, things))
    assert len(godynamo.cache_entries(g)[0].nodes()) < 30 * n
    twice = [*things[:-1], things[3]]
    assert describe(g(X, twice)) == describe(f(X, twice))
    assert not break_reasons()


def test_guards_do_not_keep_the_objects_alive():
    d, s, things = {Thing(1): 2.0, nn.Linear(3, 3): 3.0}, {Thing(3)}, [Thing(i) for i in range(20)]
    refs = [weakref.ref(o) for o in (*d, *s, *things)]

    def f(x, d, s, things):
        for v in d.values():
            x = x * v
        return x + len(list(s)) + len({t: 1 for t in things})

    g = godynamo.optimize(f)
    g(X, d, s, things)
    del d, s, things
    gc.collect()
    assert [r() for r in refs] == [None] * len(refs)
    assert not break_reasons()


def test_positions_after_deletions():
    """The dict's storage has gaps where keys were deleted, until it grows."""
    things = [Thing(i) for i in range(20)]
    d: dict[Any, float] = {t: t.v for t in things}
    g = godynamo.optimize(items)
    for i in (0, 7, 19, 3):
        del d[things[i]]
        assert describe(g(X, d)) == describe(items(X, d))
        d[Thing(50 + i)] = 2.0
        assert describe(g(X, d)) == describe(items(X, d))


def test_a_class_that_gets_a_comparison_later():
    class Late:
        pass

    a, b = Late(), Late()
    d = {a: 2.0}
    g = godynamo.optimize(get)
    assert describe(g(X, d, b)) == describe(get(X, d, b))
    Late.__eq__ = lambda self, other: True  # type: ignore[method-assign, assignment]
    Late.__hash__ = lambda self: 0  # type: ignore[method-assign, assignment]
    d = {a: 2.0}
    assert describe(g(X, d, b)) == describe(get(X, d, b))


def test_equal_layers_with_their_own_entries():
    """A layer that looks itself up in a table is not taken for an equal layer."""
    table: dict[nn.Module, float] = {}

    class Layer(nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.lin = nn.Linear(3, 3)
            table[self] = scale

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.lin(x) * table[self]
            return x + 1 if self.lin in table else x

    layers = nn.Sequential(*(Layer(2.0 if i < 3 else 5.0) for i in range(6)))
    table[layers[4].lin] = 1.0
    one_graph(lambda x: layers(x), X)
