"""torch.cond, while_loop, scan, map, associative_scan: operations of the graph whose functions are graphs."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan

import godynamo
from godynamo.testing import CompileCounter
from harness.training import breaks, facts, whole

BACKENDS = pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
X = torch.linspace(-1.0, 1.0, 12).reshape(4, 3)
torch.manual_seed(0)
LINEAR, NORM = torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)
OUTSIDE = torch.ones(3, requires_grad=True)


def sine(a):
    return a.sin()


def cosine(a):
    return a.cos()


def own(a):
    b = a.sin()
    b.add_(1)
    return b


def in_no_grad(x):
    with torch.no_grad():
        return torch.cond(x.sum() > 0, sine, cosine, (x,))


def with_effect(x):
    seen = []
    return torch.cond(x.sum() > 0, lambda a: seen.append(1) or a.sin(), cosine, (x,)), seen


CAPTURED = {
    "cond": lambda x: torch.cond(x.sum() > 0, sine, cosine, (x,)),
    "cond on a number": lambda x: torch.cond(x.shape[0] > 2, lambda a: a, cosine, (x,)),
    "cond with tensors from outside": lambda x: torch.cond(
        x.sum() > 0, lambda a: a * OUTSIDE, lambda a: LINEAR(a), (x,)
    ),
    "cond in cond": lambda x: torch.cond(
        x.sum() > 0, lambda a: torch.cond(a.max() > 5, sine, lambda b: b * OUTSIDE, (a,)), cosine, (x,)
    ),
    "cond of nested operands": lambda x: torch.cond(
        x.sum() > 0, lambda d: {"r": d["a"] * d["b"][0]}, lambda d: {"r": d["b"][0].sin()}, ({"a": x, "b": [x * 2]},)
    ),
    "cond of a list": lambda x: torch.cond(x.sum() > 0, lambda a: [a.sin(), a + 1], lambda a: [a + 2, a.sin()], (x,)),
    "cond of one tensor twice": lambda x: torch.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a - b * 2, (x, x)),
    "cond that leaves one out": lambda x: torch.cond(
        x.sum() > 0, lambda a, b: a.sin(), lambda a, b: a.cos(), (x * 1, x)
    ),
    "cond that changes its own": lambda x: torch.cond(x.sum() > 0, own, cosine, (x,)),
    "cond with dropout": lambda x: torch.cond(x.sum() > 0, lambda a: torch.dropout(a, 0.5, True), cosine, (x,)),
    "cond in no_grad": in_no_grad,
    "while_loop": lambda x: while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.sin() * x), (torch.tensor(0), x * 1)),
    "scan": lambda x: scan(lambda c, a: (c + a * OUTSIDE, (c * a).sin()), torch.zeros(3), x),
    "scan, reversed": lambda x: scan(
        lambda c, a: ({"k": c["k"] + a[0]}, [c["k"] * a[1]]), {"k": torch.zeros(4)}, (x, x * 2), dim=1, reverse=True
    ),
    "map": lambda x: map_over(lambda a, b: {"r": a[0].sin() + b, "s": a[1] * 2}, (x, x * 2), OUTSIDE),
    "associative_scan": lambda x: associative_scan(torch.add, x, 0, combine_mode="pointwise"),
}
SPLIT = {
    "cond that gives its operand": lambda x: torch.cond(x.sum() > 0, lambda a: a, cosine, (x,)),
    "cond that gives a view": lambda x: torch.cond(x.sum() > 0, lambda a: a.t(), lambda a: a.t().cos(), (x,)),
    "cond of different shapes": lambda x: torch.cond(x.sum() > 0, lambda a: a.sum(), cosine, (x,)),
    "cond of different structures": lambda x: torch.cond(x.sum() > 0, lambda a: (a.sin(),), cosine, (x,)),
    "cond of a number": lambda x: torch.cond(x.sum() > 0, lambda a: (a.sin(), 1), lambda a: (a.cos(), 1), (x,)),
    "cond on many": lambda x: torch.cond(x > 0, sine, cosine, (x,)),
    "cond with a number": lambda x: torch.cond(x.sum() > 0, lambda a, n: a * n, lambda a, n: a.cos(), (x, 3)),
    "cond on tensors that share memory": lambda x: torch.cond(
        x.sum() > 0, lambda a, b: a + b, lambda a, b: a * b, (x, x[0])
    ),
    "cond with an effect": with_effect,
    "cond that changes a buffer": lambda x: torch.cond(x.sum() > 0, NORM, cosine, (x,)),
    "while_loop that grows": lambda x: while_loop(
        lambda a: a.sum() < 9, lambda a: (torch.cat([a, a + 9]),), (x.detach(),)
    ),
    "map over one tensor twice": lambda x: map_over(lambda a: a[0] + a[1], (x, x)),
}


def outcome(fn, x):
    """Return the outcome of a call; for torch.compile's errors only the kind, since their text contains the stack."""
    torch.manual_seed(0)
    OUTSIDE.grad = LINEAR.weight.grad = None
    x = x.clone().requires_grad_()
    try:
        value = fn(x)
        flat = [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor) and t.requires_grad]
        if flat:
            sum(t.sum() for t in flat).backward()
    except Exception as error:
        return type(error).__name__
    return facts(value), facts(x.grad), facts(OUTSIDE.grad), facts(LINEAR.weight.grad), torch.rand(()).item()


