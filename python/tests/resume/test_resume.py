"""Graph breaks: the captured part runs, the instruction runs in CPython, a resume function runs the rest."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils
from godynamo._explain import explain
from harness.capture import break_reasons, check, describe, entries, nb, no_translation, outcome, unsupported


def break_between(x):
    a = x + 1
    print("before", tuple(a.shape))
    b = unsupported(a)
    print("after", b.dtype)
    return b * 2


@pytest.mark.row("S002-56")
def test_two_graphs_around_an_unsupported_call() -> None:
    backend = check(break_between, torch.randn(3))
    assert [backend.ops(i) for i in range(len(backend))] == [["add"], ["mul"]]
    assert len(break_reasons()) == 1


def print_between(x):
    y = x + 1
    print("now")
    return y * 2


@pytest.mark.row("S002-56")
def test_print_breaks_where_effects_are_not_queued() -> None:
    with godynamo.config.patch(queue_effects=False):
        backend = check(print_between, torch.randn(3))
    assert [backend.ops(i) for i in range(len(backend))] == [["add"], ["mul"]]
    godynamo.reset()
    backend = check(print_between, torch.randn(3))
    assert [backend.ops(i) for i in range(len(backend))] == [["add", "mul"]]


def live_values(x, n, items):
    a = x + n
    text = f"{n}:{len(items)}"
    pair = (a, items)
    d = {"k": a, "t": text}
    unused = x.exp()
    got = unsupported(n)
    items.append(got)
    return pair, d, text, a * got, n


@pytest.mark.row("S002-56")
def test_live_locals_of_every_kind_are_handed_over() -> None:
    check(live_values, torch.randn(2), 3, ["i"])


@pytest.mark.row("S002-56")
def test_an_explicit_break() -> None:
    def f(x):
        y = x.sin()
        godynamo.graph_break()
        return y.cos()

    backend = check(f, torch.randn(3))
    assert [backend.ops(i) for i in range(len(backend))] == [["sin"], ["cos"]]
    assert break_reasons() == ["godynamo.graph_break() called"] or any("graph_break" in r for r in break_reasons())


def many_breaks(x):
    for_each = []
    x = unsupported(x + 1)
    for_each.append(x)
    x = unsupported(x * 2)
    for_each.append(x)
    x = unsupported(x - 3)
    return x / 2, for_each


@pytest.mark.row("S002-56")
def test_several_breaks_in_one_function() -> None:
    backend = check(many_breaks, torch.randn(3))
    assert [backend.ops(i) for i in range(len(backend))] == [["add"], ["mul"], ["sub"], ["truediv"]]


@pytest.mark.row("S002-56")
def test_the_result_of_the_broken_call_may_be_anything() -> None:
    @godynamo.disable
    def switch(k):
        return [3, "three", None, torch.ones(1), [1, 2]][k]

    def f(x, k):
        got = switch(k)
        return x + 1, got

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    for k in (0, 1, 2, 3, 4, 0, 3):
        assert describe(w(x, k)) == describe(f(x, k))


# ---- what is on the stack --------------------------------------------------------------------------------------------


def stack_left(x):
    return x + unsupported(x * 2)


def stack_deep(x, f):
    return [x, (x + 1, f(x, x * 2, k=unsupported(x - 1))), {"k": unsupported(x)}]


def keyword_callee(a, b, *, k):
    return a + b * k


def stack_method(x):
    return x.sin().add(unsupported(x)).mul(2)


def stack_in_condition(x, n):
    return x + (1 if unsupported(n) else 2) * n


def stack_in_string(x, n):
    return f"{n}-{unsupported(n)}-{n}", x + 1


def stack_chained(x, n):
    return x * n if 0 < unsupported(n) < 5 else x - n


def stack_subscript(x, d):
    d["a"][unsupported(0)] = x + 1
    return d


@pytest.mark.row("S002-57")
@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (stack_left, ()),
        (stack_deep, (keyword_callee,)),
        (stack_method, ()),
        (stack_in_condition, (3,)),
        (stack_in_condition, (0,)),
        (stack_in_string, (4,)),
        (stack_chained, (3,)),
        (stack_chained, (9,)),
        (stack_subscript, ({"a": [1, 2]},)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_a_break_with_values_on_the_stack(fn: Any, args: tuple[Any, ...]) -> None:
    backend = check(fn, torch.randn(3), *args)
    assert len(backend) >= 1


@pytest.mark.row("S002-57")
def test_the_left_operand_is_captured_before_the_break() -> None:
    backend = check(lambda x: (x + 1) * unsupported(x), torch.randn(3))
    assert [backend.ops(i) for i in range(len(backend))] == [["add"], ["mul"]]


# ---- cells -----------------------------------------------------------------------------------------------------------


def reads_and_writes_cells(x):
    count = 1

    def bump():
        nonlocal count
        count += 1
        return count

    y = x * bump()
    y = unsupported(y)
    count += 10
    y = y + bump()
    return y, count, bump


@pytest.mark.row("S002-58")
def test_nonlocal_across_a_break() -> None:
    w = godynamo.optimize(reads_and_writes_cells, backend=nb())
    for _ in range(3):
        y, count, bump = w(torch.ones(2))
        assert y.tolist() == [15.0, 15.0] and count == 13
        assert bump() == 14 and bump.__closure__[0].cell_contents == 14


def make_free(free):
    def f(x):
        nonlocal free
        y = unsupported(x + free)
        free = free + 1
        return y * free

    return f, lambda: free


@pytest.mark.row("S002-58")
def test_free_variables_across_a_break() -> None:
    eager, eager_value = make_free(1.0)
    ours, our_value = make_free(1.0)
    w = godynamo.optimize(ours, backend=nb())
    x = torch.randn(3)
    for _ in range(4):
        assert torch.equal(w(x), eager(x)) and our_value() == eager_value()


class Base:
    def run(self, x):
        return x + 1


class Derived(Base):
    def run(self, x):
        y = super().run(x)
        y = unsupported(y)
        y = super().run(y)
        return y, __class__


@pytest.mark.row("S002-58")
def test_super_and_the_class_cell_across_a_break() -> None:
    w = godynamo.optimize(Derived().run, backend=nb())
    x = torch.randn(3)
    for _ in range(3):
        y, cls = w(x)
        assert torch.equal(y, x + 1 + 1) and cls is Derived


@godynamo.disable
def traced_from_here(value):
    sys.settrace(lambda *event: None)
    return value


class Traced(Base):
    def run(self, x):
        y = traced_from_here(x * 2)
        return super().run(y)


def test_super_in_the_rest_of_a_frame_that_runs_in_cpython() -> None:
    w, x = godynamo.optimize(Traced().run, backend=nb()), torch.randn(3)
    before = sys.gettrace()
    for _ in range(3):
        try:
            y = w(x)
        finally:
            sys.settrace(before)
        assert torch.equal(y, x * 2 + 1)


def inner_made_before(x):
    scale = 2

    def late(t):
        return t * scale

    y = unsupported(x)
    scale = 5
    return late(y), late


@pytest.mark.row("S002-58")
def test_an_inner_function_made_before_sees_what_is_assigned_after() -> None:
    w = godynamo.optimize(inner_made_before, backend=nb())
    x = torch.randn(3)
    for _ in range(3):
        y, late = w(x)
        assert torch.equal(y, x * 5) and torch.equal(late(x), x * 5)


@pytest.mark.row("S002-58")
def test_an_unset_cell_across_a_break_stays_unset() -> None:
    def f(x, flag):
        if flag:
            value = 3

        def read():
            return value

        y = unsupported(x + 1)
        return y * read()

    check(f, torch.randn(3), True)
    check(f, torch.randn(3), False)


@pytest.mark.row("S002-58")
def test_an_unset_local_across_a_break_stays_unset() -> None:
    def f(x, flag):
        if flag:
            value = 3
        y = unsupported(x + 1)
        return y * value

    check(f, torch.randn(3), True)
    check(f, torch.randn(3), False)
    assert outcome(godynamo.optimize(f, backend=nb()), (torch.ones(1), False))["how"][1] == "UnboundLocalError"


# ---- resume functions ------------------------------------------------------------------------------------------------


def resumed(x, n):
    y = x + n
    y = unsupported(y)
    return y * n


@pytest.mark.row("S002-63")
def test_resume_functions_are_named_after_function_and_line() -> None:
    w = godynamo.optimize(resumed, backend=nb())
    w(torch.randn(3), 2)
    line = resumed.__code__.co_firstlineno + 2
    [name] = entries(w)[0].info["resumes"]
    assert f"resume_in_resumed_at_{line}" in name
    [resume] = w.root.resumes.values()
    assert resume.function.__name__ == name == resume.function.__qualname__
    [entry] = resume.cache.entries()
    assert utils.orig_code_map[entry.code] is resumed.__code__


@pytest.mark.row("S002-63")
def test_entries_that_split_at_one_place_share_the_resume_function() -> None:
    w = godynamo.optimize(resumed, backend=(backend := nb()))
    x = torch.randn(3)
    for n in (2, 3):
        assert torch.equal(w(x, n), resumed(x, n))
    assert len(entries(w)) == 2 and len(godynamo.cache_entries(w)) == 4
    caches = explain._caches(w)
    assert [len(cache.entries()) for cache in caches] == [2, 2], "two caches: the function's and one resume function's"
    assert len(backend) == 4
    with no_translation():
        for n in (2, 3, 2):
            assert torch.equal(w(x, n), resumed(x, n))


class Ends:
    """Records its death."""

    ended: list[str] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        self.ended.append(self.name)


ADDED = 0


def binds_an_earlier_variable(x):
    first = None
    second = Ends("second")
    x = unsupported(x) + ADDED
    first = Ends("first")
    return x, first is second


def binds_in_a_handler(x):
    first = None
    second = Ends("second")
    x = unsupported(x) + ADDED
    try:
        raise KeyError
    except KeyError:
        first = Ends("first")
    return x, first is second


@pytest.mark.row("S002-56")
@pytest.mark.parametrize("fn", [binds_an_earlier_variable, binds_in_a_handler])
def test_what_a_resumed_frame_holds_ends_in_the_order_of_the_users_variables(monkeypatch, fn) -> None:
    run = godynamo.optimize(fn, backend=nb())
    Ends.ended.clear()
    fn(torch.ones(2))
    plain = Ends.ended[:]  # from 3.14 on, the last variable's object ends first
    assert sorted(plain) == ["first", "second"]
    with godynamo.config.patch(cache_size_limit=1):
        for added in range(3):  # translated once, then the limit is reached: CPython runs the resume function's code
            monkeypatch.setitem(globals(), "ADDED", added)
            Ends.ended.clear()
            assert run(torch.ones(2))[0].tolist() == [1.0 + added] * 2
            assert Ends.ended == plain


def asks_for_locals(x):
    if x.dim() > 5:
        early = 1
    z = x + 1
    held = list(locals())
    early = z * 2
    return held, list(locals()), eval("early"), z


@pytest.mark.row("S002-56")
def test_locals_are_in_order_where_an_earlier_variable_is_bound_later() -> None:
    backend = check(asks_for_locals, torch.randn(3))
    assert backend.ops() == ["add"]
