"""Writes an explanation as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import _core
from .._called import runtime
from .._translator import trace_rules
from . import source_lines
from .captured import KeptOut
from .guard_objects import Guard, GuardText

if TYPE_CHECKING:
    from .explanation import BreakReason, Explanation, Recompile

MOST_GUARDS = 20  #: maximum number of guards per translation; the page and the JSON have all guards
MOST_NODES = 200  #: maximum number of lines per graph


def report(e: Explanation) -> str:
    """Return the whole explanation for a terminal."""
    lines = [
        f"Graph count: {e.graph_count}",
        f"Graph break count: {e.graph_break_count}",
        f"Op count: {e.op_count}",
        f"Captured frames: {e.captured_frames} of {e.frame_count}",
        f"Captured torch calls: {e.torch_calls}",
        f"Captured bytecodes: {e.bytecodes}",
    ]
    if not _core.available:
        lines.append(f"Nothing was captured or counted: {_core.refusal}.")
    elif not e.counted:
        lines.append(
            "These two were not counted in full: a trace or profile function (a debugger, coverage) is at work."
        )
    lines += [f"Python call {callee}: {count}" for callee, count in e.python_ops.items()]
    lines += _kept_out(e.kept_out)
    for i, reason in enumerate(e.break_reasons, 1):
        lines += [f"Break reason {i}:", *_indented(break_lines(reason))]
    for i, recompile in enumerate(e.recompiles, 1):
        lines += [
            f"Recompile {i}:",
            *_indented(recompile_lines(recompile)),
        ]
    for i, entry in enumerate(e.guard_entries, 1):
        lines += [f"Guards {i}: {guards_title(e, i - 1)} ({source_lines.short(entry.file)}:{entry.line})"]
        lines += _indented(guard_lines(entry))
    for i, graph in enumerate(e.graphs, 1):
        texts = graph.splitlines()
        lines += [f"Graph {i}:", *_indented(texts[:MOST_NODES])]
        if len(texts) > MOST_NODES:
            lines.append(f"  and {len(texts) - MOST_NODES} lines more: see .graphs")
    return "\n".join(lines)


def break_lines(reason: BreakReason) -> Iterator[str]:
    """Yield a break's code, reason and hint, and the user's stack with the source around the innermost frame's line."""
    yield f"{reason.code}: {reason.reason}" if reason.code else reason.reason
    if reason.hint:
        yield f"  hint: {reason.hint}"
    if reason.count > 1:
        yield f"  breaks {reason.count} translations"
    hidden = 0
    for i, (name, file, line) in reversed(list(enumerate(reason.user_stack))):
        if i and trace_rules.is_torchs(file):
            hidden += 1
            continue
        if hidden:
            yield _hidden(hidden)
            hidden = 0
        yield f'  File "{source_lines.short(file)}", line {line}, in {name}'
        yield from reason.excerpt(i, around=2 if i == 0 else 0).to_text(" ")
    if hidden:
        yield _hidden(hidden)


def _hidden(count: int) -> str:
    return f"  ({count} frame{'s' if count > 1 else ''} of torch)"


def recompile_lines(recompile: Recompile) -> Iterator[str]:
    """Yield a recompile's lines: for each entry that did not serve, its guard, both values and the user's line."""
    before = ", before this call" if recompile.before else ""
    yield f"{recompile.function} ({source_lines.short(recompile.file)}:{recompile.line}){before}"
    for failure in recompile.failures:
        yield f"  {failure.said or failure.guard}"
        if failure.old is not None or failure.new is not None:
            yield f"    was: {failure.old}"
            yield f"    now: {failure.new}"
        if failure.file:
            source = runtime.source_line(failure.file, failure.line)
            yield f'    File "{source_lines.short(failure.file)}", line {failure.line}' + (
                f": {source}" if source else ""
            )


def guards_title(e: Explanation, number: int) -> str:
    """Return the title of a translation's guards: the title of its piece, if that is shown."""
    piece = next((p for p in e.pieces if p.guards == number), None)
    return piece.title if piece is not None else e.guard_entries[number].function


def guard_lines(entry: GuardText) -> list[str]:
    """Return the guards in words, those needed by the user's own lines first, at most MOST_GUARDS."""
    chosen = sorted((g for g in entry.guards if g.kind != "VALID"), key=_order) or entry.guards
    lines = [str(g) for g in chosen[:MOST_GUARDS]]
    if len(chosen) > MOST_GUARDS:
        lines.append(f"and {len(chosen) - MOST_GUARDS} more: see .guard_entries")
    return lines


#: families of guarded places in the order of the report: the call's inputs first, then globals and modules
_FAMILIES = ("LOCAL", "LOCAL_NN_MODULE", "GLOBAL", "GLOBAL_NN_MODULE", "CONSTANT", "")


def _order(guard: Guard) -> tuple[int, int]:
    """Return a sort key: guards needed by user code come first, then by torch's code, then those without a line."""
    whose = 2 if guard.line is None else 1 if trace_rules.is_torchs(guard.line[0]) else 0
    return whose, _FAMILIES.index(guard.source) if guard.source in _FAMILIES else len(_FAMILIES)


def _indented(lines: Iterator[str] | list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _kept_out(rows: list[KeptOut]) -> list[str]:
    if not rows:
        return []
    lines = ["Kept out (torch calls, bytecodes, times):"]
    for r in rows:
        called = f"{r.callee} ({source_lines.short(r.callee_file)}:{r.callee_line})" if r.callee_file else r.callee
        lines.append(f"  {r.torch_calls:5} {r.bytecodes:6} {r.count:5}  {called}")
        lines.append(f"{'':21}{f'{r.code}: ' if r.code else ''}{r.reason}")
        source = runtime.source_line(r.file, r.line)
        lines.append(
            f'{"":21}File "{source_lines.short(r.file)}", line {r.line}, in {r.function}'
            + (f": {source}" if source else "")
        )
    return lines
