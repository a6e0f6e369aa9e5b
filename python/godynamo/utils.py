"""What happened in this process, for users and tests: counters, the map of transformed code, guard failures, times."""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator, MutableMapping
from types import CodeType
from typing import Generic, TypeVar

V = TypeVar("V")


class CodeMap(MutableMapping[CodeType, V], Generic[V]):
    """A dict keyed by code objects as objects: equal code of two functions stays apart, and dead code drops out."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[CodeType], V]] = {}

    def __getitem__(self, code: CodeType) -> V:
        """Value of this very code object; KeyError when it has none."""
        row = self._rows.get(id(code))
        if row is None or row[0]() is not code:
            raise KeyError(code)
        return row[1]

    def __setitem__(self, code: CodeType, value: V) -> None:
        """Set a value; it is dropped when the code object dies."""
        key, rows = id(code), self._rows

        def drop(ref: weakref.ref[CodeType]) -> None:
            row = rows.get(key)
            if row is not None and row[0] is ref:
                del rows[key]

        rows[key] = (weakref.ref(code, drop), value)

    def __delitem__(self, code: CodeType) -> None:
        """Drop this code object's value."""
        self[code]
        del self._rows[id(code)]

    def __iter__(self) -> Iterator[CodeType]:
        """Iterate over the code objects that are alive."""
        for ref, _ in list(self._rows.values()):
            code = ref()
            if code is not None:
                yield code

    def __len__(self) -> int:
        """Count the code objects."""
        return len(self._rows)


#: ``["frames"]["total"]``, ``["frames"]["ok"]``, ``["frames"]["later"]`` (first calls of lazy modules, not in the total),
#: ``["graph_break"][reason]``, ``["stats"]["calls_captured"]``,
#: ``["stats"]["unique_graphs"]``
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)

#: transformed code -> the user's
orig_code_map: CodeMap[CodeType] = CodeMap()

#: the user's code -> why its entries did not serve, oldest first
guard_failures: CodeMap[list[str]] = CodeMap()

#: phase -> calls, sum and longest of its durations: a process that translates for days keeps no more than this
_phase_seconds: dict[str, tuple[int, float, float]] = {}


def record_time(phase: str, seconds: float) -> None:
    """Add one duration to a phase ("backend", "graph_module", ...)."""
    calls, total, longest = _phase_seconds.get(phase, (0, 0.0, 0.0))
    _phase_seconds[phase] = (calls + 1, total + seconds, max(longest, seconds))


def compile_times() -> str:
    """A table of what translating cost so far, by phase: calls, sum and longest in seconds."""
    rows = [f"{'phase':<16}{'calls':>8}{'sum s':>12}{'longest s':>12}"]
    for phase, (calls, total, longest) in sorted(_phase_seconds.items()):
        rows.append(f"{phase:<16}{calls:>8}{total:>12.4f}{longest:>12.4f}")
    return "\n".join(rows)


def clear() -> None:
    """Forget it all; ``godynamo.reset()`` does."""
    counters.clear()
    for table in (orig_code_map, guard_failures):
        table.clear()
    _phase_seconds.clear()
