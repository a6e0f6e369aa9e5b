"""Iterators that live across a graph break stay the objects that they are, and the next piece reads their items."""

from __future__ import annotations

import gc
import traceback

import pytest
import torch

import godynamo


def tensors(n):
    return [torch.ones(2) * k for k in range(n)]


def plain(value):
    """Return the value as data that == compares, with its types."""
    if isinstance(value, torch.Tensor):
        return "tensor", value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    return type(value).__name__, repr(value)


LOG: list[object] = []


def outcome(fn, n):
    LOG.clear()
    try:
        result = plain(fn(n))
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
        result = type(error).__name__, str(error), lines[1:]
    gc.collect()
    return result, list(LOG)


def in_a_list(n):
    out = []
    for x in tensors(n):
        godynamo.graph_break()
        out.append(x + 1)
    return out


def in_enumerate_and_zip(n):
    out = []
    for i, (a, b) in enumerate(zip(tensors(n), tuple(tensors(n))), 3):
        godynamo.graph_break()
        out.append(a * b + i)
    return out


def in_a_strict_zip(n):
    out = []
    for a, b, i in zip(tensors(n), tuple(tensors(n)), range(n), strict=True):
        godynamo.graph_break()
        out.append(a * b + i)
    return out


def in_ranges(n):
    out = []
    for i in range(3, 3 + 2 * n, 2):
        godynamo.graph_break()
        out.append(torch.ones(1) * i)
    for i in reversed(range(n)):
        godynamo.graph_break()
        out.append(torch.ones(1) - i)
    return out


def backward(n):
    out = []
    for x in reversed(tensors(n)):
        godynamo.graph_break()
        out.append(x + 1)
    for x in reversed(tuple(tensors(n))):
        godynamo.graph_break()
        out.append(x - 1)
    return out


def in_values(n):
    out = []
    for v in {str(i): torch.ones(1) * i for i in range(n)}.values():
        godynamo.graph_break()
        out.append(v * 2)
    return out


def in_items(n):
    out = []
    for k, v in {str(i): torch.ones(1) * i for i in range(n)}.items():
        godynamo.graph_break()
        out.append((k, v * 2))
    return out


def in_a_map(n):
    def product(a, b):
        LOG.append("called")
        return a * b

    out = []
    for x in map(product, tensors(n), tensors(n)):
        godynamo.graph_break()
        out.append(x + 1)
    return out


def in_a_filter(n):
    out = []
    for x in filter(lambda x: x.shape[0] == 2, tensors(n)):
        godynamo.graph_break()
        out.append(x + 1)
    return out


def in_a_zip_with_a_map(n):
    out = []
    for a, b in zip(map(torch.neg, tensors(n)), tensors(n)):
        godynamo.graph_break()
        out.append(a - b)
    return out


def one_iterator_twice(n):
    it = iter(tensors(n))
    out = []
    for a, b in zip(it, it):
        godynamo.graph_break()
        out.append(a - b)
    return out, next(it, "end")


def taken_in_the_body(n):
    it = iter(tensors(n))
    out = []
    for x in it:
        godynamo.graph_break()
        out.append(x + 1)
        out.append(next(it, None))
        if len(out) > 3:
            break
    godynamo.graph_break()
    return out, list(it), list(it)


def stored(n):
    it = zip(range(n), tensors(n))
    out = [it]
    for i, x in it:
        godynamo.graph_break()
        out.append(x + 1)
        if len(out) == 3:
            break
    return out[1:], list(out[0]), type(out[0]).__name__


WHOLE = [in_a_list, in_enumerate_and_zip, in_a_strict_zip, in_ranges, backward, in_values, in_items, in_a_map,
         in_a_filter, in_a_zip_with_a_map, one_iterator_twice, taken_in_the_body, stored]  # fmt: skip


def growing(n):
    xs = tensors(n)
    out = []
    for x in xs:
        godynamo.graph_break()
        if len(xs) < 2 * n:
            xs.append(x + 10)
        out.append(x + 1)
    return out


def replaced(n):
    xs = tensors(n)
    out = []
    for i, x in enumerate(xs):
        godynamo.graph_break()
        if i + 1 < n:
            xs[i + 1] = torch.zeros(1)
        out.append(x + 1)
    return out


def a_dict_that_grows(n):
    d = {str(i): torch.ones(1) for i in range(n)}
    out = []
    for k in d:
        godynamo.graph_break()
        out.append(d[k] + 1)
        d[k + "x"] = 1
    return out


class Holder:
    pass


def an_attribute_that_changes(n):
    o = Holder()
    o.a, o.b, o.c = 1, 2, 3
    out = []
    for _k, v in vars(o).items():
        godynamo.graph_break()
        o.b, o.c = 8, 9
        out.append(torch.ones(1) * v)
    return out


def a_list_that_grows_after_its_end(n):
    xs = tensors(1)
    it = iter(xs)
    godynamo.graph_break()
    first = list(it)
    xs.append(torch.ones(3))
    godynamo.graph_break()
    return first, list(it), len(xs)


def a_list_that_grows_before_its_end_is_seen(n):
    xs = tensors(1)
    it = iter(xs)
    next(it)
    godynamo.graph_break()
    y = torch.ones(1) + 1
    xs.append(y)
    return list(it)


def a_function_that_raises(n):
    def checked(x):
        if LOG.append("called") or len(LOG) == 3:
            raise ValueError("third")
        return x + 1

    it = map(checked, tensors(n))
    out = []
    try:
        for x in it:
            godynamo.graph_break()
            out.append(x * 2)
    except ValueError as error:
        out.append(str(error))
    return out, list(it)


def strict(n):
    out = []
    for a, b in zip(tensors(n), range(n + 1), strict=True):
        godynamo.graph_break()
        out.append(a * b)
    return out


