"""A branch on data of which one side only raises: the graph takes the other side, and each call checks the condition.

PYTEST_DONT_REWRITE: the asserts of the captured functions must stay what they are.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo import utils


def asserts(x):
    y = x + 1
    assert torch.isfinite(y).all()
    return y * 2


def raises_with_a_message(x):
    y = x + 1
    if (y < 0).any():
        raise ValueError(f"negative {y.min().item():.2f} in {tuple(y.shape)}")
    return y * 2


def helper(y, steps):
    steps.append(len(steps))
    assert y.min() > 0 and y.max() < 100, "range"
    return y.sum()


def handled(x):
    steps = []
    try:
        s = helper(x + 1, steps)
        steps.append("ok")
    except AssertionError as e:
        steps.append(str(e))
        s = x.sum()
    finally:
        steps.append("end")
    return s, steps


def on_a_number(x):
    n = x.sum().item()
    assert n < 50
    return x * n


def on_an_index(x):
    y = x.exp()
    assert int(y.argmax()) < 2
    return y


def inside_a_mode(x):
    with torch.no_grad():
        y = x * 2
        if not y.max() > 5:
            raise RuntimeError("too small")
        z = y + 1
    return z, torch.is_grad_enabled()


def in_a_loop(x):
    for i in range(3):
        assert x.sum() > i - 1
        x = x + i
    return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if torch.isnan(x).any():
            raise ValueError(f"nan in call {self.calls}")
        return self.linear(x)


MODEL = Model()


def of_a_module(x):
    return MODEL(x).sum().detach(), MODEL.calls


def a_step(x):
    MODEL.zero_grad()
    loss = MODEL.linear(x).square().mean()
    if not torch.isfinite(loss):
        raise FloatingPointError("loss")
    loss.backward()
    return loss.detach(), MODEL.linear.weight.grad


INPUTS = ([1.0, 2.0, 3.0], [-5.0, 2.0, 3.0], [float("nan"), 1.0, 200.0], [3.0, 2.0, 1.0])


def outcome(fn: Callable[..., Any], values: list[float]) -> str:
    """Return a call's result or exception with its traceback, and what the model counts, as text."""
    MODEL.calls = 0
    try:
        result = repr(fn(torch.tensor(values)))
    except Exception as e:
        lines = [(f.name, f.lineno) for f in traceback.extract_tb(e.__traceback__)[1:]]
        result = f"{type(e).__name__} {e} {lines} {torch.is_grad_enabled()}"
    return f"{result} {MODEL.calls} {torch.is_grad_enabled()}"


FUNCTIONS = (
    asserts, raises_with_a_message, handled, on_a_number, on_an_index, inside_a_mode, in_a_loop, of_a_module, a_step,
)  # fmt: skip


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_graph_until_the_condition_is_false(fn):
    ours = godynamo.optimize(fn, nopython=True)
    for values in INPUTS:
        assert outcome(ours, values) == outcome(fn, values)
    assert godynamo.explain(fn)(torch.tensor(INPUTS[-1])).graph_break_count == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager", lambda gm, _: gm.forward], ids=["eager", "aot", "callable"])
def test_with_other_backends(backend):
    for fn in FUNCTIONS:
        ours = godynamo.optimize(fn, backend=backend)
        for values in INPUTS:
            assert outcome(ours, values) == outcome(fn, values), fn


@pytest.mark.parametrize("backend", ["aot_eager", lambda gm, _: gm.forward], ids=["aot", "callable"])
def test_one_whole_graph_until_the_condition_is_false(backend):
    for fn in asserts, raises_with_a_message, handled, inside_a_mode, in_a_loop, of_a_module:
        ours = godynamo.optimize(fn, backend=backend, nopython=True)
        for values in INPUTS:
            assert outcome(ours, values) == outcome(fn, values), fn


@pytest.mark.parametrize("backend", ["aot_eager", lambda gm, _: gm.forward], ids=["aot", "callable"])
def test_a_whole_graph_runs_again_without_its_changes(backend):
    def f(x, log):
        log.append("begin")
        x.add_(1)
        y = torch.rand(3) + x.requires_grad
        if x.sum() > 10:
            raise ValueError(f"{x.tolist()} {log}")
        log.append("end")
        return y

    results = []
    for fn in f, godynamo.optimize(f, backend=backend):
        torch.manual_seed(0)
        result = []
        for values in INPUTS:
            x, log = torch.tensor(values), []
            try:
                result.append(fn(x, log).tolist())
            except ValueError as e:
                result.append(str(e))
            result += [x.tolist(), log]
        results.append(str([*result, torch.rand(1)]))
    assert results[0] == results[1]


def test_an_exception_that_is_the_usual_way():
    def f(x):
        try:
            if x.sum() > 0:
                raise ValueError("positive")
        except ValueError as e:
            return x + 1, str(e)
        return x - 1

    for backend in "eager", lambda gm, _: gm.forward:
        for whole in True, False:
            godynamo.reset()
            ours = godynamo.optimize(f, nopython=whole, backend=backend)
            for values in INPUTS * 6:
                assert outcome(ours, values) == outcome(f, values)
        assert sum(utils.counters["graph_break"].values()) == 1


def test_two_exceptions_are_a_graph_break():
    def f(x):
        if x.sum() > 0:
            raise ValueError("positive")
        raise KeyError("negative")

    ours = godynamo.optimize(f)
    for values in INPUTS:
        assert outcome(ours, values) == outcome(f, values)
    assert sum(utils.counters["graph_break"].values()) == 1


def test_backends_that_trace_the_graph():
    def traced(gm, inputs):
        return torch.jit.trace(gm, tuple(inputs))

    def rebuilt(gm, inputs):
        return torch.fx.symbolic_trace(gm).forward

    for backend in traced, rebuilt:
        for fn in asserts, raises_with_a_message, handled:
            ours = godynamo.optimize(fn, backend=backend)
            for values in INPUTS:
                assert outcome(ours, values) == outcome(fn, values), fn
