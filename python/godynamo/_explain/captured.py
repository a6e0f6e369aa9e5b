"""Computes how much of a program was captured, from what CPython ran and what the translations cover.

The census (_explain/census.py) has what CPython ran. The account of a translation (bytecode/translate/account.go) has
the user's instructions that the translation executed symbolically. An instruction counts at most once as captured, and
at most once as run by CPython. Instructions that exist only for the interpreter (RESUME, CACHE, PRECALL, EXTENDED_ARG)
are not counted.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from .break_codes_gen import BREAK_CODES
from .census import USER, Census

Place = tuple[int, int]  #: an instruction of user code: the id of the code object, the index of the code unit

_BOOKKEEPING = {
    "CACHE",
    "COPY_FREE_VARS",
    "END_FOR",  # FOR_ITER jumps over it, except at the end of a generator that CPython has specialized
    "EXTENDED_ARG",
    "MAKE_CELL",
    "NOP",
    "NOT_TAKEN",  # for sys.monitoring
    "POP_ITER",  # the end of a loop, as END_FOR
    "PRECALL",
    "RESUME",
    "RETURN_GENERATOR",
}

#: The core's reason for leaving a frame to CPython without a translation: name of a counter → code of the catalog.
_LEFT = {
    "given_up": "GD0710",
    "hook_generator": "GD0302",
    "hook_inner_limit": "GD0703",
    "hook_no_headroom": "GD0711",
    "hook_not_function": "GD0707",
    "hook_skip": "GD0704",
    "hook_throw": "GD0302",
    "hook_traced": "GD0706",
    "limit_reached": "GD0703",
    "no_headroom": "GD0711",
    "replaced_builtins": "GD0714",
    "run_only": "GD0709",
    "torch_mode": "GD0708",
    "traced": "GD0706",
    "watched": "GD0712",
}


@dataclass
class Share:
    """The numbers of places that were captured and of places that CPython ran (``outside``).

    A place may count in both.
    """

    captured: int = 0
    outside: int = 0

    @property
    def total(self) -> int:
        """The sum of captured and outside."""
        return self.captured + self.outside

    @property
    def share(self) -> float:
        """The captured share of the total, 1.0 if the total is 0."""
        return self.captured / self.total if self.total else 1.0

    def __str__(self) -> str:
        return f"{self.captured} of {self.total} ({self.share:.0%})"


@dataclass
class FunctionShare:
    """The shares of one function."""

    function: str
    file: str
    line: int
    bytecodes: Share = field(default_factory=Share)
    torch_calls: Share = field(default_factory=Share)


@dataclass
class KeptOut:
    """A reason why CPython ran user code: the place, the callee, and the cost.

    ``callee`` is the qualified name of the callable that the breaking instruction called. If the instruction is not a
    call, it is the instruction's name. If CPython ran the whole frame, it is the frame's function. ``callee_file`` and
    ``callee_line`` are "" and 0 for C code. ``code``, ``reason`` and ``hint`` are listed in docs/graph_breaks.md.
    ``function``, ``file`` and ``line`` are the place in the user's code. ``count`` is the number of times that this
    occurred. ``bytecodes`` and ``torch_calls`` are the numbers of instructions and torch calls that CPython ran for
    this reason.
    """

    callee: str
    callee_file: str
    callee_line: int
    code: str
    reason: str
    hint: str
    function: str
    file: str
    line: int
    count: int = 0
    bytecodes: int = 0
    torch_calls: int = 0


@dataclass
class Counts:
    """The sums that Summary computes."""

    bytecodes: Share = field(default_factory=Share)
    torch_calls: Share = field(default_factory=Share)
    kept_out: list[KeptOut] = field(default_factory=list)
    functions: list[FunctionShare] = field(default_factory=list)
    complete: bool = False


_GENERATOR = "GD0302"
_PYTHON_OPERATION = "", "Python operation of the graph", ""


@dataclass
class _Cause:
    row: KeptOut
    bytecodes: set[Place] = field(default_factory=set)
    torch_calls: set[Place] = field(default_factory=set)


#: what enters a `with` block in 3.14; it counts as one instruction, the call, as before
_ENTERS = ["COPY", "LOAD_SPECIAL", "SWAP", "SWAP", "LOAD_SPECIAL", "CALL"]


def _one_for_with(instructions: list[dis.Instruction]) -> Iterator[dis.Instruction]:
    at = 0
    while at < len(instructions):
        if [i.opname for i in instructions[at : at + len(_ENTERS)]] == _ENTERS:
            at += len(_ENTERS) - 1
        yield instructions[at]
        at += 1


class _Piece:
    """A transformed function, with its translation's account."""

    def __init__(self, record: dict[str, Any], account: dict[str, Any]) -> None:
        self.record = record
        native = account["native"]
        self.native: tuple[CodeType, int] | None = native[:2] if native else None
        self.units = range(*native[2:]) if native else range(0)
        self.library: tuple[CodeType, int] | None = None  # a torch call with only library frames on its stack
        self.python: tuple[tuple[CodeType, int, int, str], ...] = account["python"]
        breaks = record["info"]["breaks"]
        self.break_row = breaks[-1] if breaks else None


