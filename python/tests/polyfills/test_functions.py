"""Stand-ins for functions and callable objects written in C, compared with the originals."""

from __future__ import annotations

import _bisect
import _heapq
import copy
import functools
import heapq
import itertools
import math
import operator
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beside_native import logged, outcome, stand_in_of
from godynamo._polyfills import sorting
from godynamo._polyfills._base import DECLINE, END
from godynamo._polyfills.copy import deep, shallow

ITEMS = st.lists(st.integers(-3, 3), max_size=8)
NAN = float("nan")


def same(original, *args, **kwargs):
    """Compare the C function and its stand-in on copies of the same arguments: result or exception, and the arguments
    afterwards."""
    theirs, ours = copy.deepcopy(args), copy.deepcopy(args)
    expected = outcome(original, *theirs, **kwargs)
    actual = outcome(stand_in_of(original), *ours, **kwargs)
    if actual == ("value", DECLINE):
        return
    assert repr(actual) == repr(expected)
    assert repr(ours) == repr(theirs)


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.none() | st.integers(0, 3))
def test_reduce(items, initial):
    for tail in ([], [initial]):
        log, real_log = [], []
        expected = outcome(functools.reduce, logged(operator.sub, real_log), iter(items), *tail)
        assert outcome(stand_in_of(functools.reduce), logged(operator.sub, log), iter(items), *tail) == expected
        assert log == real_log
    same(functools.reduce, operator.add, 3)


class Ordered:
    """A value that logs its comparisons."""

    def __init__(self, value, log):
        self.value = value
        self.log = log

    def __lt__(self, other):
        self.log.append((self.value, other.value))
        return self.value < other.value


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=63), st.booleans())
def test_sort_makes_cpythons_comparisons_in_its_order(values, reverse):
    log, real_log = [], []
    expected = sorted(range(len(values)), key=lambda i: Ordered((values[i]), real_log), reverse=reverse)
    assert sorting.order([Ordered(v, log) for v in values], reverse) == expected
    assert log == real_log


def test_long_sorts_are_left_to_cpython():
    assert sorting.order(list(range(64)), False) is DECLINE


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.integers(-3, 3))
def test_heaps(items, item):
    heap = list(items)
    _heapq.heapify(heap)
    same(_heapq.heapify, items)
    same(heapq._heapify_max, items)
    for original in (_heapq.heappush, _heapq.heappushpop, _heapq.heapreplace):
        same(original, heap, item)
    same(_heapq.heappop, heap)
    heapq._heapify_max(heap)
    same(heapq._heappop_max, heap)
    same(heapq._heapreplace_max, heap, item)
    for name in ("heappush_max", "heappushpop_max"):  # new in Python 3.14
        if hasattr(heapq, name):
            same(getattr(heapq, name), heap, item)


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.integers(-4, 4), st.integers(-1, 4), st.none() | st.integers(0, 5))
def test_bisections(items, x, lo, hi):
    items = sorted(items)
    hi = None if hi is None else min(hi, len(items))
    for original in (_bisect.bisect_left, _bisect.bisect_right, _bisect.insort_left, _bisect.insort_right):
        same(original, items, x)
        same(original, items, x, lo, hi)
        same(original, items, -x, key=operator.neg)


SEQUENCES = [[], [1, 2, 1], (1, 2), "abca", b"ab", [NAN, 1], {1: 2}, {1}, 3, None, range(3)]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=repr)
@pytest.mark.parametrize("item", [1, "a", NAN, 97], ids=repr)
def test_operators_on_sequences(sequence, item):
    for original in (operator.contains, operator.countOf, operator.indexOf):
        same(original, sequence, item)
    same(operator.contains, [item], item)
    same(operator.is_, sequence, item)
    same(operator.is_not, sequence, item)
    same(operator.delitem, sequence, item)
    same(operator.setitem, sequence, item, 5)
    for other in SEQUENCES:
        same(operator.concat, sequence, other)
        same(operator.iconcat, sequence, other)


class Thing:
    def __init__(self):
        self.a = self
        self.b = 3

    def method(self, *args, **kwargs):
        return self.b, args, kwargs

    def __repr__(self):
        return "Thing"


GETTERS = [
    (operator.itemgetter, (1,), {}),
    (operator.itemgetter, (1, 0), {}),
    (operator.itemgetter, (slice(1, 2),), {}),
    (operator.itemgetter, (), {}),
    (operator.attrgetter, ("b",), {}),
    (operator.attrgetter, ("a.a.b", "b"), {}),
    (operator.attrgetter, ("a.nothing",), {}),
    (operator.attrgetter, (3,), {}),
    (operator.attrgetter, (), {}),
    (operator.methodcaller, ("method",), {}),
    (operator.methodcaller, ("method", 1, 2), {"k": 3}),
    (operator.methodcaller, ("upper",), {}),
    (operator.methodcaller, (3,), {}),
    (operator.call, (operator.neg, 3), {}),
]


