"""Calls functions while a function is translated, to inspect the translation, as in torch._dynamo.comptime.

>>> import godynamo
>>> from godynamo.comptime import comptime
>>> @godynamo.optimize
... def f(x):
...     y = x + 1
...     comptime(lambda ctx: print(ctx.get_local("y").size()))
...     comptime.print_graph()
...     return y * 2

The function passed to ``comptime`` is called with a ComptimeContext in each translation that reaches the call. A later
graph break restarts the translation of the frame, which calls the function again. The call leaves nothing in captured
code. If the function raises, exc.ComptimeError is raised. In code that is not translated, ``comptime(fn, fallback_fn)``
calls ``fallback_fn``; the shorthands print or return their argument, or do nothing. The same holds after a Python call
that is part of the graph (``python_ops``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from ._translator.comptime import ComptimeContext, ComptimeVar

T = TypeVar("T")

__all__ = ["ComptimeContext", "ComptimeVar", "comptime"]


class _Comptime(Protocol):
    """The type of :func:`comptime`: a function with the shorthands as attributes."""

    def __call__(self, fn: Callable[[ComptimeContext], Any], fallback_fn: Callable[[], Any] = ..., /) -> None: ...

    @staticmethod
    def graph_break() -> None: ...
    @staticmethod
    def print(e: object) -> None: ...
    @staticmethod
    def print_graph() -> None: ...
    @staticmethod
    def print_disas(*, stacklevel: int = 0) -> None: ...
    @staticmethod
    def print_value_stack(*, stacklevel: int = 0) -> None: ...
    @staticmethod
    def print_value_stack_and_return(e: T, *, stacklevel: int = 0) -> T: ...
    @staticmethod
    def print_locals(*, stacklevel: int = 0) -> None: ...
    @staticmethod
    def print_bt(*, stacklevel: int = 0) -> None: ...
    @staticmethod
    def print_guards() -> None: ...
    @staticmethod
    def assert_static(val: object) -> None: ...
    @staticmethod
    def force_static(val: object) -> None: ...
    @staticmethod
    def sleep(sec: float) -> None: ...
    @staticmethod
    def breakpoint() -> None: ...


# CPython runs these functions in code that is not translated. The translator recognizes them by name
# (callables._classify).


def _comptime(fn: Callable[[Any], Any], fallback_fn: Callable[[], Any] = lambda: None, /) -> None:
    """Call ``fn`` with a ComptimeContext while translating; in code that is not translated, call ``fallback_fn``."""
    fallback_fn()


def _graph_break() -> None:
    pass


def _print(e: object) -> None:
    print(e)


def _print_graph() -> None:
    pass


def _print_disas(*, stacklevel: int = 0) -> None:
    pass


def _print_value_stack(*, stacklevel: int = 0) -> None:
    pass


def _print_value_stack_and_return(e: Any, *, stacklevel: int = 0) -> Any:
    return e


def _print_locals(*, stacklevel: int = 0) -> None:
    pass


def _print_bt(*, stacklevel: int = 0) -> None:
    pass


def _print_guards() -> None:
    pass


def _assert_static(val: object) -> None:
    pass


def _force_static(val: object) -> None:
    pass


def _sleep(sec: float) -> None:
    pass


def _breakpoint() -> None:
    pass


_SHORTHANDS = (
    *(_graph_break, _print, _print_graph, _print_disas, _print_value_stack, _print_value_stack_and_return),
    *(_print_locals, _print_bt, _print_guards, _assert_static, _force_static, _sleep, _breakpoint),
)
_comptime.__dict__.update({fn.__name__[1:]: fn for fn in _SHORTHANDS})
#: Is called with a function of a ComptimeContext. The shorthands are attributes, as in ``comptime.print_locals()``.
comptime = cast("_Comptime", _comptime)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in ("ComptimeContext", "ComptimeVar"):
            from ._translator import comptime as made

            return getattr(made, name)
        raise AttributeError(f"module 'godynamo.comptime' has no attribute {name!r}")
