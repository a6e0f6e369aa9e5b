"""Makes shadows of mutable C objects with plain data: copies on which CPython computes while translating.

See variables/container_shadow.go. Nothing here changes the program's own object.
"""

from __future__ import annotations

import array
import types
from collections.abc import Callable
from typing import Any

_CHANGING: dict[type, str] = {
    bytearray: "append clear extend insert pop remove reverse __setitem__ __delitem__ __iadd__ __imul__",
    array.array: "append byteswap extend frombytes fromlist fromunicode insert pop remove reverse __setitem__ "
    "__delitem__ "
    "__iadd__ __imul__",
}
#: methods that are not called on shadows, since they do more than read or change the contents
_LEFT_OUT = frozenset(
    "buffer_info fromfile tofile maketrans fromhex __alloc__ __array_finalize__ __class__ __class_getitem__ __copy__ "
    "__deepcopy__ __getattribute__ __init__ __iter__ __new__ __reduce__ __reduce_ex__ __sizeof__".split()
)


def _methods(kind: type) -> dict[str, bool]:
    changing = _CHANGING[kind].split()
    return {
        name: name in changing
        for name, value in vars(kind).items()
        if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)) and name not in _LEFT_OUT
    }


#: type → name of a method → whether the method changes the object
METHODS: dict[type, dict[str, bool]] = {kind: _methods(kind) for kind in _CHANGING}


def copied(value: Any) -> Any:
    """Return a copy of a bytearray or array."""
    return value[:]


def _state(value: Any) -> tuple[Any, ...]:
    return (value.typecode, value.tobytes()) if type(value) is array.array else (bytes(value),)


def shadow_is(value: Any) -> Callable[[Any], bool]:
    """Return a guard predicate that an object has exactly this type and the same contents."""
    kind, state = type(value), _state(value)
    return lambda other: type(other) is kind and _state(other) == state


def recipe(value: Any) -> tuple[Any, ...]:
    """Return (callable, *arguments) for a call that makes an object with the same contents."""
    return type(value), *_state(value)


def called(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method on a copy; return (result, the changed copy).

    If the method raises before it changes the copy, its exception propagates; if it raises later, the result is None.
    """
    after = copied(value)
    try:
        return getattr(after, name)(*args, **kwargs), after
    except Exception:
        if _state(after) != _state(value):
            return None
        raise
