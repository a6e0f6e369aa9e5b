"""What users say about functions and tensors before they are captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _registry
from ._core import core

Function = Callable[..., Any]


def _each(fn: Any, mark: Callable[[Any], None]) -> Any:
    for f in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(f):
            raise TypeError(f"a callable is needed, not {f!r}")
        mark(getattr(f, "__wrapped__", f) if isinstance(f, core.Callable) else f)
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Put calls of ``fn`` (or of each in a list) into the graph as one node, without looking inside. Returns ``fn``.

    The function must return a tensor and depend on its arguments alone.

    >>> @godynamo.allow_in_graph
    ... def fused(x, y): ...
    """
    return _each(fn, lambda f: _registry.register(f, "op:tensor"))


def disallow_in_graph(fn: Any) -> Any:
    """Make calls of ``fn`` (or of each in a list) graph breaks. Returns ``fn``."""
    return _each(fn, lambda f: _registry.register(f, "opaque"))


def assume_constant_result(fn: Function) -> Function:
    """Call ``fn`` while translating, with the real values, and bake its result in. Returns ``fn``."""
    return _each(fn, lambda f: _registry.register(f, "fold"))  # type: ignore[no-any-return]


def substitute_in_graph(original: Any) -> Callable[[Function], Function]:
    """Capture calls of ``original`` (or of each in a list) as calls of the decorated Python function.

    >>> @godynamo.substitute_in_graph(operator.indexOf)
    ... def index_of(items, x):
    ...     for i, item in enumerate(items):
    ...         if item is x or item == x:
    ...             return i
    ...     raise ValueError
    """

    def decorate(replacement: Function) -> Function:
        if not callable(replacement):
            raise TypeError(f"a callable is needed, not {replacement!r}")
        _each(original, lambda f: _registry.substitute(f, replacement))
        return replacement

    return decorate


def _mark(t: Any, dim: int | list[int] | tuple[int, ...] | None, attribute: str) -> None:
    dims = range(t.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    for d in dims:
        if not -t.ndim <= d < t.ndim:
            raise IndexError(f"dimension {d} of a tensor with {t.ndim}")
    marks = getattr(t, attribute, None)
    if marks is None:
        marks = set()
        setattr(t, attribute, marks)
    marks.update(d % t.ndim for d in dims)


def mark_dynamic(t: Any, dim: int | list[int] | tuple[int, ...]) -> None:
    """Make a dimension of this tensor a symbol from its first translation on; torch.compile reads the same mark."""
    _mark(t, dim, "_dynamo_dynamic_indices")


def mark_static(t: Any, dim: int | list[int] | tuple[int, ...] | None = None) -> None:
    """Never make this dimension (None: any) a symbol."""
    _mark(t, dim, "_dynamo_static_indices")
