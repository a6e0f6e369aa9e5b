"""Reads objects without running code of the program: no property, metaclass or ``__getattr__`` of its classes."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

_of_type = type.__dict__
_HEAPTYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_a(obj: object, cls: type | tuple[type, ...]) -> bool:
    """Return isinstance(obj, cls), without looking at ``__class__``, which may be a property."""
    return issubclass(type(obj), cls)


def module_of(cls: type) -> str:
    """Return the name of the module of a class, or "" if it is no str."""
    name = _of_type["__module__"].__get__(cls)
    return name if type(name) is str else ""


def qualname_of(cls: type) -> str:
    """Return a class's qualified name."""
    return str(_of_type["__qualname__"].__get__(cls))


def mro_of(cls: type) -> tuple[type, ...]:
    """Return a class's MRO."""
    mro: tuple[type, ...] = _of_type["__mro__"].__get__(cls)
    return mro


def space_of(cls: type) -> Mapping[str, Any]:
    """Return a class's ``__dict__``."""
    space: Mapping[str, Any] = _of_type["__dict__"].__get__(cls)
    return space


def fields_of(obj: object) -> dict[str, Any]:
    """Return the ``__dict__`` of an object that has one, without calling ``__getattribute__`` of its class."""
    fields: dict[str, Any] = object.__getattribute__(obj, "__dict__")
    return fields


def made_in_python(cls: type) -> bool:
    """Return whether a class statement, or a call of type(), has made the class.

    Since 3.12 most types of C extensions are heap types too; they differ in what C code has put into their namespace.
    """
    if not _of_type["__flags__"].__get__(cls) & _HEAPTYPE:
        return False
    space = space_of(cls)
    return not any(_from_c(cls, name, value, "__slots__" in space) for name, value in space.items())


def _from_c(cls: type, name: str, value: Any, slots: bool) -> bool:
    """Return whether a class made by a class statement cannot have this value of its own."""
    kind = type(value)
    if kind is types.GetSetDescriptorType:
        return value.__objclass__ is cls and name not in ("__dict__", "__weakref__")
    if kind is types.MemberDescriptorType:
        return value.__objclass__ is cls and not slots
    if kind is types.BuiltinFunctionType:
        return name == "__new__" and value.__self__ is cls
    return kind in _OF_C and value.__objclass__ is cls


_OF_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
