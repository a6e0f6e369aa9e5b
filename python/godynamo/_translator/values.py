"""Guard predicates that compare values by contents and type, without running __eq__ of user classes."""

from __future__ import annotations

import collections
import types
import typing
from collections.abc import Callable
from typing import Any

from .. import _C
from . import numpy as _numpy
from .recipes import noted


def equal_to(value: Any) -> Callable[[Any], bool]:
    """Return a guard predicate that a value equals this set of plain constants, generic alias or other constant."""
    if isinstance(value, (set, frozenset)):
        typed = _typed(value)
        return lambda other: _typed(other) == typed
    if getattr(value, "__args__", None) is not None:  # == is not enough: Union[int, str] == Union[str, int]
        parts = _alias_parts(value)
        return lambda other: type(other) is type(value) and other == value and _alias_parts(other) == parts
    if type(value) in _numpy.SCALARS:
        told = _numpy.told(value)
        return lambda other: type(other) is told[0] and _numpy.told(other) == told
    return lambda other: type(other) is type(value) and other == value


_ALIASES: tuple[Any, ...] = (types.GenericAlias, types.UnionType, typing._GenericAlias)  # type: ignore[attr-defined]


def _alias_parts(value: Any) -> Any:
    """Return the type and arguments, in order, of a generic alias or union. Runs no hook of a class among them."""
    args = value.__args__ if issubclass(type(value), _ALIASES) else None
    return (type(value), tuple(map(_alias_parts, args))) if type(args) is tuple else value


def _typed(value: Any) -> Any:
    """Return a key of a plain constant, or of a set of them. The keys of 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple, tuple(map(_typed, value))
    if isinstance(value, (set, frozenset)):
        return frozenset, frozenset(map(_typed, value))
    return type(value), value.hex() if isinstance(value, float) else value


def _told(v: Any) -> Any:
    """Return a key of a plain constant, including all types. The keys of 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(v, tuple):
        return type(v), tuple(map(_told, v))
    if isinstance(v, frozenset):
        return type(v), frozenset(map(_told, v))
    return type(v), repr(v) if isinstance(v, (float, complex)) else v


def set_is(value: frozenset[Any]) -> Callable[[Any], bool]:
    """Return a guard predicate that a set has the same plain constants, of equal types. No subclass's method runs."""
    typed = frozenset(map(_told, value))
    if all(type(v) is str for v in value):
        return lambda other: set.__eq__(other, value) is True and all(type(v) is str for v in set.__iter__(other))
    return lambda other: set.__eq__(other, value) is True and frozenset(map(_told, set.__iter__(other))) == typed


def layout_is(members: set[Any]) -> Callable[[Any], bool]:
    """Return a guard predicate that a set's table has the same layout, so that equal changes lead to the same order."""
    layout = _C.set_layout(members)
    return lambda other: bool(_C.set_layout(other) == layout)


def same_order(items: tuple[Any, ...]) -> Callable[[Any], bool]:
    """Return a guard predicate that a set or frozenset has equal items in this order."""
    return lambda other: tuple((set if isinstance(other, set) else frozenset).__iter__(other)) == items


@noted
def maxlen_is(maxlen: int | None) -> Callable[[Any], bool]:
    """Return a guard predicate that a deque has this maxlen."""
    return lambda other: other.maxlen == maxlen


#: function that reads a defaultdict's factory, without running attribute hooks of a subclass
default_factory: Any = collections.defaultdict.__dict__["default_factory"].__get__


def factory_is(factory: Any) -> Callable[[Any], bool]:
    """Return a guard predicate that a defaultdict has this factory."""
    return lambda other: default_factory(other) is factory


def value_is(base: type, value: Any) -> Callable[[Any], bool]:
    """Return a guard predicate that an instance of a subclass of ``base`` has this value, by base's comparison."""
    if base in (float, complex):  # compares reprs, by which nan equals itself and 0.0 and -0.0 differ
        text, known = base.__repr__, base.__repr__(value)
        return lambda other: text(other) == known
    equal: Any = base.__eq__
    return lambda other: bool(equal(other, value))


def plain_value(base: type, value: Any) -> Any:
    """Convert an instance of a subclass of ``base``, an immutable type, to ``base``. Runs no code of the subclass."""
    if base is str:
        return str.__str__(value) if type(value) is str else "".join(str.__iter__(value))
    if base is bytes:
        return bytes(bytes.__iter__(value))
    if base is complex:
        return complex.__pos__(value)
    return {int: int.__int__, float: float.__float__}[base](value)


#: how the items of an iterator are found (variables/iter_real.go)
ITERATOR_KINDS = {
    type(iter([])): "items",
    type(iter(())): "items",
    type(reversed([])): "items",
    reversed: "items",
    type(iter({})): "items",
    type(iter({}.values())): "items",
    type(iter({}.items())): "pairs",
    type(iter(range(0))): "numbers",
    enumerate: "enumerate",
    zip: "zip",
    map: "map",
    filter: "filter",
}


def advanced(iterable: Any, n: int) -> Any:
    """Return ``iter(iterable)``, advanced by n items."""
    it = iter(iterable)
    for _ in range(n):
        next(it, None)
    return it


def spent(empty: Any) -> Any:
    """Return an exhausted iterator over an empty container."""
    it = iter(empty)
    next(it, None)
    return it
