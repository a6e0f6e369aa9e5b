"""Computes Python values that torch's code reads from tensors (foreseen values): while translating, and in a guard."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import torch

from .._backends.rows import Ref
from ..utils import CodeMap
from .answers import default_device

_CPU = torch.device("cpu")

Row = tuple[int, tuple[Any, ...]]

#: how code reads a tensor, the result of the last operation -> function that reads it; for "size", guards compare
#: metadata
_ASK: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "index": operator.index,
    "item": lambda t: t.item(),
    "size": lambda t: t,
}


#: maximum number of changes of a frame's foreseen values; beyond it, the frame's values are no longer foreseen
_MAX_CHANGES = 3

#: code of a frame -> question (which value is read, see foresee) -> all values so far
_answers: CodeMap[dict[str, set[Any]]] = CodeMap()


def forget() -> None:
    """Drop all values. Called when all entries have been dropped."""
    _answers.clear()


def _settled(code: CodeType, question: str, told: Any) -> bool:
    """Record a value; return whether it is worth a guard.

    It is not worth one if the frame's values change too often.
    """
    asked = _answers.setdefault(code, {})
    known = asked.setdefault(question, set())
    if known and told not in known and sum(len(a) - 1 for a in asked.values()) >= _MAX_CHANGES:
        return False
    known.add(told)
    return True


def _told(value: Any) -> Any:
    """Return the part of a value that a guard compares."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    return type(value), value.hex() if isinstance(value, float) else value


def _servable(x: Any) -> bool:
    """Return whether ``x`` is a plain tensor in CPU memory, and no mode or transform sees operations on it.

    The mode of the default device ``cpu`` only makes tensors there, as torch does without it.
    """
    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.device.type == "cpu"
        and x.layout is torch.strided
        and (not torch._C._len_torch_function_stack() or default_device() == _CPU)
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _plain(x: Any) -> Any:
    """Return the tensor detached from autograd."""
    return x.detach() if x.requires_grad else x


def _function(rows: Sequence[Row], start: int, end: int, ask: str) -> Callable[[Any], Any]:
    """Compile a function of the tensor of node ``start`` (-1: of any tensor) that returns the value of node ``end``."""
    scope: dict[str, Any] = {"ask": _ASK[ask]}

    def text(arg: Any) -> str:
        if isinstance(arg, Ref):
            return f"v{arg.index}"
        if type(arg) is list:
            return f"[{', '.join(map(text, arg))}]"
        if type(arg) is tuple:
            return f"({''.join(text(a) + ', ' for a in arg)})"
        if type(arg) is slice:
            return f"slice({text(arg.start)}, {text(arg.stop)}, {text(arg.step)})"
        if type(arg) is dict:
            return f"{{{', '.join(f'{text(k)}: {text(v)}' for k, v in arg.items())}}}"
        name = f"c{len(scope)}"
        scope[name] = arg
        return name

    lines = [f"def run({f'v{start}' if start >= 0 else '_'}):"]
    for index, (op, _name, target, args, kwargs, *_) in rows:
        operands = [*map(text, args), *(f"{k}={text(v)}" for k, v in kwargs.items())]
        fn = f"{operands.pop(0)}.{target}" if op == "call_method" else text(target)
        lines.append(f"    v{index} = {fn}({', '.join(operands)})")
    lines.append(f"    return ask(v{end})")
    exec("\n".join(lines), scope)
    run: Callable[[Any], Any] = scope["run"]
    return run


def foresee(
    rows: Sequence[Row], start: int, end: int, ask: str, x: Any, code: CodeType, question: str
) -> tuple[Any, Callable[[Any], bool], str] | None:
    """Return (value, guard predicate, the guard's text) for the value that ``ask`` reads from node ``end``, or None.

    The nodes of ``rows`` (see _backends/rows.py) are computed from the tensor ``x`` of node ``start``, or from no
    tensor if ``x`` is None. ``question`` distinguishes the value from other values of the frame with code ``code``. The
    result is None if ``x`` is not a plain CPU tensor, if a node raises, if the value is neither a number nor a tensor,
    or if values of this frame have changed too often.
    """
    x = torch.empty(0) if x is None else x
    if not _servable(x):
        return None
    value: Any = None
    run = _function(rows, start, end, ask)
    with contextlib.suppress(Exception):
        value = run(_plain(x))
    if not isinstance(value, (bool, int, float, torch.Tensor)):
        return None
    want = _told(value)
    if not _settled(code, question, want):
        return None

    def same(other: Any) -> bool:
        """Return whether the value is the same for this tensor. This is the guard predicate."""
        if not _servable(other):
            return False
        try:
            return bool(_told(run(_plain(other))) == want)
        except Exception:
            return False

    shown = tuple(value.shape) if isinstance(value, torch.Tensor) else value
    return value, same, f"{ask} of {rows[-1][1][1] if rows else 'it'} is {shown}"
