"""Stand-in for list.sort on values with Python comparison methods: makes the same comparisons in the same order.

Follows Objects/listobject.c for fewer than 64 items: finds the initial run (count_run), then inserts the other items
with binary search (binarysort).
"""

from __future__ import annotations

from typing import Any

from ._base import DECLINE

__godynamo_polyfill__ = "module"


def order(keys: Any, reverse: Any) -> Any:
    """Return the positions of the keys in sorted order. Declines 64 keys or more, for which list.sort merges runs."""
    n = len(keys)
    if n >= 64:
        return DECLINE
    places = list(range(n))
    if reverse:
        places.reverse()
    if n > 1:
        run = 2
        if keys[places[1]] < keys[places[0]]:
            while run < n and keys[places[run]] < keys[places[run - 1]]:
                run += 1
            places = places[:run][::-1] + places[run:]
        else:
            while run < n and not keys[places[run]] < keys[places[run - 1]]:
                run += 1
        for start in range(run, n):
            pivot = places[start]
            low, high = 0, start
            while low < high:
                middle = low + ((high - low) >> 1)
                if keys[pivot] < keys[places[middle]]:
                    high = middle
                else:
                    low = middle + 1
            places.insert(low, places.pop(start))
    if reverse:
        places.reverse()
    return places
