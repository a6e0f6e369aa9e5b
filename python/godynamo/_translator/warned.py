"""Calls functions while translating, where a warning must not be shown: it belongs to the program's own call."""

from __future__ import annotations

import _thread
import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any


class _InTheseThreads:
    """The message pattern of a filter: matches all texts, in some threads only."""

    def __init__(self, threads: set[int]) -> None:
        self._threads = threads

    def match(self, text: str) -> bool:
        return _thread.get_ident() in self._threads


#: the threads in which a call of ``computed`` or a block of ``hidden`` is under way
_calling: set[int] = set()
_hiding: set[int] = set()

#: Turns warnings into exceptions. In the list of all threads it concerns those of _calling only.
_FILTER: Any = ("error", _InTheseThreads(_calling), Warning, None, 0)

#: Drops the warnings of the threads of _hiding.
_DROP: Any = ("ignore", _InTheseThreads(_hiding), Warning, None, 0)


def computed(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """Return (result,) of a call, or None if it warns. Its exceptions propagate."""
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    thread = _thread.get_ident()
    _calling.add(thread)
    filters.insert(0, _FILTER)
    try:
        return (fn(*args, **kwargs),)
    except Warning:
        return None
    finally:
        with contextlib.suppress(ValueError):  # another thread has emptied the list
            filters.remove(_FILTER)
        _calling.discard(thread)


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Show no warning of this thread, and let none count as shown. Blocks are not nested."""
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    thread = _thread.get_ident()
    _hiding.add(thread)
    filters.insert(0, _DROP)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # another thread has emptied the list
            filters.remove(_DROP)
        _hiding.discard(thread)


def throw_warns() -> bool:
    """Return whether ``throw(type, value)`` of a generator warns, as it does since Python 3.12."""

    def generator() -> Any:
        yield

    return computed(_throw_two, (generator(),), {}) is None


def _throw_two(generator: Any) -> None:
    with contextlib.suppress(ValueError):
        generator.throw(ValueError, ValueError())
