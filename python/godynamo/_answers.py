"""What functions say of the process while a frame is translated, each with the predicate that guards it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def asked(fn: Callable[[], Any]) -> tuple[Any, Callable[[Any], bool]]:
    """(what a function without arguments says of the process, the guard predicate that it says so still)."""
    answer = fn()
    return answer, lambda fn: bool(fn() == answer)


def recursive_repr(fn: types.FunctionType) -> tuple[Any, str, Callable[[Any], bool]]:
    """(the wrapped function, the text for an object within itself, the guard predicate that none is being printed)."""
    cells = {name: cell.cell_contents for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)}
    running: set[Any] = cells["repr_running"]
    return cells["user_function"], cells.get("fillvalue", "..."), lambda _: not running


def dispatched(fn: Any, cls: type) -> tuple[Any, Callable[[Any], bool]]:
    """What a singledispatch function calls for a first argument of this class, and the guard that it still does."""
    chosen = fn.dispatch(cls)
    return chosen, lambda other: other.dispatch(cls) is chosen
