"""Implements optimize() in all its forms."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from .. import config
from .._core import available, core
from . import defaults, modes
from . import modules as _modules
from .options import Options

if TYPE_CHECKING:
    import torch

    BackendFunction = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]

    class MarkedBackend(Protocol):
        """A backend whose class sets ``__godynamo_backend__``.

        To type checkers, any other callable that is the only argument is the function to optimize.
        """

        __godynamo_backend__: bool

        def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor], /) -> Callable[..., Any]: ...


F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

_MISSING: Any = object()
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8  # bits of type.__flags__

# Names of first parameters, and of second parameters, by which a backend is recognized.
_GRAPH_NAMES = {"gm", "graph_module", "graphmodule", "fx_module", "fx_graph", "fx_gm"}
_INPUT_NAMES = {"example_inputs", "example_inputs_", "sample_inputs", "ex_inputs", "example_input"}
_BACKEND_SUFFIXES = ("backend", "compiler")


def looks_like_backend(obj: Any) -> bool:
    """Return whether a callable, the only argument of :func:`optimize`, is a backend; see the docstring of optimize."""
    if getattr(type(obj), "__godynamo_backend__", False) or _is_registered(obj):
        return True
    if isinstance(obj, type) or _modules.is_module(obj):
        return False
    try:
        parameters = list(inspect.signature(obj).parameters.values())
    except (TypeError, ValueError):
        return False
    required = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) != 2 or any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        return False
    first, second = required
    return (
        first.name in _GRAPH_NAMES
        or second.name in _INPUT_NAMES
        or "GraphModule" in _annotation(first)
        or getattr(obj, "__name__", "").lower().endswith(_BACKEND_SUFFIXES)
    )


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def _is_registered(obj: Any) -> bool:
    import sys

    backends = sys.modules.get("godynamo._backends.named")
    # The attribute is missing while another thread is importing the module; then nothing is registered yet.
    registered = getattr(backends, "registered", None)
    return registered is not None and any(obj is b for b in registered())


#: When a whole program is served, a function without tensors is translated after this number of calls. A translation
#: costs as much as some hundreds of calls.
HOT_CALLS = 256


class Optimizer:
    """The result of optimize() without a function. It is a decorator, and a context manager.

    In a ``with`` block, the eval-frame hook serves all frames that the block calls. The frame that contains the block
    has begun already and runs in CPython.
    """

    def __init__(self, options: Options, disabled: bool = False) -> None:
        self.options = options
        self._disabled = disabled
        self._root: Any = None
        self._hot: tuple[int, int] | None = None
        self._threads = threading.local()

    def everywhere(self, calls: int = HOT_CALLS, tensor_calls: int = 0) -> Optimizer:
        """Return this object as a context manager for a whole program: functions are translated only if called often.

        A function is translated after ``calls`` calls, or after ``tensor_calls`` calls if its arguments or its code
        involve tensors.
        """
        self._hot = (calls, tensor_calls)
        return self

    @overload
    def __call__(self, fn: F) -> F: ...
    @overload
    def __call__(self, fn: classmethod[Any, P, R]) -> classmethod[Any, P, R]: ...
    def __call__(self, fn: Any) -> Any:
        """Return the replacement of a function, method, callable object or module; change a class and return it."""
        if isinstance(fn, (staticmethod, classmethod)):
            return type(fn)(self(fn.__func__))
        if isinstance(fn, type):
            return self._class(fn)
        if not callable(fn):
            raise TypeError(f"only a function, method, module, class or callable object can be optimized, not {fn!r}")
        if self._disabled or not available:
            return fn
        if _modules.is_module(fn):
            return self._module(fn)
        return self._callable(fn)

    def __enter__(self) -> Optimizer:
        if config.raise_on_ctx_manager_usage:
            raise RuntimeError("optimize() is used as a context manager and config.raise_on_ctx_manager_usage is set")
        tokens = self._threads.__dict__.setdefault("tokens", [])
        if self._disabled or not available:
            tokens.append(None)
            return self
        if self._root is None:
            self._root = core.Root(self.options)
            if self._hot is not None:
                self._root.hot_calls, self._root.hot_tensor_calls = self._hot
        tokens.append(core.enter_extent(self._root))
        return self

    def __exit__(self, *_: object) -> None:
        token = self._threads.tokens.pop()
        if token is not None:
            core.exit_extent(token)

    def __reduce__(self) -> Any:
        return Optimizer, (self.options, self._disabled)

    def __repr__(self) -> str:
        return f"<godynamo.optimize(backend={self.options.backend_name!r})>"

    def _class(self, cls: type) -> type:
        """Optimize ``__call__`` of a class, for its subclasses too; return the class, as torch.compile(cls) does."""
        if getattr(cls, "__godynamo_backend__", False):
            raise TypeError(f"optimize() takes an instance of the backend {cls.__qualname__}, not the class")
        if not cls.__flags__ & _HEAP_TYPE or cls.__flags__ & _IMMUTABLE_TYPE:
            raise TypeError(
                f"optimize() needs a class that Python code defines, not the builtin type {cls.__qualname__!r}"
            )
        if self._disabled or not available:
            return cls
        call = next((vars(c)["__call__"] for c in cls.__mro__ if "__call__" in vars(c)), None)
        if isinstance(call, (types.FunctionType, core.Callable, staticmethod, classmethod)):
            setattr(cls, "__call__", self(call))  # noqa: B010
        return cls

    def _module(self, module: Any) -> Any:
        if modes.is_disabled(module):
            return module
        module = _modules.original(module)
        call = type(module).__call__
        if isinstance(call, core.Callable):  # of an optimized class
            call = call.function
        if not isinstance(call, types.FunctionType):
            w = self._trampoline(_modules.bound_call(module), module)
        else:
            w = core.Callable(call, module, self.options, wrapped=module)
        return _modules.handle(module, w, self)

    def _callable(self, fn: Any) -> Any:
        if isinstance(fn, core.Callable):  # already optimized; the result has only the options of this call
            self_object = getattr(fn, "__self__", None)
            wrapped = fn.__wrapped__ if fn.__wrapped__ is not fn.function and self_object is None else None
            return core.Callable(fn.function, self_object, self.options, wrapped=wrapped)
        if isinstance(fn, types.FunctionType):
            return core.Callable(fn, None, self.options)
        if isinstance(fn, types.MethodType) and isinstance(fn.__func__, types.FunctionType):
            return core.Callable(fn.__func__, fn.__self__, self.options)
        if isinstance(fn, types.MethodType) and isinstance(fn.__func__, core.Callable):
            return core.Callable(fn.__func__.function, fn.__self__, self.options)
        call = inspect.getattr_static(type(fn), "__call__", None)
        if isinstance(call, core.Callable):  # of an optimized class
            call = call.function
        if isinstance(call, types.FunctionType):
            return core.Callable(call, fn, self.options, wrapped=fn)
        return self._trampoline(fn, fn)

    def _trampoline(self, target: Callable[..., Any], wrapped: Any) -> Any:
        """Return an optimized function that calls ``target``, which has no Python code (a partial, a builtin)."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return target(*args, **kwargs)

        return core.Callable(call, None, self.options, wrapped=wrapped)


