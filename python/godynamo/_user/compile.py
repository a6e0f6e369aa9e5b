"""optimize() under torch.compile's name and with its arguments: porting a program changes one word."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from . import defaults
from . import modules as _modules
from .optimize import Optimizer, optimize

F = TypeVar("F", bound=Callable[..., Any])
Backend = str | Callable[..., Any]


@overload
def compile(
    model: F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Backend | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    dynamic_shapes: Any = None,
) -> F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Backend | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    dynamic_shapes: Any = None,
) -> Optimizer: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Backend | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    dynamic_shapes: Any = None,
) -> Any:
    """torch.compile with godynamo in Dynamo's place: ``optimize(backend="inductor")`` unless another backend is given.

    >>> model = godynamo.compile(model)
    >>> @godynamo.compile(fullgraph=True)
    ... def f(x): ...

    Args:
        model: a function, method or module; None: a decorator is returned.
        backend: None: set_default_backend()'s, else "inductor" as for torch.compile.
        options: for the backend; ``guard_filter_fn`` is ignored with a warning: every guard is kept.
        recompile_limit: entries per code object.
        isolate_recompiles: each call of this function has its own translations anyway.
        dynamic_shapes: ignored: sizes are constants of a translation.
        fullgraph, dynamic, mode, name, disable: as for :func:`optimize`.

    Raises what optimize() raises.
    """
    if options is not None and "guard_filter_fn" in options:
        warnings.warn(
            "godynamo.compile: guard_filter_fn is not used, every guard is kept", RuntimeWarning, stacklevel=2
        )
        options = {key: value for key, value in options.items() if key != "guard_filter_fn"} or None
    optimizer = optimize(
        backend=defaults.backend or "inductor" if backend is None else backend,
        fullgraph=fullgraph,
        dynamic=dynamic,
        mode=mode,
        options=options,
        name=name,
        disable=disable,
        cache_size_limit=recompile_limit,
    )
    return optimizer if model is None else optimizer(model)


def compile_module(module: Any, **kwargs: Any) -> None:
    """torch.nn.Module.compile: translate the calls of this module from now on; kwargs as for :func:`compile`.

    >>> godynamo.compile_module(model, backend="eager")

    The module stays the same object; its copies and pickles are not translated. Raises TypeError for other objects and
    for optimized modules.
    """
    if not _modules.is_module(module) or _modules.original(module) is not module:
        problem = "is optimized already" if _modules.is_module(module) else "is no torch.nn.Module"
        raise TypeError(f"compile_module() cannot be used: {module!r} {problem}")
    module._compiled_call_impl = compile(module._call_impl, **kwargs)
