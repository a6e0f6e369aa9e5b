"""Generators created in captured code: send, throw, close, delegate, escape, abandon."""

from __future__ import annotations

import contextlib

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check
from harness.versions import COMPREHENSIONS_ARE_INLINED

cases = Cases()


@godynamo.disable
def opaque(x):
    """Never captured."""
    return 2


def rows(x, n):
    for i in range(n):
        yield x + i


def echo():
    got = yield 1
    again = yield got * 2
    return again


def delegating(x):
    first = yield from rows(x, 2)
    yield first
    last = yield from echo()
    return last


def guarded(log):
    try:
        yield 1
        yield 2
    except ValueError:
        log.append("ValueError")
        yield 10
    finally:
        log.append("finally")


def ends_badly():
    yield 1
    raise StopIteration(5)


@cases
def a_loop_over_one(x):
    s = 0
    for t in rows(x, 3):
        s = s + t
    return s


@cases
def a_generator_expression(x):
    return sum(t * 2 for t in rows(x, 3)), [a for a in rows(x, 2)], tuple(b for b in rows(x, 2) if b.shape[0] == 4)


@cases
def values_sent_in(x):
    g = echo()
    a = next(g)
    b = g.send(x)
    try:
        g.send(7)
    except StopIteration as e:
        c = e.value
    return a, b, c


@cases
def yield_from(x):
    g = delegating(x)
    out = [next(g), next(g), next(g), next(g), g.send(x)]
    try:
        g.send(9)
    except StopIteration as e:
        out.append(e.value)
    return out


@cases(args=lambda: ([],))
def thrown_into_and_closed(x, log):
    g = guarded(log)
    next(g)
    r = g.throw(ValueError("z"))
    g.close()
    log.append("closed")
    return x + r


@cases(args=lambda: ([],))
def thrown_into_through_yield_from(x, log):
    def outer():
        yield from guarded(log)
        yield 3

    g = outer()
    next(g)
    return x + g.throw(ValueError), next(g, None), next(g, None)


@cases(args=lambda: ([],), graphs=1, breaks=4)
def left_inside_try(x, log):
    for _ in guarded(log):
        break
    log.append("after")
    return x * 2


def steps(log, n=3):
    try:
        for i in range(n):
            log.append(i)
            yield i
    finally:
        log.append("left")


def positive(x, i):
    """Raise for i = 1, in an operation whose shapes are correct."""
    return torch.linalg.cholesky(torch.eye(2) * (1 - 2 * i) + x.reshape(2, 2) * 0)


@cases(args=lambda: ([],))
def dies_on_the_stack_when_an_operation_raises(x, log):
    for i in steps(log, 2):
        x = positive(x, i).flatten()
    return x


@cases(args=lambda: ([],), breaks=3)
def dies_in_variables_when_an_operation_raises(x, log):
    first, second = steps(log), (i for i in steps(log))
    next(first), next(second)
    return positive(x, 1)


@cases(args=lambda: ([],))
def dies_delegating_when_an_operation_raises(x, log):
    def outer():
        with torch.no_grad():
            yield from steps(log)

    for k, i in enumerate(outer()):
        x = positive(x, i).flatten() * k
    return x


@cases
def closed_before_it_began(x):
    g = rows(x, 2)
    g.close()
    return x + 1, list(g)


@cases
def escapes_before_it_began(x):
    g = rows(x, 3)
    return x + 1, g


@cases(graphs=0, breaks=2)
def escapes_half_consumed(x):
    g = rows(x, 3)
    next(g)
    return g


@cases
def finished(x):
    g = rows(x, 1)
    a = next(g)
    return a, next(g, None), next(g, "end"), list(g)


@cases
def stop_iteration_raised_inside(x):
    g = ends_badly()
    next(g)
    try:
        next(g)
    except RuntimeError as e:
        return x + 1, str(e), type(e.__cause__)


@cases
def already_executing(x):
    def me():
        yield next(g)

    g = me()
    try:
        next(g)
    except ValueError as e:
        return x + 1, str(e)


@cases
def a_value_sent_too_early(x):
    try:
        rows(x, 2).send(3)
    except TypeError as e:
        return x + 1, str(e)


@cases
def several_at_once(x):
    return dict(enumerate(rows(x, 3))), tuple(zip(rows(x, 2), "ab", strict=True)), list(map(abs, rows(x, 2)))


@cases
def unpacked(x):
    a, *b = rows(x, 3)
    return a, b, [*rows(x, 2)], max(i for i in range(4))


@cases
def shares_the_cells_of_its_maker(x):
    def count():
        nonlocal n
        while n < 3:
            n += 1
            yield x * n

    n = 0
    total = x
    for t in count():
        total = total + t * n
    return total, n


@cases(breaks=5)
def a_split_while_one_is_running(x):
    total = x
    for t in rows(x, 2):
        total = total + t
        opaque(x)
    return total


@cases(graphs=0, breaks=5 if COMPREHENSIONS_ARE_INLINED else 4)
def a_split_inside_one(x):
    def with_a_split():
        yield x + 1
        opaque(x)
        yield x * 2

    return [t for t in with_a_split()]


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        while self.n > 0:
            self.n -= 1
            yield self.n


@cases
def an_iterable_object(x):
    return [x * k for k in Countdown(3)]


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
@pytest.mark.row("S004-136")
def test_generators(case: Case) -> None:
    check(case)


LOG: list = []


@contextlib.contextmanager
def closing_with_a_note():
    try:
        yield
    finally:
        LOG.append("left")


def test_a_global_stored_inside_is_seen_by_functions_reached_through_other_modules() -> None:
    def fn(x):
        global LOG
        with closing_with_a_note():
            LOG = [3]
        return x + 1

    for backend in ("eager", godynamo.testing.CompileCounter()):
        godynamo.optimize(fn, backend=backend)(torch.ones(2))
        assert LOG == [3, "left"]