@overload
def optimize(
    first: str | None = ...,
    /,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    *,
    backend: str | BackendFunction | None = ...,
    fullgraph: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    cache_size_limit: int | None = None,
    python_ops: bool | str | None = None,
) -> Optimizer: ...
@overload
def optimize(
    first: MarkedBackend,
    /,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    *,
    fullgraph: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    cache_size_limit: int | None = None,
    python_ops: bool | str | None = None,
) -> Optimizer: ...
@overload
def optimize(
    first: F,
    /,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    *,
    backend: str | BackendFunction | None = ...,
    fullgraph: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    cache_size_limit: int | None = None,
    python_ops: bool | str | None = None,
) -> F: ...
@overload
def optimize(
    first: str | BackendFunction = ...,
    /,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    *,
    backend: str | BackendFunction | None = ...,
    fn: F,
    fullgraph: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    cache_size_limit: int | None = None,
    python_ops: bool | str | None = None,
) -> F: ...
def optimize(
    first: Any = _MISSING,
    /,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    *,
    backend: Any = _MISSING,
    fn: Any = _MISSING,
    fullgraph: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    cache_size_limit: int | None = None,
    python_ops: bool | str | None = None,
) -> Any:
    """Translate a function's tensor operations into guarded, cached graphs.

    >>> @godynamo.optimize
    ... def f(x): ...
    >>> @godynamo.optimize(my_compiler)
    ... def f(x): ...
    >>> g = godynamo.optimize(f, backend="inductor")
    >>> model = godynamo.optimize(model)
    >>> with godynamo.optimize(my_compiler): f(x)

    Args:
        first: a function, method, module, class or callable object to optimize, or a backend (a name or a callable).
        nopython: if True, a graph break raises exc.Unsupported with the break's report. ``fullgraph`` is
            torch.compile's name for this parameter.
        dynamic: True makes sizes symbols from the start, False never does, and None does for sizes that change.
        disable: if True, return the function unchanged.
        backend: the backend that compiles the graphs. It is a name (see list_backends()), or a callable
            ``(gm: torch.fx.GraphModule, example_inputs) -> callable``. The default is "eager", unless
            set_default_backend() sets another one; "eager" writes graphs inline, as bytecode.
        fn: the function or other object to optimize. ``backend=`` and ``fn=`` are never ambiguous.
        mode, options: torch.compile's mode and options, for backends given by name.
        name: a name of this optimize() call, for logs and reports.
        cache_size_limit: maximum number of entries per code object; None means config.cache_size_limit.
        python_ops: if True, a call that cannot be captured (an unknown builtin, a C extension, an opaque object) does
            not break the graph. It becomes a node of the graph, and so do operations on its result. With "checked",
            such results are also checked against annotations of variables and of the return value (ValueError). None
            means config.python_ops.

    A callable given as the only argument is treated as a backend if it is registered, if its class sets
    ``__godynamo_backend__ = True`` (as testing.CompileCounter does), or if it has exactly two required positional
    parameters and one of these conditions holds: the first parameter has a name such as ``gm`` or ``graph_module``, or
    is annotated with GraphModule; the second parameter has a name such as ``example_inputs``; the callable's own name
    ends in ``backend`` or ``compiler``. Any other callable is the function to optimize. To be explicit, write
    ``optimize(backend=my_compiler)`` or ``optimize(fn=f)``. Type checkers recognize a callable as a backend only if it
    is given as ``backend=``, or if its class sets ``__godynamo_backend__``.

    Returns:
        For a function: a callable that replaces it. It supports method binding, ``inspect``, pickling and weak
        references as functions do.
        For a module: a handle that shares the module's attributes and is an instance of the module's class. Calls of
        the handle are optimized calls of the module. For classes with their own ``__slots__``, ScriptModules and
        classes that cannot be subclassed the result is a proxy, for which isinstance() is also true.
        For a class: the class itself. Its ``__call__`` is optimized from now on, also for subclasses. Creating
        instances is not optimized.
        Without an object to optimize: a decorator that is also a context manager.

    Raises:
        TypeError: the object to optimize or the backend is not callable, or the object to optimize is a builtin type.
        ValueError: no backend has this name (the text suggests near names), mode and options exclude each other, or
            python_ops has an unknown value.
    """
    if first is not _MISSING and first is not None:
        first_is_backend = isinstance(first, str) or (
            fn is not _MISSING or (backend is _MISSING and callable(first) and looks_like_backend(first))
        )
        if first_is_backend and backend is not _MISSING:
            raise TypeError("optimize() got two backends")
        if first_is_backend:
            backend = first
        else:
            fn = first
    elif first is None and fn is _MISSING and backend is _MISSING:
        pass  # optimize(None) returns a decorator, as torch.compile(None) does
    if fn is not _MISSING and fn is not None and not callable(fn) and not isinstance(fn, (staticmethod, classmethod)):
        raise TypeError(f"optimize() needs a function, method, module, class or backend, not {fn!r}")
    if cache_size_limit is not None:
        config._check_size_limit(cache_size_limit, "optimize(): cache_size_limit")
    made = Options(
        nopython=bool(nopython or fullgraph),
        dynamic=dynamic,
        name=name,
        mode=mode,
        options=dict(options or {}),
        cache_size_limit=cache_size_limit,
        python_ops=_python_ops(python_ops),
        **_backend(None if backend is _MISSING else backend, mode, options, dynamic),
    )
    optimizer = Optimizer(made, bool(disable))
    return optimizer if fn is _MISSING or fn is None else optimizer(fn)


