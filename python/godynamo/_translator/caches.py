"""Looks up the result that a call of a function wrapped by functools.lru_cache would find, without a visible effect."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

from .. import _C

Wrapper = functools._lru_cache_wrapper

#: The number of objects that the wrapper's tp_traverse visits last: the cache, the function, the mark of keywords and
#: three others (3.11's _functoolsmodule.c).
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


def _mark() -> Any:
    """Return the object that stands before the keywords in a key, or None if keys are not as expected."""

    @functools.cache
    def sample(*args: Any, **kwargs: Any) -> None: ...

    sample(1, a=2)
    found = _cache_of(sample)
    key = next(iter(found[0])) if found is not None else ()
    return key[1] if type(key) is tuple and len(key) == 4 and (key[0], *key[2:]) == (1, "a", 2) else None


def _reads_links() -> bool:
    """Return whether link_holds can read the links of a cache of limited size."""

    @functools.lru_cache(2)
    def sample(number: int) -> Any:
        return object()

    results, found = [sample(1), sample(2)], _cache_of(sample)
    links = list(found[0].values()) if found is not None else []
    return [_C.link_holds(link, result) for link in links for result in results] == [True, False, False, True]


_MARK, _LINKS_ARE_READ = _mark(), _reads_links()


def _key(held: Held, names: tuple[str, ...]) -> Any:
    """Return the key under which a cache finds the call. The last arguments are passed by the names."""
    if names:
        args = arguments(held)
        given = len(args) - len(names)
        named = (part for pair in zip(names, args[given:], strict=True) for part in pair)
        return (*args[:given], _MARK, *named)
    return held[0] if len(held) == 1 and type(held[0]) in (int, str) else arguments(held)


class Finds:
    """A guard predicate: the call of a wrapper with these arguments finds the same in its cache as when this was made.

    Translations on disk contain the call and what it finds (_stored/objects). ``wrapper`` is a weak reference.
    """

    __slots__ = ("_same", "args", "hit", "names", "value", "wrapper")

    def __init__(
        self,
        wrapper: Any,
        args: Held,
        names: tuple[str, ...],
        hit: bool,
        value: Any,
        same: Callable[[Any], bool],
    ) -> None:
        self.wrapper, self.args, self.names, self._same = weakref.ref(wrapper), args, names, same
        self.hit, self.value = hit, value

    def __call__(self, wrapper: Any) -> bool:
        return self._same(wrapper)


def peek(
    wrapper: Any, args: tuple[Any, ...], kept: tuple[bool, ...], names: tuple[str, ...]
) -> tuple[bool, Any, Finds, _C.AheadCall | None] | None:
    """Look up the call of a wrapper; the last ``len(names)`` arguments are passed by these names.

    Returns whether the call is a hit, its result, the guard predicate for both, and what a translation calls in place
    of the wrapper, if :func:`run_ahead` has made the call and the program has not. ``kept`` says which arguments are
    plain constants or held by the translation; the others hash and compare by identity, and are held by weak
    references. Returns None if the cache cannot be read. This counts neither a hit nor a miss.
    """
    if type(wrapper) is not Wrapper or wrapper.cache_parameters()["typed"] or (names and _MARK is None):
        return None
    found = _cache_of(wrapper)
    if found is None or (found[1] and not _LINKS_ARE_READ):
        return None
    try:
        held = tuple(arg if known else weakref.ref(arg) for arg, known in zip(args, kept, strict=True))
    except TypeError:  # an object without weak references
        return None
    hit, value, same = _found(*found, held, names)
    return hit, value, Finds(wrapper, held, names, hit, value, same), _repeated(wrapper, held, names)


def _found(
    cache: dict[Any, Any], links: list[Any], held: Held, names: tuple[str, ...]
) -> tuple[bool, Any, Callable[[Any], bool]]:
    key = _key(held, names)
    kept = (key,) if all(type(arg) is not weakref.ref for arg in held) else ()

    def again() -> Any:
        return kept[0] if kept else _key(held, names)

    if key not in cache:
        return False, None, lambda _: again() not in cache
    value = cache[key]
    if not links:
        return True, value, lambda _: cache.get(again(), cache) is value
    own = next(k for k, found in cache.items() if found is value)  # == would call methods of other keys
    result = next(links[i + 1] for i in range(0, len(links), 3) if links[i] is own)
    return True, result, lambda _: _C.link_holds(cache.get(again()), result)


#: The calls made while translating that no translation has repeated yet: (the wrapper's id, the key) -> AheadCall.
_ahead: dict[tuple[int, Any], _C.AheadCall] = {}


def _repeated(wrapper: Any, held: Held, names: tuple[str, ...]) -> _C.AheadCall | None:
    found = _ahead.get((id(wrapper), _key(held, names)))
    return None if found is None or found.begun or found.function is not wrapper else found


def run_ahead(wrapper: Any, args: tuple[Any, ...], names: tuple[str, ...]) -> bool:
    """Make a call that misses the cache, before the program makes it. Returns False if it raises.

    The function must have no side effects. The first translation that repeats the call does not count it again.
    """
    given = len(args) - len(names)
    try:
        wrapper(*args[:given], **dict(zip(names, args[given:], strict=True)))
    except Exception:
        return False
    for known in [key for key, call in _ahead.items() if call.begun]:
        del _ahead[known]
    _ahead[id(wrapper), _key(args, names)] = _C.AheadCall(wrapper)
    return True


__all__ = ["Finds", "Wrapper", "arguments", "peek", "run_ahead"]
