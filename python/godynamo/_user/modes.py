"""Switches translation off and on: disable, run, skip, reset, graph_break, is_compiling."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from .._core import core
from . import registry
from .callable_kinds import Classified, classified

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class _Mode(contextlib.ContextDecorator):
    """A mode of translation on this thread, for a ``with`` block or for the calls of a callable."""

    def __init__(self, mode: int, kind: Classified) -> None:
        self._mode = mode
        self._kind = kind
        self._before: list[int] = []

    def __enter__(self) -> _Mode:
        self._before.append(core.set_mode(self._mode))
        return self

    def __exit__(self, *_: object) -> None:
        core.set_mode(self._before.pop())

    def __call__(self, fn: F) -> F:
        """Return a function or module that calls ``fn`` in this mode."""
        return _in_mode(fn, self._mode, self._kind)  # type: ignore[no-any-return]


def _in_mode(fn: Any, mode: int, kind: Classified) -> Any:
    from . import modules as _modules

    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(_in_mode(fn.__func__, mode, kind))
    if _modules.is_module(fn):
        return _modules.handle(fn, _wrap(_modules.bound_call(fn), mode, kind), _Mode(mode, kind))
    if isinstance(fn, type) and mode == core.MODE_DISABLED:
        return _disabled_class(fn, mode, kind)
    if isinstance(fn, type) or not callable(fn):
        raise TypeError(f"a function, method or module is needed, not {fn!r}")
    return _wrap(fn, mode, kind)


def _disabled_class(cls: type, mode: int, kind: Classified) -> type:
    """Disable translation of a class's ``__init__`` and, if it is a module class, ``__call__``; return the class."""
    from . import modules as _modules

    names = ("__init__", "__call__") if _modules.is_module_class(cls) else ("__init__",)
    for name in names:
        found = getattr(cls, name)
        if isinstance(found, types.FunctionType):  # skips object.__init__: it checks which methods the class overrides
            setattr(cls, name, _wrap(found, mode, kind))
    return cls


def is_disabled(handle: Any) -> bool:
    """Return whether this is a handle of a module that disable() has made."""
    from . import modules as _modules

    again = _modules.made_by(handle)
    return isinstance(again, _Mode) and again._mode == core.MODE_DISABLED


def _wrap(fn: Function, mode: int, kind: Classified) -> Function:
    set_mode = core.set_mode

    def in_mode(*args: Any, **kwargs: Any) -> Any:
        before = set_mode(mode)
        try:
            return fn(*args, **kwargs)
        finally:
            set_mode(before)

    functools.update_wrapper(in_mode, fn)
    if isinstance(in_mode, types.FunctionType):
        core.mark_skip(in_mode.__code__)
    if kind:
        registry.mark(in_mode, kind)
    return in_mode


@overload
def disable(fn: None = None, recursive: Literal[True] = True, *, reason: str | None = None) -> _Mode: ...
@overload
def disable(fn: None = None, *, recursive: Literal[False], reason: str | None = None) -> Callable[[F], F]: ...
@overload
def disable(fn: F, recursive: bool = True, *, reason: str | None = None) -> F: ...
def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never translate ``fn`` or, with ``recursive``, its callees; a call of it in captured code is a graph break.

    Forms: ``disable(fn)``, ``@disable``, ``@disable()`` and ``with disable():``. Returns a wrapper; for a class,
    returns the class itself. With ``recursive=False`` this is :func:`skip`. ``optimize`` returns a disabled module
    unchanged. Graph breaks at calls of ``fn`` show ``reason``.

    >>> @godynamo.disable
    ... def plain(x):
    ...     return x + 1
    """
    if not recursive:
        return skip(fn) if fn is not None else skip
    mode = _Mode(core.MODE_DISABLED, classified("disabled", reason or ""))
    return mode if fn is None else mode(fn)


def is_dynamo_disable_recursive(method: Function) -> bool | None:
    """Return True if ``disable`` has marked this function and everything that it calls, False if only the function's
    own frame is marked (by ``disable`` or ``skip``), and None if the function is not marked."""
    if registry.kind_of(method).startswith("disabled"):
        return True
    function = getattr(method, "__func__", method)
    code = getattr(function, "__code__", None)
    marked = isinstance(code, types.CodeType) and core.code_flags(code) & core.CODE_SKIP
    return False if marked and registry.kind_of(function) == "opaque" else None


@overload
def run(fn: None = None) -> _Mode: ...
@overload
def run(fn: F) -> F: ...
def run(fn: Any = None) -> Any:
    """Use existing translations only: calls without a translation run in CPython. Also works as ``with run():``.

    >>> f = godynamo.optimize(lambda x: x + 1)
    >>> godynamo.run(f)(torch.ones(2))
    tensor([2., 2.])
    """
    mode = _Mode(core.MODE_RUN_ONLY, classified("wraps"))
    return mode if fn is None else mode(fn)


@overload
def skip(fn: None = None) -> Callable[[F], F]: ...
@overload
def skip(fn: F) -> F: ...
def skip(fn: Any = None) -> Any:
    """Do not translate this function's own frame; the functions that it calls may be translated. Returns ``fn``."""
    if fn is None:
        return skip
    function = getattr(fn, "__func__", fn)
    function = getattr(function, "function", function)  # the function of an optimized callable
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        raise TypeError(f"skip() needs a Python function, not {fn!r}")
    core.mark_skip(code)
    registry.register(function, "opaque")
    return fn


def reset() -> None:
    """Drop all translations, caches and counters of the process; the next calls are translated again."""
    core.reset_caches()
    core.reset_counters()
    utils = sys.modules.get("godynamo.utils")
    if utils is not None:
        utils.clear()
    for name in ("godynamo._translator.foreseen", "godynamo._called.predictions"):
        module = sys.modules.get(name)
        if module is not None:
            module.forget()


def graph_break(msg: str = "") -> None:
    """Break the graph here. The break is reported with ``msg``. Has no effect in code that is not translated."""


def skip_frame(msg: str = "") -> None:
    """Run the whole current frame in CPython; the functions that it calls are translated. ``msg`` is reported as the
    reason. Has no effect in code that is not translated."""


def reset_code_caches() -> None:
    """Drop all translations of the process; counters, settings and marks stay."""
    core.reset_caches()


def is_compiling() -> bool:
    """Return True in captured code, else False."""
    return bool(core.is_translating())


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return True in code that torch.export or :func:`export` with ``dynamic_shapes`` captures, else False."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_exporting())
