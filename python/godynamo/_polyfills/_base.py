"""What all stand-ins share: the table, the two markers, the base class, functions computed while translating."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import _registry

__godynamo_polyfill__ = "module"  # marks the globals: variables/standin.go

F = TypeVar("F", bound=Callable[..., Any])

#: C callable → (stand-in, fold)
table: dict[Any, tuple[Any, bool]] = {}


class END:
    """What ``_next`` gives at the end, and ``next`` in stand-ins when told to: no value of a program's is this class."""

    __godynamo_polyfill__ = "end"


class DECLINE:
    """What a stand-in gives that leaves a call to CPython."""

    __godynamo_polyfill__ = "decline"


class StandIn:
    """An object of a C type, ``__real__``, while translating.

    ``_next`` makes it an iterator. ``_escape`` gives a callable and its arguments, which make the real object in the same state,
    or DECLINE. ``__public__`` names the attributes of the C type that may be read here. ``_group`` is a stand-in that shares state
    with this one: once it is real, this one is out of date.
    """

    __godynamo_polyfill__ = "class"
    __real__: type
    __public__: tuple[str, ...] = ()

    def _escape(self) -> Any:
        return DECLINE


def stands_for(*originals: Any, fold: bool = False) -> Callable[[F], F]:
    """Register the decorated function or class as the stand-in of these C callables; fold: see _callables.stand_in."""

    def register(replacement: F) -> F:
        for original in originals:
            table[original] = (replacement, fold)
        return replacement

    return register


def computed(fn: F) -> F:
    """A function of constants that is called while translating, not inlined."""
    _registry.register(fn, "fold")
    return fn


def type_of_stand_in(value: Any) -> Any:
    """The C type that a value of the program's is a stand-in of, or None; answered by the translator."""
    return value


_registry.register(type_of_stand_in, "stand_in_type")
