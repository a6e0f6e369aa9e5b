"""Texts of exceptions that the versions of CPython word differently. They come from the running version.

Each function lets CPython raise the exception for a class with the same names, and returns its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_names = [vars(type)[name].__get__ for name in ("__name__", "__qualname__", "__module__")]  # no metaclass answers


def _twin(cls: type, **members: Any) -> type:
    name, qualname, module = (read(cls) for read in _names)
    return type(name, (), {"__qualname__": qualname, "__module__": module, **members})


def _text(call: Callable[[], object]) -> str:
    try:
        call()
    except (AttributeError, TypeError) as error:
        return str(error)
    raise AssertionError(call)


def absent_slot(cls: type, name: str) -> str:
    """Return the text for an attribute of ``__slots__`` that has no value."""
    slotted = _twin(cls, __slots__=(name,))
    return _text(lambda: getattr(slotted(), name))


def no_place(cls: type, name: str) -> str:
    """Return the text for a store to an attribute for which the instance has no ``__dict__``."""
    slotted = _twin(cls, __slots__=())
    return _text(lambda: setattr(slotted(), name, None))


def not_super(cls: type, given: type, is_class: bool) -> str:
    """Return the text for ``super(cls, x)``, where x is ``given`` or an instance of it."""
    wanted, other = _twin(cls), _twin(given)
    return _text(lambda: super(wanted, other if is_class else other()))
