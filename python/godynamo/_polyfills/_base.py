"""Shared by all stand-ins: the table, the two markers, the base class, functions computed during translation."""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

from .._user import registry

__godynamo_polyfill__ = "module"  # marks the globals: variables/builtin_standin.go

F = TypeVar("F", bound=Callable[..., Any])

#: C callable → (stand-in, fold)
table: dict[Any, tuple[Any, bool]] = {}


class _End:
    __godynamo_polyfill__ = "end"


class _Decline:
    __godynamo_polyfill__ = "decline"


#: returned by ``_next`` at the end, and by ``next`` in stand-ins on request: no user value is this class
END: Any = _End
#: returned by a stand-in that leaves the call to CPython
DECLINE: Any = _Decline


class StandIn:
    """An object of a C type, ``__real__``, during translation.

    ``_next`` makes it an iterator. ``_escape`` returns a callable and its arguments that make the real object in the
    same state, or DECLINE: then CPython makes it. ``__public__`` lists the attributes of the C type that may be read
    here. ``_group`` is a stand-in that shares state with this one: once it is real, this one is out of date.
    """

    __godynamo_polyfill__ = "class"
    __real__: type
    __public__: tuple[str, ...] = ()

    def _escape(self) -> Any:
        return DECLINE


def stands_for(*originals: Any, fold: bool = False) -> Callable[[F], F]:
    """Register the decorated function or class as the stand-in of these C callables; fold: see callables.stand_in."""

    def register(replacement: F) -> F:
        for original in originals:
            table[original] = (replacement, fold)
        return replacement

    return register


#: type of immutable C objects → function that makes their stand-ins from the arguments in __reduce__
makers: dict[type, Any] = {}


def made_by(kind: type) -> Callable[[F], F]:
    """Register the decorated function as the maker of stand-ins for objects of ``kind`` that occur in a frame."""

    def register(maker: F) -> F:
        makers[kind] = maker
        return maker

    return register


def python_version(name: str, accelerator: str) -> dict[str, Any]:
    """Return the namespace of a standard library module as its Python source alone defines it, without its C module."""

    def without(module: str, *rest: Any) -> Any:
        if module == accelerator:
            raise ImportError(module)
        return __import__(module, *rest)

    spec = importlib.util.find_spec(name)
    if spec is None or not isinstance(spec.loader, importlib.abc.InspectLoader):
        return {}
    code = spec.loader.get_code(name)
    namespace: dict[str, Any] = {
        "__name__": name,
        "__builtins__": {**vars(builtins), "__import__": without},
        "__godynamo_polyfill__": "module",
    }
    if code is not None:
        exec(code, namespace)
    return namespace


def computed(fn: F) -> F:
    """Register a function of constants that is called during translation, not inlined."""
    registry.register(fn, "fold")
    return fn


def type_of_stand_in(value: Any) -> Any:
    """Return the C type that a stand-in represents, or None for other values; the translator replaces the call."""
    return value


registry.register(type_of_stand_in, "stand_in_type")
