"""Texts of the logs' artefacts that Python knows best: source lines, bytecode, guards evaluated one by one.

pyhook/artifacts.go asks for them while an artefact is wanted, and hands them to its zap logger.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from . import _guard_env, _sources
from ._runtime import break_text

__all__ = ["break_text", "bytecode", "failures", "line", "marked", "where"]

line = _sources.line
marked = _sources.marked


def where(function: FunctionType) -> str:
    """The function a translation is of; the rest of a frame is called after the user's function."""
    code = function.__code__
    origin: Any = getattr(function, "__godynamo_origin__", None)
    users, rest = (origin[0], " (the rest of it)") if origin is not None else (code, "")
    return f"{users.co_name!r}{rest} ({users.co_filename}:{users.co_firstlineno})"


def bytecode(function: FunctionType, transformed: FunctionType | None) -> str:
    """Both bytecodes of a translation."""
    origin: Any = getattr(function, "__godynamo_origin__", None)
    code: CodeType = origin[0] if origin is not None else function.__code__
    after = dis.Bytecode(transformed).dis() if transformed is not None else "  none: it runs as it is\n"
    return f"ORIGINAL BYTECODE\n{dis.Bytecode(code).dis()}\nTRANSFORMED BYTECODE\n{after}"


def failures(cache: Any, function: FunctionType, slots: tuple[Any, ...]) -> list[str]:
    """All guards that do not hold for a call, of every entry, newest entry first."""
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
        if _guard_env.part_holds(entry, text, slots, function.__globals__):
            continue
        if getattr(first, "part", None) == text:
            rows.append(str(first))  # with both values
        else:
            rows.append(text if place is None else f"{text} ({place[0]}:{place[1]})")
    if not rows and first is not None:
        rows.append(str(first))
    return rows
