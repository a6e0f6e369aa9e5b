"""Marks on functions, by which users choose how calls of the functions are captured."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar, overload

from .._core import core
from . import registry

Function = Callable[..., Any]
#: a callable, or a list of callables
F = TypeVar("F")
G = TypeVar("G", bound=Callable[..., Any])


def _each(fn: Any, mark: Callable[[Any], None]) -> Any:
    for f in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(f):
            raise TypeError(f"a callable is needed, not {f!r}")
        mark(getattr(f, "__wrapped__", f) if isinstance(f, core.Callable) else f)
    return fn


def allow_in_graph(fn: F) -> F:
    """Make each call of ``fn`` (or of each function in a list) one node of the graph. Returns ``fn``.

    ``fn`` is not translated. Its result must depend on the arguments alone, and it must have no effects besides
    in-place changes of its tensor arguments. It runs once more while translating, to find out the kind of its result:
    on fake tensors or, if that fails, on copies of the example inputs. It may return tensors, None, numbers, text, and
    tuples, lists and dicts of these.

    >>> @godynamo.allow_in_graph
    ... def fused(x, y): ...
    """
    return _each(fn, lambda f: registry.register(f, "allowed"))  # type: ignore[no-any-return]


def disallow_in_graph(fn: F) -> F:
    """Make each call of ``fn`` (or of each function in a list) a graph break. Returns ``fn``."""
    return _each(fn, lambda f: registry.register(f, "opaque"))  # type: ignore[no-any-return]


def forbid_in_graph(fn: F) -> F:
    """Make each call of ``fn`` (or of each function in a list) a graph break that names this mark. Returns ``fn``."""
    return _each(fn, lambda f: registry.register(f, "forbidden"))  # type: ignore[no-any-return]


def assume_constant_result(fn: F) -> F:
    """Call ``fn`` while translating, with the real values, and make its result a constant. Returns ``fn``."""
    return _each(fn, lambda f: registry.register(f, "fold"))  # type: ignore[no-any-return]


def nonstrict_trace(traceable_fn: F) -> F:
    """Return a function that calls ``traceable_fn``. Each call of the returned function is one node of the graph.

    This is like :func:`allow_in_graph`, but ``traceable_fn`` itself is not marked. Raises TypeError if it is not
    callable.

    >>> @godynamo.nonstrict_trace
    ... def fused(x, y): ...
    """
    if not callable(traceable_fn):
        raise TypeError(f"nonstrict_trace() needs a callable, not {traceable_fn!r}")

    @functools.wraps(traceable_fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return traceable_fn(*args, **kwargs)

    return allow_in_graph(call)  # type: ignore[return-value]


@overload
def nested_compile_region(fn: F, **options: Any) -> F: ...
@overload
def nested_compile_region(fn: None = None, **options: Any) -> Callable[[G], G]: ...
def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Return ``fn``. The mark is not needed, since equal layers are captured once anyway (``config.reuse_layers``)."""
    return nested_compile_region if fn is None else fn


@overload
def disable_nested_graph_breaks(fn: F) -> F: ...
@overload
def disable_nested_graph_breaks(fn: None = None) -> Callable[[G], G]: ...
def disable_nested_graph_breaks(fn: Any = None) -> Any:
    """Return ``fn``. The mark is not needed: a break in an inlined function always breaks the optimized function."""
    return disable_nested_graph_breaks if fn is None else fn


_FUNCTION_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)


def _same_parameters(original: Any, replacement: Any) -> None:
    """Raise TypeError if the parameters differ. Functions without a signature (many C functions) are not compared."""
    import inspect  # imported late, to keep ``import godynamo`` fast

    try:
        theirs, ours = inspect.signature(original), inspect.signature(replacement)
    except ValueError:
        return

    def shape(signature: inspect.Signature) -> list[Any]:
        named = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return [("" if p.kind is p.POSITIONAL_ONLY else p.name, p.kind, p.default is p.empty) for p in named]

    # The shape of (*args, **kwargs) is empty; such a signature proves nothing.
    if shape(theirs) and shape(ours) and shape(theirs) != shape(ours):
        raise TypeError(f"{replacement!r} takes {ours}, but {original!r} takes {theirs}")


def substitute_in_graph(
    original: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[G], G]:
    """Capture calls of ``original`` (or of each function in a list) as calls of the decorated Python function.

    can_constant_fold_through: ``original`` has no effects, and may itself be called while translating if all arguments
    are known. skip_signature_check: the replacement may have other parameters. The decorator returns the function
    unchanged.

    Raises TypeError for objects that are not functions and for different parameters, and ValueError if ``original``
    already has a replacement.

    >>> @godynamo.substitute_in_graph(operator.indexOf)
    ... def index_of(a, b, /):
    ...     for i, item in enumerate(a):
    ...         if item is b or item == b:
    ...             return i
    ...     raise ValueError
    """

    def decorate(replacement: G) -> G:
        if not isinstance(replacement, _FUNCTION_TYPES):
            raise TypeError(f"a function is needed, not {replacement!r}")

        def mark(f: Any) -> None:
            if not skip_signature_check:
                _same_parameters(f, replacement)
            if registry.substitute_of(f) is not None:
                raise ValueError(f"{f!r} has a replacement already")
            registry.substitute(f, replacement, can_constant_fold_through)

        _each(original, mark)
        return replacement

    return decorate
