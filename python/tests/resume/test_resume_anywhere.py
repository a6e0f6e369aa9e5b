"""Breaks in loop bodies and in called functions: the code around them is still captured."""

from __future__ import annotations

import pytest
import torch

from harness.capture import check, unsupported


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
