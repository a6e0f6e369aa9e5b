"""A usage error: one line on stderr, exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Problem(Exception):
    """What is wrong and the remedy, in one line."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean X, Y?`` for an unknown name, "" if none is near."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"; did you mean {', '.join(near)}?" if near else ""
