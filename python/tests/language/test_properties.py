"""A property read from its class is a value like any other: queried, called, returned."""

from __future__ import annotations

import pytest
import torch

import godynamo
from godynamo import utils


class Thing:
    @property
    def p(self):
        """A number."""
        return self.v

    @p.setter
    def p(self, v):
        self.v = v

    def __init__(self):
        self.v = 1


THING = Thing()

CASES = {
    "instance": lambda x: (x + 1, isinstance(Thing.p, property), type(Thing.p), Thing.p is Thing.p),
    "get": lambda x: (x + 1, Thing.p.__get__(THING), Thing.p.__get__(THING, Thing)),
    "fget": lambda x: (x + 1, Thing.p.fget(THING), Thing.p.fget.__name__, Thing.p.fdel),
    "set": lambda x: (x + 1, Thing.p.__set__(THING, 5), THING.v),
    "returned": lambda x: (x + 1, Thing.p, Thing.__dict__["p"], vars(Thing)["p"]),
    "made": lambda x: (x + 1, type(Thing.p.setter(len)), property(len).fget, Thing.p.getter(len).fget),
    "compared": lambda x: (
        x + 1,
        Thing.p == Thing.p,
        Thing.p != 3,
        hash(Thing.p) == hash(Thing.p),
        {Thing.p: 1}[Thing.p],
        bool(Thing.p),
    ),
    "attributes": lambda x: (
        x + 1,
        Thing.p.__doc__,
        hasattr(Thing.p, "fset"),
        getattr(Thing.p, "nope", 3),
        callable(Thing.p),
    ),
    "an operand": lambda x: Thing.p + 1,
    "called": lambda x: Thing.p(x),
    "text": lambda x: (x + 1, str(Thing.p)[:12]),
}


def outcome(fn):
    THING.v = 1
    try:
        return str(fn(torch.ones(2)))
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("name", CASES)
def test_properties(name):
    fn = CASES[name]
    want = outcome(fn)
    optimized = godynamo.optimize(fn)
    assert [outcome(optimized) for _ in range(2)] == [want] * 2


def test_a_property_that_becomes_another():
    utils.counters.clear()
    before = Thing.p
    optimized = godynamo.optimize(
        lambda x: (x + 1, isinstance(Thing.p, property), Thing.p.__doc__ if isinstance(Thing.p, property) else "none")
    )
    assert optimized(torch.ones(2))[1:] == (True, "A number.")
    assert dict(utils.counters["graph_break"]) == {}
    try:
        Thing.p = property(lambda self: 7)
        assert optimized(torch.ones(2))[1:] == (True, None)
        Thing.p = 3
        assert optimized(torch.ones(2))[1:] == (False, "none")
    finally:
        Thing.p = before


class Marked(property):
    """A property with a method of its own."""

    def told(self):
        return self.__doc__


class Redefined(property):
    def __get__(self, owner, kind=None):
        return 42


class Measured:
    def __init__(self, v):
        self.v = v

    @Marked
    def twice(self):
        """Two times v."""
        return self.v * 2

    @twice.setter
    def twice(self, v):
        self.v = v

    @twice.deleter
    def twice(self):
        del self.v

    @Marked
    def absent(self):
        raise AttributeError("not here")

    @Redefined
    def fixed(self):
        return 1


def uses_a_subclass(x):
    m = Measured(x)
    first, m.twice = m.twice, x + 1
    texts = []
    for store in (lambda: setattr(m, "absent", 1), lambda: delattr(m, "absent")):
        try:
            store()
        except AttributeError as error:
            texts.append(str(error))
    second = m.twice
    del m.twice
    return first, second, hasattr(m, "v"), getattr(m, "absent", 3), m.fixed, texts, isinstance(Measured.twice, Marked)


def test_a_subclass_of_property():
    utils.counters.clear()
    x = torch.ones(2)
    optimized = godynamo.optimize(uses_a_subclass)
    assert [str(optimized(x)) for _ in range(2)] == [str(uses_a_subclass(x))] * 2
    assert dict(utils.counters["graph_break"]) == {}
