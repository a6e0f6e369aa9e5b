"""Values read from known objects: lists and dicts are shared with the program, tuples are the same objects."""

from __future__ import annotations

import enum
import functools
import reprlib

import pytest
import torch

import godynamo


class E(enum.Enum):
    A = [1]
    B = "b"

    def __init__(self, value):
        self.more = [value]

    @property
    def computed(self):
        log.append(self.name)
        return [1, 2]

    @enum.property
    def described(self):
        log.append("described")
        return self.name + "!"


class Texts(enum.Enum):
    ONE = 1
    TWO = 2

    def __str__(self):
        log.append("str")
        return self.name.lower() + suffix[0]

    def __matmul__(self, other):
        log.append("matmul")
        return other

    def __len__(self):
        log.append("len")
        return self.value - 1


class Both(str, enum.Enum):
    ONE = "1"

    def __str__(self):
        log.append("str")
        return self.value + suffix[0]


class Own(enum.IntEnum):
    ZERO = 0
    ONE = 1

    def __format__(self, spec):
        log.append("format")
        return f"<{self.value:{spec}}>"

    def __repr__(self):
        log.append("repr")
        return "Own" + suffix[0]

    def __bool__(self):
        log.append("bool")
        return self is Own.ZERO


@reprlib.recursive_repr()
def shown(self):
    """An attribute of each kind."""


@functools.lru_cache
def cached(x):
    return x


class Base:
    pass


class Sub(Base):
    """What it says."""


log: list[str] = []
suffix = ["!"]
PAIR = (1, 2)


def values_of_members(x):
    E.A.value.append(2)
    E.A.more.append(3)
    return x + 1, len(E.A.value), E.A.value is E.A.value, E.A.more is E.A.more, E.B.value


def properties_of_members(x):
    return x + 1, E.A.computed, E.B.computed, E.A.described


def texts_of_members(x):
    a, b, c = Texts.ONE, Both.ONE, Own.ONE
    return (
        x + 1,
        str(a),
        f"{a}",
        f"{a:>9}",
        "%s" % a,
        repr(a),
        str(b),
        f"{b}",
        f"{b!s}",
        repr(c),
        f"{c:3}",
        f"{c!r}",
        str(c),
        [c].__repr__(),
        "{}".format(b),
    )


def operators_of_members(x):
    return x + 1, Own.ONE + 1, 1 + Own.ONE, Own.ONE | 2, "%s %r" % (Texts.ONE, Own.ONE), "%d" % Own.ONE, Texts.ONE @ 3


def lengths_of_members(x):
    return x + 1, len(Texts.TWO), bool(Texts.ONE), not Texts.TWO, bool(Own.ZERO), 1 if Own.ONE else 2, bool(Both.ONE)


def lists_of_callables(x):
    shown.items.append(2)
    cached.items.append(2)
    return x + 1, len(shown.items), shown.items is shown.items, len(cached.items), shown.pair, shown.pair is shown.pair


def annotations(x):
    return x + 1, shown.__annotations__ is shown.__annotations__, shown.__doc__


def facts_of_classes(x):
    same = Sub.__mro__ is Sub.__mro__, Sub.__bases__ is Sub.__bases__, Sub.__bases__ is Base.__bases__
    return x + 1, same, Sub.__mro__[1] is Base, len(Sub.__bases__)


def constant_tuples(x):
    a = (1, 2)
    b = (1, 2)
    made = (int(x.dim()), 2)
    return (
        x + 1,
        a is b,
        a is PAIR,
        PAIR is a,
        made is a,
        a is made,
        (a, 3)[0] is b,
        () == tuple(),
        () == a[2:],
        a is tuple(a),
    )


def constants_that_leave(x):
    return x + 1, (1, 2), PAIR is leave(x)[1], ((), (1, (2, 3)))


def leave(x):
    return x, (1, 2)


FUNCTIONS = [
    values_of_members,
    properties_of_members,
    texts_of_members,
    operators_of_members,
    lengths_of_members,
    lists_of_callables,
    annotations,
    facts_of_classes,
    constant_tuples,
    constants_that_leave,
]


def seen(fn, run):
    """Return the results of two calls from the same initial state, and the state afterwards."""
    E.A.value[:], E.A.more[:] = [1], [1]
    shown.items, shown.pair, cached.items = [1], (1, 2), [1]
    del log[:]
    suffix[0] = "!"
    return [run(torch.ones(1)) for _ in range(2)], list(log), E.A.value[:], shown.items, cached.items


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_attributes(fn):
    expected = seen(fn, fn)
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert seen(fn, compiled) == expected


def test_texts_that_rest_on_what_changes():
    compiled = godynamo.optimize(texts_of_members)
    for text in ("!", "?", "!"):
        suffix[0] = text
        assert compiled(torch.ones(1)) == texts_of_members(torch.ones(1))


def test_constants_that_leave_are_the_code_s():
    compiled = godynamo.optimize(leave)
    assert compiled(torch.ones(1))[1] is compiled(torch.ones(1))[1] is leave(torch.ones(1))[1]
