"""Tensor classes as libraries of quantization make them, and the comparison of programs that use them with eager mode.

Each class wraps tensors (``_make_wrapper_subclass``) and dispatches operators in Python (``__torch_dispatch__``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_map

import godynamo
from harness.capture import break_reasons

aten = torch.ops.aten

#: calls of the handlers of Logged, in order
LOG: list[str] = []


def int8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix as integers of eight bits, and the scale of each row."""
    scale = x.detach().abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
    return torch.round(x.detach() / scale).to(torch.int8), scale


class Wrapper(torch.Tensor):
    """Two tensors in the place of one. The classes below say what the operators do."""

    @staticmethod
    def __new__(cls: Any, data: torch.Tensor, scale: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, data.shape, strides=data.stride(), dtype=scale.dtype, device=data.device, requires_grad=False
        )

    def __init__(self, data: torch.Tensor, scale: torch.Tensor) -> None:
        self.ints, self.scale = data, scale

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def of(cls, x: torch.Tensor) -> Any:
        """Quantize a matrix."""
        return cls(*int8(x))

    def __tensor_flatten__(self) -> Any:
        return ["ints", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, meta: Any, size: Any, stride: Any) -> Any:
        return cls(inner["ints"], inner["scale"])

    def dequantize(self) -> torch.Tensor:
        """Return the matrix as a plain tensor."""
        return self.ints.to(self.scale.dtype) * self.scale

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({self.ints.tolist()}, {self.scale.tolist()})"


def plain_operands(values: Any) -> Any:
    """Return the values with plain tensors in the place of wrappers."""
    return tree_map(lambda t: t.dequantize() if isinstance(t, Wrapper) else t, values)


class Weight(Wrapper):
    """Integers for weights only. ``t``, ``neg`` and the like return wrappers, other operators plain tensors."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.t.default:
            return Transposed(args[0].ints.t(), args[0].scale.t())
        if func in (aten.detach.default, aten.clone.default, aten.neg.default, aten._to_copy.default):
            return cls(func(args[0].ints), args[0].scale)
        args, kwargs = plain_operands((args, kwargs or {}))
        return func(*args, **kwargs)


class Transposed(Weight):
    """What ``t`` of a Weight returns."""


class Activation(Wrapper):
    """An activation that is quantized in forward. Knows matrix products only."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.mm.default:
            x, w = args
            return (x.ints.to(x.scale.dtype) @ w) * x.scale
        raise NotImplementedError(f"{func} of an Activation")  # operators without an entry must raise


class Tables(Wrapper):
    """Looks up what functions and operators do in tables, as the classes of torchao."""

    functions: dict[Any, Any] = {}
    operators: dict[Any, Any] = {}

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in cls.functions:
            return cls.functions[func](func, types, args, kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in cls.operators:
            return cls.operators[func](func, types, args, kwargs or {})
        raise NotImplementedError(f"{cls.__name__} has no {func}")  # tests call operators that the table lacks


def _linear(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    x, w = args[:2]
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    y = torch.mm(x.reshape(-1, x.shape[-1]), w.dequantize().t()).reshape(*x.shape[:-1], w.shape[0])
    return y if bias is None else y + bias


def _unary(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return Tables(func(args[0].ints), args[0].scale)


Tables.functions[F.linear] = _linear
Tables.operators.update(dict.fromkeys((aten.detach.default, aten.clone.default), _unary))
Tables.operators[aten.sum.default] = lambda func, types, args, kwargs: args[0].dequantize().sum()


class Logged(Wrapper):
    """Appends to LOG. Its results are wrappers again."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(str(func))
        args, kwargs = plain_operands((args, kwargs or {}))
        return cls.of(func(*args, **kwargs))


class Counts(Wrapper):
    """Counts its calls in an attribute of the class."""

    calls = 0

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls += 1
        args, kwargs = plain_operands((args, kwargs or {}))
        return func(*args, **kwargs)


def quantized(module: nn.Module, cls: Any) -> nn.Module:
    """Replace the weights of all linear layers by wrappers of this class, and return the module."""
    for m in module.modules():
        if isinstance(m, nn.Linear):
            m.weight = nn.Parameter(cls.of(m.weight.detach()), requires_grad=False)
    return module


class LoRA(nn.Module):
    """A small trained product beside a quantized layer that is not trained."""

    def __init__(self, cls: Any) -> None:
        super().__init__()
        self.base = quantized(nn.Sequential(nn.Linear(8, 6)), cls)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 6, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the two products."""
        return self.base(x) + self.up(self.down(x)) * 2


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        if type(a) is not type(b) or a.shape != b.shape or a.dtype != b.dtype or a.requires_grad != b.requires_grad:
            return False
        return repr(a) == repr(b) if isinstance(a, Wrapper) else a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


def _run(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return "returned", fn(*args)
    except Exception as e:
        return "raised", type(e), str(e)


def compare(
    make: Callable[[], Callable[..., Any]], *calls: Callable[[], tuple[Any, ...]], backend: str = "eager"
) -> list[str]:
    """Compare the calls of a function in eager mode and captured, three times each; return the reasons of breaks."""
    results = []
    for captured in (False, True):
        godynamo.reset()
        torch.manual_seed(0)
        LOG.clear()
        Counts.calls = 0
        fn = make()
        if captured:
            fn = godynamo.optimize(fn, backend=backend)
        results.append([_run(fn, args()) for _ in range(3) for args in calls] + [list(LOG), Counts.calls])
    for eager, got in zip(*results, strict=True):
        assert _equal(eager, got), (eager, got)
    return break_reasons()
