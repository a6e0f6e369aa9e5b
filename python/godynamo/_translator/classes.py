"""How the translator treats classes; metaclasses that could be the user's are not consulted."""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

#: names that class statements, collections.namedtuple and dataclasses define in a class
_USUAL_SPECIALS = frozenset(
    "__module__ __qualname__ __doc__ __dict__ __slots__ __weakref__ __annotations__ __orig_bases__ __parameters__ "
    "__match_args__ "
    "__new__ __init__ __repr__ __getnewargs__ __replace__ __class_getitem__ __init_subclass__".split()
)


def _own_specials(cls: type) -> bool:
    """Return whether a namedtuple's class defines special methods that operators use."""
    own = cls.__mro__[: cls.__mro__.index(tuple)]
    names = {name for k in own if k is not typing.Generic for name in vars(k)}
    return any(name[:2] == name[-2:] == "__" for name in names - _USUAL_SPECIALS)


def _member(cls: type, name: str) -> Any:
    """Look a name up in a class and its bases without running its metaclass; None if it is missing."""
    for k in type.__dict__["__mro__"].__get__(cls):
        own = type.__dict__["__dict__"].__get__(k)
        if name in own:
            return own[name]
    return None


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
    """Return the classes that isinstance and issubclass with ``cls`` check, None if that runs user code: plain
    metaclasses, abc's own, unions and tuples of such run none."""
    if issubclass(type(cls), type):  # isinstance would read its __class__ through the metaclass
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
    """Return whether it is torch's or our class: nobody assigns its special methods or its bases."""
    module = type.__dict__["__dict__"].__get__(cls).get("__module__")  # read without the metaclass
    return type(module) is str and module.split(".", 1)[0] in ("torch", "godynamo")


def plain_layout(cls: type) -> bool:
    """Return whether instances of cls consist only of a dict or slots: no base class written in C except object and
    SimpleNamespace, which has only a dict. An abstract class has no instances."""
    is_abstract = 1 << 20
    bare = (object, types.SimpleNamespace)
    return not cls.__flags__ & is_abstract and all(c in bare or _class_statement_made(c) for c in cls.__mro__)


def _class_statement_made(cls: type) -> bool:
    heap_type, disallow_instantiation = 1 << 9, 1 << 7
    if not cls.__flags__ & heap_type or cls.__flags__ & disallow_instantiation:
        return False
    # C's heap types have their own functions and fields; a class statement adds a dict, a list of weak references,
    # slots
    if any(_written_in_c(cls, d) for d in vars(cls).values()):
        return False
    fields = sum(type(d) is types.MemberDescriptorType for d in vars(cls).values())
    base = cls.__base__
    return base is None or cls.__basicsize__ - base.__basicsize__ <= (fields + 2) * tuple.__itemsize__


def _written_in_c(cls: type, attribute: Any) -> bool:
    """Return whether C code defined this slot, method or ``__new__`` on exactly this class."""
    kind = type(attribute)  # isinstance would read its __class__
    if kind is types.WrapperDescriptorType or kind is types.MethodDescriptorType:
        return attribute.__objclass__ is cls
    return kind is types.BuiltinFunctionType and attribute.__self__ is cls
