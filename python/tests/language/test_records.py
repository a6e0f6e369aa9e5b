"""Records other than dataclasses and named tuples: types.SimpleNamespace and its subclasses, TypedDict."""

from __future__ import annotations

import types
import typing

import pytest
import torch

from harness.cases import Case, Cases, check

cases = Cases()


class Space(types.SimpleNamespace):
    k = 5

    def __init__(self, **fields):
        super().__init__(**fields)
        self.z = 3

    def total(self):
        return self.a + self.z


class Typed(typing.TypedDict):
    a: int


@cases
def a_namespace_made_inside(x):
    n = types.SimpleNamespace(a=x + 1, b=2)
    n.c = n.b + 3
    del n.b
    return n, n.a, n.__dict__, vars(n)["c"], hasattr(n, "b"), getattr(n, "b", 7)


@cases
def compared_and_printed(x):
    n, m, k = types.SimpleNamespace(a=1), types.SimpleNamespace(a=1), types.SimpleNamespace(b=1)
    return x + 1, n == m, n == k, n != k, n == 3, n != 3, str(n), f"{k!r}", repr(types.SimpleNamespace())


@cases
def ordered(x):
    n = types.SimpleNamespace(a=1)
    try:
        return n < types.SimpleNamespace(a=2)
    except TypeError as error:
        return x + 1, str(error)


@cases(breaks=1)
def positional_arguments(x):
    y = x + 1
    return types.SimpleNamespace(1), y


@cases(breaks=1)
def a_missing_attribute(x):
    return types.SimpleNamespace(a=x + 1).b


@cases(breaks=1)
def hashed(x):
    y = x + 1
    return y, hash(types.SimpleNamespace(a=1))


@cases(breaks=1)
def one_that_holds_itself(x):
    n = types.SimpleNamespace(a=1)
    n.me = n
    return x + 1, repr(n)


@cases
def a_subclass(x):
    s = Space(a=x)
    return s, s.total(), s.k, Space(a=1) == Space(a=1), Space(a=1) == types.SimpleNamespace(a=1, z=3), repr(Space(a=2))


@cases(args=lambda: (types.SimpleNamespace(a=1, b=torch.ones(4)),))
def one_of_the_callers(x, n):
    n.c = n.a + 1
    n.a = 7
    y = x + n.b
    for key, value in n.__dict__.items():
        if key == "c":
            y = y * value
    del n.b
    return y, n, n == types.SimpleNamespace(a=7, c=2)


@cases(args=lambda: (Space(a=1, b=torch.ones(4)),))
def a_subclass_of_the_callers(x, n):
    n.b = n.b * x
    return n.total() + x, n.k, n


@cases
def a_typed_dict(x):
    return Typed(a=x + 1), Typed({"a": 3}), Typed(), type(Typed(a=1)) is dict


@pytest.mark.row("S004-47")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_records(case: Case) -> None:
    check(case)
