"""Functions that trace or inspect frames run unchanged: a trace function sees only the user's frames."""

from __future__ import annotations

import sys

import torch

import godynamo
from godynamo.testing import CompileCounter


def events_of(fn, x):
    """Return fn's result, and the events that a trace function receives while fn runs."""
    events = []

    def trace(frame, event, arg):
        events.append((frame.f_code.co_name, event, frame.f_lineno - frame.f_code.co_firstlineno))
        return trace

    return fn(trace, x), events


def test_a_trace_function_sees_the_users_frames():
    def helper(x):
        y = x + 1
        return y * 2

    def traced(trace, x):
        x = x - 1
        sys.settrace(trace)
        try:
            return helper(x) + 1
        finally:
            sys.settrace(None)

    old = sys.gettrace()
    try:
        expected = events_of(traced, torch.ones(2))
        backend = CompileCounter()
        for _ in range(3):
            got = events_of(godynamo.optimize(backend=backend)(traced), torch.ones(2))
            assert torch.equal(got[0], expected[0])
            assert got[1] == expected[1]
    finally:
        sys.settrace(old)
    assert ("helper", "call", 0) in expected[1]


def test_a_frame_that_is_looked_at_is_the_users():
    def looked_at(x):
        y = x + 1
        frame = sys._getframe()
        return y, frame.f_code is looked_at.__code__, sorted(frame.f_locals)

    optimized = godynamo.optimize(looked_at)
    for _ in range(2):
        y, own, names = optimized(torch.ones(2))
        assert own
        assert names == ["frame", "looked_at", "x", "y"]


def test_what_such_a_function_calls_is_captured():
    def helper(x):
        return (x + 1) * 2

    def outer(x):
        sys._getframe()
        return helper(x)

    backend = CompileCounter()
    assert torch.equal(godynamo.optimize(backend=backend)(outer)(torch.ones(2)), torch.full((2,), 4.0))
    assert (backend.frame_count, backend.op_count) == (1, 2)
