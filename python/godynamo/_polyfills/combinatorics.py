"""Stand-ins for itertools: product, permutations and combinations. CPython computes the positions of the items."""

from __future__ import annotations

import itertools
from typing import Any

from ._base import DECLINE, END, StandIn, computed, stands_for

__godynamo_polyfill__ = "module"

MOST = 20_000  # maximum number of result tuples (rows) worth unrolling


@computed
def positions(kind: str, sizes: tuple[int, ...], r: int) -> Any:
    """Return for each result tuple the positions of its items in the pools; None if there are more than MOST tuples."""
    arguments = [range(n) for n in sizes]
    rows = itertools.product(*arguments) if kind == "product" else getattr(itertools, kind)(*arguments, r)
    known = tuple(itertools.islice(rows, MOST + 1))
    return known if len(known) <= MOST else None


class rows(StandIn):
    """An iterator over result tuples. A tuple's i-th item is at a known position in pools[i], or in the only pool."""

    def __init__(self, pools: Any, places: Any, arguments: Any) -> None:
        self.pools = pools
        self.places = places
        self.arguments = arguments
        self.index = 0

    def _next(self) -> Any:
        if self.index >= len(self.places):
            return END
        place = self.places[self.index]
        self.index += 1
        row = []
        for i in range(len(place)):
            row.append(self.pools[i % len(self.pools)][place[i]])
        return tuple(row)

    def _escape(self) -> Any:
        return (_made, self.__real__, self.pools, self.arguments, self.index)


def _made(kind: Any, pools: Any, arguments: Any, index: int) -> Any:
    made = kind(*pools, *arguments)
    for _ in range(index):
        if next(made, END) is END:
            break
    return made


class product(rows):
    __real__ = itertools.product


class permutations(rows):
    __real__ = itertools.permutations


class combinations(rows):
    __real__ = itertools.combinations


class combinations_with_replacement(rows):
    __real__ = itertools.combinations_with_replacement


@stands_for(itertools.product)
def product_of(*iterables: Any, repeat: Any = 1) -> Any:
    if not isinstance(repeat, int) or repeat < 0:
        return DECLINE
    pools: list[tuple[Any, ...]] = []
    if repeat > 0:
        for iterable in iterables:
            pools.append(tuple(iterable))
    pools = pools * repeat
    sizes = []
    for pool in pools:
        sizes.append(len(pool))
    places = positions("product", tuple(sizes), 0)
    if places is None:
        return DECLINE
    return product(tuple(pools), places, ())


@stands_for(itertools.permutations)
def permutations_of(iterable: Any, r: Any = None) -> Any:
    pool = tuple(iterable)
    if r is None:
        r = len(pool)
    if not isinstance(r, int) or r < 0:
        return DECLINE
    places = positions("permutations", (len(pool),), r)
    return DECLINE if places is None else permutations((pool,), places, (r,))


@stands_for(itertools.combinations)
def combinations_of(iterable: Any, r: Any) -> Any:
    if not isinstance(r, int) or r < 0:
        return DECLINE
    pool = tuple(iterable)
    places = positions("combinations", (len(pool),), r)
    return DECLINE if places is None else combinations((pool,), places, (r,))


@stands_for(itertools.combinations_with_replacement)
def combinations_with_replacement_of(iterable: Any, r: Any) -> Any:
    if not isinstance(r, int) or r < 0:
        return DECLINE
    pool = tuple(iterable)
    places = positions("combinations_with_replacement", (len(pool),), r)
    return DECLINE if places is None else combinations_with_replacement((pool,), places, (r,))
