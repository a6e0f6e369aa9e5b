"""Implements GODYNAMO_BISECT, by which ``godynamo bisect`` chooses the code objects that are translated.

``record:FILE`` allows all code objects, and adds a line to FILE for each of them. With ``only:FILE``, code that is not
listed in FILE is neither translated nor inlined. A line is ``file:first line:qualified name``, which is the same in
every process of a program. The translator calls allowed() only if the variable is set (runtime.watched).
"""

from __future__ import annotations

import os
from types import CodeType

VARIABLE = "GODYNAMO_BISECT"


def key(code: CodeType) -> str:
    """Return the line that represents a code object in FILE."""
    return f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}"


class _Bisect:
    def __init__(self, asked: str) -> None:
        mode, _, self.file = asked.partition(":")
        if mode not in ("record", "only") or not self.file:
            raise ValueError(f"{VARIABLE} is record:FILE or only:FILE, not {asked!r}")
        self.known: set[str] = set()
        self.recording = mode == "record"
        if not self.recording:
            with open(self.file, encoding="utf-8") as lines:
                self.known.update(line.rstrip("\n") for line in lines)

    def allowed(self, code: CodeType) -> bool:
        name = key(code)
        if not self.recording:
            return name in self.known
        if name not in self.known:
            self.known.add(name)
            # The line is one write, since all processes of a program append to the same file.
            with open(self.file, "a", encoding="utf-8") as lines:
                lines.write(name + "\n")
        return True


_state: _Bisect | None = None


def allowed(code: CodeType) -> bool:
    """Return whether code may be translated or inlined. Raises OSError, and ValueError for a bad GODYNAMO_BISECT."""
    global _state
    if _state is None:
        _state = _Bisect(os.environ[VARIABLE])
    return _state.allowed(code)
