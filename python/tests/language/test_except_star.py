"""except* and exception groups: known groups are split while translating, others by CPython; graphs in each part."""

from __future__ import annotations

import sys

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


class Derives(ExceptionGroup):
    def derive(self, excs):
        return Derives(self.message + "+", excs)


class Noted(ValueError):
    def __init__(self, code):
        super().__init__(code, "noted")
        self.code = code


@godynamo.disable
def opaque(what=None):
    """Never captured."""
    if what is not None:
        raise what
    return 2


def group(*codes):
    return ExceptionGroup("many", [ValueError(c) if c % 2 else TypeError(c) for c in codes])


@cases
def all_of_a_known_group(x):
    y = x + 1
    try:
        raise ExceptionGroup("g", [ValueError(1), ValueError(2)])
    except* ValueError as e:
        y = y * len(e.exceptions)
        text = str(e), e.message, [m.args for m in e.exceptions]
    return y - 1, text


@cases
def parts_of_a_known_group(x):
    y = x + 1
    seen = []
    try:
        raise group(1, 2, 3)
    except* ValueError as e:
        y = y * 2
        seen.append((repr(e), type(e).__name__))
    except* TypeError as e:
        y = y * 3
        seen.append(repr(e))
    else:
        y = y * 5
    finally:
        y = y + 7
    return y, seen


@cases
def nested_groups(x):
    try:
        raise ExceptionGroup("a", [group(1, 2), ExceptionGroup("b", [group(3, 5), KeyError("k")])])
    except* (ValueError, KeyError) as e:
        x = x + 1
        first = repr(e)
    except* TypeError as e:
        x = x * 2
        second = repr(e)
    return x, first, second


@cases
def an_exception_that_is_no_group(x):
    try:
        raise Noted(4)
    except* TypeError:
        x = x * 100
    except* ValueError as e:
        (only,) = e.exceptions
        told = type(e).__name__, e.message, only.args
        x = x * only.code
    return x, told


@cases
def the_rest_is_caught_around(x):
    try:
        try:
            raise group(1, 2)
        except* ValueError:
            x = x + 1
    except ExceptionGroup as e:
        return x * 2, repr(e)


@cases
def nothing_raised(x):
    try:
        y = x + 1
    except* ValueError:
        y = x
    else:
        y = y * 2
    return y


@cases
def in_a_loop(x):
    log = []
    for i in range(4):
        try:
            x = x + i
            if i == 1:
                raise ValueError(i)
            if i == 2:
                raise ExceptionGroup("k", [OSError(2, "a"), KeyError(2)]) if opaque is None else group(3, 4)
        except* ValueError as e:
            log.append(repr(e))
            x = x * 2
        except* TypeError as e:
            log.append(repr(e))
        else:
            log.append(i)
    return x, log


@cases
def groups_without_a_handler(x):
    g = ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", (TypeError(2), ValueError(3)))])
    match, rest = g.split(ValueError)
    return (
        x + 1,
        [repr(p) for p in (match, rest, g.subgroup(TypeError), g.derive([KeyError(1)]))],
        g.subgroup(OSError),
        str(g),
        type(BaseExceptionGroup("b", [KeyError()])).__name__,
        type(BaseExceptionGroup("b", [KeyboardInterrupt()])).__name__,
    )


@cases
def a_group_that_leaves(x):
    return x + 1, ExceptionGroup("g", [ValueError(1)]), len([m for m in ExceptionGroup("h", [KeyError(2)]).exceptions])


@cases
def wrong_groups(x):
    texts = []
    for make in (
        lambda: ExceptionGroup("g", []),
        lambda: ExceptionGroup("g", [1]),
        lambda: ExceptionGroup("g", [KeyboardInterrupt()]),
    ):
        try:
            make()
        except (ValueError, TypeError) as e:
            texts.append((type(e).__name__, e.args))
    return x + 1, texts


