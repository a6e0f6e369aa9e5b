"""Stand-ins for math: functions of iterables. CPython computes the other functions if their arguments are known."""

from __future__ import annotations

import math
from typing import Any

from ._base import computed, stands_for

__godynamo_polyfill__ = "module"


@computed
def summed(items: Any) -> Any:
    """Return the result of math.fsum."""
    return math.fsum(items)


@stands_for(math.fsum, fold=True)
def fsum(seq: Any, /) -> Any:
    return summed(tuple([v for v in seq]))  # like fsum, a comprehension does not call __length_hint__


@stands_for(math.prod, fold=True)
def prod(iterable: Any, /, *, start: Any = 1) -> Any:
    result = start
    for item in iterable:
        result = result * item
    return result
