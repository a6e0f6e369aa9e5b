"""What became of a function: explain(), guards(), cache_stats(), cache_entries()."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any, ParamSpec

from . import _modules, _runtime
from ._captured import Counts, FunctionShare, KeptOut, Share, Summary
from ._census import Census
from ._core import available, core

P = ParamSpec("P")
UserStack = tuple[tuple[str, str, int], ...]


@dataclass
class BreakReason:
    """One graph break: number and text as in docs/graph_breaks.md; user frames (function, file, line), innermost first."""

    code: str
    reason: str
    hint: str
    user_stack: UserStack

    @property
    def line(self) -> int | None:
        """Line of the user's code, None where there is no frame."""
        return self.user_stack[0][2] if self.user_stack else None

    @property
    def source(self) -> str:
        """That line's text, "" where its file cannot be read."""
        return _runtime.source_line(*self.user_stack[0][1:]) if self.user_stack else ""

    def __str__(self) -> str:
        return _runtime.break_text((self.code, self.reason, self.hint, self.user_stack))


@dataclass
class Recompile:
    """A code object that was translated again: why each entry there was did not serve, the failed guard with both values."""

    function: str
    file: str
    line: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.function} ({self.file}:{self.line})", *(f"  {reason}" for reason in self.reasons)])


@dataclass
class Explanation:
    """What one call of a function was translated to; ``str()`` of it is a report, ``to_dict()`` and ``to_json()`` give the same.

    >>> explanation = godynamo.explain(f)(torch.ones(2))  # doctest: +SKIP
    >>> explanation.torch_calls.share, explanation.bytecodes.outside  # doctest: +SKIP
    (0.75, 12)
    >>> explanation.kept_out[0].callee  # doctest: +SKIP
    'json.dumps'
    """

    result: Any  #: of the call
    graphs: list[str] = field(default_factory=list)  #: as FX prints them
    graph_count: int = 0
    op_count: int = 0  #: operations in all graphs
    break_reasons: list[BreakReason] = field(default_factory=list)
    guards: list[str] = field(default_factory=list)  #: guard text of each translation
    frame_count: int = 0  #: frames that were translated or given up
    captured_frames: int = 0  #: of these, those that run translated
    python_ops: dict[str, int] = field(default_factory=dict)  #: Python operations of the graphs, by callee
    #: instructions of the user's code that ran: symbolically, in a translation, or in CPython
    bytecodes: Share = field(default_factory=Share)
    #: of them, those that call torch: captured in a graph, or made by CPython; see _census.py for what counts
    torch_calls: Share = field(default_factory=Share)
    kept_out: list[KeptOut] = field(default_factory=list)  #: why CPython ran the rest, what cost most first
    functions: list[FunctionShare] = field(default_factory=list)  #: the same counts for each function of the user's
    recompiles: list[Recompile] = field(
        default_factory=list
    )  #: of this call; then the optimized callable's own, from before
    #: whether nothing was missed: not where a trace or profile function (a debugger, coverage) is at work
    counted: bool = False

    @property
    def graph_break_count(self) -> int:
        """Number of graph breaks."""
        return len(self.break_reasons)

    @property
    def captured_share(self) -> float:
        """Share of the frames that run translated, 1.0 where there was none."""
        return self.captured_frames / self.frame_count if self.frame_count else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain dicts, lists, strings and numbers, with the shares worked out; the result as its type's name."""
        out = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name != "result"}
        return {"result_type": type(self.result).__qualname__, "graph_break_count": self.graph_break_count, **out}

    def to_json(self, indent: int | None = 2) -> str:
        """to_dict() as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def _repr_html_(self) -> str:
        """Show the report in a notebook: the reasons as a table, the rest as text."""
        rows = "".join(
            f"<tr><td>{r.torch_calls}</td><td>{r.bytecodes}</td><td>{r.count}</td><td><code>{escape(r.callee)}</code></td>"
            f"<td>{escape(r.code)} {escape(r.reason)}</td><td>{escape(r.hint)}</td>"
            f"<td>{escape(r.file)}:{r.line}<br><code>{escape(_runtime.source_line(r.file, r.line))}</code></td></tr>"
            for r in self.kept_out
        )
        heads = "".join(
            f"<th>{h}</th>" for h in ("torch calls", "bytecodes", "times", "callee", "reason", "hint", "where")
        )
        table = f"<table><tr>{heads}</tr>{rows}</table>" if rows else ""
        return (
            f"<p><b>{self.graph_count}</b> graphs, <b>{self.graph_break_count}</b> breaks, <b>{self.op_count}</b> operations; "
            f"torch calls captured: <b>{self.torch_calls}</b>, bytecodes: <b>{self.bytecodes}</b></p>{table}"
            f"<details><summary>all of it</summary><pre>{escape(str(self))}</pre></details>"
        )

    def __str__(self) -> str:
        lines = [
            f"Graph count: {self.graph_count}",
            f"Graph break count: {self.graph_break_count}",
            f"Op count: {self.op_count}",
            f"Captured frames: {self.captured_frames} of {self.frame_count}",
            f"Captured torch calls: {self.torch_calls}",
            f"Captured bytecodes: {self.bytecodes}",
        ]
        if not self.counted:
            lines.append(
                "These two were not counted in full: a trace or profile function (a debugger, coverage) is at work."
            )
        lines += [f"Python call {callee}: {count}" for callee, count in self.python_ops.items()]
        lines += _table("Kept out", self.kept_out)
        for i, reason in enumerate(self.break_reasons, 1):
            lines += [f"Break reason {i}:", *_indented(str(reason))]
        for i, recompile in enumerate(self.recompiles, 1):
            lines += [f"Recompile {i}:", *_indented(str(recompile))]
        for i, text in enumerate(self.guards, 1):
            lines += [f"Guards {i}:", f"  {text}"]
        for i, graph in enumerate(self.graphs, 1):
            lines += [f"Graph {i}:", *_indented(graph)]
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _table(title: str, rows: list[KeptOut]) -> list[str]:
    if not rows:
        return []
    lines = [f"{title} (torch calls, bytecodes, times):"]
    for r in rows:
        called = f"{r.callee} ({r.callee_file}:{r.callee_line})" if r.callee_file else r.callee
        lines.append(f"  {r.torch_calls:5} {r.bytecodes:6} {r.count:5}  {called}")
        lines.append(f"{'':21}{f'{r.code}: ' if r.code else ''}{r.reason}")
        source = _runtime.source_line(r.file, r.line)
        lines.append(f'{"":21}File "{r.file}", line {r.line}, in {r.function}' + (f": {source}" if source else ""))
    return lines


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {**out, "share": value.share} if isinstance(value, Share) else out
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return dict(value) if isinstance(value, dict) else value


def explain(fn: Callable[P, Any], /) -> Callable[P, Explanation]:
    """Return a callable that runs ``fn`` once, freshly translated, and says what became of it: see :class:`Explanation`.

    >>> print(godynamo.explain(f)(torch.randn(3)))  # doctest: +SKIP
    Graph count: 1
    ...

    ``fn`` may be optimized already: its own translations are left alone, a backend that is given whole graphs is not called but
    its graphs are made, and a graph break raises nothing. The run is slower than others: every instruction that CPython runs is
    counted. What ``fn`` raises is raised.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> Explanation:
        from ._optimize import optimize

        fresh = optimize(fn=fn, **_asked(fn))
        records: list[dict[str, Any]] = []
        lists = _runtime.recorders.lists
        lists.append(records)
        census = Census()
        try:
            with census:
                result = fresh(*args, **kwargs)
        finally:
            # Not remove(): that compares by value, and another explain's list may be equal.
            del lists[next(i for i, r in enumerate(lists) if r is records)]
        out = _summary(result, records, Summary(census, records).counts())
        if available and isinstance(fn, core.Callable):
            out.recompiles += [_recompile(c.code, c.failures) for c in _caches(fn) if c.failures]
        return out

    return run


def _as_it_is(gm: Any, _example_inputs: list[Any]) -> Any:
    """Stand in for a backend: what splits frames is the same with all that are given whole graphs."""
    return gm.forward


def _asked(fn: Any) -> dict[str, Any]:
    """What optimize() was told about a callable that is optimized already, as far as it decides what is captured."""
    options = getattr(getattr(fn, "root", None), "options", None)
    if options is None:
        return {"backend": "eager"}
    asked = {"python_ops": options.python_ops, "cache_size_limit": options.cache_size_limit, "dynamic": options.dynamic}
    return {**asked, "backend": "eager" if options.inline else _as_it_is}


def _recompile(code: Any, reasons: Any) -> Recompile:
    return Recompile(code.co_qualname, code.co_filename, code.co_firstlineno, tuple(reasons))


def _summary(result: Any, records: list[dict[str, Any]], counts: Counts) -> Explanation:
    out = Explanation(
        result,
        bytecodes=counts.bytecodes,
        torch_calls=counts.torch_calls,
        kept_out=counts.kept_out,
        functions=counts.functions,
        counted=counts.complete,
    )
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
        if record["failures"]:
            out.recompiles.append(_recompile(record["code"], record["failures"]))
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
