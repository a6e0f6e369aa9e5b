"""Breaks in loop bodies and in called functions: the code around them is still captured."""

from __future__ import annotations

import contextlib
import logging

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, check, nb, outcome, unsupported


def in_a_loop(x, items):
    y = x + 1
    for i, item in enumerate(items):
        y = y * item
        items_seen = unsupported(i)
        y = y - items_seen
    return y.relu(), i


@pytest.mark.row("S002-61")
def test_a_loop_goes_on_where_its_iterator_stood() -> None:
    backend = check(in_a_loop, torch.randn(3), [2, 3, 4])
    captured = [op for i in range(len(backend)) for op in backend.ops(i)]
    for op in ("add", "mul", "sub", "relu"):
        assert op in captured, captured
    assert len(backend) >= 3, "prefix, body and suffix"


def real_iterator(x, it):
    for v in it:
        x = x + v
        unsupported(v)
    return x * 2


@pytest.mark.row("S002-61")
def test_a_loop_over_an_iterator_of_the_callers() -> None:
    check(lambda x: real_iterator(x, iter([1, 2, 3])), torch.randn(2))


def long_loop(x, n):
    for _ in range(n):
        x = x + 1
        unsupported(None)
    return x


@pytest.mark.row("S002-61")
def test_a_long_loop_does_not_nest() -> None:
    backend = check(long_loop, torch.zeros(1), 3000)
    assert len(backend) <= 4, "each turn goes on in the same resume function"


def callee(y):
    z = y * 2
    got = unsupported(1)
    return z.cos() + got


def caller(x):
    a = x.sin()
    b = callee(a)
    return b.tanh()


@pytest.mark.row("S002-62")
def test_a_break_in_a_called_function_keeps_both_frames_captured() -> None:
    backend = check(caller, torch.randn(3))
    captured = [backend.ops(i) for i in range(len(backend))]
    assert ["sin"] in captured, "the caller's prefix"
    assert ["mul"] in captured and ["cos", "add"] in captured, "the callee around its break"
    assert ["tanh"] in captured, "the caller goes on"


class Counting:
    blocks = 0

    def __enter__(self) -> None:
        Counting.blocks += 1

    def __exit__(self, *_: object) -> None:
        Counting.blocks -= 1


@contextlib.contextmanager
def in_a_generator(value):
    yield value


def raises_in_a_block(x, n, linear, w):
    try:
        with torch.set_grad_enabled(False), Counting(), in_a_generator(w if linear.weight is w else n):
            undefined_name.dropout(x)  # type: ignore[name-defined]  # noqa: F821
    finally:
        x.clamp_(min=n)


def test_handlers_resume_after_a_run_under_a_trace_function() -> None:
    """A second exception, of the graph in the ``finally``, makes the user's own code run under a trace function. This
    instruments the resume functions. CPython then reads the offset that a block's handler puts on the stack."""
    linear, w = torch.nn.Linear(2, 3), torch.ones(2)
    optimized = godynamo.optimize(raises_in_a_block)
    for leaf, n in [(False, 1), (True, 0), (True, 0), (False, 1)] * 3:
        x, y = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
        expected = outcome(raises_in_a_block, (x if leaf else x * 1, n, linear, w), {})
        assert outcome(optimized, (y if leaf else y * 1, n, linear, w), {}) == expected
    assert_no_internal_errors()


def test_breaks_in_cleanup_code_name_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """The compiler gives no line to the code that ends a handler."""
    with caplog.at_level(logging.DEBUG, "godynamo.graph_breaks"), pytest.raises(NameError):
        godynamo.optimize(raises_in_a_block, backend=nb())(torch.ones(2), 1, torch.nn.Linear(2, 3), torch.ones(2))
    places = [line for line in caplog.text.splitlines() if "in raises_in_a_block" in line]
    assert places and not any("line -1" in place for place in places), places
