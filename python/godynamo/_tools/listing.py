"""Lists a code object's instructions beside those of its translation, by lines of the source."""

from __future__ import annotations

import difflib
import dis
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType

from .._called.runtime import source_line

_HIDDEN = {"CACHE", "EXTENDED_ARG", "PRECALL"}  # instructions that exist only for the interpreter


@dataclass(frozen=True)
class Row:
    """One instruction: its offset in bytes, name and argument's meaning, and whether it is a jump target."""

    offset: int
    opname: str
    argument: str
    target: bool

    def __str__(self) -> str:
        return f"{'>>' if self.target else '  '} {self.offset:4} {self.opname:22} {self.argument}".rstrip()


Block = tuple[int, list[Row]]  #: a line of the source (0: none), and consecutive instructions of this line


def blocks(code: CodeType, function: FunctionType | None = None, units: Iterable[int] | None = None) -> list[Block]:
    """Return the instructions of a code object, grouped by line, in order.

    function: a function with this code. Its closure has the contents of cells: in transformed code, torch's functions
    and other constants are in cells. units: only the instructions at these positions (offset / 2) are returned.
    """
    wanted = None if units is None else set(units)
    cells = _cells(code, function)
    found: list[Block] = []
    line = 0
    for i in dis.get_instructions(code):
        line = i.positions.lineno or 0 if i.positions is not None else line
        if i.opname in _HIDDEN or (wanted is not None and i.offset // 2 not in wanted):
            continue
        argument = i.argrepr if i.argrepr or i.arg is None else str(i.arg)
        if i.opname == "LOAD_DEREF" and argument in cells:
            argument = cells[argument]
        if not found or found[-1][0] != line:
            found.append((line, []))
        found[-1][1].append(Row(i.offset, i.opname, argument, i.is_jump_target))
    return found


def _cells(code: CodeType, function: FunctionType | None) -> dict[str, str]:
    if function is None or not function.__closure__:
        return {}
    texts = {}
    for name, cell in zip(code.co_freevars, function.__closure__, strict=False):
        try:
            texts[name] = named(cell.cell_contents)
        except ValueError:  # the cell is empty
            continue
    return texts


def named(value: object) -> str:
    """Return the text for a constant: module and name of functions and classes, a short repr of other objects."""
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        module = getattr(value, "__module__", None)
        return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else name
    return reprlib.repr(value)


def side_by_side(left: Sequence[Block], right: Sequence[Block], file: str, width: int = 46) -> list[str]:
    """Return two columns: below the text of each source line, its instructions in both listings side by side."""
    lines: list[str] = []

    def put(line: int, a: Sequence[Row], b: Sequence[Row]) -> None:
        text = source_line(file, line) if line else ""
        lines.append(f"{line or '':>5}  {text}".rstrip())
        for i in range(max(len(a), len(b))):
            shown, beside = (str(rows[i]) if i < len(rows) else "" for rows in (a, b))
            lines.append(f"{_cut(shown, width):{width}} | {beside}".rstrip())  # the right column is not cut

    matcher = difflib.SequenceMatcher(None, [key for key, _ in left], [key for key, _ in right], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for (line, a), (_, b) in zip(left[i1:i2], right[j1:j2], strict=True):
                put(line, a, b)
        else:
            for line, rows in left[i1:i2]:
                put(line, rows, [])
            for line, rows in right[j1:j2]:
                put(line, [], rows)
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
