"""Tensors whose classes dispatch operators in Python: quantized weights and activations, inside captured functions."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import godynamo
from godynamo._translator import dispatchers
from wrapper_classes import (
    LOG,
    Activation,
    Counts,
    Logged,
    LoRA,
    Tables,
    Transposed,
    Weight,
    Wrapper,
    compare,
    quantized,
)

#: an object of torch to which a handler could append
KEPT = nn.ParameterList()

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])
WEIGHTS = pytest.mark.parametrize("cls", [Weight, Tables])


def matrix(rows: int = 5) -> torch.Tensor:
    return torch.linspace(-1, 2, rows * 8).reshape(rows, 8).sin()


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


@WEIGHTS
def test_quantized_weights_are_one_graph(cls: Any) -> None:
    assert not compare(lambda: quantized(mlp(), cls), lambda: (matrix(),))
    explained = godynamo.explain(quantized(mlp(), cls))(matrix())
    assert explained.graph_count == 1 and not explained.break_reasons


@WEIGHTS
@BACKENDS
def test_quantized_weights_at_several_sizes(cls: Any, backend: str) -> None:
    sizes = [lambda n=n: (matrix(n),) for n in (5, 3, 1, 7)]
    breaks = compare(lambda: quantized(mlp(), cls), *sizes, backend=backend)
    assert backend != "eager" or not breaks


def test_sizes_stay_symbols() -> None:
    model = godynamo.optimize(quantized(mlp(), Weight))
    for n in (5, 3, 2, 7, 11):
        model(matrix(n))
    assert len(godynamo.cache_entries(model)) <= 2


@WEIGHTS
@BACKENDS
def test_a_training_step_beside_quantized_weights(cls: Any, backend: str) -> None:
    def make() -> Any:
        model = LoRA(cls)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

        def step(x: Any) -> Any:
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach(), model.up.weight.detach().clone(), x.grad

        return step

    breaks = compare(make, lambda: (matrix().requires_grad_(),), lambda: (matrix(),), backend=backend)
    assert backend != "eager" or not breaks


@BACKENDS
def test_activations_are_quantized_inside(backend: str) -> None:
    def f(x: Any) -> Any:
        q = Activation.of(x)
        return torch.mm(q, torch.ones(8, 3)).relu(), q.shape, q.dtype, isinstance(q, Wrapper), type(q).__name__, q.scale

    breaks = compare(lambda: f, lambda: (matrix(),), lambda: (matrix(4),), backend=backend)
    assert backend != "eager" or not breaks


@BACKENDS
def test_a_wrapper_is_made_and_returned(backend: str) -> None:
    assert compare(lambda: lambda x: Weight.of(x * 2), lambda: (matrix(),), backend=backend) == [] or backend != "eager"
    compare(lambda: lambda x: (w := Weight.of(x), w.ints, w), lambda: (matrix(),), backend=backend)


@BACKENDS
def test_attributes_and_methods(backend: str) -> None:
    def f(q: Any) -> Any:
        return q.ints.float() * q.scale + 1, q.dequantize(), q.shape, q.dtype, q.device.type, q.dim(), q.numel()

    compare(lambda: f, lambda: (Weight.of(matrix()),), lambda: (Tables.of(matrix()),), backend=backend)


def test_a_handler_raises() -> None:
    def caught(q: Any) -> Any:
        try:
            return q.sin()
        except NotImplementedError as e:
            return str(e)

    assert not compare(lambda: caught, lambda: (Activation.of(matrix()),))
    compare(lambda: lambda q: q.sin(), lambda: (Activation.of(matrix()),))


@BACKENDS
def test_handlers_with_effects_break_the_graph(backend: str) -> None:
    def logged(q: Any) -> Any:
        return q.sin(), len(LOG), q * 2 + 1, len(LOG), list(LOG)

    def counted(q: Any) -> Any:
        return q.sin(), Counts.calls, q.cos(), Counts.calls

    assert compare(lambda: logged, lambda: (Logged.of(matrix()),), backend=backend)
    assert compare(lambda: counted, lambda: (Counts.of(matrix()),), backend=backend)


@BACKENDS
@pytest.mark.parametrize(
    "operation",
    [
        lambda q: q.neg(),
        lambda q: (q.clone(), q.detach()),
        lambda q: (q.t(), type(q.t()) is Transposed, q.t().shape),
        lambda q: (q + 1, 1 - q, q @ q.T, -q),
        lambda q: q[0],
        lambda q: q[:2].sum(),
        lambda q: [r.sum() for r in q],
        lambda q: q.sum().item(),
        lambda q: q.tolist(),
        lambda q: q.max(dim=1),
        lambda q: q.chunk(2),
        lambda q: torch.stack([q, torch.ones(5, 8)]),
        lambda q: torch.cat([q, q]),
        lambda q: torch.add(torch.ones(5, 8), q, out=torch.empty(5, 8)),
        lambda q: torch.ones(5, 8).add_(q),
        lambda q: torch.ones(5, 8).mul_(q).sum(),
        lambda q: torch.equal(q, q),
        lambda q: q == q,
        lambda q: bool((q > 2).any()),
        lambda q: (q.data, q.grad, q.is_leaf, q.requires_grad),
        lambda q: q.to(torch.float64),
        lambda q: q.float() is q,
        lambda q: q.contiguous() is q,
        lambda q: (q.is_contiguous(), q.stride(), len(q)),
        lambda q: F.linear(torch.ones(3, 8), q),
        lambda q: F.linear(torch.ones(3, 8).t(), q.t()),
        lambda q: F.layer_norm(q, (8,)),
        lambda q: q.exp().topk(2),
        lambda q: torch.where(q > 0, q, 0),
        lambda q: torch.vmap(lambda r: r * 2)(q),
        lambda q: torch.utils.checkpoint.checkpoint(lambda t: t.exp(), q, use_reentrant=False),
        lambda q: q.exp().add_(1),
        lambda q: torch._foreach_add([q], 1),
        lambda q: q.add_(1),
        lambda q: q.requires_grad_().exp(),
        lambda q: q.numpy(),
        lambda q: f"{q.exp().shape} {q.shape}",
        lambda q: setattr(q, "note", q.exp()) or q.note,
        lambda q: q.view(-1),
        lambda q: q.expand(5, 5, 8),
        lambda q: q.new_zeros(3),
        lambda q: torch.zeros_like(q),
    ],
)
def test_operations(operation: Any, backend: str) -> None:
    for cls in (Weight, Tables, Activation, Logged, Counts):
        compare(lambda: operation, lambda cls=cls: (cls.of(matrix()),), backend=backend)


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", torch.bfloat16),
        torch._C.DisableTorchFunctionSubclass,
    ],
)
@WEIGHTS
def test_modes(cls: Any, mode: Any) -> None:
    def make() -> Any:
        model = quantized(mlp(), cls)

        def f(x: Any) -> Any:
            with mode():
                y = model(x)
            return y, y.requires_grad

        return f

    compare(make, lambda: (matrix(),), lambda: (matrix().requires_grad_(),))


class Changing(Wrapper):
    """Returns what the test wants."""

    returns: Any = staticmethod(lambda q: q.dequantize())

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Changing.returns(args[0])


def test_a_result_that_looks_different() -> None:
    """The prediction is checked in each call; what follows sees the handler's own result."""

    def f(q: Any) -> Any:
        y = q.exp()
        return type(y).__name__, y.shape, y.dtype, y is q, y is q.scale, y

    ways = [
        lambda q: q.dequantize(),
        lambda q: Weight.of(q.dequantize()),
        lambda q: q.dequantize()[:2],
        lambda q: q.dequantize().double(),
        lambda q: q.dequantize().t().contiguous().t(),
        lambda q: q.scale,
        lambda q: q.dequantize().requires_grad_(),
    ]
    for first in ways:
        results = []
        for captured in (False, True):
            godynamo.reset()
            fn = godynamo.optimize(f) if captured else f
            out = []
            for way in (first, *ways, first):
                Changing.returns = staticmethod(way)
                out.append(repr(fn(Changing.of(matrix()))))
            results.append(out)
        assert results[0] == results[1]


