"""Records of this process, for users and tests: counters, transformed code, guard failures, times."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ._translator.identity_map import IdentityMap

V = TypeVar("V")


class CodeMap(IdentityMap[CodeType, V]):
    """A dict keyed by the identity of code objects, so that equal code objects of two functions have two entries."""


#: The counters are ``["frames"]["total"]``, ``["frames"]["ok"]``, ``["frames"]["later"]`` (first calls of lazy modules,
#: which the total does not include), ``["graph_break"][reason]``, ``["recompiles"][why]`` (why the newest entry did not
#: serve the call), ``["stats"]["calls_captured"]``, ``["stats"]["unique_graphs"]`` and others.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)

#: transformed code -> the user's code
orig_code_map: CodeMap[CodeType] = CodeMap()

#: the user's code -> why its entries did not serve, oldest first
guard_failures: CodeMap[list[str]] = CodeMap()

#: phase -> number, sum and maximum of its durations. Single durations are not kept, since a process may run for days.
_phase_seconds: dict[str, tuple[int, float, float]] = {}


def record_time(phase: str, seconds: float) -> None:
    """Add one duration to a phase ("backend", "graph_module", ...)."""
    calls, total, longest = _phase_seconds.get(phase, (0, 0.0, 0.0))
    _phase_seconds[phase] = (calls + 1, total + seconds, max(longest, seconds))


def phase_seconds(phase: str) -> float:
    """Return the total seconds of a phase ("backend", "graph_module", ...) so far."""
    return _phase_seconds.get(phase, (0, 0.0, 0.0))[1]


@overload
def compile_times(repr: Literal["str"] = "str", aggregate: bool = False) -> str: ...
@overload
def compile_times(repr: Literal["csv"], aggregate: bool = False) -> tuple[list[str], list[str]]: ...
def compile_times(repr: str = "str", aggregate: bool = False) -> str | tuple[list[str], list[str]]:
    """Return the seconds spent translating so far, by phase. "translate" includes "graph_module" and "backend".

    repr: with "str", return a table with calls, sum and longest; with "csv", return (phases, values), where each value
    is "calls;sum;longest". aggregate: return only the sums. Raises ValueError for another repr.
    """
    phases = sorted(_phase_seconds.items())
    if repr == "csv":
        values = [
            f"{total:.4f}" if aggregate else f"{n};{total:.4f};{longest:.4f}" for _, (n, total, longest) in phases
        ]
        return [phase for phase, _ in phases], values
    if repr != "str":
        raise ValueError(f"compile_times(repr=...) is 'str' or 'csv', not {repr!r}")
    if aggregate:
        return "\n".join([f"{'phase':<16}{'sum s':>12}", *(f"{p:<16}{total:>12.4f}" for p, (_, total, _) in phases)])
    rows = [f"{'phase':<16}{'calls':>8}{'sum s':>12}{'longest s':>12}"]
    for phase, (calls, total, longest) in phases:
        rows.append(f"{phase:<16}{calls:>8}{total:>12.4f}{longest:>12.4f}")
    return "\n".join(rows)


@dataclass(frozen=True)
class CompilationMetrics:
    """One translation, with torch's field names."""

    co_name: str
    co_filename: str
    co_firstlineno: int
    cache_size: int  #: number of earlier entries
    graph_count: int
    graph_op_count: int
    entire_frame_compile_time_s: float
    fail_reason: str | None  #: why CPython runs the frame; None if it was translated
    recompile_reason: str | None  #: the guards that failed, one per line


#: the last translations
_metrics: deque[CompilationMetrics] = deque(maxlen=64)


def record_compilation(code: CodeType, info: Mapping[str, Any]) -> None:
    """Add a record of runtime.translated(). ``code`` is the user's code object."""
    record_time("translate", info["seconds"])
    entry = info.get("info") or {}
    _metrics.append(
        CompilationMetrics(
            co_name=code.co_name,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            cache_size=info["entries"],
            graph_count=entry.get("graphs", 0),
            graph_op_count=entry.get("ops", 0),
            entire_frame_compile_time_s=info["seconds"],
            fail_reason=info["reason"] or None,
            recompile_reason="\n".join(info.get("failures") or ()) or None,
        )
    )


def get_compilation_metrics() -> list[CompilationMetrics]:
    """Return the last translations, oldest first: up to 64, or the number set by set_compilation_metrics_limit()."""
    return list(_metrics)


def clear_compilation_metrics() -> None:
    """Drop the recorded translations."""
    _metrics.clear()


def set_compilation_metrics_limit(new_size: int) -> None:
    """Set how many translations are recorded. Raises ValueError for a negative number."""
    global _metrics
    if new_size < 0:
        raise ValueError(f"a number of translations is needed, not {new_size}")
    _metrics = deque(_metrics, maxlen=new_size)


def disable_cache_limit() -> contextlib.AbstractContextManager[Any]:
    """Return a context manager that removes the limit of entries: config.patch with the largest cache_size_limit."""
    from . import config

    return config.patch(cache_size_limit=2**31 - 1)


class CompileProfiler:
    """A backend that counts what one optimize() call captures, and reports it with graph breaks and recompiles.

    Breaks and recompiles are those of the whole process since the profiler was created.

    >>> import torch, godynamo
    >>> with godynamo.utils.CompileProfiler() as prof:
    ...     f = godynamo.optimize(lambda x: x + 1, backend=prof)
    ...     _ = f(torch.ones(2))
    ...     print(prof.report())
    graphs: 1, operations: 1
    no graph breaks, no recompiles
    """

    __godynamo_backend__ = True

    def __init__(self) -> None:
        self.frame_count = 0  #: graphs received
        self.op_count = 0  #: calls in the graphs
        self._breaks = Counter(counters["graph_break"])
        self._failures = {code: len(rows) for code, rows in guard_failures.items()}

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        """Count one graph and return its forward unchanged."""
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward

    def __enter__(self) -> CompileProfiler:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_metrics(self) -> dict[str, Any]:
        """Return a dict: graphs, operations, graph_break (count by reason), guard_failures (reasons by function)."""
        return {
            "graphs": self.frame_count,
            "operations": self.op_count,
            "graph_break": dict(counters["graph_break"] - self._breaks),
            "guard_failures": {
                f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})": new
                for code, rows in guard_failures.items()
                if (new := rows[self._failures.get(code, 0) :])
            },
        }

    def report(self) -> str:
        """Return the metrics as text."""
        m = self.get_metrics()
        lines = [f"graphs: {m['graphs']}, operations: {m['operations']}"]
        lines += [f"break, {n} times: {reason}" for reason, n in m["graph_break"].items()]
        lines += [f"recompiled: {where}: {reason}" for where, rows in m["guard_failures"].items() for reason in rows]
        return "\n".join(lines if len(lines) > 1 else [*lines, "no graph breaks, no recompiles"])


def clear() -> None:
    """Clear all records, as ``godynamo.reset()`` does."""
    counters.clear()
    for table in (orig_code_map, guard_failures):
        table.clear()
    _phase_seconds.clear()
    _metrics.clear()


if TYPE_CHECKING:
    from .testing import same as same  # torch has this function in its module utils
else:

    def __getattr__(name: str) -> Any:
        if name == "same":
            from .testing import same

            return same
        raise AttributeError(f"module 'godynamo.utils' has no attribute {name!r}")