def strict_and_shorter(n):
    rest, out = iter(tensors(n + 1)), []
    try:
        for a, b, c in zip(range(n + 1), rest, range(n), strict=True):
            godynamo.graph_break()
            out.append(a * b + c)
    except ValueError as error:
        out.append(str(error))
    return out, list(rest)


def strict_and_longer(n):
    rest, out = iter(tensors(n + 2)), []
    try:
        for a, b, c in zip(range(n), range(n), rest, strict=True):
            godynamo.graph_break()
            out.append(a + b * c)
    except ValueError as error:
        out.append(str(error))
    return out, list(rest)


def a_strict_zip_of_a_map(n):
    out = []
    for a, b in zip(map(torch.neg, tensors(n)), range(n + n % 2), strict=True):
        godynamo.graph_break()
        out.append(a * b)
    return out


class Dying:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        LOG.append(("died", self.n))


def dying(n):
    y = torch.ones(1)
    for d in [Dying(i) for i in range(n)]:
        godynamo.graph_break()
        LOG.append(("turn", d.n))
        y = y + 1
    LOG.append("end")
    return y


def with_else(n):
    out = []
    for i in range(n):
        godynamo.graph_break()
        out.append(torch.ones(1) * 2)
        if i == 2:
            break
    else:
        out.append("else")
    return out


def an_operation_that_raises(n):
    it = iter(tensors(n))
    out = []
    godynamo.graph_break()
    try:
        for x in it:
            out.append(x.reshape(2, -1))
            if len(out) == 2:
                x.reshape(7)
    except RuntimeError:
        out.append("raised")
    return out, list(it)


OTHERS = [growing, replaced, a_dict_that_grows, an_attribute_that_changes, a_list_that_grows_after_its_end,
          a_list_that_grows_before_its_end_is_seen, a_function_that_raises, strict, strict_and_shorter,
          strict_and_longer, a_strict_zip_of_a_map, dying, with_else,
          an_operation_that_raises]  # fmt: skip


def whole(gm, example_inputs):
    return gm.forward


@pytest.mark.parametrize("everything", [False, True], ids=["with tensors", "everything"])
@pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
@pytest.mark.parametrize("fn", WHOLE + OTHERS, ids=lambda fn: fn.__name__)
def test_values_and_effects(fn, backend, everything):
    with godynamo.config.patch(translate_everything=everything):
        w = godynamo.optimize(fn, backend=backend)
        for n in (3, 0, 1, 2, 3, 5):
            assert outcome(w, n) == outcome(fn, n), n


@pytest.mark.parametrize("fn", WHOLE, ids=lambda fn: fn.__name__)
def test_only_the_call_breaks_the_graph(fn):
    reasons = godynamo.explain(fn)(4).break_reasons
    assert reasons and all("graph_break()" in str(reason) for reason in reasons)


@pytest.mark.parametrize(
    "fn", [in_a_list, in_enumerate_and_zip, in_a_strict_zip, backward, in_values, in_a_map, in_a_filter]
)
def test_no_translation_for_each_turn(fn):
    w = godynamo.optimize(fn)
    w(4)
    few = len(godynamo.cache_entries(w))
    w(4)
    godynamo.reset()
    w = godynamo.optimize(fn)
    w(7)
    assert len(godynamo.cache_entries(w)) == few


def test_an_iterator_of_the_caller():
    def fn(x, it):
        return x + next(it), it

    w = godynamo.optimize(fn)
    for items in ((1, 2, 3), [1, 2, 3], range(1, 4)):
        it = iter(items)
        y, same = w(torch.ones(1), it)
        assert y.item() == 2 and same is it and list(it) == [2, 3]


def test_a_zip_that_is_strict_later():
    def fn(x, it):
        return x + sum(next(it)), next(it, 7)

    w, x = godynamo.optimize(fn), torch.ones(1)
    for _ in range(2):
        for strict in (False, True):
            y, end = w(x, zip([1], [2], strict=strict))
            assert y.item() == 4 and end == 7
        assert w(x, zip([1], [2, 3]))[1] == 7
        with pytest.raises(ValueError, match=r"zip\(\) argument 2 is longer than argument 1"):
            w(x, zip([1], [2, 3], strict=True))


def test_two_iterators_that_are_one_later():
    def fn(x, a, b):
        return x + next(a) * 10 + next(b)

    w = godynamo.optimize(fn)
    x = torch.zeros(1)
    assert w(x, iter([1, 2]), iter([3, 4])).item() == 13
    it = iter([1, 2])
    assert w(x, it, it).item() == 12
    assert w(x, iter([1, 2]), iter([3, 4])).item() == 13


def test_a_container_that_is_another_one_later():
    def fn(x, xs, it):
        xs.append(5)
        return x + next(it, 0)

    w = godynamo.optimize(fn)
    x, other = torch.zeros(1), iter([1])
    assert w(x, [], other).item() == 1
    xs: list[int] = []
    assert w(x, xs, iter(xs)).item() == 5
    xs = []
    spent = iter(xs)
    next(spent, None)
    assert w(x, xs, spent).item() == 0
    assert w(x, xs, iter(xs)).item() == 5


def test_a_long_loop_is_not_unrolled_to_its_end():
    def fn(x, xs):
        for i, v in enumerate(xs):
            if i == 0:
                godynamo.graph_break()
            x = x + v
        return x

    w = godynamo.optimize(fn)
    for n in (1, 64, 65, 1000):
        assert w(torch.zeros(1), list(range(n))).item() == sum(range(n))
    before = godynamo.utils.counters["stats"]["unique_graphs"]
    assert w(torch.zeros(1), list(range(1000))).item() == sum(range(1000))
    assert godynamo.utils.counters["stats"]["unique_graphs"] == before
