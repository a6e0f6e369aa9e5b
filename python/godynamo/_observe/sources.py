"""Lines of the user's files, read once each and only while something is logged or traced.

The user's ``linecache`` does not change, since its contents are visible to the user.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Sequence


@functools.lru_cache(maxsize=256)
def lines(file: str) -> Sequence[str]:
    """Return all lines of a file; none if it cannot be read."""
    known = file in linecache.cache
    found = linecache.getlines(file)
    if not known:
        linecache.cache.pop(file, None)
    return found


def line(file: str, number: int | None) -> str:
    """Return one line, without indentation; "" if there is none."""
    found = lines(file)
    return found[number - 1].strip() if number and 0 < number <= len(found) else ""


def marked(file: str, number: int, column: int, end_line: int, end_column: int) -> str:
    """Return a line, with marks below it from one column to another (bytes of UTF-8, as in code objects)."""
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
