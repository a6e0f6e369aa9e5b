"""Stand-ins for builtins: methods of str and bytes that read a whole iterator before they start."""

from __future__ import annotations

from typing import Any

from ._base import DECLINE, computed, stands_for

__godynamo_polyfill__ = "module"


@computed
def joined(separator: Any, items: Any) -> Any:
    """Return the result of ``separator.join(items)``."""
    return separator.join(items)


@stands_for(str.join, bytes.join, fold=True)
def join(self: Any, iterable: Any, /) -> Any:
    if not isinstance(self, (str, bytes)):
        return DECLINE
    try:
        items = tuple(iter(iterable))  # as in C, this calls the iterator's __length_hint__
    except TypeError:  # the C code's exception has another text
        return DECLINE
    return joined(self, items)
