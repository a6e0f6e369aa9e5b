"""What explain() gives: what one call of a function was translated to, as data."""

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

VERSION = 2  #: of to_dict()'s form; it is raised when a key goes or changes its meaning


@dataclass
class BreakReason:
    """One graph break: number and text as in docs/graph_breaks.md; user frames (function, file, line), innermost first."""

    code: str
    reason: str
    hint: str
    user_stack: UserStack
    #: for each frame which part of its line is meant: (end line, column, end column) in bytes from 0, or None
    positions: tuple[Position | None, ...] = ()
    count: int = (
        1  #: translations that were split there: one for each frame that it goes through, and each turn of a loop
    )

    @property
    def function(self) -> str:
        """Name of the innermost function, "" where there is no frame."""
        return self.user_stack[0][0] if self.user_stack else ""

    @property
    def file(self) -> str:
        """Its file, "" where there is no frame."""
        return self.user_stack[0][1] if self.user_stack else ""

    @property
    def line(self) -> int | None:
        """Line of the user's code, None where there is no frame."""
        return self.user_stack[0][2] if self.user_stack else None

    @property
    def source(self) -> str:
        """That line's text, "" where its file cannot be read."""
        return runtime.source_line(*self.user_stack[0][1:]) if self.user_stack else ""

    def excerpt(self, frame: int = 0, around: int = 2) -> Excerpt:
        """The source around a frame of the stack, 0 the innermost, with what is meant marked."""
        _, file, line = self.user_stack[frame]
        return source_lines.excerpt(
            file, line, self.positions[frame] if frame < len(self.positions) else None, around=around
        )

    def to_dict(self) -> dict[str, Any]:
        """The attributes, with the innermost line's place and text."""
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
    """Why one entry did not serve a call: the guard that failed and both values."""

    guard: str  #: the condition, as in the entry's text
    words: str  #: what differs, for a person
    old: str | None  #: what the value was when the entry was made; None where the guard is about no value
    new: str | None  #: what it was in this call
    file: str  #: line of user code that asked for the guard, "" and 0 where none did
    line: int
    said: str = ""  #: one line for a person: what differs by the user's name for it, both values, what to do

    def __str__(self) -> str:
        where = f" ({source_lines.short(self.file)}:{self.line})" if self.file else ""
        return f"{self.guard}: {self.words}{where}"


@dataclass
class Recompile:
    """A code object that was translated again: why each entry there was did not serve, the failed guard with both values."""

    function: str
    file: str
    line: int
    reasons: tuple[str, ...]  #: as the log has them
    failures: tuple[Failure, ...] = ()  #: the same in parts
    before: bool = False  #: it is of the optimized callable's history, from before the explained call

    def __str__(self) -> str:
        return "\n".join([f"{self.function} ({self.file}:{self.line})", *(f"  {reason}" for reason in self.reasons)])


def recompile(code: Any, reasons: Sequence[str], before: bool = False, first_type: type | None = None) -> Recompile:
    """A Recompile, given the code object and the texts of the core (each a str with found, was, ... as attributes).

    first_type: of the frame's first variable, by which a module's call is named after its forward.
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

    op: str  #: FX's: placeholder, call_function, call_method, ...
    name: str
    target: str
    text: str  #: the line that FX prints
    inputs: tuple[str, ...]  #: names of the nodes that it takes, as often as it takes them
    user_stack: UserStack  #: the operation's place, innermost first; () for an input


@dataclass
class Piece:
    """A part of a function's frame that was translated as one: it runs to the function's end or to a graph break."""

    function: str
    file: str
    line: int  #: of the function
    behind: int | None  #: the piece goes on behind the break in this line; None: from the function's start
    nodes: list[Node] = field(default_factory=list)  #: of its graph
    split: int | None = None  #: index in break_reasons of what ends it, None where it runs to the function's end
    split_frame: int = 0  #: which frame of that break's user stack is the piece's own
    goes_on: list[int] = field(
        default_factory=list
    )  #: indices of the pieces that come behind the break, the first translations
    again: int | None = (
        None  #: index of the first translation of the same piece, where this is a later one, for other values
    )
    not_run: int = 0  #: how many more there are that this call did not come to: the other arm of a branch
    calls: list[int] = field(default_factory=list)  #: indices of pieces that CPython ran inside of the break's call
    guards: int | None = None  #: index in guard_entries

    @property
    def ops(self) -> int:
        """How many operations the graph has."""
        return sum(n.op not in ("placeholder", "output", "get_attr") for n in self.nodes)

    @property
    def title(self) -> str:
        """Function and part of it, for a heading."""
        place = f", behind line {self.behind}" if self.behind else ""
        return f"{self.function}{place}" + (", translated again" if self.again is not None else "")

    def _alone(self) -> Piece:
        return dataclasses.replace(self, goes_on=[], calls=[], split=None, again=None)

    def to_dot(self) -> str:
        """The piece's graph in the DOT language."""
        from . import dot

        return dot.pieces([self._alone()], [])

    def to_svg(self) -> str:
        """The piece's graph as an SVG picture."""
        from . import svg

        return svg.picture([self._alone()], [])


