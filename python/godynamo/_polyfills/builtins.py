"""builtins: methods of text that read a whole iterator before they begin."""

from __future__ import annotations

from typing import Any

from ._base import DECLINE, computed, stands_for

__godynamo_polyfill__ = "module"


@computed
def joined(separator: Any, items: Any) -> Any:
    """The join itself."""
    return separator.join(items)


@stands_for(str.join, bytes.join, fold=True)
def join(self: Any, iterable: Any, /) -> Any:
    if not isinstance(self, (str, bytes)):
        return DECLINE
    try:
        items = tuple(iter(iterable))  # the iterator is asked for its length
    except TypeError:  # which C words in another way
        return DECLINE
    return joined(self, items)
