"""torch.autograd.Function: apply is one operation of the graph; functions that do more than compute run in CPython."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter
from harness.cases import reasons

factor = 2.0
log: list[Any] = []


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k=2):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k + x, None


class Two(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * 2, y + x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(True)

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * 2 + b * y, b


class Logs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        log.append(len(log))
        return x * 3

    @staticmethod
    def backward(ctx, g):
        log.append("backward")
        return g * 3


class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2 if ctx.needs_input_grad[0] else x * 5

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Draws(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return F.dropout(x, 0.5, True)

    @staticmethod
    def backward(ctx, g):
        return g


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x @ torch.ones(9, 9)

    @staticmethod
    def backward(ctx, g):
        return g


def scale(x):
    return Scale.apply(x.sin(), 3).cos() + Scale.apply(x)


def two(x):
    a, b = Two.apply(x, x * 2)
    return a * b


def logs(x):
    return Logs.apply(x) + 1


def asks(x):
    return Asks.apply(x) + 1


def draws(x):
    return Draws.apply(x * 2) + 1


def after_an_effect(x):
    log.append("before")
    y = Scale.apply(x)
    log.append("after")
    return y


def run(fn, call, seed):
    torch.manual_seed(seed)
    log.clear()
    x = torch.arange(1.0, 4.0).requires_grad_()
    y = call(x)
    y.sum().backward()
    return [*y.detach().tolist(), *x.grad.tolist(), *log, torch.rand(1).item()]


CASES = [(scale, 0), (two, 0), (after_an_effect, 0), (logs, 1), (asks, 0), (draws, 1)]


@pytest.mark.parametrize("backend", ["eager", "whole", "aot_eager"])
@pytest.mark.parametrize("fn, breaks", CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_apply(fn, breaks, backend, monkeypatch):
    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter if backend == "whole" else backend)
    for seed in range(2):
        assert run(fn, compiled, seed) == run(fn, fn, seed)
    monkeypatch.setitem(globals(), "factor", 5.0)  # forward's own code runs at each call
    assert run(fn, compiled, 3) == run(fn, fn, 3)
    if fn is draws and backend == "eager":
        breaks = 0
    assert len(set(reasons())) == breaks and _C.counters()["internal_errors"] == 0, reasons()
    if backend == "whole" and fn is two:
        assert counter.frame_count == 1


def raises(x):
    try:
        y = Raises.apply(x)
    except RuntimeError as e:
        return x + 1, str(e)
    return y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_forward_that_raises(backend):
    x = torch.ones(3)
    got, want = godynamo.optimize(raises, backend=backend)(x), raises(x)
    assert torch.equal(got[0], want[0]) and got[1] == want[1]


class AsksSizes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        flat = x.reshape(-1)
        total = flat.sum()
        return x * 2 if total.dim() == 0 and flat.shape[0] > 3 else x * 3

    @staticmethod
    def backward(ctx, g):
        return g


def test_what_forward_asks_of_its_values_is_not_taken_for_what_comes_after_it():
    def fn(x):
        a = AsksSizes.apply(x)
        b = torch.cat([a, a])
        c = b.t()
        return c * c.shape[0], b.shape, c.shape

    f = godynamo.optimize(fn)
    for x in (torch.ones(2, 3), torch.ones(1, 2), torch.ones(2, 3)):
        assert torch.equal(f(x)[0], fn(x)[0])
        assert f(x)[1:] == fn(x)[1:]