class Summary:
    """Adds up a census and the records of the translations made during it (see runtime.translated)."""

    def __init__(self, census: Census, records: Iterable[dict[str, Any]]) -> None:
        self.census = census
        self.codes: dict[int, CodeType] = {}
        self.units: dict[int, frozenset[int]] = {}
        self.pieces: dict[int, _Piece] = {}
        self.copies: dict[int, tuple[CodeType, dict[int, int]]] = {}
        self.left: dict[int, dict[str, Any]] = {}  # records of frames without a transformed function
        self.causes: dict[Any, _Cause] = {}
        self.callees: dict[int, dict[int, tuple[str, str, int]]] = {}
        self.callers: dict[int, tuple[CodeType, int]] = {}  # id of a transformed code object -> where it was called
        self.captured: tuple[set[Place], set[Place]] = set(), set()
        self.outside: tuple[set[Place], set[Place]] = set(), set()
        for record in records:
            self._translation(record)

    # -- the translations' accounts --

    def _translation(self, record: dict[str, Any]) -> None:
        account = (record.get("info") or {}).get("account")
        if record["status"] != "ok" or record["function"] is None:
            self.left[id(record["code"])] = record
        if account is None:
            return
        for made, original, pairs in account["copies"]:
            self.copies[id(made)] = original, dict(pairs)
        for code, units in account["translated"]:
            self.captured[0].update(self._places(code, units))
        self.pieces[id(record["function"].__code__)] = piece = _Piece(record, account)
        for levels in account["calls"]:
            users = [level for level in levels if self.census.kind(level[0]) == USER]
            if users:
                self.captured[1].add(self._place(*users[-1]))
            else:
                piece.library = levels[0]

    def _place(self, code: CodeType, unit: int) -> Place:
        self.codes[id(code)] = code
        return id(code), unit

    def _places(self, code: CodeType, units: Iterable[int]) -> Iterator[Place]:
        """Yield the places of those code units that belong to user code and are counted."""
        if self.census.kind(code) == USER:
            counted = self._counted(code)
            yield from (self._place(code, unit) for unit in units if unit in counted)

    def _counted(self, code: CodeType) -> frozenset[int]:
        known = self.units.get(id(code))
        if known is None:
            instructions = list(dis.get_instructions(code))
            starts = next((i.offset for i in instructions if i.opname == "RESUME"), 0)
            # Instructions before RESUME create cells or a generator.
            known = frozenset(
                i.offset // 2 for i in _one_for_with(instructions) if i.offset > starts and i.opname not in _BOOKKEEPING
            )
            self.units[id(code)] = known
        return known

    # -- what CPython ran --

    def counts(self) -> Counts:
        """Compute the sums. May be called only once."""
        rows = self.census.rows
        self.callees = {id(row[0]): row[-1] or {} for row in rows}
        self.callers = {id(row[0]): (row[3], row[4]) for row in rows if row[2] and row[4] >= 0}
        for code, kind, ours, by, at, counter, frames, counts, _ in rows:
            piece = self.pieces.get(id(code))
            if piece is not None and not counter:
                called = self._called(by, at)
                self._native(code, piece, counts, called)
                if piece.library:
                    self.captured[1].add(self._place(*called or piece.library))
            elif id(code) in self.copies:
                original, units = self.copies[id(code)]
                cause = self._reason(by, at, counter, frames)
                self._frame(original, cause, ((units[u], n, t) for u, n, t in counts if u in units))
            elif not ours:
                self._frame(code, self._reason(by, at, counter, frames) if kind == USER else None, counts)
        self._python_calls()
        ran = {id(row[0]) for row in rows}
        for key, record in self.left.items():
            if record.get("left") == _GENERATOR and key not in ran:
                self._reason(record["code"], -1, "", 1)
        out = Counts(complete=self.census.complete)
        for share, captured, outside in zip((out.bytecodes, out.torch_calls), self.captured, self.outside, strict=True):
            share.captured, share.outside = len(captured), len(outside)
        out.functions = self._functions()
        for cause in self.causes.values():
            cause.row.bytecodes, cause.row.torch_calls = len(cause.bytecodes), len(cause.torch_calls)
            # A generator or coroutine that never ran has no instructions, but its reason is reported.
            if cause.bytecodes or cause.torch_calls or cause.row.code == _GENERATOR:
                out.kept_out.append(cause.row)
        out.kept_out.sort(key=lambda r: (-r.torch_calls, -r.bytecodes, -r.count, r.file, r.line))
        return out

    def _called(self, by: CodeType, unit: int) -> tuple[CodeType, int] | None:
        """Return the place of user code from which captured code was called, or None."""
        for _ in range(100):
            if unit < 0:
                return None
            place: tuple[CodeType, int] | None = (by, unit)
            if id(by) in self.copies:
                original, units = self.copies[id(by)]
                place = (original, units[unit]) if unit in units else None
            elif id(by) in self.pieces:
                place = self.pieces[id(by)].native if unit in self.pieces[id(by)].units else None
            if place is not None and self.census.kind(place[0]) == USER:
                return place
            by, unit = self.callers.get(id(by), (by, -1))
        return None

    def _native(
        self, code: CodeType, piece: _Piece, counts: list[tuple[int, int, int]], called: tuple[CodeType, int] | None
    ) -> None:
        """Count the instruction left to CPython at a break. A library's torch call counts where user code called it."""
        ran = [row for row in counts if row[0] in piece.units and row[1]]
        if piece.native is None or not ran:
            return
        cause = self._break(code, piece)
        cause.row.count += max(n for _, n, _ in ran)
        place = piece.native if called is None or self.census.kind(piece.native[0]) == USER else called
        torch_call = any(t for *_, t in ran)
        if place is piece.native or torch_call:
            self._add(cause, *place, torch_call=torch_call)

    def _frame(self, code: CodeType, cause: _Cause | None, counts: Iterable[tuple[int, int, int]]) -> None:
        """Count the instructions of a frame that CPython ran. Of a library's frame, count only the torch calls."""
        for unit, _, torch_calls in counts:
            if cause is not None:
                self._add(cause, code, unit, torch_call=bool(torch_calls))
            elif torch_calls:
                self.outside[1].add(self._place(code, unit))

    def _add(self, cause: _Cause, code: CodeType, unit: int, *, torch_call: bool) -> None:
        for place in self._places(code, (unit,)):
            cause.bytecodes.add(place)
            self.outside[0].add(place)
        if torch_call:
            place = self._place(code, unit)
            cause.torch_calls.add(place)
            self.outside[1].add(place)

    def _python_calls(self) -> None:
        """Count instructions that are Python operations of a graph."""
        for piece in self.pieces.values():
            for code, unit, line, callee in piece.python:
                cause = self._python(code, line, (callee, "", 0))
                cause.row.callee = cause.row.callee or _opname(code, unit)
                self._add(cause, code, unit, torch_call=False)
            for cause in {id(c): c for c in (self._python(code, line) for code, _, line, _ in piece.python)}.values():
                cause.row.count += 1

    def _python(self, code: CodeType, line: int, callee: tuple[str, str, int] = ("", "", 0)) -> _Cause:
        """Return the cause for the Python operations of a line.

        Its callee is one written in Python, if there is one.
        """
        where = code.co_name, code.co_filename, line
        cause = self._cause(("python", id(code), line), callee, _PYTHON_OPERATION, where)
        if callee[0] and not cause.row.callee_file:
            cause.row.callee, cause.row.callee_file, cause.row.callee_line = callee
        return cause

    # -- why --

    def _cause(
        self, key: Any, callee: tuple[str, str, int], why: tuple[str, str, str], where: tuple[str, str, int]
    ) -> _Cause:
        cause = self.causes.get(key)
        if cause is None:
            cause = self.causes[key] = _Cause(KeptOut(*callee, *why, *where))
        return cause

    def _reason(self, by: CodeType, unit: int, counter: str, frames: int) -> _Cause:
        """Return the cause for frames that CPython ran, from the core's report (see census.c)."""
        if unit >= 0:
            piece = self.pieces.get(id(by))
            if piece is not None and unit in piece.units:
                return self._break(by, piece)
            return self._below(by, unit)
        code = self.copies[id(by)][0] if id(by) in self.copies else by
        function = code.co_qualname, code.co_filename, code.co_firstlineno
        why, where = self._own(by, counter)
        cause = self._cause((id(code), why), function, why, where or function)
        cause.row.count += frames
        return cause

    def _own(self, code: CodeType, counter: str) -> tuple[tuple[str, str, str], tuple[str, str, int] | None]:
        record = self.left.get(id(code))
        known = _LEFT.get(counter)
        if record is None or known is not None:
            known = known or "GD0701"
            return (known, *BREAK_CODES[known]), None
        info = record.get("info") or {}
        rows = (*info.get("breaks", ()), *record["breaks"])
        if rows:
            break_code, reason, hint, stack = rows[-1]
            why = f"; the whole frame runs in CPython: {info['skipped']}" if info.get("skipped") else ""
            return (break_code, reason + why, hint), stack[-1] if stack else None
        known = "GD0702" if info.get("nothing_to_capture") else record["left"]
        reason, hint = BREAK_CODES[known]
        text = record["reason"]  # may already begin with the catalog's text
        return (known, text if text.startswith(reason) else f"{reason}: {text}" if text else reason, hint), None

    def _break(self, code: CodeType, piece: _Piece) -> _Cause:
        assert piece.native is not None
        callees = [what for unit, what in sorted(self.callees.get(id(code), {}).items()) if unit in piece.units]
        callee = callees[-1] if callees else (_opname(*piece.native), "", 0)
        break_code, reason, hint, stack = piece.break_row or ("", "", "", ())
        user, unit = piece.native
        where = stack[-1] if stack else (user.co_name, user.co_filename, user.co_firstlineno)
        return self._cause((id(user), unit, break_code, reason), callee, (break_code, reason, hint), where)

    def _below(self, code: CodeType, unit: int) -> _Cause:
        """Return the cause for a call by the transformed function itself, made for a Python operation or an effect."""
        callee = self.callees.get(id(code), {}).get(unit, ("", "", 0))
        lines = [line for line, *_ in list(code.co_positions())[unit : unit + 1]]
        line = lines[0] if lines and lines[0] else code.co_firstlineno
        piece = self.pieces.get(id(code))
        if piece is not None and piece.python:
            of = piece.record["code"]
            return self._python(self.copies[id(of)][0] if id(of) in self.copies else of, line, callee)
        why = "", "called by an effect of the captured code", ""
        return self._cause((id(code), unit), callee, why, (code.co_name, code.co_filename, line))

    def _functions(self) -> list[FunctionShare]:
        rows: dict[int, FunctionShare] = {}
        for what in (0, 1):
            for side, places in (("captured", self.captured[what]), ("outside", self.outside[what])):
                for key, _ in places:
                    code = self.codes[key]
                    row = rows.setdefault(key, FunctionShare(code.co_qualname, code.co_filename, code.co_firstlineno))
                    share = (row.bytecodes, row.torch_calls)[what]
                    setattr(share, side, getattr(share, side) + 1)
        return sorted(rows.values(), key=lambda r: (-r.torch_calls.outside, -r.bytecodes.outside, r.file, r.line))


def _opname(code: CodeType, unit: int) -> str:
    return next((i.opname for i in dis.get_instructions(code) if i.offset == 2 * unit), "")
