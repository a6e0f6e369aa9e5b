"""Calls functions while translating, where a warning must not be shown: it belongs to the program's own call."""

from __future__ import annotations

import _thread
import contextlib
import warnings
from collections.abc import Callable
from typing import Any

#: the threads in which a call is under way
_calling: set[int] = set()


class _InTheseThreads:
    """The message pattern of a filter: matches all texts, in the threads of _calling only."""

    def match(self, text: str) -> bool:
        return _thread.get_ident() in _calling


#: Turns warnings into exceptions. In the list of all threads it concerns those of _calling only.
_FILTER: Any = ("error", _InTheseThreads(), Warning, None, 0)


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


def throw_warns() -> bool:
    """Return whether ``throw(type, value)`` of a generator warns, as it does since Python 3.12."""

    def generator() -> Any:
        yield

    return computed(_throw_two, (generator(),), {}) is None


def _throw_two(generator: Any) -> None:
    with contextlib.suppress(ValueError):
        generator.throw(ValueError, ValueError())
