"""Classifies classes for the translator. Code of metaclasses that could be the user's does not run."""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

#: special names that class statements, collections.namedtuple and dataclasses define in a class
_USUAL_SPECIALS = frozenset(
    "__module__ __qualname__ __doc__ __dict__ __slots__ __weakref__ __annotations__ __orig_bases__ __parameters__ "
    "__match_args__ "
    "__new__ __init__ __repr__ __getnewargs__ __replace__ __class_getitem__ __init_subclass__".split()
)


def _own_specials(cls: type) -> bool:
    """Return whether a subclass of a namedtuple defines special methods that operators use."""
    own = cls.__mro__[: cls.__mro__.index(tuple)]
    names = {name for k in own if k is not typing.Generic for name in vars(k)}
    return any(name[:2] == name[-2:] == "__" for name in names - _USUAL_SPECIALS)


def _member(cls: type, name: str) -> Any:
    """Look a name up in a class and its bases, without running the metaclass. Returns None if it is missing."""
    for k in type.__dict__["__mro__"].__get__(cls):
        own = type.__dict__["__dict__"].__get__(k)
        if name in own:
            return own[name]
    return None


def is_pybind_enum(cls: type) -> bool:
    """Return whether pybind11 has made the class for an enum of torch's C++ code, such as SDPBackend."""
    return is_pybind_type(type(cls)) and "__entries" in type.__dict__["__dict__"].__get__(cls)


def is_pybind_type(meta: type) -> bool:
    """Return whether this is pybind11's metaclass, which reads attributes and checks instances as type does."""
    return type(meta) is type and meta.__module__ == "pybind11_builtins" and meta.__name__ == "pybind11_type"


def named_tuple_fields(cls: type) -> str:
    fields = _member(cls, "_fields")
    if not issubclass(type(fields), tuple) or not fields or type(cls).__getattribute__ is not type.__getattribute__:
        return ""
    if cls.__bases__ == () or _own_specials(cls):
        return ""
    if "__new__" in cls.__dict__ and getattr(cls.__new__, "__module__", "").startswith("namedtuple_"):
        return ",".join(fields)
    base = cls.__mro__[1]
    if "__new__" not in cls.__dict__ and "__init__" not in cls.__dict__ and base is not tuple:
        return named_tuple_fields(base)
    return ""


def checked_classes(cls: Any) -> tuple[type, ...] | None:
    """Return the classes that isinstance and issubclass with ``cls`` check, or None if the check may run user code.
    Classes with plain metaclasses or ABCMeta, and unions and tuples of these, run no user code."""
    if issubclass(type(cls), type):  # isinstance would read cls.__class__ through the metaclass
        return (cls,) if _pure_check(cls) else None
    if isinstance(cls, tuple):
        parts = [checked_classes(c) for c in cls]
    elif isinstance(cls, typing._SpecialGenericAlias):  # type: ignore[attr-defined]
        parts = [checked_classes(cls.__origin__)]
    elif typing.get_origin(cls) in (typing.Union, types.UnionType):
        parts = [checked_classes(c) for c in cls.__args__]
    else:
        return None
    return None if None in parts else tuple(c for part in parts if part for c in part)


def _pure_check(cls: type) -> bool:
    meta = type(cls)
    if is_pybind_type(meta):
        return True
    if meta.__getattribute__ is not type.__getattribute__:
        return False
    checks = meta.__instancecheck__, meta.__subclasscheck__
    if checks == (type.__instancecheck__, type.__subclasscheck__):
        return True
    if checks == (abc.ABCMeta.__instancecheck__, abc.ABCMeta.__subclasscheck__):
        found = cls.__dict__.get("__subclasshook__", cls.__subclasshook__)
        hook = found if type(found) is types.FunctionType else getattr(found, "__func__", None)
        return hook is None or getattr(hook, "__module__", "") in (
            "collections.abc",
            "_collections_abc",
            "typing",
            "abc",
        )
    return cls.__module__.split(".", 1)[0] in ("torch", "enum", "typing")


def library_class(cls: type) -> bool:
    """Return whether a class is torch's or godynamo's. No program assigns special methods or bases of such a class."""
    module = type.__dict__["__dict__"].__get__(cls).get("__module__")  # read without the metaclass
    return type(module) is str and module.split(".", 1)[0] in ("torch", "godynamo")


def plain_layout(cls: type) -> bool:
    """Return whether instances of cls consist only of a dict or slots. Such a class has no base class written in C
    except object and SimpleNamespace, which has only a dict, and is not abstract."""
    is_abstract = 1 << 20
    bare = (object, types.SimpleNamespace)
    return not cls.__flags__ & is_abstract and all(c in bare or _class_statement_made(c) for c in cls.__mro__)


def _class_statement_made(cls: type) -> bool:
    heap_type, disallow_instantiation = 1 << 9, 1 << 7
    if not cls.__flags__ & heap_type or cls.__flags__ & disallow_instantiation:
        return False
    # Heap types made in C have C functions and C fields. A class statement adds only a dict, a list of weak references
    # and slots.
    if any(_written_in_c(cls, d) for d in vars(cls).values()):
        return False
    fields = sum(type(d) is types.MemberDescriptorType for d in vars(cls).values())
    base = cls.__base__
    return base is None or cls.__basicsize__ - base.__basicsize__ <= (fields + 2) * tuple.__itemsize__


def _written_in_c(cls: type, attribute: Any) -> bool:
    """Return whether this slot, method or ``__new__`` is implemented in C for exactly this class."""
    kind = type(attribute)  # isinstance would read attribute.__class__
    if kind is types.WrapperDescriptorType or kind is types.MethodDescriptorType:
        return attribute.__objclass__ is cls
    return kind is types.BuiltinFunctionType and attribute.__self__ is cls
