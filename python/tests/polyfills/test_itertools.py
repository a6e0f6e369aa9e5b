"""Stand-ins for itertools, compared with itertools: values, laziness, exceptions, state of escaping iterators."""

from __future__ import annotations

import itertools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beside_native import MOST, Pulled, logged, outcome, stand_in_of, walk
from godynamo._polyfills._base import DECLINE, END

ITEMS = st.lists(st.integers(-3, 3), max_size=6)
LEAVE = st.none() | st.integers(0, MOST - 1)
BOUND = st.none() | st.integers(-1, 8)
PREDICATES = st.sampled_from([bool, lambda v: v > 0, lambda v: v % 2, lambda v: [v] * (v > 1)])
NUMBERS = st.integers(-5, 5) | st.floats(-2, 2) | st.booleans() | st.just(1 << 70) | st.just("no") | st.none()


@settings(max_examples=60, deadline=None)
@given(st.lists(ITEMS, max_size=4), LEAVE)
def test_chain(sources, leave):
    walk(itertools.chain, lambda f, log: f(*[Pulled(s, log, str(i)) for i, s in enumerate(sources)]), leave)
    walk(itertools.chain.from_iterable, lambda f, log: f(Pulled(sources, log, "all")), leave)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, NUMBERS, LEAVE)
def test_count(start, step, leave):
    walk(itertools.count, lambda f, _: f(start, step), leave)
    walk(itertools.count, lambda f, _: f(start=start), leave)
    walk(itertools.count, lambda f, _: f(), leave)


@settings(max_examples=60, deadline=None)
@given(ITEMS, LEAVE)
def test_cycle_and_pairwise(items, leave):
    walk(itertools.cycle, lambda f, log: f(Pulled(items, log, "a")), leave)
    walk(itertools.pairwise, lambda f, log: f(Pulled(items, log, "a")), leave)


@pytest.mark.skipif(not hasattr(itertools, "batched"), reason="itertools.batched is new in 3.12")
@settings(max_examples=60, deadline=None)
@given(ITEMS, st.integers(0, 4), LEAVE)
def test_batched(items, n, leave):
    walk(itertools.batched, lambda f, log: f(Pulled(items, log, "a"), n), leave)
    walk(itertools.batched, lambda f, log: f(iterable=Pulled(items, log, "a"), n=n), leave)


@settings(max_examples=30, deadline=None)
@given(st.integers(-1, 5) | st.booleans() | st.just("x"), LEAVE)
def test_repeat(times, leave):
    walk(itertools.repeat, lambda f, _: f("v", times), leave)
    walk(itertools.repeat, lambda f, _: f(object="v", times=times), leave)
    walk(itertools.repeat, lambda f, _: f("v"), leave)


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.none() | st.sampled_from([operator.mul, lambda a, b: None]), st.none() | st.integers(0, 9), LEAVE)
def test_accumulate(items, function, initial, leave):
    walk(
        itertools.accumulate,
        lambda f, log: f(Pulled(items, log, "a"), logged(function, log), initial=initial),
        leave,
    )


@settings(max_examples=60, deadline=None)
@given(ITEMS, PREDICATES, LEAVE)
@pytest.mark.parametrize("original", [itertools.takewhile, itertools.dropwhile, itertools.filterfalse])
def test_those_with_a_predicate(original, items, predicate, leave):
    walk(original, lambda f, log: f(logged(predicate, log), Pulled(items, log, "a")), leave)
    walk(itertools.filterfalse, lambda f, log: f(None, Pulled(items, log, "a")), leave)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5), LEAVE)
def test_starmap(rows, leave):
    walk(itertools.starmap, lambda f, log: f(logged(operator.sub, log), Pulled(rows, log, "a")), leave)
    walk(itertools.starmap, lambda f, log: f(logged(operator.neg, log), Pulled(rows, log, "a")), leave)