def transparent(optimizer: Optimizer) -> Optimizer:
    """Return the optimizer, set up for programs that did not request it (by ``godynamo run``, pytest or IPython).

    torch.compiler.is_compiling() and similar functions return False in captured code, so that the results are those of
    the program without godynamo.
    """
    return Optimizer(dataclasses.replace(optimizer.options, transparent=True), optimizer._disabled)


def _backend(backend: Any, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> dict[str, Any]:
    """Return the fields of Options for a backend. Raises at once for wrong names and types."""
    if mode is not None and options is not None:
        raise ValueError("optimize() takes mode or options, not both")
    if backend is None:
        backend = defaults.backend
    if backend is None or backend == "eager":
        return {}
    if isinstance(backend, str):
        from .._backends import named as _named

        return {"backend": _named.by_name(backend, mode, options, dynamic), "backend_name": backend, "inline": False}
    if not callable(backend):
        raise TypeError(f"a backend is a name or a callable (gm, example_inputs), not {backend!r}")
    return {"backend": backend, "backend_name": _backend_name(backend), "inline": False}


def _python_ops(value: bool | str | None) -> bool | str | None:
    if value is None or value is True or value is False or value == "checked":
        return value
    raise ValueError(f"python_ops is True, False, 'checked' or None, not {value!r}")


def _backend_name(backend: Any) -> str:
    while isinstance(backend, functools.partial):
        backend = backend.func
    return str(getattr(backend, "__name__", None) or type(backend).__name__)


def optimize_assert(backend: str | BackendFunction = "eager", *, dynamic: bool | None = None) -> Optimizer:
    """Return ``optimize(backend=backend, nopython=True, dynamic=dynamic)``."""
    return optimize(backend=backend, nopython=True, dynamic=dynamic)
