"""Reads lines of the user's files. Each file is read once, and only while something is logged or traced.

The contents of ``linecache`` do not change, since they are visible to the user.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Sequence


@functools.lru_cache(maxsize=256)
def lines(file: str) -> Sequence[str]:
    """Return all lines of a file, or an empty sequence if the file cannot be read."""
    known = file in linecache.cache
    found = linecache.getlines(file)
    if not known:
        linecache.cache.pop(file, None)
    return found


def line(file: str, number: int | None) -> str:
    """Return one line without its indentation, "" if the file has no such line."""
    found = lines(file)
    return found[number - 1].strip() if number and 0 < number <= len(found) else ""


def expression(file: str, number: int, column: int, end_line: int, end_column: int) -> str:
    """Return the text at a position, in at most 80 characters, or the whole line if the columns are unknown."""
    found = lines(file)
    if column < 0 or end_column < 0 or not 0 < number <= end_line <= len(found):
        return line(file, number)
    raw = [text.encode() for text in found[number - 1 : end_line]]
    raw[-1] = raw[-1][:end_column]
    raw[0] = raw[0][column:]
    text = " ".join(b" ".join(raw).decode(errors="replace").split())
    return text if len(text) <= 80 else text[:77] + "..."


def marked(file: str, number: int, column: int, end_line: int, end_column: int) -> str:
    """Return a line with marks below it. The marks' columns count bytes of UTF-8, as positions in code objects do."""
    found = lines(file)
    if not 0 < number <= len(found):
        return ""
    text = found[number - 1].rstrip("\n")
    shown = text.lstrip()
    if column < 0 or end_column < 0:
        return shown
    raw = text.encode()
    start = len(raw[:column].decode(errors="replace"))
    end = len(raw[:end_column].decode(errors="replace")) if end_line == number else len(text)
    indent = len(text) - len(shown)
    return f"{shown}\n{' ' * (start - indent)}{'~' * max(end - start, 1)}"
