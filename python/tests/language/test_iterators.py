"""Iterators that leave the frame, are exhausted, run backwards, or are called while they run."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check
from harness.versions import COMPREHENSIONS_ARE_INLINED

cases = Cases()


def _split(*values):
    """Break the graph: everything alive is materialized before this call."""
    exec("")
    return values


@cases(breaks=7 if COMPREHENSIONS_ARE_INLINED else 6, graphs=1)
def kinds_of_spent_iterators(x):
    y = x + 1
    made = [
        iter("xyz"),
        iter(b"ab"),
        iter([1]),
        iter((1,)),
        iter({1: 2}),
        iter({1: 2}.items()),
        iter({3}),
        iter(range(3)),
    ]
    for it in made:
        for _ in it:
            pass
    _split(*made)
    return [type(it).__name__ for it in made], [list(it) for it in made], y


@cases(breaks=7 if COMPREHENSIONS_ARE_INLINED else 6, graphs=1)
def kinds_of_iterators_on_their_way(x):
    y = x + 1
    made = [
        iter("xyz"),
        iter(b"ab"),
        iter([1, 2]),
        iter((1, 2)),
        iter({1: 2, 3: 4}.values()),
        iter(frozenset((5, 6))),
        reversed([1, 2]),
    ]
    for it in made:
        next(it)
    _split(*made)
    return [type(it).__name__ for it in made], [list(it) for it in made], y


@cases
def types_of_iterators(x):
    return type(iter("a")), type(iter([])), type(reversed([])), type(reversed(())), type(iter({}.keys())), x + 1


@cases
def backwards(x):
    out = [x + 1]
    for made in ([1, 2, 3], (1, 2, 3), "abc", b"abc", range(5), {1: 2, 3: 4}, {1: 2, 3: 4}.items()):
        out.append(list(reversed(made)))
    return out


@cases
def backwards_over_a_list_that_shrinks(x):
    data = [1, 2, 3, 4, 5, 6]
    seen = []
    for v in reversed(data):
        seen.append(v)
        del data[0]
    return seen, data, x + 1


@cases
def backwards_over_a_dict_that_grows(x):
    y = x + 1
    d = {1: 2, 3: 4}
    it = reversed(d)
    first = next(it)
    d[5] = 6
    try:
        next(it)
    except RuntimeError as e:
        return first, str(e), y


class Row:
    """A sequence that records its subscripts."""

    def __init__(self, n):
        self.n = n
        self.asked = []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.asked.append(i)
        if i >= self.n:
            raise IndexError(i)
        return i * i


@cases
def backwards_by_subscripts(x):
    row = Row(4)
    it = reversed(row)
    first = next(it)
    asked = list(row.asked)
    return first, asked, list(it), row.asked, x + 1


class NoWay:
    """Refuses iteration in both directions."""

    __reversed__ = None
    __iter__ = None

    def __len__(self):
        return 1

    def __getitem__(self, i):
        return i


@cases
def refused(x):
    y = x + 1
    try:
        reversed(NoWay())
    except TypeError as e:
        return str(e), y


class Reentrant:
    """Has a method whose call exhausts the iterator that calls it."""

    def __init__(self):
        self.busy = False
        self.it = iter(self.more, 2)

    def more(self):
        if self.busy:
            return 2
        self.busy = True
        list(self.it)
        return 1


@cases
def ended_by_its_own_function(x):
    return list(Reentrant().it), x + 1


@cases(
    graphs=0, breaks=1
)  # a container that contains itself cannot be materialized: CPython runs the frame, and the call of _split is a break
def values_that_hold_themselves(x):
    row, table = [x + 1], {}
    row.append(row)
    table["me"] = table
    _split(1)
    return row[0], row[1][1] is row, table["me"]["me"] is table


@cases
def many_turns(x):
    d = {}
    for i in range(5_000):
        d[i] = i
    total = 0
    for v in d.values():
        total += v
    return len(d), total, x + 1


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_iterators(case: Case) -> None:
    check(case)


def test_types_that_cpython_has_not_made_ready():
    """In 3.11 the type of code.co_positions() has no MRO: passing it to abc crashes."""

    def f(x, code):
        first = next(iter(code.co_positions()))
        return x + 1, first, type(code.co_positions()).__name__

    code = f.__code__
    got = godynamo.optimize(f)(torch.ones(2), code)
    assert got[1:] == f(torch.ones(2), code)[1:]
