"""The error of the person at the keyboard: one line on stderr, exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Problem(Exception):
    """What is wrong and what to do, in one line."""


def nearest(name: str, names: Iterable[str]) -> str:
    """``; did you mean X, Y?`` for a name that is not among those there are, "" where none is near."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"; did you mean {', '.join(near)}?" if near else ""