@dataclass
class Explanation:
    """What one call of a function was translated to; ``str()`` of it is a report, ``to_dict()`` and ``to_json()`` give the same.

    ``to_html()`` is a page that opens offline, ``to_dot()`` and ``to_svg()`` draw how the function was split; a notebook
    shows the page's contents. docs/explain.md says how to read each part.

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
    #: one for each place and reason: what splits a frame splits those around it too, and is told once: the longest stack
    break_reasons: list[BreakReason] = field(default_factory=list)
    guards: list[str] = field(default_factory=list)  #: guard text of each translation
    guard_entries: list[GuardText] = field(default_factory=list)  #: the same as objects
    frame_count: int = 0  #: frames that were translated or given up
    captured_frames: int = 0  #: of these, those that run translated
    python_ops: dict[str, int] = field(default_factory=dict)  #: Python operations of the graphs, by callee
    #: instructions of the user's code that ran: symbolically, in a translation, or in CPython
    bytecodes: Share = field(default_factory=Share)
    #: of them, those that call torch: captured in a graph, or made by CPython; see _explain/census.py for what counts
    torch_calls: Share = field(default_factory=Share)
    kept_out: list[KeptOut] = field(default_factory=list)  #: why CPython ran the rest, what cost most first
    functions: list[FunctionShare] = field(default_factory=list)  #: the same counts for each function of the user's
    recompiles: list[Recompile] = field(
        default_factory=list
    )  #: of this call; then the optimized callable's own, from before
    #: whether nothing was missed: not where a trace or profile function (a debugger, coverage) is at work
    counted: bool = False
    #: the frames' pieces, in the order they were met, without those of torch's own frames that have no operation
    pieces: list[Piece] = field(default_factory=list)
    name: str = ""  #: what was explained, for headings

    @property
    def graph_break_count(self) -> int:
        """Number of graph breaks."""
        return len(self.break_reasons)

    @property
    def captured_share(self) -> float:
        """Share of the frames that run translated, 1.0 where there was none."""
        return self.captured_frames / self.frame_count if self.frame_count else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain dicts, lists, strings and numbers, with the shares worked out; the result as its type's name.

        The keys are those of docs/explain.md; ``version`` is raised when one goes or changes its meaning.
        """
        out = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name != "result"}
        counts = {"result_type": type(self.result).__qualname__, "graph_break_count": self.graph_break_count}
        return {"version": VERSION, **counts, **out}

    def to_json(self, indent: int | None = 2) -> str:
        """to_dict() as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_dot(self) -> str:
        """How the function was split, in the DOT language: a cluster for each piece, a note for each break."""
        from . import dot

        return dot.pieces(self.pieces, self.break_reasons)

    def to_svg(self) -> str:
        """The same as a picture."""
        from . import svg

        return svg.picture(self.pieces, self.break_reasons)

    def to_html(self) -> str:
        """A whole page, everything in it: it opens offline."""
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
