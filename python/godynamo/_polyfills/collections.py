"""Stand-ins for collections: the function with which Counter counts."""

from __future__ import annotations

import _collections  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any

from ._base import stands_for


@stands_for(_collections._count_elements)
def count_elements(mapping: Any, iterable: Iterable[Any], /) -> None:
    """Count the elements of the iterable into the mapping."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1
