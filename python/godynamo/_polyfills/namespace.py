"""Stand-ins for types: the C methods of SimpleNamespace, whose instances have no state besides their dict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ._base import stands_for

__godynamo_polyfill__ = "module"

_TYPE: Any = SimpleNamespace


def _dict(namespace: Any) -> Any:
    """Return the instance's dict as C does: it reads the field, so a __getattribute__ of the class does not run."""
    return object.__getattribute__(namespace, "__dict__")


@stands_for(SimpleNamespace.__init__)
def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
    if args:
        raise TypeError("no positional arguments expected")
    _dict(self).update(kwargs)


@stands_for(SimpleNamespace.__repr__)
def text(self: Any, /) -> str:
    name = "namespace" if type(self) is SimpleNamespace else type(self).__name__
    return name + "(" + ", ".join([f"{key}={value!r}" for key, value in _dict(self).items() if key]) + ")"


@stands_for(SimpleNamespace.__eq__)
def eq(self: Any, other: Any, /) -> Any:
    return _dict(self) == _dict(other) if issubclass(type(other), SimpleNamespace) else NotImplemented


@stands_for(SimpleNamespace.__ne__)
def ne(self: Any, other: Any, /) -> Any:
    return _dict(self) != _dict(other) if issubclass(type(other), SimpleNamespace) else NotImplemented


@stands_for(_TYPE.__lt__)
def lt(self: Any, other: Any, /) -> Any:
    return _dict(self) < _dict(other) if issubclass(type(other), SimpleNamespace) else NotImplemented


@stands_for(_TYPE.__le__)
def le(self: Any, other: Any, /) -> Any:
    return _dict(self) <= _dict(other) if issubclass(type(other), SimpleNamespace) else NotImplemented


@stands_for(_TYPE.__gt__)
def gt(self: Any, other: Any, /) -> Any:
    return _dict(self) > _dict(other) if issubclass(type(other), SimpleNamespace) else NotImplemented


@stands_for(_TYPE.__ge__)
def ge(self: Any, other: Any, /) -> Any:
    return _dict(self) >= _dict(other) if issubclass(type(other), SimpleNamespace) else NotImplemented
