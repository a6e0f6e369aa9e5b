"""The result of explain(): the translations of one call of a function, as data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._called import runtime
from .._observe import reasons as _reasons
from . import source_lines
from .captured import FunctionShare, KeptOut, Share
from .guard_objects import GuardText
from .source_lines import Excerpt, Position

UserStack = tuple[tuple[str, str, int], ...]  #: (function, file, line), innermost first

VERSION = 2  #: version of to_dict()'s format, raised when a key is removed or changes its meaning


@dataclass
class BreakReason:
    """One graph break: code, reason and hint as in docs/graph_breaks.md, and the user frames (function, file, line)."""

    code: str
    reason: str
    hint: str
    user_stack: UserStack
    #: for each frame the relevant part of its line: (end line, column, end column) in bytes from 0, or None
    positions: tuple[Position | None, ...] = ()
    #: number of translations with this break: one for each frame on the stack, and one for each iteration of a loop
    count: int = 1

    @property
    def function(self) -> str:
        """Name of the innermost frame's function, "" if the break has no frame."""
        return self.user_stack[0][0] if self.user_stack else ""

    @property
    def file(self) -> str:
        """File of the innermost frame, "" if the break has no frame."""
        return self.user_stack[0][1] if self.user_stack else ""

    @property
    def line(self) -> int | None:
        """Line of the innermost frame, None if the break has no frame."""
        return self.user_stack[0][2] if self.user_stack else None

    @property
    def source(self) -> str:
        """Text of the innermost frame's line, "" if the file cannot be read."""
        return runtime.source_line(*self.user_stack[0][1:]) if self.user_stack else ""

    def excerpt(self, frame: int = 0, around: int = 2) -> Excerpt:
        """Return the source around the line of a frame (0: the innermost), with the relevant part marked."""
        _, file, line = self.user_stack[frame]
        return source_lines.excerpt(
            file, line, self.positions[frame] if frame < len(self.positions) else None, around=around
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, with the innermost line's position and text."""
        return {
            "code": self.code,
            "reason": self.reason,
            "hint": self.hint,
            "function": self.function,
            "file": self.file,
            "line": self.line,
            "source": self.source,
            "user_stack": [list(f) for f in self.user_stack],
            "positions": [list(p) if p else None for p in self.positions],
            "count": self.count,
        }

    def __str__(self) -> str:
        return runtime.break_text((self.code, self.reason, self.hint, self.user_stack), self.positions)


@dataclass
class Failure:
    """Why one entry did not serve a call: the guard that failed, with the expected and the actual value."""

    guard: str  #: the condition, as in the entry's text
    words: str  #: the difference, in words
    old: str | None  #: the value when the entry was made; None if the guard does not check a value
    new: str | None  #: the value in this call
    file: str  #: file and line of the user code that needed the guard; "" and 0 if no user code did
    line: int
    said: str = ""  #: one readable line: what differs, by the user's name, both values, and a remedy

    def __str__(self) -> str:
        where = f" ({source_lines.short(self.file)}:{self.line})" if self.file else ""
        return f"{self.guard}: {self.words}{where}"


@dataclass
class Recompile:
    """A code object that was translated again, and why each of its entries did not serve the call."""

    function: str
    file: str
    line: int
    reasons: tuple[str, ...]  #: one text per entry, as in the log
    failures: tuple[Failure, ...] = ()  #: the reasons as objects
    before: bool = False  #: True for a recompile of the optimized callable before the explained call

    def __str__(self) -> str:
        return "\n".join([f"{self.function} ({self.file}:{self.line})", *(f"  {reason}" for reason in self.reasons)])


def recompile(code: Any, reasons: Sequence[str], before: bool = False, first_type: type | None = None) -> Recompile:
    """Make a Recompile. ``reasons`` are the core's texts: each is a str with attributes (found, was, ...).

    first_type: the type of the frame's first variable. If it is a module, the call is named after the module's forward.
    """
    frame = _reasons.Frame.of(code, first_type)
    failures = []
    for reason in reasons:
        file, line = getattr(reason, "line", None) or ("", 0)
        failures.append(
            Failure(
                getattr(reason, "part", ""),
                getattr(reason, "reason", str(reason)),
                getattr(reason, "was", None),
                getattr(reason, "found", None),
                file,
                int(line),
                _reasons.reason(reason, frame).difference(),
            )
        )
    texts = tuple(str(r) for r in reasons)
    return Recompile(frame.name, frame.file, frame.line, texts, tuple(failures), before)


@dataclass
class Node:
    """One node of a captured graph."""

    op: str  #: FX's op: placeholder, call_function, call_method, ...
    name: str
    target: str
    text: str  #: the line printed by FX
    inputs: tuple[str, ...]  #: names of its input nodes, once per use
    user_stack: UserStack  #: the operation's place, innermost first; () for an input


@dataclass
class Piece:
    """A part of a function that was translated as one. It ends at a graph break or at the end of the function."""

    function: str
    file: str
    line: int  #: first line of the function
    behind: int | None  #: line of the break after which the piece starts; None: it starts where the function starts
    nodes: list[Node] = field(default_factory=list)  #: nodes of the piece's graph
    split: int | None = None  #: index in break_reasons of the break that ends the piece; None: the function ends it
    split_frame: int = 0  #: index of the piece's own frame in that break's user stack
    #: indices of the pieces that follow the break; each is the first translation of its piece
    goes_on: list[int] = field(default_factory=list)
    #: if this is a later translation of a piece, for other values: the index of the piece's first translation
    again: int | None = None
    not_run: int = 0  #: number of following pieces that the call did not reach, such as the other arm of a branch
    calls: list[int] = field(default_factory=list)  #: indices of pieces that CPython ran inside the break's call
    guards: int | None = None  #: index in guard_entries

    @property
    def ops(self) -> int:
        """Number of operations in the graph."""
        return sum(n.op not in ("placeholder", "output", "get_attr") for n in self.nodes)

    @property
    def title(self) -> str:
        """The function's name and the part of the function, for a heading."""
        place = f", after line {self.behind}" if self.behind else ""
        return f"{self.function}{place}" + (", translated again" if self.again is not None else "")

    def _alone(self) -> Piece:
        return dataclasses.replace(self, goes_on=[], calls=[], split=None, again=None)

    def to_dot(self) -> str:
        """Return the piece's graph in the DOT language."""
        from . import dot

        return dot.pieces([self._alone()], [])

    def to_svg(self) -> str:
        """Return the piece's graph as an SVG picture."""
        from . import svg

        return svg.picture([self._alone()], [])


@dataclass
class Explanation:
    """The translations of one call of a function.

    ``str()`` returns a report; ``to_dict()`` and ``to_json()`` return the data. ``to_html()`` returns a page that opens
    offline; a notebook shows its contents. ``to_dot()`` and ``to_svg()`` draw the function's pieces. docs/explain.md
    explains how to read each part.

    >>> explanation = godynamo.explain(f)(torch.ones(2))  # doctest: +SKIP
    >>> explanation.torch_calls.share, explanation.bytecodes.outside  # doctest: +SKIP
    (0.75, 12)
    >>> explanation.kept_out[0].callee  # doctest: +SKIP
    'json.dumps'
    """

    result: Any  #: result of the call
    graphs: list[str] = field(default_factory=list)  #: as FX prints them
    graph_count: int = 0
    op_count: int = 0  #: operations in all graphs
    #: one per place and reason. A break also breaks the callers' frames; it is listed once, with the longest stack.
    break_reasons: list[BreakReason] = field(default_factory=list)
    guards: list[str] = field(default_factory=list)  #: guard text of each translation
    guard_entries: list[GuardText] = field(default_factory=list)  #: the guards of each translation as objects
    frame_count: int = 0  #: frames that were translated, or whose translation was abandoned
    captured_frames: int = 0  #: frames that were translated
    python_ops: dict[str, int] = field(default_factory=dict)  #: numbers of the graphs' Python operations, by callee
    #: instructions of the user's code: those that a translation executed symbolically, and those that CPython ran
    bytecodes: Share = field(default_factory=Share)
    #: instructions that are torch calls (defined in _explain/census.py): captured in a graph, or run by CPython
    torch_calls: Share = field(default_factory=Share)
    kept_out: list[KeptOut] = field(default_factory=list)  #: why CPython ran the rest, most expensive first
    functions: list[FunctionShare] = field(default_factory=list)  #: bytecodes and torch_calls per user function
    #: recompiles during this call, then earlier ones of the optimized callable
    recompiles: list[Recompile] = field(default_factory=list)
    #: whether everything was counted: False under a trace or profile function (a debugger, coverage)
    counted: bool = False
    #: the pieces of all frames, in order of execution, except for torch's frames without an operation
    pieces: list[Piece] = field(default_factory=list)
    name: str = ""  #: name of the explained callable, for headings

    @property
    def graph_break_count(self) -> int:
        """Number of graph breaks."""
        return len(self.break_reasons)

    @property
    def captured_share(self) -> float:
        """Share of the frames that were translated, 1.0 if there were no frames."""
        return self.captured_frames / self.frame_count if self.frame_count else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return all data as dicts, lists, strings and numbers. The call's result is replaced by the name of its type.

        docs/explain.md lists the keys; ``version`` is raised when a key is removed or changes its meaning.
        """
        out = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name != "result"}
        counts = {"result_type": type(self.result).__qualname__, "graph_break_count": self.graph_break_count}
        return {"version": VERSION, **counts, **out}

    def to_json(self, indent: int | None = 2) -> str:
        """Return to_dict() as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_dot(self) -> str:
        """Return the function's pieces in the DOT language: a cluster per piece, a note per break."""
        from . import dot

        return dot.pieces(self.pieces, self.break_reasons)

    def to_svg(self) -> str:
        """Return the function's pieces as an SVG picture, with a note per break."""
        from . import svg

        return svg.picture(self.pieces, self.break_reasons)

    def to_html(self) -> str:
        """Return a self-contained page that opens offline."""
        from . import html

        return html.page(self)

    def _repr_html_(self) -> str:
        """Show the report in a notebook."""
        from . import html

        return html.fragment(self)

    def __str__(self) -> str:
        from . import text as _explain_text

        return _explain_text.report(self)


def _plain(value: Any) -> Any:
    if isinstance(value, (BreakReason, GuardText)):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {**out, "share": value.share} if isinstance(value, Share) else out
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return dict(value) if isinstance(value, dict) else value
