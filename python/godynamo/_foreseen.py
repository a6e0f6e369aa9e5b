"""Values that torch's own code asks a tensor of the frame's for, computed while translating and again by a guard."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._runtime import Ref

Row = tuple[int, tuple[Any, ...]]

#: what is asked of the tensor that the operations end in; "size" gives the tensor and compares its metadata
_ASK: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "index": operator.index,
    "item": lambda t: t.item(),
    "size": lambda t: t,
}


def _resolve(arg: Any, values: dict[int, Any]) -> Any:
    if isinstance(arg, Ref):
        return values[arg.index]
    if type(arg) in (list, tuple):
        return type(arg)(_resolve(x, values) for x in arg)
    if type(arg) is dict:
        return {k: _resolve(v, values) for k, v in arg.items()}
    if type(arg) is slice:
        return slice(*(_resolve(x, values) for x in (arg.start, arg.stop, arg.step)))
    return arg


def _told(value: Any) -> Any:
    """What must be the same again."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    return type(value), value.hex() if isinstance(value, float) else value


def _servable(x: Any) -> bool:
    """A plain tensor in the CPU's memory, where no mode or transform sees what is done with it."""
    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.device.type == "cpu"
        and x.layout is torch.strided
        and not torch._C._len_torch_function_stack()
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _ask(rows: Sequence[Row], start: int, end: int, ask: str, x: Any) -> Any:
    values = {start: x.detach()}
    with torch.no_grad():
        for index, (op, _name, target, args, kwargs, *_) in rows:
            a, k = _resolve(args, values), _resolve(kwargs, values)
            values[index] = getattr(a[0], target)(*a[1:], **k) if op == "call_method" else target(*a, **k)
        return _ASK[ask](values[end])


def foresee(
    rows: Sequence[Row], start: int, end: int, ask: str, x: Any
) -> tuple[Any, Callable[[Any], bool], str] | None:
    """(value, guard predicate, its text): what node ``end`` of ``rows`` (see _runtime.compile_fx) gives for the tensor ``x``,
    which stands for node ``start``; None where it raises, or is no value of Python's."""
    if not _servable(x):
        return None
    value: Any = None
    with contextlib.suppress(Exception):
        value = _ask(rows, start, end, ask, x)
    if not isinstance(value, (bool, int, float, torch.Tensor)):
        return None
    want = _told(value)

    def same(other: Any) -> bool:
        """The guard."""
        if not _servable(other):
            return False
        try:
            return bool(_told(_ask(rows, start, end, ask, other)) == want)
        except Exception:
            return False

    shown = tuple(value.shape) if isinstance(value, torch.Tensor) else value
    return value, same, f"{ask} of {rows[-1][1][1] if rows else 'it'} is {shown}"