def test_the_program_replaces_a_handler_or_a_weight() -> None:
    class Replaced(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return args[0].dequantize() + 1

    f = godynamo.optimize(lambda q: q.exp())
    q = Replaced.of(matrix())
    assert torch.equal(f(q), q.dequantize() + 1)
    log = []

    def other(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        log.append(func)
        return args[0].dequantize() + 2

    Replaced.__torch_dispatch__ = classmethod(other)  # type: ignore[assignment]
    assert torch.equal(f(q), q.dequantize() + 2) and len(log) == 1
    model = quantized(mlp(), Weight)
    o = godynamo.optimize(model)
    first = o(matrix())
    model[0].weight = nn.Parameter(model[0].weight.dequantize())
    assert torch.equal(o(matrix()), model(matrix())) and torch.allclose(first, o(matrix()), atol=1e-5)
    model[2].weight.ints.zero_()
    assert torch.equal(o(matrix()), model[2].bias.expand(5, 4))


def test_a_weight_that_requires_gradients() -> None:
    class Trained(Weight):
        @staticmethod
        def __new__(cls: Any, data: Any, scale: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=scale.dtype, requires_grad=True)

    def f(q: Any) -> Any:
        y = q.exp().sum()
        y.backward()
        return y, type(q.grad).__name__

    compare(lambda: f, lambda: (Trained.of(matrix()),))


def refusal(handler: Any, **members: Any) -> str:
    cls = type(torch.Tensor)("Made", (Wrapper,), {"__torch_dispatch__": classmethod(handler), **members})
    return dispatchers.refusal(cls)


def test_what_the_code_of_a_handler_may_do() -> None:
    seen: dict[Any, Any] = {}
    total = 0

    def local(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        new = list(args)
        names = {}
        new.append(func)
        new[0] = names
        names["x"] = [a for a in args]
        with torch.no_grad(), contextlib.nullcontext():
            return torch.ops.aten.add.Tensor(args[0].ints, 1)

    def stores_item(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen[func] = 1

    def stores_attribute(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args[0].scale = None

    def stores_cell(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        nonlocal total
        total += 1

    def stores_global(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        global LOG
        LOG = []

    def appends(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(func)

    def setattr_(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        setattr(args[0], "scale", None)  # noqa: B010

    def calls(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return helper(func)

    def helper(func: Any) -> Any:
        return [appends(None, f, ()) for f in (func,)]

    def of_torch(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        KEPT.append(args[0].ints)

    def unknown(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0].layout_of_mine.pre_process()

    def resizes(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0].ints.resize_(3)

    def shared(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        new = seen
        new["x"] = 1

    assert not refusal(local)
    for handler in (
        stores_item, stores_attribute, stores_cell, stores_global, appends, setattr_, calls, of_torch, unknown,
        resizes, shared,
    ):  # fmt: skip
        assert refusal(handler), handler.__name__
    assert not refusal(lambda cls, func, types, args=(), kwargs=None: cls.table[func](args), table={1: local})
    assert refusal(lambda cls, func, types, args=(), kwargs=None: cls.table[func](args), table={1: appends})


def test_what_the_operators_that_a_handler_calls_may_do() -> None:
    counted = torch.library.custom_op("godynamo_wrappers::counted", lambda x: LOG.append(1) or x + 1, mutates_args=(),
                                      schema="(Tensor x) -> Tensor")  # fmt: skip
    plain = torch.library.custom_op("godynamo_wrappers::plain", lambda x: x + 1, mutates_args=(),
                                    schema="(Tensor x) -> Tensor")  # fmt: skip
    operators = torch.ops.godynamo_wrappers
    default = operators.counted.default

    assert not refusal(lambda cls, func, types, args=(), kwargs=None: plain(args[0].ints))
    assert not refusal(lambda cls, func, types, args=(), kwargs=None: torch.ops.godynamo_wrappers.plain(args[0].ints))
    for handler in (
        lambda cls, func, types, args=(), kwargs=None: counted(args[0].ints),
        lambda cls, func, types, args=(), kwargs=None: default(args[0].ints),
        lambda cls, func, types, args=(), kwargs=None: operators.plain(args[0].ints),  # may be any of these operators
        lambda cls, func, types, args=(), kwargs=None: torch.ops.godynamo_wrappers.counted.default(args[0].ints),
    ):
        assert refusal(handler)
    with torch.library._scoped_library("godynamo_wrappers", "IMPL") as library:
        library.impl("plain", lambda x: LOG.append(1) or x + 2, "CPU")
        assert refusal(lambda cls, func, types, args=(), kwargs=None: plain(args[0].ints))
