"""Stand-ins for copy: containers, and instances of Python classes whose state is in a dict. Others break the graph.

Attributes of an instance are read in the same order as by copy and object.__reduce_ex__, since the instance's class may
have a __getattribute__.
"""

from __future__ import annotations

import copy
import copyreg
import enum
import types
from typing import Any

from ._base import DECLINE, computed, stands_for

__godynamo_polyfill__ = "module"

_ATOMIC = (
    type(None),
    int,
    float,
    bool,
    complex,
    str,
    bytes,
    range,
    type,
    types.BuiltinFunctionType,
    types.FunctionType,
    type(Ellipsis),
    type(NotImplemented),
)


@computed
def builtin_atom(kind: type) -> bool:
    """Return whether values of this type are their own shallow and deep copies."""
    return any(kind is k for k in _ATOMIC)  # not ``in``: it could run the __eq__ of a metaclass


@computed
def members(kind: type) -> bool:
    """Return whether ``kind`` is an enum class. A member is its own copy unless the class defines a copy hook."""
    return issubclass(kind, enum.Enum)


def atomic(kind: Any, hook: str) -> bool:
    return builtin_atom(kind) or (
        members(kind)
        and type(kind) is enum.EnumMeta
        and getattr(kind, hook, None) is getattr(enum.Enum, hook, None)
        and reads_plainly(kind)
    )


def reads_plainly(kind: Any) -> bool:
    """Return whether the class inherits __getattribute__ from object, int or str."""
    hook = kind.__getattribute__
    return hook is object.__getattribute__ or hook is int.__getattribute__ or hook is str.__getattribute__


def asks_nobody(kind: Any) -> bool:
    """Return whether the metaclass runs no user code when the class is a dict key or its attributes are accessed."""
    meta: Any = type(kind)
    return meta is type or (
        meta.__getattribute__ is type.__getattribute__
        and meta.__hash__ is type.__hash__
        and meta.__eq__ is type.__eq__
        and meta.__setattr__ is type.__setattr__  # copyreg stores __slotnames__ in the class
        and not hasattr(meta, "__getattr__")
    )


@computed
def keeps_a_dict(kind: type) -> bool:
    """Return whether instances are copied by object.__reduce_ex__, and have a dict and no slots."""
    return (
        kind not in copyreg.dispatch_table
        and bool(kind.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE: made by a class statement
        and not any(issubclass(kind, base) for base in (type, list, dict, BaseException))
        and kind.__basicsize__ <= object.__basicsize__ + 16  # only __dict__ and __weakref__, no C fields
        and kind.__itemsize__ == 0
        and kind.__dictoffset__ != 0
        and not any(vars(k).keys() & {"__reduce__", "__reduce_ex__"} for k in kind.__mro__[:-1])
        and not copyreg._slotnames(kind)  # type: ignore[attr-defined] # stores the names in the class, as copy does
    )


def _reconstructed(x: Any, kind: Any, seen: list[Any], hook: str) -> Any:
    """Return a copy of an instance, made as the copy module does, or DECLINE. ``hook`` is __copy__ or __deepcopy__."""
    if (
        not asks_nobody(kind)
        or not keeps_a_dict(kind)
        or getattr(kind if hook == "__copy__" else x, hook, None) is not None
    ):
        return DECLINE
    if not callable(x.__reduce_ex__):  # a __getattribute__ of the class has returned something else
        return DECLINE
    x.__reduce__  # noqa: B018
    if kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__:
        return DECLINE
    if getattr(kind, "__getnewargs_ex__", None) is not None or getattr(kind, "__getnewargs__", None) is not None:
        return DECLINE
    getstate = x.__getstate__
    if kind.__getstate__ is object.__getstate__:
        if not callable(getstate):
            return DECLINE
        state = object.__getattribute__(x, "__dict__") or None
    else:
        state = getstate()
    copied = kind.__new__(kind)
    if hook == "__deepcopy__":
        seen.append((x, copied))
        if state is not None:
            state = _deep(state, seen)
            if state is DECLINE:
                return DECLINE
    if state is not None:
        if hasattr(copied, "__setstate__"):
            copied.__setstate__(state)
        elif type(state) is dict:
            copied.__dict__.update(state)
        else:
            return DECLINE
    return copied


@stands_for(copy.copy)
def shallow(x: Any) -> Any:
    kind = type(x)
    if kind is list or kind is dict or kind is set:
        return x.copy()
    return x if kind is tuple or atomic(kind, "__copy__") else _reconstructed(x, kind, [], "__copy__")


@stands_for(copy.deepcopy)
def deep(x: Any, memo: Any = None) -> Any:
    return DECLINE if memo is not None else _deep(x, [])


def _deep(x: Any, seen: list[Any]) -> Any:
    kind = type(x)
    if atomic(kind, "__deepcopy__"):
        return x
    for old, new in seen:
        if old is x:
            return new
    if kind is list:
        copied: list[Any] = []
        seen.append((x, copied))
        for item in x:
            value = _deep(item, seen)
            if value is DECLINE:
                return DECLINE
            copied.append(value)
        return copied
    if kind is dict:
        mapping: dict[Any, Any] = {}
        seen.append((x, mapping))
        for key in x:
            name, value = _deep(key, seen), _deep(x[key], seen)
            if name is DECLINE or value is DECLINE:
                return DECLINE
            mapping[name] = value
        return mapping
    if kind is tuple:
        items: list[Any] = []
        same = True
        for item in x:
            value = _deep(item, seen)
            if value is DECLINE:
                return DECLINE
            items.append(value)
            same = same and value is item
        for old, new in seen:  # an item that contains the tuple may have copied it already
            if old is x:
                return new
        if same:
            return x
        made = tuple(items)
        seen.append((x, made))
        return made
    return _reconstructed(x, kind, seen, "__deepcopy__")