@BACKENDS
@pytest.mark.parametrize("name", [*CAPTURED, *SPLIT])
def test_higher_order_operators(name, backend):
    fn = (CAPTURED | SPLIT)[name]
    f = godynamo.optimize(fn, backend=backend)
    for x in (X, X + 1, X - 1, X):
        assert outcome(f, x) == outcome(fn, x)


@pytest.mark.parametrize("name", CAPTURED)
def test_they_are_operations_of_one_graph(name):
    counter = CompileCounter()
    f = godynamo.optimize(lambda x: (CAPTURED[name](x), x + 1), backend=counter)
    f(X)
    assert counter.frame_count == 1
    assert not breaks()


def test_a_while_loop_is_an_operation_where_operations_are_inlined():
    godynamo.optimize(CAPTURED["while_loop"])(X)
    assert not breaks()


def refuses_loops(gm, example_inputs):
    if "while_loop" in gm.code:
        raise NotImplementedError("loops")
    return gm.forward


@pytest.mark.parametrize(
    ("backend", "captured"),
    [
        (lambda gm, _: gm.forward, True),
        (lambda gm, _: lambda *inputs: gm(*inputs), False),
        (refuses_loops, False),
        (lambda gm, inputs: torch.jit.trace(gm, [x.clone() for x in inputs]), False),
    ],
    ids=["returns the graph", "compiles", "raises", "traces"],
)
def test_the_turns_of_a_while_loop_depend_on_data(backend, captured):
    def fn(x, n):
        y = x * 2
        i, a = while_loop(lambda i, a: i < n.sum(), lambda i, a: (i + 1, a + y), (torch.tensor(0), x.clone()))
        return a.shape, a * 2, i

    f = godynamo.optimize(fn, backend=backend)
    for n in (1, 3, 0, 2):
        assert str(f(X, torch.tensor([n, 1]))) == str(fn(X, torch.tensor([n, 1])))
    assert bool(breaks()) is not captured


@pytest.mark.parametrize("name", ["cond with tensors from outside", "scan", "map", "associative_scan"])
def test_under_aot_autograd(name):
    fn = CAPTURED[name]
    f = godynamo.optimize(fn, backend="aot_eager")
    for x in (X + 1, X - 1):
        a, b = outcome(f, x), outcome(fn, x)
        assert a[:2] == b[:2] or a == b
    assert not breaks()


def test_wrap_calls_its_function():
    wrap = torch.ops.higher_order.wrap
    log = []

    def fn(x, k):
        log.append(k)
        y = wrap(lambda a, *, by: [a.sin() * by, OUTSIDE], x, by=k)
        return wrap(LINEAR, y[0]) + wrap(torch.mul, *y), k

    for backend in "eager", "aot_eager", CompileCounter():
        fast = godynamo.optimize(fn, backend=backend, nopython=True)
        for k in 2, 3:
            assert outcome(lambda x: fast(x, k), torch.ones(4, 4)) == outcome(lambda x: fn(x, k), torch.ones(4, 4))
