"""optimize() in all its forms."""

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
        """A backend marked by its class: a type checker takes any other callable given alone for the function."""

        __godynamo_backend__: bool

        def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor], /) -> Callable[..., Any]: ...


F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

_MISSING: Any = object()
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8  # of type.__flags__

# Names of the first and second parameter that identify a backend.
_GRAPH_NAMES = {"gm", "graph_module", "graphmodule", "fx_module", "fx_graph", "fx_gm"}
_INPUT_NAMES = {"example_inputs", "example_inputs_", "sample_inputs", "ex_inputs", "example_input"}
_BACKEND_SUFFIXES = ("backend", "compiler")


def looks_like_backend(obj: Any) -> bool:
    """Return whether a callable given alone to :func:`optimize` is a backend; the rule is in its docstring."""
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
    # Another thread may be importing it at this moment: nothing is registered then.
    registered = getattr(backends, "registered", None)
    return registered is not None and any(obj is b for b in registered())


#: calls of a function without tensors before it is translated, where a whole program is served: a translation costs as
#: much as some hundreds of its calls
HOT_CALLS = 256


class Optimizer:
    """The result of optimize() without a function: a decorator, and a context manager that translates the calls inside.

    The eval-frame hook serves the frames called inside ``with``; the frame of the ``with`` itself has begun already and
    runs in CPython.
    """

    def __init__(self, options: Options, disabled: bool = False) -> None:
        self.options = options
        self._disabled = disabled
        self._root: Any = None
        self._hot: tuple[int, int] | None = None
        self._threads = threading.local()

    def everywhere(self, calls: int = HOT_CALLS, tensor_calls: int = 0) -> Optimizer:
        """Return a context manager for a whole program: code without tensors is translated only if called often.

        calls: after so many calls a function is translated; tensor_calls: the same for one whose arguments or code
        involve tensors.
        """
        self._hot = (calls, tensor_calls)
        return self

    @overload
    def __call__(self, fn: F) -> F: ...
    @overload
    def __call__(self, fn: classmethod[Any, P, R]) -> classmethod[Any, P, R]: ...
    def __call__(self, fn: Any) -> Any:
        """Optimize a function, bound method, callable object or module; return its replacement."""
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
        """Optimize calls of instances of a class and its subclasses; return the class, as torch.compile(cls) does."""
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
        if isinstance(fn, core.Callable):  # optimized before: by this call instead
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
        """Return a function that calls a callable without Python code (partial, builtins)."""

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
        nopython: a graph break raises exc.Unsupported with the break's report. ``fullgraph`` is torch.compile's name
            for it.
        dynamic: True: sizes are symbols from the start; False: never; None: only sizes that change.
        disable: return the function unchanged.
        backend: compiles the graphs: "eager" (the default unless set_default_backend() sets another: graphs are
            written inline, as bytecode), another name (list_backends()), or a callable
            ``(gm: torch.fx.GraphModule, example_inputs) -> callable``.
        fn: what to optimize. ``backend=`` and ``fn=`` are never ambiguous.
        mode, options: torch.compile's, for backends given by name.
        name: of this call, in logs and reports.
        cache_size_limit: entries per code object; None: config.cache_size_limit.
        python_ops: True: a call that cannot be captured (an unknown builtin, a C extension, an opaque object) does not
            break the graph but becomes a node of it, and so do operations on its result. "checked": annotations
            of variables and of the return value are checked against such results (ValueError). None:
            config.python_ops.

    A callable given as the only argument is treated as a backend if it is a registered one, if its class sets
    ``__godynamo_backend__ = True`` (testing.CompileCounter), or if it has exactly two required positional parameters
    and one of these holds: the first is named ``gm`` or ``graph_module`` (or alike) or annotated with GraphModule; the
    second is named ``example_inputs`` (or alike); its own name ends in ``backend`` or ``compiler``. Anything else is
    the function to optimize. To be explicit, write ``optimize(backend=my_compiler)`` or ``optimize(fn=f)``. Type
    checkers recognize a callable backend only in the first form, or by a class that sets ``__godynamo_backend__``.

    Returns:
        With a function: a callable that replaces it; it takes part in method binding, ``inspect``, pickling and
        weak references as functions do. With a module: a handle that shares the module's attributes, is an instance
        of its class and calls it through the translations; classes with their own ``__slots__``, ScriptModules and
        classes that cannot be subclassed get a proxy instead, for which isinstance() is also true. With a class:
        that class, whose ``__call__`` is optimized from now on, in its subclasses as well; making an instance is
        not. Otherwise: a decorator that is also a context manager.

    Raises:
        TypeError: the object to optimize, or the backend, is not callable, or is a builtin type.
        ValueError: no backend has this name (near ones are named), mode and options that exclude each other, or an
            unknown python_ops.
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
        pass  # optimize(None), as torch.compile(None)
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
    """Return the optimizer for programs that did not request it (``godynamo run``, pytest plugin, IPython's magics).

    torch.compiler.is_compiling() and its like are False in captured code, so results are those of the program alone.
    """
    return Optimizer(dataclasses.replace(optimizer.options, transparent=True), optimizer._disabled)


def _backend(backend: Any, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> dict[str, Any]:
    """Return Options' backend fields; check names and types at once."""
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
