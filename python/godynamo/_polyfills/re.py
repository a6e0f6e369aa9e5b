"""Stand-ins for re: functions that call a Python function or return an iterator. CPython computes other methods."""

from __future__ import annotations

import re
from typing import Any

from ._base import DECLINE, END, StandIn, computed, stands_for

__godynamo_polyfill__ = "module"

MOST = 20_000  # maximum number of matches worth unrolling


@computed
def matches(pattern: Any, text: Any, most: int, bounds: Any) -> Any:
    """Return up to ``most`` matches, computed by CPython; None if there are more than MOST."""
    found: list[Any] = []
    for match in pattern.finditer(text, *bounds):
        if len(found) == most:
            break
        found.append(match)
        if len(found) > MOST:
            return None
    return tuple(found)


class finditer(StandIn):
    __real__ = type(re.finditer("", ""))

    def __init__(self, found: Any, arguments: Any) -> None:
        self.found = found
        self.arguments = arguments
        self.index = 0

    def _next(self) -> Any:
        if self.index >= len(self.found):
            return END
        self.index += 1
        return self.found[self.index - 1]

    def _escape(self) -> Any:
        return (_finditer, self.arguments, self.index)


def _finditer(arguments: Any, index: int) -> Any:
    pattern, text, bounds = arguments
    made = pattern.finditer(text, *bounds)
    for _ in range(index):
        next(made)
    return made


@stands_for(re.Pattern.finditer)
def finditer_of(self: Any, string: Any, pos: Any = END, endpos: Any = END) -> Any:
    bounds = () if pos is END else (pos,) if endpos is END else (pos, endpos)
    if pos is END and endpos is not END:
        return DECLINE
    found = matches(self, string, -1, bounds)
    return DECLINE if found is None else finditer(found, (self, string, bounds))


def _replaced(pattern: Any, repl: Any, string: Any, count: Any) -> Any:
    """Return (new text, number of replacements); call ``repl`` for each match, in order."""
    found = matches(pattern, string, -1 if count == 0 else max(count, 0), ())
    if found is None:
        return DECLINE
    pieces = []
    at = 0
    for match in found:
        start, end = match.span()
        pieces.append(string[at:start])
        piece = repl(match)
        if not isinstance(piece, str):
            return DECLINE
        pieces.append(piece)
        at = end
    pieces.append(string[at:])
    return "".join(pieces), len(found)


@stands_for(re.Pattern.sub, fold=True)
def sub(self: Any, repl: Any, string: Any, count: Any = 0) -> Any:
    if not callable(repl) or not isinstance(string, str) or not isinstance(count, int):
        return DECLINE
    result = _replaced(self, repl, string, count)
    return DECLINE if result is DECLINE else result[0]


@stands_for(re.Pattern.subn, fold=True)
def subn(self: Any, repl: Any, string: Any, count: Any = 0) -> Any:
    if not callable(repl) or not isinstance(string, str) or not isinstance(count, int):
        return DECLINE
    return _replaced(self, repl, string, count)
