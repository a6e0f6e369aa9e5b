"""Produces texts of log artefacts that are easier to produce in Python: source lines, bytecode, failed guards.

pyhook/artifacts.go requests a text while the artefact is wanted, and passes the text to its zap logger.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from .._called import guard_env
from .._called.runtime import break_text
from . import reasons, sources

__all__ = ["break_text", "bytecode", "expression", "failures", "line", "marked", "recompiles", "where"]

line = sources.line
expression = sources.expression
marked = sources.marked


def where(function: FunctionType, first_type: type | None = None) -> str:
    """Return a translated function's name for the log: a resume function has the name of the user's function, and a
    module's call has the name of its forward.
    """
    users, rest = _users(function)
    frame = reasons.Frame.of(users, first_type)
    name = frame.name if frame.parameters is not None else users.co_name
    return f"{name!r}{rest} ({frame.file}:{frame.line})"


def _users(function: FunctionType) -> tuple[CodeType, str]:
    origin: Any = getattr(function, "__godynamo_origin__", None)
    return (origin[0], " (the rest of it)") if origin is not None else (function.__code__, "")


def recompiles(function: FunctionType, failures: Sequence[str], first_type: type | None) -> str:
    """Return why each entry of a function did not serve a call, one line per entry."""
    return "\n".join(["translated again:", *reasons.lines(failures, _users(function)[0], first_type, "    ")])


def bytecode(function: FunctionType, transformed: FunctionType | None) -> str:
    """Return the original and the transformed bytecode of a translation."""
    origin: Any = getattr(function, "__godynamo_origin__", None)
    code: CodeType = origin[0] if origin is not None else function.__code__
    after = dis.Bytecode(transformed).dis() if transformed is not None else "  none: it runs as it is\n"
    return f"ORIGINAL BYTECODE\n{dis.Bytecode(code).dis()}\nTRANSFORMED BYTECODE\n{after}"


def failures(cache: Any, function: FunctionType, slots: tuple[Any, ...]) -> list[str]:
    """Return all guards that fail for a call, of every entry, newest entry first."""
    out: list[str] = []
    for number, entry in enumerate(cache.entries()):
        out.append(f"entry {number}:")
        out += [f"  {text}" for text in _failing(entry, function, slots)] or ["  every guard holds now"]
    return out


def _failing(entry: Any, function: FunctionType, slots: Sequence[Any]) -> list[str]:
    first = entry.failure(tuple(slots), function.__globals__)
    rows = []
    lines = entry.part_lines or (None,) * len(entry.parts)
    for text, place in zip(entry.parts, lines, strict=False):
        if guard_env.part_holds(entry, text, slots, function.__globals__):
            continue
        if getattr(first, "part", None) == text:
            rows.append(str(first))  # this text contains the expected and the actual value
        else:
            rows.append(text if place is None else f"{text} ({place[0]}:{place[1]})")
    if not rows and first is not None:
        rows.append(str(first))
    return rows
