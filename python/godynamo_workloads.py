"""The micro set of ``godynamo bench`` and ``make bench``.

This file is outside the package, because the functions represent user code: godynamo never captures its own files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from godynamo._tools.bench.workload import Prepared, Transform, Workload


def _pair() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(10, generator=generator), torch.randn(10, generator=generator)


def _two(function: Callable[..., Any]) -> Callable[[Transform], Prepared]:
    """Return the ``prepare`` function of a Workload that calls a function of two tensors."""

    def prepare(transform: Transform) -> Prepared:
        f = transform(function)
        a, b = _pair()
        names = {"f": f, "a": a, "b": b}
        return Prepared("f(a, b)", names, lambda: f(a, b), compiled=f, target=function, args=(a, b))

    return prepare


def _identity(a: Any, b: Any) -> Any:
    return b


def _relu(a: Any, b: Any) -> Any:
    return (a + b).relu() * 2


def _toy_example(a: Any, b: Any) -> Any:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def _calls_toy_example(a: Any, b: Any) -> Any:
    return _toy_example(a, b) + 1


def _keyword(a: Any, *, b: Any, scale: float = 1.0) -> Any:
    return a * scale + b


def _pure_python(n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    return total


# fmt: off
def _thirty(
    t0: Any, t1: Any, t2: Any, t3: Any, t4: Any, t5: Any, t6: Any, t7: Any, t8: Any, t9: Any,
    t10: Any, t11: Any, t12: Any, t13: Any, t14: Any, t15: Any, t16: Any, t17: Any, t18: Any, t19: Any,
    t20: Any, t21: Any, t22: Any, t23: Any, t24: Any, t25: Any, t26: Any, t27: Any, t28: Any, t29: Any,
) -> Any:
    # The function makes one operation on all tensors: 29 additions would hide the cost of the arguments.
    return torch.cat((t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, t17, t18, t19,
                      t20, t21, t22, t23, t24, t25, t26, t27, t28, t29))
# fmt: on


def _by_mode(x: Any, mode: str) -> Any:
    return x + len(mode)


async def _never_captured(a: Any, b: Any) -> Any:
    return b


def _prepare_keyword(transform: Transform) -> Prepared:
    f = transform(_keyword)
    a, b = _pair()
    return Prepared(
        "f(a, b=b, scale=2.0)",
        {"f": f, "a": a, "b": b},
        lambda: f(a, b=b, scale=2.0),
        compiled=f,
        target=_keyword,
        args=(a,),
        kwargs={"b": b, "scale": 2.0},
    )


def _prepare_pure_python(transform: Transform) -> Prepared:
    f = transform(_pure_python)
    return Prepared("f(100)", {"f": f}, lambda: f(100), compiled=f, target=_pure_python, args=(100,))


def _prepare_thirty(transform: Transform) -> Prepared:
    f = transform(_thirty)
    tensors = [torch.full((10,), float(i)) for i in range(30)]
    return Prepared(
        "f(*ts)", {"f": f, "ts": tensors}, lambda: f(*tensors), compiled=f, target=_thirty, args=tuple(tensors)
    )


def _prepare_eight(transform: Transform) -> Prepared:
    # The modes are strings, since torch.compile turns a changing integer into a symbol and makes one entry, not eight.
    f = transform(_by_mode)
    x, _ = _pair()
    modes = ["m" * (i + 1) for i in range(8)]
    statement = "; ".join(f"f(x, {mode!r})" for mode in modes)
    return Prepared(
        statement,
        {"f": f, "x": x},
        lambda: [f(x, mode) for mode in modes],
        calls=8,
        compiled=f,
        target=_by_mode,
        args=(x, modes[-1]),
    )


def _prepare_skipped(transform: Transform) -> Prepared:
    f = transform(_never_captured)
    a, b = _pair()

    def check() -> Any:
        coroutine = f(a, b)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("the coroutine did not end")

    return Prepared("f(a, b).close()", {"f": f, "a": a, "b": b}, check)


def _made(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> tuple[nn.Module, torch.Tensor]:
    """Return a module and an input, the same ones each time."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return make(), torch.randn(*shape)


