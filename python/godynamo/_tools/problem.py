"""Usage errors, which the tool reports in one line on stderr, with exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Problem(Exception):
    """A usage error. The text says in one line what is wrong and what to do."""


def need_core() -> None:
    """Raise Problem if nothing can be translated in this process."""
    from .. import _core

    if not _core.available:
        raise Problem(f"nothing can be translated: {_core.refusal}")


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean X, Y?`` for an unknown name, "" if no name is near."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"; did you mean {', '.join(near)}?" if near else ""
