"""A frame stores on a class, then reads the name again: through any kind of instance, super() or the metaclass."""

from __future__ import annotations

import collections
import dataclasses
import enum
import operator
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo

PAIR = collections.namedtuple("PAIR", "a b")


class Metaclass(type):
    pass


class Plain(metaclass=Metaclass):
    pass


class Slotted:
    __slots__ = ("z",)


class Text(str):
    pass


class Number(int):
    pass


class Items(list):
    pass


class Pairs(dict):
    pass


class Pair(PAIR):
    pass


class Kind(enum.Enum):
    ONE = 1


class Module(torch.nn.Module):
    pass


class Tensor(torch.Tensor):
    pass


class Parameter(torch.nn.Parameter):
    pass


@dataclasses.dataclass(frozen=True)
class Record:
    a: int = 1


MAKERS: dict[type, Callable[[type], Any]] = {
    Plain: lambda c: c(),
    Slotted: lambda c: c(),
    Text: lambda c: c("t"),
    Number: lambda c: c(3),
    Items: lambda c: c([1]),
    Pairs: lambda c: c(k=1),
    Pair: lambda c: c(1, 2),
    Kind: lambda c: c.ONE,
    Module: lambda c: c(),
    Tensor: lambda c: torch.ones(2).as_subclass(c),
    Parameter: lambda c: c(torch.ones(2)),
    Record: lambda c: c(),
}


def method(self: Any) -> int:
    return 5


def reads(x: torch.Tensor, c: type, d: type, o: Any) -> Any:
    c.prop = 7
    return x + 1, getattr(o, "prop", None), hasattr(o, "prop"), "prop" in dir(o), operator.attrgetter("prop")(o)


def calls(x: torch.Tensor, c: type, d: type, o: Any) -> Any:
    y = x * 2
    setattr(c, "prop", method)  # noqa: B010
    return y + 1, o.prop(), type(o.prop).__name__


def matches(x: torch.Tensor, c: type, d: type, o: Any) -> Any:
    c.prop = 7
    match o:
        case object(prop=v):
            return x + 1, v
    return x + 2


def asks_super(x: torch.Tensor, c: type, d: type, o: Any) -> Any:
    c.prop = 7
    try:
        return x + 1, super(d, o).prop
    except AttributeError as e:
        return x + 2, str(e)


def outcome(fn: Callable[..., Any], *args: Any) -> Any:
    try:
        return [v.tolist() if isinstance(v, torch.Tensor) else v for v in fn(*args)]
    except Exception as e:
        return type(e), str(e)


OWN = [(c, c) for c in MAKERS]
#: (a class, the class of the instance); an enum with members has no subclass
CLASSES = OWN + [(c, types.new_class(f"Sub{c.__name__}", (c,))) for c in MAKERS if c is not Kind]


@pytest.mark.parametrize("fn", [reads, calls, matches, asks_super])
@pytest.mark.parametrize(("cls", "sub"), CLASSES, ids=lambda c: c.__name__)
def test_a_name_stored_on_a_class_is_read(cls: type, sub: type, fn: Callable[..., Any]) -> None:
    got = []
    for run in fn, godynamo.optimize(fn):
        o = MAKERS[cls](sub)
        got.append((outcome(run, torch.ones(2), cls, sub, o), vars(cls).get("prop")))
        if "prop" in vars(cls):
            del cls.prop
    assert got[0] == got[1]
    assert got[0][1] in (7, method)


def test_a_name_stored_on_a_metaclass_is_read() -> None:
    def fn(x: torch.Tensor) -> Any:
        Metaclass.prop = 3
        return x + 1, Plain.prop

    assert godynamo.optimize(fn)(torch.ones(2))[1] == 3
    del Metaclass.prop


@pytest.mark.parametrize("own_first", [True, False])
def test_an_attribute_of_the_instance_stands_before_what_is_stored_on_the_class(own_first: bool) -> None:
    class Held:
        prop = 1

    def fn(x: torch.Tensor, o: Held) -> Any:
        Held.prop = 2
        return x + 1, o.prop, Held.prop, Held().prop

    o = Held()
    o.prop = 5
    run = godynamo.optimize(fn)
    calls = [(o, [5, 2, 2]), (Held(), [2, 2, 2])]
    for held, want in calls if own_first else reversed(calls):
        Held.prop = 1
        assert list(run(torch.ones(2), held))[1:] == want
