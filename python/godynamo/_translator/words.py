"""Texts of exceptions that the versions of CPython word differently. They come from the running version.

Each function lets CPython raise the exception for a class with the same names, and returns its text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

_names = [vars(type)[name].__get__ for name in ("__name__", "__qualname__", "__module__")]  # no metaclass answers


def _twin(cls: type, **members: Any) -> type:
    name, qualname, module = (read(cls) for read in _names)
    return type(name, (), {"__qualname__": qualname, "__module__": module, **members})


def _text(call: Callable[[], object]) -> str:
    try:
        call()
    except (AttributeError, TypeError, ValueError) as error:
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


def key_text(cls: type, text: str, is_set: bool) -> str:
    """Return the text for a key of a dict, or an element of a set, whose hash raises TypeError(text)."""

    def raises(_: object) -> int:
        raise TypeError(text)

    key = _twin(cls, __hash__=raises)()
    return _text(lambda: {key} if is_set else {}[key])


def absent_text(kind: str, method: str) -> str:
    """Return the text of ``list().index(x)`` and the like for an x that is not there; "" if it has the repr of x."""
    empty: Any = deque() if kind == "deque" else []
    text = _text(lambda: getattr(empty, method)("mark"))
    return "" if "mark" in text else text


def too_many(cls: type, wanted: int, got: int) -> str:
    """Return the text for a value of an exact class with more items than there are variables."""
    value = dict.fromkeys(range(got)) if cls is dict else cls(range(got)) if cls in (list, tuple) else iter(range(got))
    return _text(lambda: exec(f"({'_,' * wanted}) = value", {"value": value}))


def not_bool(cls: type) -> str:
    """Return the text for the truth of an instance of a class whose ``__bool__`` is None."""
    return _text(lambda: bool(_twin(cls, __bool__=None)()))


def not_container(cls: type) -> str:
    """Return the text of ``in`` for a class that is neither a container nor iterable."""
    return _text(lambda: None in _twin(cls)())


def not_context(cls: type, *names: str) -> str:
    """Return the text of ``with`` for a class that has these of ``__enter__``, ``__exit__``, and the async methods."""
    manager = _twin(cls, **dict.fromkeys(names, lambda *_: None))

    def enter() -> None:
        with manager():
            pass

    return _text(enter)


def close_returns() -> bool:
    """Return whether ``close()`` of a generator returns what the generator returns, as it does since Python 3.13."""

    def generator() -> Any:
        try:
            yield
        except GeneratorExit:
            return True

    made = generator()
    next(made)
    return made.close() is True


def map_is_strict() -> bool:
    """Return whether ``map`` takes the keyword strict."""
    try:
        map(abs, (), strict=True)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def tuple_asks_length() -> bool:
    """Return whether ``tuple(x)`` reads the length of x."""
    asked = []

    class Sized:
        def __iter__(self) -> Any:
            return iter(())

        def __len__(self) -> int:
            asked.append(True)
            return 0

    tuple(Sized())
    return bool(asked)
