"""Looks up the result that a call of a function wrapped by functools.lru_cache would find, without a visible effect."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

Wrapper = functools._lru_cache_wrapper

#: The number of objects that the wrapper's tp_traverse visits last: the cache, the function and four others (3.11's
#: _functoolsmodule.c).
_TAIL = 6


def _cache_of(wrapper: Any) -> tuple[dict[Any, Any], list[Any]] | None:
    """Return (the cache dict, a flat list of each link's key, result and type); None if the layout is unexpected."""
    parts = gc.get_referents(wrapper)
    if len(parts) < _TAIL + 1 or parts[1 - _TAIL] is not wrapper.__wrapped__ or type(parts[-_TAIL]) is not dict:
        return None
    cache, links = parts[-_TAIL], parts[1:-_TAIL]
    info = wrapper.cache_info()
    if len(cache) != info.currsize or len(links) != (3 * info.currsize if info.maxsize else 0):
        return None
    return cache, links


#: Arguments of a call: plain constants, and weak references to the objects that hash by identity.
Held = tuple[Any, ...]


def arguments(held: Held) -> tuple[Any, ...]:
    """Return the arguments; None stands for an object that is gone."""
    return tuple(arg() if type(arg) is weakref.ref else arg for arg in held)


def _key(held: Held) -> Any:
    return held[0] if len(held) == 1 and type(held[0]) in (int, str) else arguments(held)


class Finds:
    """A guard predicate: the call of a wrapper with these arguments finds the same in its cache as when this was made.

    Translations on disk contain the call and what it finds (_stored/objects). ``wrapper`` is a weak reference.
    """

    __slots__ = ("_same", "args", "hit", "value", "wrapper")

    def __init__(self, wrapper: Any, args: Held, hit: bool, value: Any, same: Callable[[Any], bool]) -> None:
        self.wrapper, self.args, self.hit, self.value, self._same = weakref.ref(wrapper), args, hit, value, same

    def __call__(self, wrapper: Any) -> bool:
        return self._same(wrapper)


def peek(wrapper: Any, args: tuple[Any, ...], plain: tuple[bool, ...]) -> tuple[bool, Any, Finds] | None:
    """Return (whether a call with these arguments is a hit, its result, the guard predicate for both).

    ``plain`` says which arguments are plain constants; the others hash and compare by identity, and are held by weak
    references. Returns None if the cache cannot be read, or if a hit could be recognized only by a reference to the
    arguments: the links of a cache of limited size refer to them. This counts neither a hit nor a miss.
    """
    if type(wrapper) is not Wrapper or wrapper.cache_parameters()["typed"]:
        return None
    found = _cache_of(wrapper)
    if found is None:
        return None
    try:
        held = tuple(arg if known else weakref.ref(arg) for arg, known in zip(args, plain, strict=True))
    except TypeError:  # an object without weak references
        return None
    if found[1] and not all(plain) and _key(held) in found[0]:
        return None
    hit, value, same = _found(wrapper, *found, held)
    return hit, value, Finds(wrapper, held, hit, value, same)


def _found(
    wrapper: Any, cache: dict[Any, Any], links: list[Any], held: Held
) -> tuple[bool, Any, Callable[[Any], bool]]:
    key = _key(held)
    if key not in cache:
        return False, None, lambda _: _key(held) not in cache
    value = cache[key]
    if not links:
        return True, value, lambda _: cache.get(_key(held), cache) is value
    link = value
    own = next(k for k, found in cache.items() if found is value)  # == would call methods of other keys
    result = next(links[i + 1] for i in range(0, len(links), 3) if links[i] is own)

    def same(other: Any) -> bool:
        # A full cache reuses the link of the oldest result for a new result, but then the number of misses changes.
        if cache.get(key) is not link:
            return False
        info = other.cache_info()
        return bool(info.currsize < info.maxsize or info.misses == misses)

    misses = wrapper.cache_info().misses
    return True, result, same


__all__ = ["Finds", "Wrapper", "arguments", "peek"]
