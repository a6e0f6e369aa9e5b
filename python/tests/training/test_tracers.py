"""Under a tracer or a transform (jit.trace, make_fx, ...), CPython runs the frame, on a hit and on a miss."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

import godynamo

X, Y = torch.arange(12.0).reshape(3, 4), torch.arange(20.0).reshape(5, 4) - 7


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.arange(4.0))

    def forward(self, x):
        return x.view(x.size(0), -1).relu() * x.shape[0] + self.scale


def positions(x):
    return x + torch.arange(x.shape[0]).unsqueeze(1)


def flat(x):
    return x.reshape(x.size(0) * x.size(1))


def split(x):
    y = x * x.shape[0]
    godynamo.graph_break()
    return y.view(x.shape[1], x.shape[0])


def rows(x):
    return torch.stack([t * x.size(1) for t in x.unbind(0)])


def asks(x):
    return x * (2 if torch.jit.is_tracing() else 3)


def asks_export(x):
    return x + (2 if torch.compiler.is_exporting() else 3)


def numbers(x):
    return torch.tensor(len(x)) + x.numel()


PROGRAMS = {fn.__name__: fn for fn in (positions, flat, split, rows, asks, asks_export, numbers)} | {
    "method": Scaled().forward
}


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def logged(fn):
    with Log() as log:
        fn(X)
    return log.names


def faked(mode_on):
    def look(fn):
        mode = FakeTensorMode()
        x = mode.from_tensor(X)
        if not mode_on:
            return described(fn(x))
        with mode:
            return described(fn(x))

    return look


def described(t):
    return type(t).__name__, tuple(t.shape)


def recorded(record):
    """Record a call and replay it for tensors of two shapes. The second result shows a size that became a constant."""

    def look(fn):
        graph = record(fn)
        return [outcome(graph, x) for x in (X, Y)]

    return look


def symbolic(fn):
    class Root(torch.nn.Module):
        def forward(self, x):
            return fn(x)

    return torch.fx.symbolic_trace(Root())


TRACERS = {
    "jit.trace": recorded(lambda fn: torch.jit.trace(fn, (X,), check_trace=False)),
    "make_fx": recorded(lambda fn: make_fx(fn)(X)),
    "make_fx, fake": recorded(lambda fn: make_fx(fn, tracing_mode="fake")(X)),
    "make_fx, symbolic": recorded(lambda fn: make_fx(fn, tracing_mode="symbolic")(X)),
    "make_fx before dispatch": recorded(lambda fn: make_fx(fn, pre_dispatch=True)(X)),
    "symbolic_trace": recorded(symbolic),
    "FakeTensorMode": faked(True),
    "fake tensors": faked(False),
    "dispatch mode": logged,
    "vmap": lambda fn: torch.vmap(fn)(torch.stack([X, X + 1])).tolist(),
    "grad": lambda fn: torch.func.grad(lambda x: fn(x).sum())(X).tolist(),
    "jvp": lambda fn: torch.func.jvp(fn, (X,), (X,))[1].tolist(),
    "functionalize": lambda fn: torch.func.functionalize(fn)(X).tolist(),
}


def outcome(fn, *args):
    try:
        value = fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)[:30]
    return value.tolist() if isinstance(value, torch.Tensor) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("warm", [False, True], ids=["miss", "hit"])
@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward], ids=["inline", "whole graph"])
@pytest.mark.parametrize("tracer", TRACERS)
def test_what_a_tracer_records_is_what_cpython_runs(tracer, backend, warm):
    for name, fn in PROGRAMS.items():
        optimized = godynamo.optimize(fn, backend=backend)
        if warm:
            for x in (X, Y, X):
                optimized(x)
        served = outcome(TRACERS[tracer], lambda x, f=optimized: f(x))
        assert served == outcome(TRACERS[tracer], lambda x, f=fn: f(x)), name
        for x in (X, Y):  # no trace of it remains
            assert torch.equal(optimized(x), fn(x)), name


@pytest.mark.parametrize("warm", [False, True], ids=["miss", "hit"])
def test_symbolic_trace_sees_buffers_read_below_it(warm):
    module = Scaled()

    def below(n):
        return module.scale.mul(torch.full((4,), n)).view(module.scale.shape)

    optimized = godynamo.optimize(below)

    class Root(torch.nn.Module):
        def __init__(self, fn):
            super().__init__()
            self.module, self.fn = module, fn

        def forward(self, x):
            return x + self.fn(2.0)

    if warm:
        optimized(2.0)
    served, plain = (torch.fx.symbolic_trace(Root(fn)).code for fn in (optimized, below))
    assert served == plain


def test_a_question_whether_something_traces_is_guarded():
    for ask in (torch.jit.is_tracing, lambda: torch.jit.is_tracing(), lambda: torch.onnx.is_in_onnx_export()):
        said = []
        optimized = godynamo.optimize(lambda ask=ask: ask())
        assert optimized() is False

        def traced(x, optimized=optimized, said=said):
            said.append(optimized())
            return x + 1

        torch.jit.trace(traced, (X,), check_trace=False)
        assert said == [ask is not None and "onnx" not in ask.__code__.co_names]
        assert optimized() is False
