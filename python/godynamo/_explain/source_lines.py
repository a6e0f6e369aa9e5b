"""Reads lines of the user's source around a place, and marks the place as CPython 3.11's tracebacks do."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass

Position = tuple[int, int, int]  #: end line, column and end column, in bytes from 0


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file, without common indentation, with a marked part in one of them."""

    first: int  #: number of the first line, from 1
    lines: tuple[str, ...]  #: () if the file cannot be read
    marked: int  #: number of the marked line
    column: int = 0  #: number of characters before the marked part, in the line as it is in ``lines``
    width: int = 0  #: number of marked characters; 0: the whole line

    @property
    def marks(self) -> str:
        """Spaces and carets to print below the marked line; "" if the whole line is marked."""
        return " " * self.column + "^" * self.width if self.width else ""

    def to_text(self, indent: str = "") -> list[str]:
        """Return numbered lines. The marked line has an arrow, and carets in the line below.

        >>> print("\\n".join(Excerpt(4, ("y = x + 1", "n = y.item()"), 5, 4, 8).to_text()))
                4 |  y = x + 1
         ->     5 |  n = y.item()
                         ^^^^^^^^
        """
        out = []
        for number, line in enumerate(self.lines, self.first):
            arrow = "->" if number == self.marked else "  "
            out.append(f"{indent} {arrow} {number:5} |  {line}".rstrip())
            if number == self.marked and self.width:
                out.append(f"{indent}{'':13}{self.marks}")
        return out


def excerpt(file: str, line: int, position: Position | None = None, around: int = 2) -> Excerpt:
    """Return a line of a file with ``around`` lines on either side. The contents of linecache do not change."""
    texts = _lines(file)
    if not 1 <= line <= len(texts):
        return Excerpt(line, (), line)
    first, last = _bounds(texts, line, around)
    chosen = [texts[i - 1].rstrip() for i in range(first, last + 1)]
    while chosen and not chosen[-1] and last > line:
        last -= 1
        chosen.pop()
    while chosen and not chosen[0] and first < line:
        first += 1
        chosen.pop(0)
    margin = min((len(t) - len(t.lstrip()) for t in chosen if t.strip()), default=0)
    column, width = _marked(texts[line - 1].rstrip("\r\n"), line, position)
    expanded = tuple(t[margin:] for t in chosen)
    return Excerpt(first, expanded, line, max(column - margin, 0) if width else 0, width)


def _bounds(texts: list[str], line: int, around: int) -> tuple[int, int]:
    """Return the first and last line of an excerpt, which does not leave the function that contains the line."""

    def indent(number: int) -> int:
        text = texts[number - 1]
        return len(text) - len(text.lstrip())

    def is_head(number: int) -> bool:
        return texts[number - 1].lstrip().startswith(("def ", "async def ")) and indent(number) < indent(line)

    head = next((n for n in range(line, 0, -1) if is_head(n)), None)
    first, last = max(1, line - around, head or 1), line
    while last < min(len(texts), line + around):
        if head is not None and texts[last].strip() and indent(last + 1) <= indent(head):
            break
        last += 1
    return first, last


def _marked(text: str, line: int, position: Position | None) -> tuple[int, int]:
    """Return the column and width of the marks; (0, 0) if the whole line is marked or the position is unknown."""
    if position is None:
        return 0, 0
    end_line, start, end = position
    raw = text.encode("utf-8", "replace")
    begin = len(raw[:start].decode("utf-8", "replace"))
    stop = len(raw[:end].decode("utf-8", "replace")) if end_line == line else len(text.rstrip())
    bare = text.strip()
    whole = begin <= len(text) - len(text.lstrip()) and stop >= len(text.rstrip())
    return (0, 0) if stop <= begin or not bare or whole else (begin, stop - begin)


def _lines(file: str) -> list[str]:
    known = file in linecache.cache
    lines = linecache.getlines(file)
    if not known:
        linecache.cache.pop(file, None)
    return lines


def short(file: str) -> str:
    """Return a path for display, relative to site-packages or to the current folder if one of them contains it."""
    for folder in sorted(sys.path, key=len, reverse=True):
        if (
            folder
            and os.path.basename(folder) in ("site-packages", "dist-packages")
            and file.startswith(folder + os.sep)
        ):
            return file[len(folder) + 1 :]
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file
