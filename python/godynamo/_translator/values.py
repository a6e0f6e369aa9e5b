"""Values as guards compare them, by content and type, not by their classes' __eq__; values made while translating."""

from __future__ import annotations

import collections
import types
import typing
from collections.abc import Callable
from typing import Any

from .. import _C
from . import numpy as _numpy


def equal_to(value: Any) -> Callable[[Any], bool]:
    """Return a guard predicate for values equal to a set of plain constants, a generic alias or another constant."""
    if isinstance(value, (set, frozenset)):
        typed = _typed(value)
        return lambda other: _typed(other) == typed
    if getattr(value, "__args__", None) is not None:  # Union[int, str] equals Union[str, int]
        parts = _alias_parts(value)
        return lambda other: type(other) is type(value) and other == value and _alias_parts(other) == parts
    if type(value) in _numpy.SCALARS:
        told = _numpy.told(value)
        return lambda other: type(other) is told[0] and _numpy.told(other) == told
    return lambda other: type(other) is type(value) and other == value


_ALIASES: tuple[Any, ...] = (types.GenericAlias, types.UnionType, typing._GenericAlias)  # type: ignore[attr-defined]


def _alias_parts(value: Any) -> Any:
    """Return a generic alias or union with its arguments in order; no hook of a class among them runs."""
    args = value.__args__ if issubclass(type(value), _ALIASES) else None
    return (type(value), tuple(map(_alias_parts, args))) if type(args) is tuple else value


def _typed(value: Any) -> Any:
    """Return a key of a plain constant or set of them in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple, tuple(map(_typed, value))
    if isinstance(value, (set, frozenset)):
        return frozenset, frozenset(map(_typed, value))
    return type(value), value.hex() if isinstance(value, float) else value


def _told(v: Any) -> Any:
    """Return a key of a plain constant that includes all types: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(v, tuple):
        return type(v), tuple(map(_told, v))
    if isinstance(v, frozenset):
        return type(v), frozenset(map(_told, v))
    return type(v), repr(v) if isinstance(v, (float, complex)) else v


def set_is(value: frozenset[Any]) -> Callable[[Any], bool]:
    """Return a guard predicate: a set of the same plain constants, with equal types. Calls no method of a subclass."""
    typed = frozenset(map(_told, value))
    if all(type(v) is str for v in value):
        return lambda other: set.__eq__(other, value) is True and all(type(v) is str for v in set.__iter__(other))
    return lambda other: set.__eq__(other, value) is True and frozenset(map(_told, set.__iter__(other))) == typed


def layout_is(members: set[Any]) -> Callable[[Any], bool]:
    """Return a guard predicate: a set whose table has the same layout, so its order is the same after any change."""
    layout = _C.set_layout(members)
    return lambda other: bool(_C.set_layout(other) == layout)


def same_order(items: tuple[Any, ...]) -> Callable[[Any], bool]:
    """Return a guard predicate: the set or frozenset has equal items in this order."""
    return lambda other: tuple((set if isinstance(other, set) else frozenset).__iter__(other)) == items


def deque_is(items: tuple[Any, ...], maxlen: int | None) -> Callable[[Any], bool]:
    """Return a guard predicate: a deque of these constants."""
    typed = tuple(map(_told, items))
    return lambda other: other.maxlen == maxlen and tuple(map(_told, other)) == typed


#: reads a defaultdict's factory without the attribute hooks of its class
default_factory: Any = collections.defaultdict.__dict__["default_factory"].__get__


def factory_is(factory: Any) -> Callable[[Any], bool]:
    """Return a guard predicate: a defaultdict with this factory."""
    return lambda other: default_factory(other) is factory


def value_is(base: type, value: Any) -> Callable[[Any], bool]:
    """Return a guard predicate: an instance of a subclass of ``base`` with this value, as ``base`` compares values."""
    if base in (float, complex):  # repr treats nan as equal to itself and distinguishes the zeros
        text, known = base.__repr__, base.__repr__(value)
        return lambda other: text(other) == known
    equal: Any = base.__eq__
    return lambda other: bool(equal(other, value))


def plain_value(base: type, value: Any) -> Any:
    """Return an instance of a subclass of ``base`` as a plain ``base`` (immutable); no code of the subclass runs."""
    if base is str:
        return str.__str__(value) if type(value) is str else "".join(str.__iter__(value))
    if base is bytes:
        return bytes(bytes.__iter__(value))
    if base is complex:
        return complex.__pos__(value)
    return {int: int.__int__, float: float.__float__}[base](value)


def advanced(iterable: Any, n: int) -> Any:
    """Return ``iter(iterable)`` after n steps."""
    it = iter(iterable)
    for _ in range(n):
        next(it, None)
    return it


def spent(empty: Any) -> Any:
    """Return an exhausted iterator over an empty container."""
    it = iter(empty)
    next(it, None)
    return it
