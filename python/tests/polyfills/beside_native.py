"""Runs stand-ins as plain Python and compares them with the C code that they replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from godynamo import _polyfills
from godynamo._polyfills._base import DECLINE, END, StandIn

MOST = 12  # number of items compared: some iterators are infinite


class Pulled:
    """An iterator that logs each request, so that laziness can be compared."""

    def __init__(self, items: Any, log: list[Any], name: str) -> None:
        self.items = iter(items)
        self.log = log
        self.name = name

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.log.append((self.name, "next"))
        return next(self.items)


def logged(fn: Callable[..., Any] | None, log: list[Any]) -> Any:
    """Return ``fn`` with its calls logged."""
    if fn is None:
        return None

    def call(*args: Any) -> Any:
        log.append(("call", args))
        return fn(*args)

    return call


def stand_in_of(original: Any) -> Any:
    """Return the function that is called instead of a C callable."""
    found = _polyfills.find(original)
    assert found is not None, original
    return found[0]


def outcome(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the value, or type and text of the exception."""
    try:
        return "value", fn(*args, **kwargs)
    except Exception as error:
        return "raised", type(error).__name__, str(error)


def walk(original: Any, make: Callable[[Any, list[Any]], Any], leave_at: int | None) -> None:
    """Compare a C iterator and its stand-in item by item, and after ``leave_at`` items compare what is
    left of both.

    ``make(callable, log)`` calls the callable with suitable arguments.
    """
    ours_log: list[Any] = []
    real_log: list[Any] = []
    real = outcome(make, original, real_log)
    ours = outcome(make, stand_in_of(original), ours_log)
    if ours == ("value", DECLINE):
        return
    if real[0] == "raised":
        assert ours == real
        return
    iterator, stand_in = real[1], ours[1]
    assert isinstance(stand_in, StandIn)
    assert stand_in.__real__ is type(iterator)
    assert ours_log == real_log
    for i in range(MOST):
        if i == leave_at:
            recipe = stand_in._escape()
            if recipe is DECLINE:
                return
            left = recipe[0](*recipe[1:])
            assert type(left) is type(iterator)
            for _ in range(MOST):
                assert outcome(next, left, END) == outcome(next, iterator, END)
            return
        expected = outcome(next, iterator, END)
        actual = outcome(stand_in._next)
        assert actual == expected
        assert ours_log == real_log
