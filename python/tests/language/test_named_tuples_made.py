"""Classes that captured code makes with collections.namedtuple: each call makes a new class."""

from __future__ import annotations

import collections
import types
from collections import namedtuple
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import break_reasons, nb, translations

X = torch.ones(3)


def inside(x):
    P = collections.namedtuple("P", "a b")
    p = P(x, 2)
    return p.a * p.b, p._fields


def escapes(x):
    P = namedtuple("P", ["a", "b"], defaults=[5])
    return P(x + 1), isinstance(P(x, 1), P), type(P(1, 2)) is P, P.__name__, P.__module__, P._fields


def returned(x):
    P = namedtuple("P", ("a", "b"), rename=True)
    p = P(x, b=3)
    return P, [p, p, P._make([x, 1])], p


def methods(x):
    P = namedtuple("P", "a b", module="elsewhere")
    p = P(x, 2)._replace(b=3)
    return p._asdict(), p == P(x, 3), repr(P(1, 2)), len(p), list(p), P.__module__


def loops(x):
    made = []
    for i in range(3):
        made.append(namedtuple(f"P{i}", "a b"))
    return x + 1, [c(1, 2) for c in made], made[0] is made[1], {made[0]: 1}[made[0]]


def same_names(x):
    P, Q = namedtuple("P", "a"), namedtuple("P", "a")
    return x + 1, P is Q, isinstance(P(1), Q), P(1) == Q(1)


def wrong_name(x):
    try:
        namedtuple("P", "a a")
    except ValueError as e:
        return x + 1, str(e)


def wrong_call(x):
    try:
        namedtuple("P", "a b")(1)
    except TypeError as e:
        return x + 1, str(e)


def in_a_closure(x):
    P = namedtuple("P", "a")

    def make(v):
        return P(v)

    return make(x).a + 1, make


CASES = [inside, escapes, returned, methods, loops, same_names, wrong_name, wrong_call, in_a_closure]


def plain(value: Any, made: list[type]) -> Any:
    """Return a value as plain data. A class is its number among the classes in the value, with its names."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, type):
        if value not in made:
            made.append(value)
        return made.index(value), value.__name__, value.__module__, value.__qualname__
    if isinstance(value, (list, tuple)):
        return plain(type(value), made), [plain(v, made) for v in value]
    if isinstance(value, dict):
        return [(k, plain(v, made)) for k, v in value.items()]
    if isinstance(value, types.FunctionType):
        return plain(value(7), made) if value.__name__ == "make" else value.__qualname__
    return value


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("f", CASES)
def test_one_graph(f, whole):
    godynamo.reset()
    g = godynamo.optimize(f, backend=nb() if whole else "eager")
    classes: list[type] = [list, tuple, dict]
    with translations(1):
        for _ in range(3):
            made: list[type] = []
            assert plain(g(X), made) == plain(f(X), [])
            assert not [c for c in made if c in classes and c.__module__ != "builtins"], "a class of another call"
            classes += made
    assert not break_reasons()


def changed_defaults(x):
    P = namedtuple("P", "a b")
    P.__new__.__defaults__ = (4,)  # type: ignore[attr-defined]
    return x + P(1).b, P(2)


def changed_class(x):
    P = namedtuple("P", "a b")
    P.scale = 3  # type: ignore[attr-defined]
    P.a.__doc__ = "first"  # type: ignore[attr-defined]
    return x * P.scale, P(1, 2).scale, P.a.__doc__


def parts(x):
    P = namedtuple("P", "a b", defaults=[1])
    P._field_defaults["c"] = 2
    return x + 1, P._field_defaults, P._asdict


def across_a_break(x):
    P = namedtuple("P", "a b")
    p = P(x, 2)
    godynamo.graph_break()
    return p.a + p.b, p, type(p) is P


def identity(x):
    P = namedtuple("P", "a")
    return x + 1, id(P) == id(P), hash(P) == hash(P), P.__mro__[0] is P, P in {P}


@pytest.mark.parametrize("f", [changed_defaults, changed_class, parts, across_a_break, identity])
def test_what_breaks_the_graph_is_right(f):
    g = godynamo.optimize(f)
    for _ in range(3):
        assert plain(g(X), []) == plain(f(X), [])
