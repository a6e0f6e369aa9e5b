"""builtins: methods of text that read a whole iterator before they start."""

from __future__ import annotations

from typing import Any

from ._base import DECLINE, computed, stands_for

__godynamo_polyfill__ = "module"


@computed
def joined(separator: Any, items: Any) -> Any:
    """Return the result of join."""
    return separator.join(items)


@stands_for(str.join, bytes.join, fold=True)
def join(self: Any, iterable: Any, /) -> Any:
    if not isinstance(self, (str, bytes)):
        return DECLINE
    try:
        items = tuple(iter(iterable))  # calls the iterator's length hint
    except TypeError:  # C words the error differently
        return DECLINE
    return joined(self, items)