def _module(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> Callable[[Transform], Prepared]:
    """Return the ``prepare`` function of a Workload that calls a module. All sides have the same weights."""

    def prepare(transform: Transform) -> Prepared:
        module, x = _made(make, shape)
        m = transform(module)
        return Prepared("m(x)", {"m": m, "x": x}, lambda: m(x), compiled=m, target=module, args=(x,))

    return prepare


def _layers(count: int) -> nn.Module:
    return nn.Sequential(*(layer for _ in range(count) for layer in (nn.Linear(16, 16), nn.ReLU())))


def _mlp() -> nn.Module:
    return _layers(4)


_linear_op, _relu_op = torch._C._nn.linear, torch.relu


def _operations(x: Any, w0: Any, b0: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    x = _relu_op(_linear_op(x, w0, b0))
    x = _relu_op(_linear_op(x, w1, b1))
    x = _relu_op(_linear_op(x, w2, b2))
    return _relu_op(_linear_op(x, w3, b3))


def _prepare_operations(transform: Transform) -> Prepared:
    # In eager mode, this is the part of the MLP's time that no translation can save: its operations, without modules.
    f = transform(_operations)
    module, x = _made(_mlp, (1, 16))
    arguments = (x, *module.parameters())
    return Prepared(
        "f(*a)", {"f": f, "a": arguments}, lambda: f(*arguments), compiled=f, target=_operations, args=arguments
    )


def _training(make: Callable[[Any], torch.optim.Optimizer]) -> Callable[[Transform], Prepared]:
    """Return the ``prepare`` function of a Workload that trains an MLP.

    All steps and all sides have the same loss, since the learning rate is too small to change a parameter. It cannot be
    0, because torch.compile's AdamW divides by it.
    """

    def prepare(transform: Transform) -> Prepared:
        module, x = _made(_mlp, (1, 16))
        optimizer = make(module.parameters())

        def step(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = module(x).square().mean()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            return loss

        f = transform(step)
        return Prepared("f(x)", {"f": f, "x": x}, lambda: f(x), compiled=f, target=step, args=(x,))

    return prepare


WORKLOADS = [
    Workload("identity", "def f(a, b): return b", _two(_identity)),
    Workload("relu", "(a + b).relu() * 2", _two(_relu)),
    Workload("toy_example", "the seed's toy_example: a branch on data", _two(_toy_example)),
    Workload("inlined_branch", "toy_example called by a function: one graph", _two(_calls_toy_example)),
    Workload("keyword", "f(a, b=b, scale=2.0)", _prepare_keyword),
    Workload("pure_python", "a loop of 100 additions, no tensor", _prepare_pure_python),
    Workload("skipped", "a call of an async function: never captured", _prepare_skipped),
    Workload("thirty", "30 tensor arguments", _prepare_thirty),
    Workload("eight", "eight entries in turn", _prepare_eight),
    Workload("mlp_grad", "(Linear 16x16 + ReLU) x 4, grad", _module(_mlp, (1, 16))),
    Workload("mlp_no_grad", "the same, no_grad", _module(_mlp, (1, 16)), torch.no_grad),
    Workload("operations_grad", "its eight operations alone, grad", _prepare_operations),
    Workload("operations_no_grad", "the eight operations, no_grad", _prepare_operations, torch.no_grad),
    Workload("nn_identity", "nn.Identity()", _module(nn.Identity, (10,))),
    Workload("sequential", "Sequential of 20 Linear + ReLU", _module(lambda: _layers(20), (1, 16))),
    Workload("step_sgd", "training step of the MLP, SGD", _training(lambda p: torch.optim.SGD(p, 1e-30, momentum=0.9))),
    Workload("step_adamw", "training step of the MLP, AdamW", _training(lambda p: torch.optim.AdamW(p, 1e-30))),
    Workload("relu_inductor", "(a + b).relu() * 2, inductor", _two(_relu), backend="inductor"),
    Workload("mlp_inductor", "MLP, no_grad, inductor", _module(_mlp, (1, 16)), torch.no_grad, backend="inductor"),
]


class _Layer(nn.Module):
    """A transformer layer, written as users write such layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        y = self.norms[0](x)
        q, k, v = (f(y).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(y)
        out: torch.Tensor = x + self.mlp(self.norms[1](x))
        return out


class Transformer(nn.Module):
    """A stack of equal layers, which takes (batch, tokens, 16)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(16, 2) for _ in range(layers))
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layers in order, then the norm."""
        for layer in self.layers:
            x = layer(x)
        out: torch.Tensor = self.norm(x)
        return out


def many_ops_source(count: int, salt: int) -> str:
    """Return the source of a function with `count` tensor operations. Each salt makes a different function."""
    lines = [f"def many_{salt}(x, y):"]
    steps = ("x = x + y", "x = x.relu()", "x = x * 0.5")
    lines += [f"    {steps[i % len(steps)]}" for i in range(count)]
    return "\n".join([*lines, "    return x"])