@settings(max_examples=60, deadline=None)
@given(ITEMS, ITEMS, LEAVE)
def test_compress_and_zip_longest(a, b, leave):
    walk(itertools.compress, lambda f, log: f(Pulled(a, log, "a"), Pulled(b, log, "b")), leave)
    walk(
        itertools.zip_longest,
        lambda f, log: f(Pulled(a, log, "a"), Pulled(b, log, "b"), Pulled(a[:1], log, "c"), fillvalue="f"),
        leave,
    )
    walk(itertools.zip_longest, lambda f, log: f(Pulled(a, log, "a"), a), leave)
    walk(itertools.zip_longest, lambda f, _: f(), leave)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=9), BOUND, BOUND, BOUND, LEAVE)
def test_islice(items, start, stop, step, leave):
    walk(itertools.islice, lambda f, log: f(Pulled(items, log, "a"), start, stop, step), leave)
    walk(itertools.islice, lambda f, log: f(Pulled(items, log, "a"), start, stop), leave)
    walk(itertools.islice, lambda f, log: f(Pulled(items, log, "a"), stop), leave)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=4), st.none() | st.integers(-1, 5), LEAVE)
@pytest.mark.parametrize(
    "original", [itertools.permutations, itertools.combinations, itertools.combinations_with_replacement]
)
def test_rows_of_one_pool(original, items, r, leave):
    walk(original, lambda f, log: f(Pulled(items, log, "a"), r), leave)
    if original is itertools.permutations:
        walk(original, lambda f, log: f(Pulled(items, log, "a")), leave)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3), st.integers(-1, 2), LEAVE)
def test_product(pools, repeat, leave):
    walk(
        itertools.product,
        lambda f, log: f(*[Pulled(p, log, str(i)) for i, p in enumerate(pools)], repeat=repeat),
        leave,
    )


def test_rows_without_end_are_left_to_cpython():
    assert stand_in_of(itertools.permutations)(range(20)) is DECLINE
    assert stand_in_of(itertools.product)(range(1000), repeat=3) is DECLINE


def groups(items, key, order, make, take):
    """Return keys and groups as seen by a program that reads them in a given order; a group may be left unread, or read
    too late."""
    log = []
    iterator = make(Pulled(items, log, "a"), logged(key, log))
    seen, given = [], []
    for step in order:
        if step < 0 or not given:
            row = outcome(take, iterator)
            if row[1] is END or row[0] == "raised":
                seen.append("end")
            else:
                seen.append(row[1][0])
                given.append(row[1][1])
        else:
            seen.append(take(given[step % len(given)]))
    return seen, log


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([0, 0, 1, 2, float("nan")]), max_size=8),
    st.none() | st.just(lambda v: v != v or v > 0),
    st.lists(st.integers(-1, 4), max_size=14),
)
def test_groupby(items, key, order):
    expected = groups(items, key, order, itertools.groupby, lambda i: next(i, END))
    actual = groups(items, key, order, stand_in_of(itertools.groupby), lambda i: i._next())
    assert repr(actual) == repr(expected)


@settings(max_examples=100, deadline=None)
@given(ITEMS, st.integers(0, 3), st.lists(st.integers(0, 2), max_size=10), LEAVE)
def test_tee(items, n, order, leave):
    real_log, ours_log = [], []
    real = itertools.tee(Pulled(items, real_log, "a"), n)
    ours = stand_in_of(itertools.tee)(Pulled(items, ours_log, "a"), n)
    assert len(real) == len(ours)
    for i, which in enumerate(order):
        if i == leave or which >= n:
            break
        assert ours[which]._next() == next(real[which], END)
        assert ours_log == real_log
    if n > 0:
        group = ours[0]._group._escape()
        made = group[0](*group[1:])
        assert [type(t) for t in made] == [type(t) for t in real]
        assert [list(t) for t in made] == [list(t) for t in real]
    assert stand_in_of(itertools.tee)([], -1) is DECLINE


def test_every_iterator_of_itertools_has_a_stand_in():
    for name, original in vars(itertools).items():
        if isinstance(original, type) and not name.startswith("_"):
            stand_in_of(original)
    stand_in_of(itertools.tee)
