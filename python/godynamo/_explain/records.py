"""Converts records of translations (see runtime.translated) to an Explanation."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import Any

from . import guard_objects
from .captured import Counts, Summary
from .census import USER
from .explanation import BreakReason, Explanation, Node, Piece, recompile

Record = dict[str, Any]


def explanation(
    result: Any, records: list[Record], summary: Summary, counts: Counts, entries: list[Any], name: str
) -> Explanation:
    """Make the Explanation. entries: the GuardedCode objects that exist after the call, for the guards as objects."""
    out = Explanation(
        result,
        bytecodes=counts.bytecodes,
        torch_calls=counts.torch_calls,
        kept_out=counts.kept_out,
        functions=counts.functions,
        counted=counts.complete,
        name=name,
    )
    splits = _Breaks(out.break_reasons)
    pieces = _Pieces(summary, splits)
    by_function = {id(e.function): e for e in entries if e.function is not None}
    for record in records:
        info = record.get("info") or {}
        out.frame_count += 1
        out.captured_frames += record["status"] == "ok"
        out.graph_count += info.get("graphs", 0)
        out.op_count += info.get("ops", 0)
        nodes = _nodes(info)
        if info.get("graphs", 0):
            text = info.get("graph") or _graph_text(nodes)
            if text:
                out.graphs.append(text)
        entry = None
        if info.get("guards"):
            out.guards.append(info["guards"])
            entry = by_function.get(id(record["function"])) or _by_text(entries, record, info["guards"])
            if entry is not None:
                out.guard_entries.append(guard_objects.of_entry(entry))
        for callee, count in info.get("python_ops", ()):
            out.python_ops[callee] = out.python_ops.get(callee, 0) + count
        split = splits.add(info)
        left = splits.add(record)
        pieces.add(record, nodes, split if split is not None else left, len(out.guard_entries) - 1 if entry else None)
        if record["failures"]:
            out.recompiles.append(recompile(record["code"], record["failures"], first_type=record.get("first_type")))
    out.pieces = pieces.connected()
    return out


def _by_text(entries: Iterable[Any], record: Record, text: str) -> Any:
    return next((e for e in entries if e.orig_code is record["code"] and e.text == text), None)


def _nodes(info: Record) -> list[Node]:
    return [Node(*row) for row in (info.get("account") or {}).get("nodes", ())]


def _graph_text(nodes: list[Node]) -> str:
    """Return the graph as FX prints it. It is rebuilt from the nodes: translations keep only small graphs' text."""
    return "\n".join(["graph():", *(f"    {n.text}" for n in nodes), ""]) if nodes else ""


class _Breaks:
    """Merges the records of one break: a break in an inlined function also breaks its callers, at their calls."""

    def __init__(self, reasons: list[BreakReason]) -> None:
        self.reasons = reasons

    def add(self, record: Record) -> tuple[int, int] | None:
        """Add a record's breaks. Return the last break's index, and the index of the record's frame in its stack."""
        last = None
        positions = record.get("positions") or ()
        for i, row in enumerate(record.get("breaks") or ()):
            code, reason, hint, stack = row
            found = BreakReason(code, reason, hint, stack, positions[i] if i < len(positions) else ())
            last = self._merged(found), max(len(stack) - 1, 0)
        return last

    def _merged(self, found: BreakReason) -> int:
        for i, known in enumerate(self.reasons):
            if (known.code, known.reason) != (found.code, found.reason):
                continue
            short, long = sorted((known, found), key=lambda b: len(b.user_stack))
            depth = len(short.user_stack)
            if not depth or long.user_stack[:depth] != short.user_stack:
                continue
            if long.positions[:1] != short.positions[:1]:
                continue  # these are two breaks in one line
            known.user_stack, known.positions = long.user_stack, long.positions
            known.count += 1
            return i
        self.reasons.append(found)
        return len(self.reasons) - 1


