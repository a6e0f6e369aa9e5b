"""A dict with weak keys that are compared by identity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityMap(MutableMapping[K, V], Generic[K, V]):
    """A dict whose keys are compared by identity, not equality. The entry of an object disappears when the object dies.

    A ``WeakKeyDictionary`` would not do: the core would consider its weak-reference callbacks to be user code. The core
    ignores the callbacks of this module (``gd_watched`` in ``core/guards/weak.c``).
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[K], V]] = {}

    def __getitem__(self, obj: K) -> V:
        """Return the value of exactly this object. Raises KeyError if it has none."""
        row = self._rows.get(id(obj))
        if row is None or row[0]() is not obj:
            raise KeyError(obj)
        return row[1]

    def __setitem__(self, obj: K, value: V) -> None:
        """Set the value of an object. Raises TypeError for objects that cannot be weakly referenced."""
        key, rows = id(obj), self._rows

        def drop(ref: weakref.ref[K]) -> None:
            row = rows.get(key)
            if row is not None and row[0] is ref:
                del rows[key]

        rows[key] = (weakref.ref(obj, drop), value)

    def __delitem__(self, obj: K) -> None:
        """Drop an object's value."""
        self[obj]
        del self._rows[id(obj)]

    def __iter__(self) -> Iterator[K]:
        """Iterate over the live objects."""
        for ref, _ in list(self._rows.values()):
            obj = ref()
            if obj is not None:
                yield obj

    def __len__(self) -> int:
        """Count the objects."""
        return len(self._rows)
