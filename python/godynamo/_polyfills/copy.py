"""copy: Python's own containers. What else there is goes through copy's own Python code, or breaks."""

from __future__ import annotations

import copy
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
def atomic(kind: type) -> bool:
    """Values of this type are their own copies, shallow and deep."""
    return kind in _ATOMIC


@stands_for(copy.copy)
def shallow(x: Any) -> Any:
    kind = type(x)
    if kind is list or kind is dict or kind is set:
        return x.copy()
    return x if kind is tuple or atomic(kind) else DECLINE


@stands_for(copy.deepcopy)
def deep(x: Any, memo: Any = None) -> Any:
    return DECLINE if memo is not None else _deep(x, [])


def _deep(x: Any, seen: list[Any]) -> Any:
    kind = type(x)
    if atomic(kind):
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
        for old, new in seen:  # made by an item that holds the tuple
            if old is x:
                return new
        if same:
            return x
        made = tuple(items)
        seen.append((x, made))
        return made
    return DECLINE