@cases(graphs=1, breaks=1)
def the_group_is_kept(x):
    y = x + 1
    try:
        raise group(1, 3)
    except* ValueError as e:
        kept = e
    return y * 2, kept


the_group_is_kept_case = cases.all.pop()


@cases(graphs=3, breaks=2)
def a_group_from_outside(x):
    y = x + 1
    try:
        opaque(group(1, 3))
    except* ValueError:
        y = y * 2
    return y - 1


a_group_from_outside_case = cases.all.pop()


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_case(case: Case) -> None:
    check(case)


def partly_handled(x):
    y = x + 1
    try:
        opaque(group(1, 2))
    except* ValueError as e:
        y = y * len(e.exceptions)
    return y


def handled_by_two(x):
    y = x + 1
    try:
        opaque(group(1, 2, 4))
    except* ValueError as e:
        y = y * 2
        first = repr(e)
    except* TypeError as e:
        y = y + opaque()
        second = repr(e), len(e.exceptions), repr(sys.exc_info()[1])
    z = y - 1
    return z.cos(), first, second


def clauses_that_raise(x):
    y = x + 1
    try:
        opaque(group(1, 2))
    except* ValueError:
        y = y * 2
        raise KeyError("first")
    except* TypeError as e:
        raise IndexError("second") from e
    return y


def a_clause_that_raises_again(x):
    y = x + 1
    try:
        opaque(group(1, 2, 3))
    except* ValueError:
        y = y * 2
        raise
    return y


def a_known_group_that_is_not_handled(x):
    y = x + 1
    try:
        raise group(1, 2)
    except* ValueError:
        y = y * 2
    return y


def a_group_of_a_class_with_derive(x):
    y = x + 1
    try:
        raise Derives("d", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        y = y * 2
        first = repr(e)
    except* TypeError as e:
        y = y * 3
        second = repr(e)
    return y, first, second


def an_operation_that_fails(x):
    y = x + 1
    text = None
    try:
        y = y.reshape(3, 5)
    except* RuntimeError as e:
        y = y * 2
        text = type(e.exceptions[0]).__name__
    return y - 1, text


def nested_clauses(x):
    try:
        try:
            opaque(group(1, 2))
        except* ValueError:
            x = x + 1
            opaque(KeyError("inner"))
    except* KeyError as e:
        x = x * 2
        a = repr(e)
    except* TypeError as e:
        x = x * 3
        b = repr(e)
    return x, a, b


def split_inside_a_clause(x):
    try:
        raise group(1, 2)
    except* ValueError as e:
        x = x + 1
        n = opaque()
        x = x * n * len(e.exceptions)
    except* TypeError:
        x = x.sin()
        opaque()
        x = x.cos()
    return x + 5


def not_allowed(x):
    y = x + 1
    try:
        opaque(group(1))
    except* ExceptionGroup:
        y = x
    return y


#: function → number of graphs of its calls with a whole-graph backend
SPLIT = {
    a_group_from_outside_case.fn: 2,
    the_group_is_kept_case.fn: 2,
    partly_handled: 2,
    handled_by_two: 4,
    clauses_that_raise: 2,
    a_clause_that_raises_again: 2,
    a_known_group_that_is_not_handled: 2,
    a_group_of_a_class_with_derive: 3,
    an_operation_that_fails: 1,
    nested_clauses: 3,
    split_inside_a_clause: 4,
    not_allowed: 1,
}


@pytest.mark.parametrize("fn", SPLIT, ids=lambda fn: fn.__name__)
def test_split(fn):
    from godynamo import _C
    from godynamo.testing import CompileCounter
    from harness.cases import outcome

    counter = CompileCounter()
    for backend in ("eager", counter):
        godynamo.reset()
        compiled = godynamo.optimize(fn, backend=backend)
        for _ in range(3):
            x = torch.arange(4.0)
            assert outcome(compiled, (x,)) == outcome(fn, (x,))
        assert _C.counters()["internal_errors"] == 0
    assert counter.frame_count == SPLIT[fn]
