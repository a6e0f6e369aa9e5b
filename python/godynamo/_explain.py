"""What became of a function: explain(), guards(), cache_stats(), cache_entries()."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import _modules
from ._core import available, core


@dataclass
class BreakReason:
    """One graph break: number and text as in docs/graph_breaks.md; user frames (function, file, line), innermost first."""

    code: str
    reason: str
    hint: str
    user_stack: tuple[tuple[str, str, int], ...]

    @property
    def line(self) -> int | None:
        """Line of the user's code, None where there is no frame."""
        return self.user_stack[0][2] if self.user_stack else None

    def __str__(self) -> str:
        from ._runtime import break_text

        return break_text((self.code, self.reason, self.hint, self.user_stack))


@dataclass
class Explanation:
    """What one call of a function was translated to; ``str()`` of it is a report."""

    result: Any  #: of the call
    graphs: list[str] = field(default_factory=list)  #: as FX prints them
    graph_count: int = 0
    op_count: int = 0
    break_reasons: list[BreakReason] = field(default_factory=list)
    guards: list[str] = field(default_factory=list)  #: guard text of each translation
    frame_count: int = 0  #: frames that were translated or given up
    captured_frames: int = 0  #: of these, those that run translated
    python_ops: dict[str, int] = field(default_factory=dict)  #: Python operations of the graphs, by callee

    @property
    def graph_break_count(self) -> int:
        """Number of graph breaks."""
        return len(self.break_reasons)

    @property
    def captured_share(self) -> float:
        """Share of the frames that run translated, 1.0 where there was none."""
        return self.captured_frames / self.frame_count if self.frame_count else 1.0

    def __str__(self) -> str:
        lines = [
            f"Graph count: {self.graph_count}",
            f"Graph break count: {self.graph_break_count}",
            f"Op count: {self.op_count}",
            f"Captured frames: {self.captured_frames} of {self.frame_count}",
        ]
        lines += [f"Python call {callee}: {count}" for callee, count in self.python_ops.items()]
        for i, reason in enumerate(self.break_reasons, 1):
            lines += [f"Break reason {i}:", *(f"  {line}" for line in str(reason).splitlines())]
        for i, text in enumerate(self.guards, 1):
            lines += [f"Guards {i}:", f"  {text}"]
        for i, graph in enumerate(self.graphs, 1):
            lines += [f"Graph {i}:", *(f"  {line}" for line in graph.splitlines())]
        return "\n".join(lines)


def explain(fn: Callable[..., Any], /) -> Callable[..., Explanation]:
    """Return a callable that runs ``fn`` once, freshly translated, and says what became of it.

    >>> print(godynamo.explain(f)(torch.randn(3)))  # doctest: +SKIP
    Graph count: 1
    ...

    ``fn`` may be optimized already: its own translations are left alone.
    """

    def run(*args: Any, **kwargs: Any) -> Explanation:
        from . import _runtime
        from ._optimize import optimize

        records: list[dict[str, Any]] = []
        lists = _runtime.recorders.lists
        lists.append(records)
        try:
            asked = getattr(getattr(fn, "root", None), "options", None)
            result = optimize(fn=fn, python_ops=getattr(asked, "python_ops", None))(*args, **kwargs)
        finally:
            # Not remove(): that compares by value, and another explain's list may be equal.
            del lists[next(i for i, r in enumerate(lists) if r is records)]
        return _summary(result, records)

    return run


def _summary(result: Any, records: list[dict[str, Any]]) -> Explanation:
    out = Explanation(result)
    for record in records:
        entry = record.get("info") or {}
        out.frame_count += 1
        out.captured_frames += record["status"] == "ok"
        out.graph_count += entry.get("graphs", 0)
        out.op_count += entry.get("ops", 0)
        if entry.get("graph") and entry.get("graphs", 0):
            out.graphs.append(entry["graph"])
        if entry.get("guards"):
            out.guards.append(entry["guards"])
        for callee, count in entry.get("python_ops", ()):
            out.python_ops[callee] = out.python_ops.get(callee, 0) + count
        for row in (*entry.get("breaks", ()), *record["breaks"]):
            out.break_reasons.append(BreakReason(*row))
    return out


def _caches(fn: Any) -> list[Any]:
    """The FrameCaches of an optimized callable: its own, its resume functions', those the hook made for it."""
    if not available:
        return []
    if _modules.is_module(fn) and _modules.original(fn) is not fn:
        fn = object.__getattribute__(fn, "_godynamo_call")
    if not isinstance(fn, core.Callable):
        raise TypeError(f"an optimized callable is needed, not {fn!r}")
    resumes = fn.root.resumes  # of the whole family: by (globals, place) the callable for the rest of a frame
    return [fn.cache, *(w.cache for w in resumes.values()), *fn.root.inner]


@dataclass
class GuardText:
    """Guards of one entry: an expression that Python can evaluate, and its parts with the lines that caused them."""

    text: str
    parts: list[tuple[str, tuple[str, int] | None]]
    hits: int
    valid: bool

    def __str__(self) -> str:
        lines = [self.text]
        for part, where in self.parts:
            lines.append(f"  {part}" + (f"  # {where[0]}:{where[1]}" if where else ""))
        return "\n".join(lines)


def guards(fn: Any) -> list[GuardText]:
    """The guards of an optimized callable's translations, its resume functions' included, most recently used first."""
    return [
        GuardText(
            " and ".join(e.parts),
            list(zip(e.parts, e.part_lines or (None,) * len(e.parts), strict=True)),
            e.hits,
            e.valid,
        )
        for e in cache_entries(fn)
    ]


def cache_entries(fn: Any) -> list[Any]:
    """The entries (GuardedCode) of an optimized callable and of its resume functions."""
    return [entry for cache in _caches(fn) for entry in cache.entries()]


def cache_stats(fn: Any) -> dict[str, int]:
    """Sum up an optimized callable and its resume functions: hits, misses, translations (entries that may still serve)."""
    total = {"hits": 0, "misses": 0, "translations": 0}
    for cache in _caches(fn):
        stats = cache.stats()
        total["hits"] += stats["hits"]
        total["misses"] += stats["misses"]
        total["translations"] += stats["entries"]
    return total
