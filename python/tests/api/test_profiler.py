"""torch.profiler around calls that are translated: it shows the program's operators, not the translator's."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

import godynamo

X = torch.arange(16.0).reshape(4, 4)


def block(x):
    with record_function("block"):
        y = (x @ x).relu()
    return y.sum(), y.reshape(-1).sort().values


def profiled(fn, *args):
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        fn(*args)
    return [event.name for event in seen.events()]


def broken(x):
    y = x * 2
    godynamo.graph_break()
    return y + 1


@pytest.mark.parametrize("fn", [block, broken], ids=lambda fn: fn.__name__)
def test_a_first_call_has_the_events_of_eager_mode(fn):
    expected = profiled(fn, X)
    served = godynamo.optimize(fn)
    assert "aten::relu" in expected or "aten::mul" in expected
    assert profiled(served, X) == expected
    assert profiled(served, X) == expected
    assert profiled(fn, X) == expected


def test_a_backend_may_profile_what_it_runs():
    seen = []

    def backend(gm, example_inputs):
        seen.extend(profiled(gm, *example_inputs))
        return gm

    served = godynamo.optimize(block, backend=backend)
    served(X)
    assert "aten::relu" in seen
    assert profiled(served, X) == profiled(block, X)


def test_observers_that_the_program_has_switched_off_stay_off():
    torch.autograd._enable_record_function(False)
    try:
        assert profiled(godynamo.optimize(block, backend="aot_eager"), X) == []
    finally:
        torch.autograd._enable_record_function(True)
    assert "aten::relu" in profiled(block, X)
