"""Texts of sizes: computed at run time, and only if something uses them."""

from __future__ import annotations

import dis

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_symbols import Graphs, assert_serves, outcome

CALLS = [(torch.ones(s),) for s in [(2, 4), (3, 4), (4, 5), (5, 6), (4, 2), (1, 7), (0, 2)]]


def of_a_shape(x):
    return f"{x.shape}", f"{x.shape!r} of {x.shape[0]}", str(x.shape), repr(x.size()), x + 1


def in_containers(x):
    rows, columns = x.shape
    return str((rows, 1, "100%")), repr([columns, {"rows": rows}, ()]), f"{(rows * columns,)}", x + 1


def by_format(x):
    return "{} and {!r}".format(x.shape, x.shape[1]), x + 1  # noqa: UP032


def by_percent(x):
    return "%s, %d, %5d, %r, %x, %%, %s" % (x.shape, x.shape[0], x.shape[1], "a", x.shape[0], 1.5), x + 1  # noqa: UP031


def of_a_list_that_changes(x):
    sizes = [x.shape[0]]
    before = str(sizes)
    sizes.append(x.shape[1])
    return before, str(sizes), x + 1


def of_a_result(x):
    y = x[x > 0]
    return f"{y.shape}", y * 2


def with_a_spec(x):
    return f"{x.shape[0]:>5} {x.shape[1]:x}", x + 1


@pytest.mark.parametrize(
    "f", [of_a_shape, in_containers, by_format, by_percent, of_a_list_that_changes, of_a_result, with_a_spec]
)
def test_one_entry_serves_all_sizes(f) -> None:
    for backend in ("eager", Graphs()):
        optimized = godynamo.optimize(f, backend=backend)
        for args in CALLS:
            assert str(optimized(*args)) == str(f(*args))
        assert_no_internal_errors()
        assert len(entries(optimized)) == 1


def checked(x):
    torch._assert(x.dim() == 2, f"two dimensions, not {x.shape} and {x.shape[0] * 2} elements")
    if x.shape[0] > 100:
        raise ValueError("too many rows: %s" % (x.shape,))  # noqa: UP031
    return x.reshape(-1) * 2


def test_a_message_of_an_assert_that_holds_is_not_computed() -> None:
    assert_serves(checked, CALLS, 1)
    optimized = godynamo.optimize(checked)
    optimized(*CALLS[0])
    (entry,) = godynamo.cache_entries(optimized)
    assert not [i for i in dis.get_instructions(entry.code) if isinstance(i.argval, str) and "dimensions" in i.argval]
    assert "join" not in [i.argval for i in dis.get_instructions(entry.code)]


def test_a_message_is_raised_with_the_sizes_of_the_call() -> None:
    def f(x):
        try:
            if x.shape[1] == 4:
                raise ValueError(f"four columns: {x.shape}")
        except ValueError as error:
            return str(error), x + 1
        return "", x * 2

    optimized = godynamo.optimize(f)
    for (x,) in CALLS:
        assert str(outcome(optimized, (x,))) == str(outcome(f, (x,)))
        optimized_checked, long = godynamo.optimize(checked), torch.ones(101 + x.shape[0], 2)
        assert outcome(optimized_checked, (long,)) == outcome(checked, (long,))
    assert len(entries(optimized)) == 3  # for 4 columns, for fewer and for more
    assert_no_internal_errors()


def test_a_text_of_a_result_that_nothing_uses() -> None:
    """The code of the graph's call is inserted before the code of the text, which is dropped."""

    def unused(x):
        text = str(int(x.sum()))  # noqa: F841
        return x + 1

    def caught(x):
        try:
            assert x.shape[0] == 7, str(int(x.sum()))
        except AssertionError as e:
            return x * len(e.args)
        return x

    for f in (unused, caught):
        for backend in (Graphs(), "eager"):
            optimized = godynamo.optimize(f, backend=backend)
            for n in (4, 7, 5):
                x = torch.arange(float(n))
                assert torch.equal(optimized(x), f(x))
    assert_no_internal_errors()