@pytest.mark.parametrize(("original", "args", "kwargs"), GETTERS)
def test_callable_objects(original, args, kwargs):
    real = outcome(original, *args, **kwargs)
    ours = outcome(stand_in_of(original), *args, **kwargs)
    if real[0] == "raised" or original is operator.call:
        assert ours == real or (not args and ours[0] == "raised")  # no stand-in is called with too few arguments
        return
    for target in ([1, 2, 3], (1, 2), {1: 2}, "ab", Thing(), 3):
        assert repr(outcome(ours[1], target)) == repr(outcome(real[1], target))
    recipe = ours[1]._escape()
    assert repr(recipe[0](*recipe[1:])) == repr(real[1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3) | st.floats(-2, 2) | st.booleans(), max_size=6), st.integers(0, 3))
def test_prod(items, start):
    same(math.prod, items)
    same(math.prod, items, start=start)
    same(math.prod, [*items, "x", "y"])


TREES = st.recursive(
    st.integers() | st.text(max_size=2) | st.none() | st.just(range(2)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers(0, 3) | st.tuples(st.integers(0, 1)), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_copies(tree):
    shared = [tree, tree, (tree, [tree])]
    for value in (tree, shared):
        assert shallow(value) == value
        assert (shallow(value) is value) == (copy.copy(value) is value)
        ours, real = deep(value), copy.deepcopy(value)
        assert repr(ours) == repr(real)
        assert (ours is value) == (real is value)
    ours = deep(shared)
    assert ours[0] is ours[1] is ours[2][0] is ours[2][1][0]


def test_copies_of_what_holds_itself():
    loop = [1]
    loop.append((loop, 2))
    ours = deep(loop)
    assert ours is not loop
    assert ours[1][0] is ours
    assert deep({1, 2}) is DECLINE
    assert deep([1], {}) is DECLINE


TEXTS = st.text("ab1 ", max_size=8)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["a", "b*", "", "(a)|(b)", r"\d+", "^", "a$", r"\b"]), TEXTS, st.integers(-1, 3), st.integers(0, 4)
)
def test_patterns(pattern, text, count, leave):
    pattern = re.compile(pattern)
    for repl in (lambda m: f"<{m.group()}>", lambda m: "" if m.start() else "x"):
        log, real_log = [], []
        for original in (re.Pattern.sub, re.Pattern.subn):
            expected = original(pattern, logged(repl, real_log), text, count)
            assert stand_in_of(original)(pattern, logged(repl, log), text, count) == expected
        assert [m.span() for _, (m,) in log] == [m.span() for _, (m,) in real_log]
    ours, real = stand_in_of(re.Pattern.finditer)(pattern, text, count), pattern.finditer(text, count)
    for _ in range(leave):
        expected = next(real, END)
        found = ours._next()
        assert found is END if expected is END else (found.span(), found.re) == (expected.span(), expected.re)
    recipe = ours._escape()
    left = recipe[0](*recipe[1:])
    assert type(left) is type(real)
    assert [m.span() for m in left] == [m.span() for m in real]


@pytest.mark.parametrize("items", [[], ["a"], ["a", "b"], ["a", 1], [b"a"], 3, "abc", {"x": 1}], ids=repr)
def test_join(items):
    for separator in ("", ", "):
        same(str.join, separator, items)
    same(bytes.join, b"-", items)
    same(str.join, 3, items)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9) | st.integers(-3, 3), max_size=8))
def test_fsum(items):
    same(math.fsum, items)
    same(math.fsum, [*items, "x"])


@settings(max_examples=40, deadline=None)
@given(ITEMS)
def test_cmp_to_key(items):
    by = lambda a, b: b - a
    keys = [stand_in_of(functools.cmp_to_key)(by)(v) for v in items]
    real = [functools.cmp_to_key(by)(v) for v in items]
    for (a, ra), (b, rb) in itertools.product(zip(keys, real, strict=True), repeat=2):
        for compare in (operator.lt, operator.le, operator.gt, operator.ge):
            made = compare(a.obj, b.obj), by(a.obj, b.obj)
            assert getattr(a, f"__{compare.__name__}__", None) is not None and made is not None
            assert compare(by(a.obj, b.obj), 0) == compare(ra, rb)
    for key, original in zip(keys, real, strict=True):
        recipe = key._escape()
        assert recipe[0](*recipe[1:]).obj == original.obj
