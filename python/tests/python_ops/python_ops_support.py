"""Shared by the tests of Python calls in the graph: compares CPython with both kinds of backends, inline and
whole-graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import godynamo
from godynamo._backends import python_ops as _python_ops
from godynamo._backends import python_text
from harness.capture import (
    RecordingBackend,
    assert_no_internal_errors,
    clone_args,
    entries,
    nb,
    outcome,
)


def both_ways(
    fn: Callable[..., Any],
    *args: Any,
    python_ops: bool | str = True,
    breaks: int | None = 0,
    graphs: int | None = 1,
    reset: Callable[[], None] = lambda: None,
    **kwargs: Any,
) -> RecordingBackend:
    """Compare ``fn`` under CPython with its translations: inline, and as whole graphs, each twice (a miss, then a hit).

    ``breaks``: graph breaks of the function's own frame; ``graphs``: those passed to the backend; None: any number.
    ``reset`` restores what the function changes besides its arguments. Returns the backend.
    """
    recorder = nb()
    for backend in (None, recorder):
        options = {} if backend is None else {"backend": backend}
        compiled = godynamo.optimize(fn=fn, python_ops=python_ops, **options)
        for call in range(2):
            reset()
            plain_args, plain_kwargs = clone_args(args, kwargs)
            expected = outcome(fn, plain_args, plain_kwargs)
            reset()
            our_args, our_kwargs = clone_args(args, kwargs)
            actual = outcome(compiled, our_args, our_kwargs)
            assert actual == expected, f"call {call}, {'inline' if backend is None else 'whole graphs'}"
        if breaks is not None:
            assert entries(compiled), "left to CPython"
            found = [b for e in entries(compiled) for b in e.info["breaks"]]
            assert len(found) == breaks, found
    assert_no_internal_errors()
    if graphs is not None:
        assert len(recorder.graphs) == graphs
    return recorder


def kinds(gm: torch.fx.GraphModule) -> list[str]:
    """Return the operations in order: Python operations as they are printed, torch's by name."""
    out = []
    for node in gm.graph.nodes:
        if node.op not in ("call_function", "call_method"):
            continue
        if node.target is _python_ops.PyConstant:
            out.append("PyConstant")
        elif node.target is _python_ops.CastFromPython:
            out.append(f"CastFromPython[types={node.kwargs['types']}]")
        elif python_text.is_python_op(node):
            out.append(f"^{python_text.shown(node.target)}()")
        else:
            out.append(str(getattr(node.target, "__name__", node.target)))
    return out


class Opaque:
    """Logs the calls of its methods, and supports every operator."""

    log: list[Any] = []

    def __init__(self, value: Any = 1) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Opaque({self.value!r})"


@godynamo.disable
def make(value: Any = 1) -> Opaque:
    """Return a new object. A call of this function is a Python call; its own code is never captured."""
    return Opaque(value)


@godynamo.disable
def same(value: Any) -> Any:
    """Return the argument. A call of this function is a Python call; its own code is never captured."""
    return value


@godynamo.disable
def note(value: Any) -> Any:
    """Log the argument."""
    Opaque.log.append(value.clone() if isinstance(value, torch.Tensor) else value)
    return value


__all__ = ["Opaque", "both_ways", "kinds", "make", "note", "same"]
