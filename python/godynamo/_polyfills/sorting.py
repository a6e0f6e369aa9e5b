"""Stand-in for list.sort on values with Python comparison methods: makes the same comparisons in the same order.

Follows Objects/listobject.c for fewer than 64 items: finds the initial run (count_run), then inserts the other items
with binary search (binarysort).
"""

from __future__ import annotations

import sys
from typing import Any

from ._base import DECLINE

__godynamo_polyfill__ = "module"


def _first_run(keys: Any, places: Any) -> int:
    """Make the run at the beginning of places ascending; return its length."""
    n, run = len(places), 2
    if keys[places[1]] < keys[places[0]]:
        while run < n and keys[places[run]] < keys[places[run - 1]]:
            run += 1
        places[:run] = places[:run][::-1]
    else:
        while run < n and not keys[places[run]] < keys[places[run - 1]]:
            run += 1
    return run


def _first_run_with_equals(keys: Any, places: Any) -> int:
    """Do the same as CPython 3.13 does, where a descending run may have equal items."""
    n, run = len(places), 1
    while run < n and not keys[places[run]] < keys[places[run - 1]]:
        run += 1
    if run == n:
        return run
    if run > 1:
        if keys[places[0]] < keys[places[run - 1]]:
            return run
        places[:run] = places[:run][::-1]
    run, equal = run + 1, 0
    while run < n:
        if keys[places[run]] < keys[places[run - 1]]:
            if equal:
                places[run - equal - 1 : run] = places[run - equal - 1 : run][::-1]
            equal = 0
        elif keys[places[run - 1]] < keys[places[run]]:
            break
        else:
            equal += 1
        run += 1
    if equal:
        places[run - equal - 1 : run] = places[run - equal - 1 : run][::-1]
    places[:run] = places[:run][::-1]
    while run < n and not keys[places[run]] < keys[places[run - 1]]:
        run += 1
    return run


first_run = _first_run_with_equals if sys.version_info >= (3, 13) else _first_run


def order(keys: Any, reverse: Any) -> Any:
    """Return the positions of the keys in sorted order. Declines 64 keys or more, for which list.sort merges runs."""
    n = len(keys)
    if n >= 64:
        return DECLINE
    places = list(range(n))
    if reverse:
        places.reverse()
    if n > 1:
        run = first_run(keys, places)
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
