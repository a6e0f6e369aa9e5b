"""Provides optimize() under torch.compile's name and with torch.compile's arguments, to port programs easily."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from . import defaults, sources
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
    """Do the same as torch.compile, with godynamo in place of Dynamo. The default backend is "inductor".

    >>> model = godynamo.compile(model)
    >>> @godynamo.compile(fullgraph=True)
    ... def f(x): ...

    Args:
        model: a function, method or module. If it is None, compile() returns a decorator.
        backend: None means the backend of set_default_backend(), or else "inductor", as for torch.compile.
        options: options for the backend. ``guard_filter_fn`` is ignored with a warning, and every guard is kept.
        recompile_limit: maximum number of entries per code object.
        isolate_recompiles: ignored, since each call of compile() has its own translations anyway.
        dynamic_shapes: a ShapesSpec, ParamsSpec or dict of torch.fx.experimental.dynamic_spec, as for torch.compile; by
            default, that of torch's decorator dynamic_spec. Sizes and ints that it does not list are constants.
        fullgraph, dynamic, mode, name, disable: see :func:`optimize`.

    Raises:
        ValueError: dynamic and dynamic_shapes are both given.
        NotImplementedError: dynamic_shapes has assumptions, or sizes that are computed from others.

    It also raises what optimize() raises, and for dynamic_shapes what torch raises. A call whose sizes do not fit
    dynamic_shapes raises torch's ConstraintViolationError.
    """
    shapes = sources.of_user(dynamic_shapes, model)
    if shapes is not None and dynamic is not None:
        raise ValueError("compile(): dynamic and dynamic_shapes cannot both be set")
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
    if shapes is not None:
        optimizer = Optimizer(dataclasses.replace(optimizer.options, shapes=shapes), bool(disable))
    return optimizer if model is None else optimizer(model)


def compile_module(module: Any, **kwargs: Any) -> None:
    """Do the same as torch.nn.Module.compile: translate this module's calls from now on.

    >>> godynamo.compile_module(model, backend="eager")

    ``kwargs`` are those of :func:`compile`. The module stays the same object; its copies and pickles are not
    translated. Raises TypeError for optimized modules, and for objects that are not modules.
    """
    if not _modules.is_module(module) or _modules.original(module) is not module:
        problem = "is optimized already" if _modules.is_module(module) else "is no torch.nn.Module"
        raise TypeError(f"compile_module() cannot be used: {module!r} {problem}")
    module._compiled_call_impl = compile(module._call_impl, **kwargs)
