"""Small functions under names that torch's users know: what a callable is, what its cache holds, what torch itself
does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import config
from .._core import available, core
from .._explain.explain import _caches, cache_entries
from . import modules as _modules


def innermost_fn(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The user's own function or module behind what optimize() gave; any other callable as it is."""
    if _modules.is_module(fn):
        return _modules.original(fn)  # type: ignore[no-any-return]
    if available and isinstance(fn, core.Callable):
        return fn.__wrapped__  # type: ignore[no-any-return]
    return fn


def cache_size(fn: Any) -> int:
    """How many entries an optimized callable and its resume functions have. TypeError where it is not optimized."""
    return len(cache_entries(fn))


def remove_from_cache(fn: Any) -> None:
    """Drop the entries of an optimized callable and of its resume functions; its next call is translated anew.

    Raises TypeError where it is not optimized. Calls that are running go on.
    """
    for cache in _caches(fn):
        cache.clear()


patch_dynamo_config = config.patch


def is_dynamo_supported() -> bool:
    """Whether functions are translated in this process; if not, everything runs as without godynamo."""
    return available


def cudagraph_mark_step_begin() -> None:
    """torch.compiler.cudagraph_mark_step_begin: for backends that record CUDA graphs."""
    import torch.compiler

    torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compiler.wrap_numpy: a function of numpy's arrays as one of tensors. In captured code its calls split the
    graph."""
    import torch.compiler

    return torch.compiler.wrap_numpy(fn)  # type: ignore[no-any-return, no-untyped-call]


class _OptimizedModules(type):
    def __instancecheck__(cls, obj: Any) -> bool:
        from .optimize import Optimizer

        return isinstance(_modules.made_by(obj), Optimizer)


class OptimizedModule(metaclass=_OptimizedModules):
    """isinstance() holds of what optimize() gives for a module, which is an instance of the module's own class besides.

    >>> isinstance(godynamo.optimize(module), godynamo.OptimizedModule)  # doctest: +SKIP
    True
    """

    def __init__(self, *_: Any) -> None:
        raise TypeError("godynamo.optimize(module) makes an OptimizedModule")
