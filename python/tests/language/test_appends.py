"""Lists and deques from outside that the program only appends to: only their types are guarded."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from harness.cases import check_calls

LOG: Any = None  # the object that the functions below append to, fresh for each side of a comparison
TURNS = [lambda: (torch.ones(3), 1)] * 4


def compare(fn: Callable[..., Any], fresh: Callable[[], Any], *, graphs: int, translations: list[int] | None) -> None:
    """Compare four calls on one object that lives through all of them."""

    def prepare() -> None:
        global LOG
        LOG = fresh()

    def state() -> Any:
        return told(LOG)

    check_calls(lambda: fn, TURNS, graphs=graphs, translations=translations, prepare=prepare, state=state)


def told(value: Any, depth: int = 0) -> Any:
    if isinstance(value, types.SimpleNamespace):
        return told(vars(value))
    if isinstance(value, dict):
        return {k: told(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, collections.deque)) and depth < 4:
        return [type(value).__name__, *(told(v, depth + 1) for v in value)]
    return value.tolist() if isinstance(value, torch.Tensor) else repr(value)


def appends(x, k):
    LOG.append(k)
    return x + 1


def appends_tensors(x, k):
    LOG.append(x * 2)
    LOG.append((k, x.shape[0], {"loss": x + 1}))
    return x + 1


def extends(x, k):
    LOG.extend([k, k])
    LOG.extend(i * 2 for i in range(k))
    return x + 1


def in_a_loop(x, k):
    for i in range(3):
        LOG.append(i)
    return x + 1, LOG


def by_a_bound_method(x, k):
    add = LOG.append
    y = x + 1
    print(add(k), add(y))
    return y


def inside_try(x, k):
    try:
        LOG.append(k)
        y = x.relu()
    finally:
        LOG.append("done")
    return y


@pytest.mark.parametrize(
    "fn", [appends, appends_tensors, extends, in_a_loop, by_a_bound_method], ids=lambda f: f.__name__
)
@pytest.mark.parametrize(
    "fresh", [list, collections.deque, lambda: collections.deque(maxlen=3)], ids=["list", "deque", "short deque"]
)
def test_what_is_only_added_to_is_no_reason_to_translate_again(fn, fresh):
    compare(fn, fresh, graphs=1, translations=[1, 0, 0, 0])


def concatenates(x, k):
    LOG.items += [k]
    LOG.items += (k, k)
    return x + 1


def by_key(x, k):
    LOG["loss"].append(x + k)
    return x + 1


def test_lists_within_other_objects():
    compare(concatenates, lambda: types.SimpleNamespace(items=[]), graphs=1, translations=[1, 0, 0, 0])
    compare(by_key, lambda: {"loss": [1]}, graphs=1, translations=[1, 0, 0, 0])


# ---- what the program reads is guarded, and has its usual value ----


def length(x, k):
    LOG.append(k)
    return x + len(LOG)


def last(x, k):
    LOG.append(x + k)
    LOG.append(k)
    return LOG[-1], LOG[-2] + 1


def truth(x, k):
    LOG.append(k)
    if LOG:
        x = x + 1
    return x


def itself(x, k):
    LOG.append(k)
    LOG.extend(LOG)
    LOG.append(3)
    return x + 1


def printed(x, k):
    LOG.append(k)
    y = x + 1
    print(LOG)
    return y


def popped(x, k):
    LOG.append(k)
    return x + LOG.pop(), LOG


@pytest.mark.parametrize("fn", [length, last, truth, itself, printed], ids=lambda f: f.__name__)
def test_what_is_looked_at_after_all(fn):
    compare(fn, list, graphs=4, translations=[1, 1, 1, 1])


def test_what_is_taken_off_again():
    compare(popped, lambda: [5], graphs=1, translations=[1, 0, 0, 0])


# ---- one object reached by two paths ----


def two_lists(a, b, x):
    a.append(1)
    n = len(b)
    b.append(2)
    return x + n, list(a)


def two_unseen(a, b, x):
    a.append(1)
    b.append(2)
    a.append(3)
    return x + 1


def looked_at_by_the_other_way(a, b, x):
    a.append(1)
    b.append(2)
    return x + len(b), a == b, a[-1]


@pytest.mark.parametrize("fn", [two_lists, two_unseen, looked_at_by_the_other_way], ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", ["apart", "one"])
def test_two_ways_to_one_list(fn, first):
    def apart():
        return [], [], torch.ones(2)

    def one():
        same: list[int] = []
        return same, same, torch.ones(2)

    calls = [apart, one, apart, one] if first == "apart" else [one, apart, one, apart]
    if fn is two_unseen:
        check_calls(lambda: fn, calls, graphs=1, translations=[1, 0, 0, 0])
    else:
        check_calls(lambda: fn, calls, graphs=2, translations=[1, 1, 0, 0])


@godynamo.disable
def looks(items):
    return len(items)


def looked_at_by_a_call(x, k):
    LOG.append(k)
    n = looks(LOG)
    LOG.append(n)
    return x * 2


def test_what_a_call_that_is_not_captured_sees():
    compare(looked_at_by_a_call, list, graphs=1, translations=[2, 0, 0, 0])


def test_an_effect_in_front_of_an_operation_with_a_handler():
    compare(inside_try, list, graphs=1, translations=None)


def a_split_while_the_method_waits(x, k):
    LOG.append(looks([1, k]))
    return x * 2


def test_a_split_between_the_method_and_its_call():
    compare(a_split_while_the_method_waits, list, graphs=1, translations=[2, 0, 0, 0])
