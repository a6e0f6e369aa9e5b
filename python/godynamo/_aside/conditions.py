"""Checks what compiled code assumes about sizes that vary; _backends/symbolic defines expressions and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._backends.symbolic import Condition, Expression

_OPERATORS = {"add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "floordiv": "({} // {})", "mod": "({} % {})"}
_FUNCTIONS = {"max": "max({}, {})", "min": "min({}, {})"}
_RELATIONS = {"eq": "==", "ne": "!=", "le": "<=", "ge": ">=", "lt": "<", "gt": ">"}


class NotReadable(Exception):
    """A symbol is neither a size of an input nor an input."""


def holding(conditions: Sequence[Condition], inputs: Sequence[Any]) -> Callable[[Sequence[Any]], bool] | None:
    """Return a function that reports whether a call's inputs fulfil the conditions; None if there are none.

    inputs: for each input what symbolic.Sizes knows about it. Raises NotReadable.
    """
    if not conditions:
        return None
    places = _places(inputs)
    texts = [f"{_text(a, places)} {_RELATIONS[relation]} {_text(b, places)}" for relation, a, b in conditions]
    space = {"__builtins__": {}, "max": max, "min": min}
    return eval(f"lambda inputs: {' and '.join(dict.fromkeys(texts))}", space)  # type: ignore[no-any-return]


def _places(inputs: Sequence[Any]) -> dict[Any, str]:
    """Return where a call's inputs have each symbol, as Python."""
    places: dict[Any, str] = {}
    for i, row in enumerate(inputs):
        if _is_symbol(row):
            places[row] = f"inputs[{i}]"
        elif isinstance(row, tuple) and isinstance(row[0], tuple):  # sizes and strides
            for d, size in enumerate(row[0]):
                if _is_symbol(size):
                    places.setdefault(size, f"inputs[{i}].shape[{d}]")
    return places


def _is_symbol(e: Any) -> bool:
    return isinstance(e, tuple) and len(e) == 2 and e[0] in ("s", "r")


def _text(e: Expression, places: dict[Any, str]) -> str:
    if isinstance(e, int):
        return str(e)
    if _is_symbol(e):
        if e not in places:
            raise NotReadable("the compiler assumes something about a size that no input has")
        return places[e]
    return (_OPERATORS.get(e[0]) or _FUNCTIONS[e[0]]).format(_text(e[1], places), _text(e[2], places))