class _Pieces:
    """Makes the pieces of frames, and connects them."""

    def __init__(self, summary: Summary, splits: _Breaks) -> None:
        self.summary = summary
        self.made: list[tuple[Record, Piece | None]] = []

    def add(self, record: Record, nodes: list[Node], split: tuple[int, int] | None, guards: int | None) -> None:
        """Add one record."""
        code = record["code"]
        shown = record["status"] == "ok" and record["function"] is not None
        shown = shown and (bool(nodes) or self.summary.census.kind(self._original(code)) == USER)
        if not shown:
            self.made.append((record, None))
            return
        original = self._original(code)
        if self.summary.census.kind(original) != USER:
            original = self._inlined(record) or original
        piece = Piece(original.co_qualname, original.co_filename, original.co_firstlineno, _behind(record))
        piece.nodes, piece.guards = nodes, guards
        if split is not None:
            piece.split, piece.split_frame = split
        self.made.append((record, piece))

    def _inlined(self, record: Record) -> CodeType | None:
        """Return the code that a frame of nn.Module.__call__ inlined: a user's function or a torch module's forward."""
        calls = (record["info"].get("account") or {}).get("calls", ())
        codes = [code for levels in calls for code, _ in levels]
        users = (code for code in codes if self.summary.census.kind(code) == USER)
        inner = (code for code in codes if code.co_name not in ("_wrapped_call_impl", "_call_impl"))
        return next(users, None) or next(inner, None)

    def _original(self, code: CodeType) -> CodeType:
        return self.summary.copies[id(code)][0] if id(code) in self.summary.copies else code

    def connected(self) -> list[Piece]:
        """Return all pieces, each connected to the pieces that follow it."""
        shown = [(r, p) for r, p in self.made if p is not None]
        first: dict[Any, int] = {}  # key of a piece -> index of its first translation
        by_code: dict[int, Piece | None] = {}
        met = {self._key(record) for record, _ in self.made}
        for record, piece in self.made:
            if record["function"] is not None:
                by_code[id(record["function"].__code__)] = piece
        for i, (record, piece) in enumerate(shown):
            known = first.setdefault(self._key(record), i)
            piece.again = known if known != i else None
        for i, (record, piece) in enumerate(shown):
            for resume in _resumes(record):
                key = _origin_key(resume)
                if key in first and first[key] not in piece.goes_on:
                    piece.goes_on.append(first[key])
                elif key not in met:
                    piece.not_run += 1
            if piece.behind is None and piece.again is None:
                caller = self._caller(record["function"].__code__, by_code)
                if caller is not None and caller is not piece and i not in caller.calls:
                    caller.calls.append(i)
        return [p for _, p in shown]

    def _key(self, record: Record) -> Any:
        """Return a piece's key, the same for all its translations: the user's code, and the place where it begins."""
        return _origin_key(record["owner"]) or (id(self._original(record["code"])), None)

    def _caller(self, code: CodeType, by_code: dict[int, Piece | None]) -> Piece | None:
        """Return the piece from which CPython called this code, in the instruction that a break left to CPython."""
        at = self.summary.callers.get(id(code))
        for _ in range(100):
            if at is None:
                return None
            by, _unit = at
            found = by_code.get(id(by))
            if found is not None:
                return found
            at = self.summary.callers.get(id(by))
        return None


def _origin(owner: Any) -> tuple[Any, ...] | None:
    """Return a resume callable's origin, (code, place, ...); None if the owner of entries is no resume callable."""
    return getattr(getattr(owner, "function", None), "__godynamo_origin__", None)


def _origin_key(owner: Any) -> Any:
    origin = _origin(owner)
    return (id(origin[0]), origin[1]) if origin is not None else None


def _behind(record: Record) -> int | None:
    """Return the line of the break before a piece, from the resume function's name; None if a frame starts here."""
    if _origin(record["owner"]) is None:
        return None
    line = record["owner"].function.__name__.rpartition("_at_")[2]
    return int(line) if line.isdecimal() else None


def _resumes(record: Record) -> list[Any]:
    """Return the resume callables with which a transformed function may continue."""
    cells = record["function"].__closure__ or ()
    out = []
    for cell in cells:
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if _origin(value) is not None:
            out.append(value)
    return out
