"""A dict that the program only looks up keys in is guarded by these keys, not by all of them."""

from __future__ import annotations

import enum
import os
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import check, no_translation

TABLE: dict[Any, Any] = {}
X = torch.ones(2)


class Name(str, enum.Enum):
    SCALE = "scale"


class Sly:
    """A key that equals every key of its hash."""

    def __init__(self, text: str) -> None:
        self.hash = hash(text)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return True


@pytest.fixture(autouse=True)
def fresh_table():
    TABLE.clear()
    TABLE.update(scale=2.0, shift=1.0)


def by_item(x):
    return x * TABLE["scale"]


def by_get(x):
    return x * TABLE.get("scale", 3.0) + TABLE.get("offset", 4.0)


def by_in(x):
    return x * 5 if "offset" in TABLE else x * TABLE["scale"]


def by_exception(x):
    try:
        return x * TABLE["offset"]
    except KeyError as e:
        return x + len(str(e))


def passed_on(x):
    get = TABLE.get
    return x * get("scale")


def returned(x):
    return x + 1, TABLE.get("scale"), "offset" in TABLE


def agree(f, g):
    """Compare the results, or the exceptions, of f and of g, which is f optimized."""

    def call(run):
        try:
            return str(run(X))
        except (KeyError, TypeError) as e:
            return repr(e)

    assert call(g) == call(f)


LOOKUPS = [by_item, by_get, by_in, by_exception, passed_on, returned]


@pytest.mark.parametrize("f", LOOKUPS)
def test_other_keys_cause_no_recompile(f):
    g = godynamo.optimize(f)
    check(f, X, optimized=g)
    with no_translation():
        for key in ("other", 7, b"scale", None, 2.5):
            TABLE[key] = 1.0
            check(f, X, optimized=g)
        del TABLE["shift"]
        check(f, X, optimized=g)


@pytest.mark.parametrize("f", LOOKUPS)
@pytest.mark.parametrize("change", [{"scale": 7.0}, {"offset": 8.0}, {Name.SCALE: 9.0}])
def test_a_change_of_these_keys_is_seen(f, change):
    g = godynamo.optimize(f)
    check(f, X, optimized=g)
    TABLE.update(change)
    check(f, X, optimized=g)
    TABLE.pop("scale")
    agree(f, g)


@pytest.mark.parametrize("key", [Name.SCALE, Sly("scale"), Sly("offset")])
@pytest.mark.parametrize("f", LOOKUPS)
def test_keys_with_their_own_comparison(f, key):
    g = godynamo.optimize(f)
    TABLE.pop("scale")
    TABLE[key] = 6.0
    for table in ({}, {"scale": 2.0}):
        kept = dict(TABLE)
        TABLE.clear()
        TABLE.update({**table, **kept})
        agree(f, g)
        agree(f, g)
    TABLE.clear()
    TABLE["scale"] = 2.0
    check(f, X, optimized=g)
    TABLE[key] = 6.0
    check(f, X, optimized=g)


def test_a_key_that_equals_arrives_after_the_translation():
    g = godynamo.optimize(by_exception)
    check(by_exception, X, optimized=g)
    TABLE[Sly("offset")] = 11.0
    check(by_exception, X, optimized=g)


def test_the_environment():
    def f(x):
        return x + 1 if os.environ.get("GODYNAMO_TEST_OF_LOOKUPS") else x - 1

    g = godynamo.optimize(f)
    check(f, X, optimized=g)
    with pytest.MonkeyPatch.context() as m:
        with no_translation():
            m.setenv("GODYNAMO_TEST_OF_ANOTHER_VARIABLE", "1")
            check(f, X, optimized=g)
        m.setenv("GODYNAMO_TEST_OF_LOOKUPS", "1")
        check(f, X, optimized=g)


def test_a_later_read_of_the_whole_dict():
    def f(x, d):
        y = x * d["a"]
        return y + len(d) + sum(d.values()), list(d)

    g = godynamo.optimize(f)
    for d in ({"a": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1}):
        check(f, X, d, optimized=g)


def test_a_dict_that_is_changed_in_another_place():
    def f(x, d, e):
        before = d["a"]
        e["a"] = before + 1
        return x * before + d["a"] * e.get("a")

    g = godynamo.optimize(f)
    apart = [{"a": 1}, {"a": 5}]
    for make in (lambda: apart, lambda: [apart[0]] * 2, lambda: [{"a": 1}] * 2, lambda: [{"a": 1}, {"a": 2}]):
        d, e = make()
        c, b = (dict(d), dict(e)) if d is not e else [dict(d)] * 2
        assert torch.equal(g(X, d, e), f(X, c, b))
        assert (d, e) == (c, b)


def test_a_bound_get_outlives_the_dict_s_first_state():
    def f(x, d):
        get = d.get
        d["a"] = 3.0
        return x * get("a")

    g = godynamo.optimize(f)
    for _ in range(2):
        assert torch.equal(g(X, {"a": 1.0}), X * 3)
