"""Small functions under names that users of torch know, about callables, contents of caches and torch's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import config
from .._core import available, core
from .._explain.explain import _caches, cache_entries
from . import modules as _modules


def innermost_fn(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function or module from which optimize() has made ``fn``; return any other callable unchanged."""
    if _modules.is_module(fn):
        return _modules.original(fn)  # type: ignore[no-any-return]
    if available and isinstance(fn, core.Callable):
        return fn.__wrapped__  # type: ignore[no-any-return]
    return fn


def cache_size(fn: Any) -> int:
    """Return the number of entries of an optimized callable and its resume functions.

    Raises TypeError for other objects.
    """
    return len(cache_entries(fn))


def remove_from_cache(fn: Any) -> None:
    """Drop the entries of an optimized callable and of its resume functions; its next call is translated again.

    Raises TypeError for other objects. Calls that are running continue.
    """
    for cache in _caches(fn):
        cache.clear()


patch_dynamo_config = config.patch


def is_dynamo_supported() -> bool:
    """Return whether functions are translated in this process. If not, everything runs as without godynamo."""
    return available


def cudagraph_mark_step_begin() -> None:
    """Call torch.compiler.cudagraph_mark_step_begin, for backends that record CUDA graphs."""
    import torch.compiler

    torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Call torch.compiler.wrap_numpy, which makes a function of arrays a function of tensors.

    Calls in captured code break the graph.
    """
    import torch.compiler

    return torch.compiler.wrap_numpy(fn)  # type: ignore[no-any-return, no-untyped-call]


class _OptimizedModules(type):
    def __instancecheck__(cls, obj: Any) -> bool:
        from .optimize import Optimizer

        return isinstance(_modules.made_by(obj), Optimizer)


class OptimizedModule(metaclass=_OptimizedModules):
    """The class for isinstance() of optimized modules, which are also instances of the original module's class.

    >>> isinstance(godynamo.optimize(module), godynamo.OptimizedModule)  # doctest: +SKIP
    True
    """

    def __init__(self, *_: Any) -> None:
        raise TypeError("godynamo.optimize(module) makes an OptimizedModule")
