"""Computes sizes of an operation's results for all sizes of its operands, with fake tensors whose sizes are symbols.

Go calls this for operations without a rule, such as custom operators, once the sizes of the frame's tensors have
differed between calls. If torch's ShapeEnv records no condition, the results have this rank and dtype for all sizes.
"""

from __future__ import annotations

import dataclasses
import logging
import types
from typing import Any

import torch

from .._called.saved_tensors import unseen


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A size that may differ between calls, identified by a number."""

    number: int


@dataclasses.dataclass(frozen=True)
class Operand:
    """A dense tensor."""

    sizes: tuple[int | Symbol, ...]
    dtype: torch.dtype
    device: torch.device


def result(op: str, target: Any, args: Any, kwargs: Any, hints: tuple[int, ...]) -> Any:
    """Return the result of an operation as (sizes, dtype, device), or a tuple of such tuples for several results.

    A size is an int, a Symbol, or None for any other size (an expression). Symbols have the given hints. Returns None
    if the result is valid for certain sizes only, or unknown.
    """
    if op != "call_method" and not isinstance(
        target, torch._ops.OpOverload | torch._ops.OpOverloadPacket | types.BuiltinFunctionType
    ):
        return None
    noisy = [logging.getLogger(name) for name in ("torch._subclasses.fake_tensor", "torch.fx.experimental")]
    before = [logger.disabled for logger in noisy]
    for logger in noisy:
        logger.disabled = True
    try:
        with unseen():
            return _result(op, target, args, kwargs, hints)
    except Exception:
        return None
    finally:
        for logger, disabled in zip(noisy, before, strict=True):
            logger.disabled = disabled


def _result(op: str, target: Any, args: Any, kwargs: Any, hints: tuple[int, ...]) -> Any:
    import torch.utils._pytree as pytree
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    symbols: list[Any] = []
    for number, hint in enumerate(hints):
        source = _source(number)
        symbol = env.create_symbol(hint, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
        symbols.append(env.create_symintnode(symbol, hint=hint, source=source))
    ranges = dict(env.var_to_range)

    def made(x: Any) -> Any:
        if isinstance(x, Symbol):
            return symbols[x.number]
        if isinstance(x, Operand):
            sizes = [made(s) for s in x.sizes]
            return torch.empty(sizes, dtype=x.dtype, device=x.device)
        return x

    with FakeTensorMode(shape_env=env):
        args, kwargs = pytree.tree_map_only(Symbol | Operand, made, (args, kwargs))
        value = getattr(args[0], target)(*args[1:], **kwargs) if op == "call_method" else target(*args, **kwargs)
    numbers = {s.node.expr: i for i, s in enumerate(symbols)}
    told = _told(value, numbers, getattr(target, "__name__", target))
    changed = any(env.var_to_range[s] != r for s, r in ranges.items())
    return None if env.guards or env.replacements or env.deferred_runtime_asserts or changed else told


def _source(number: int) -> Any:
    from torch._guards import Source

    class Number(Source):
        @property
        def _name_template(self) -> str:
            return f"size_{number}"

    return Number()


def _told(value: Any, numbers: dict[Any, int], name: str) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return None
        return tuple(_size(s, numbers) for s in value.shape), value.dtype, value.device
    if type(value) is getattr(torch.return_types, name, tuple):
        items = tuple(_told(item, numbers, "") if isinstance(item, torch.Tensor) else None for item in value)
        return None if None in items else (items,)
    return None


def _size(s: Any, numbers: dict[Any, int]) -> int | Symbol | None:
    if not isinstance(s, torch.SymInt):
        return int(s)
    expression = s.node.expr
    if expression.is_Integer:
        return int(expression)
    return Symbol(numbers[expression]) if expression in numbers else None
