"""Makes a program's summary, which is counted while the program runs and printed at its end."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .._called import runtime
from .._core import available, core, refusal
from .._observe import reasons


@dataclass
class FunctionSummary:
    """The counts of a user function: its translations, and the reasons for breaks, frames in CPython and recompiles."""

    function: str
    file: str
    line: int
    translations: int = 0
    graphs: int = 0
    ops: int = 0
    recompiles: int = 0
    library: bool = False  #: whether the function's file is in an installed package
    left: Counter[str] = field(default_factory=Counter)  #: reason why CPython runs the function's frames → count
    breaks: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)  #: (code, reason, file, line) → count
    failures: list[str] = field(default_factory=list)  #: the last reasons, at most five, why entries did not serve


class Recorder:
    """A context manager that receives every translation of the process, on all threads, and keeps only sums."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str, int], FunctionSummary] = {}
        self.hints: dict[str, str] = {}
        self.started = time.perf_counter()

    def __enter__(self) -> Recorder:
        runtime.listeners.append(self.translated)
        return self

    def __exit__(self, *_: object) -> None:
        runtime.listeners.remove(self.translated)

    def translated(self, info: dict[str, Any]) -> None:
        """Add one record of runtime.translated."""
        entry = info.get("info") or {}
        if entry.get("nothing_to_capture"):
            return  # CPython runs the frame, and nothing is lost
        frame = runtime.users_frame(info)
        key = frame.name, frame.file, frame.line
        row = self.functions.get(key)
        if row is None:
            row = self.functions[key] = FunctionSummary(*key, library=_is_library(frame.file))
        if info["status"] == "ok":
            row.translations += 1
            row.graphs += entry.get("graphs", 0)
            row.ops += entry.get("ops", 0)
        elif info["status"] == "skipped" and info["reason"]:
            row.left[info["reason"]] += 1
        for code_of_break, reason, hint, stack in (*entry.get("breaks", ()), *info["breaks"]):
            where = stack[0][1:] if stack else (row.file, row.line)
            row.breaks[code_of_break, reason, *where] += 1
            self.hints[code_of_break] = hint
        failures = info.get("failures") or ()
        if failures:
            row.recompiles += 1
            row.failures = [*row.failures, *(reasons.reason(f, frame).text() for f in failures[-5:])][-5:]

    def to_dict(self, exit_code: int) -> dict[str, Any]:
        """Return everything as plain data. ``seconds`` is the duration of the program, including translations."""
        rows = sorted(self.functions.values(), key=lambda r: (-r.ops, r.file, r.line))
        counters = core.counters()
        return {
            "version": 1,
            "exit_code": exit_code,
            "seconds": time.perf_counter() - self.started,
            "translations": sum(r.translations for r in rows),
            "graphs": sum(r.graphs for r in rows),
            "ops": sum(r.ops for r in rows),
            "breaks": sum(r.breaks.total() for r in rows),
            "recompiles": sum(r.recompiles for r in rows),
            "internal_errors": counters.get("internal_errors", 0),
            "limit_reached": counters.get("limit_reached", 0),
            "functions": [
                {
                    "function": r.function,
                    "file": r.file,
                    "line": r.line,
                    "translations": r.translations,
                    "graphs": r.graphs,
                    "ops": r.ops,
                    "recompiles": r.recompiles,
                    "library": r.library,
                    "left": [{"reason": reason, "count": n} for reason, n in r.left.most_common()],
                    "breaks": [
                        {
                            "code": code,
                            "reason": reason,
                            "hint": self.hints.get(code, ""),
                            "file": file,
                            "line": line,
                            "source": runtime.source_line(file, line),
                            "count": n,
                        }
                        for (code, reason, file, line), n in r.breaks.most_common()
                    ],
                    "failures": r.failures,
                }
                for r in rows
            ],
        }


_LIBRARIES = tuple(
    os.path.join(os.path.realpath(sysconfig.get_path(name)), "")
    for name in ("purelib", "platlib", "stdlib", "platstdlib")
)


def _is_library(file: str) -> bool:
    return file.startswith("<") or os.path.realpath(file).startswith(_LIBRARIES)


def _concerns(function: dict[str, Any]) -> bool:
    """Return whether the summary shows a function. It omits library functions and constructors without operations."""
    return bool(function["ops"]) or not (function["library"] or function["function"].endswith("__init__"))


def _merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge the rows of each break in a function that several functions have inlined; sort by frequency."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["code"], row["reason"], row["file"], row["line"]
        known = found.get(key)
        found[key] = {**row, "count": row["count"] + (known["count"] if known else 0)}
    return sorted(found.values(), key=lambda b: (-b["count"], b["file"], b["line"]))


def text(summary: dict[str, Any], most: int = 8) -> str:
    """Return the summary as text, with the ``most`` most frequent breaks. It omits some functions, see _concerns."""
    s = summary
    shown = [f for f in s["functions"] if _concerns(f)]
    breaks = _merged(b for f in shown for b in f["breaks"])
    recompiles = sum(f["recompiles"] for f in shown)
    lines = [
        f"godynamo: {s['graphs']} graphs with {s['ops']} operations, {sum(b['count'] for b in breaks)} graph breaks, "
        f"{recompiles} recompiles in {len(shown)} functions; {s['seconds']:.1f} s"
    ]
    for b in breaks[:most]:
        lines.append(f"  {b['count']:5} x {b['code']} {b['reason']}")
        lines.append(f'          File "{b["file"]}", line {b["line"]}' + (f": {b['source']}" if b["source"] else ""))
        if b["hint"]:
            lines.append(f"          {b['hint']}")
    if len(breaks) > most:
        lines.append(f"  and {len(breaks) - most} other breaks: --json FILE has them all")
    often = sorted((f for f in shown if f["recompiles"] and f["failures"]), key=lambda f: -f["recompiles"])
    for f in often[:most]:
        lines.append(f"  {f['function']} ({f['file']}:{f['line']}) was translated {f['recompiles'] + 1} times; last:")
        lines.append(f"      {f['failures'][-1]}")
    if len(often) > most:
        lines.append(f"  and {len(often) - most} other functions translated again: --json FILE has them all")
    if len(shown) < len(s["functions"]):
        lines.append(
            f"  {len(s['functions']) - len(shown)} other functions have no operations: libraries, constructors"
        )
    if s["limit_reached"]:
        lines.append(
            "  config.cache_size_limit was reached: some calls run in CPython; raise it, or see the reasons above"
        )
    if s["internal_errors"]:
        lines.append(f"  {s['internal_errors']} internal errors, whose calls ran in CPython: please report them")
    if not s["translations"]:
        why = "no function that was called has tensor operations that can be" if available else refusal
        lines.append(f"  nothing was captured: {why}")
    return "\n".join(lines)


def write(summary: dict[str, Any], file: str) -> None:
    """Write the summary as JSON to a file, or to stdout for "-"."""
    out = json.dumps(summary, indent=1) + "\n"
    if file == "-":
        sys.stdout.write(out)
        return
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(out)
