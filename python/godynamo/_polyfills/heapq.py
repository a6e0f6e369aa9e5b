"""Stand-ins for heapq: the functions of heapq.py, which the C module normally replaces.

They decline if their exception would have another text than that of the C code.
"""

from __future__ import annotations

import _heapq
from typing import Any

from ._base import DECLINE, python_version, stands_for

__godynamo_polyfill__ = "module"

_source = python_version("heapq", "_heapq")
_heappush, _heappushpop = _source["heappush"], _source["heappushpop"]
_heappop, _heapreplace, _heapify = _source["heappop"], _source["heapreplace"], _source["heapify"]
_pop_max, _replace_max, _heapify_max = _source["_heappop_max"], _source["_heapreplace_max"], _source["_heapify_max"]


@stands_for(_heapq.heappush)
def heappush(heap: Any, item: Any, /) -> Any:
    return _heappush(heap, item) if isinstance(heap, list) else DECLINE


@stands_for(_heapq.heappushpop)
def heappushpop(heap: Any, item: Any, /) -> Any:
    return _heappushpop(heap, item) if isinstance(heap, list) else DECLINE


@stands_for(_heapq.heappop)
def heappop(heap: Any, /) -> Any:
    return _heappop(heap) if isinstance(heap, list) and len(heap) > 0 else DECLINE


@stands_for(_heapq.heapreplace)
def heapreplace(heap: Any, item: Any, /) -> Any:
    return _heapreplace(heap, item) if isinstance(heap, list) and len(heap) > 0 else DECLINE


@stands_for(_heapq.heapify)
def heapify(heap: Any, /) -> Any:
    return _heapify(heap) if isinstance(heap, list) else DECLINE


def _real(name: str) -> Any:
    """Return a function for heaps with the largest item first, which was private until Python 3.14."""
    return getattr(_heapq, name, None) or getattr(_heapq, "_" + name)


@stands_for(_real("heappop_max"))
def heappop_max(heap: Any, /) -> Any:
    return _pop_max(heap) if isinstance(heap, list) and len(heap) > 0 else DECLINE


@stands_for(_real("heapreplace_max"))
def heapreplace_max(heap: Any, item: Any, /) -> Any:
    return _replace_max(heap, item) if isinstance(heap, list) and len(heap) > 0 else DECLINE


@stands_for(_real("heapify_max"))
def heapify_max(heap: Any, /) -> Any:
    return _heapify_max(heap) if isinstance(heap, list) else DECLINE


if hasattr(_heapq, "heappush_max"):  # since Python 3.14
    _push_max, _pushpop_max = _source["heappush_max"], _source["heappushpop_max"]

    @stands_for(_heapq.heappush_max)
    def heappush_max(heap: Any, item: Any, /) -> Any:
        return _push_max(heap, item) if isinstance(heap, list) else DECLINE

    @stands_for(_heapq.heappushpop_max)  # type: ignore[attr-defined]
    def heappushpop_max(heap: Any, item: Any, /) -> Any:
        return _pushpop_max(heap, item) if isinstance(heap, list) else DECLINE
