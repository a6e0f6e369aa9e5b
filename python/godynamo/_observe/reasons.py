"""Writes one short line about why an entry did not serve a call: where, what, both values, and a remedy.

The warning at the limit of entries, the ``recompiles`` log, the summary of ``godynamo run`` and the trace use it.

>>> code = (lambda x, n: x * n).__code__
>>> frame = Frame.of(code, None)
>>> Reason(frame, "n", "", "1", "2", "use a tensor instead of a number").text(width=60)
'<lambda> (<doctest...:1): n: expected 1, seen 2; use a t...'
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from .._explain import guard_words

#: maximum number of columns of a line
WIDTH = 120

#: maximum number of entries that are listed
MOST = 16

_WRAPPERS = frozenset(("_wrapped_call_impl", "_call_impl"))
_MODULE_FILE = os.path.join("torch", "nn", "modules", "module.py")


@dataclass(frozen=True)
class Frame:
    """The user's function that a frame runs. In a frame of torch's wrapper of a module's forward, this is forward."""

    name: str
    file: str
    line: int
    lines: range  #: line numbers of the function's code
    #: positional parameters of forward without self, if the frame is torch's wrapper
    parameters: tuple[str, ...] | None = None
    keywords: frozenset[str] = frozenset()  #: parameter names of forward
    varargs: str | None = None
    varkw: str | None = None

    @classmethod
    def of(cls, code: CodeType, first_type: type | None) -> Frame:
        """Return the Frame of a code object; ``first_type`` is the type of the frame's first variable."""
        if code.co_name in _WRAPPERS and code.co_filename.endswith(_MODULE_FILE) and isinstance(first_type, type):
            forward = _forward(first_type)
            if forward is not None:
                names, n = forward.co_varnames, forward.co_argcount
                named = n + forward.co_kwonlyargcount
                stars = bool(forward.co_flags & 4)
                return cls(
                    f"{first_type.__qualname__}.{forward.co_name}",
                    forward.co_filename,
                    forward.co_firstlineno,
                    _lines(forward),
                    names[1:n],
                    frozenset(names[1:named]),
                    names[named] if stars else None,
                    names[named + stars] if forward.co_flags & 8 else None,
                )
        return cls(code.co_qualname, code.co_filename, code.co_firstlineno, _lines(code))

    def place(self) -> dict[str, Any]:
        """Return the function's name, file and line, as events of the trace have them."""
        return {"name": self.name, "file": self.file, "line": self.line}

    def __str__(self) -> str:
        return f"{self.name!r} ({self.file}:{self.line})"

    def rename(self, place: str) -> str:
        """Replace a place of the wrapper's frame (args[0], kwargs['mask']) by the name of forward's parameter."""
        if self.parameters is None:
            return place
        return _ARGUMENT.sub(self._renamed, place)

    def _renamed(self, match: re.Match[str]) -> str:
        assert self.parameters is not None
        name = match["name"]
        if name is not None:
            return name if name in self.keywords or self.varkw is None else f"{self.varkw}['{name}']"
        number = int(match["index"])
        if number < len(self.parameters):
            return self.parameters[number]
        rest = number - len(self.parameters)
        return f"{self.varargs}[{rest}]" if self.varargs is not None else match[0]


_ARGUMENT = re.compile(r"\bargs\[(?P<index>\d+)\]|\bkwargs\['(?P<name>\w+)'\]")


def _forward(module: type) -> CodeType | None:
    """Return the code of a module class's forward. Runs no user code."""
    for base in type.__dict__["__mro__"].__get__(module):
        found = type.__dict__["__dict__"].__get__(base).get("forward")
        if found is not None:
            seen = 0
            while isinstance(found, FunctionType) and "__wrapped__" in found.__dict__ and seen < 8:
                found, seen = found.__dict__["__wrapped__"], seen + 1
            return found.__code__ if isinstance(found, FunctionType) else None
    return None


def _lines(code: CodeType) -> range:
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return range(code.co_firstlineno, last + 1)


@dataclass(frozen=True)
class Reason:
    """Why one entry did not serve a call."""

    frame: Frame
    subject: str  #: the thing that differs, under its name in the user's code
    field: str  #: the part of it that differs (for a tensor: sizes, dtype, ...), or ""
    expected: str | None  #: the value for which the entry was made
    seen: str | None  #: the value in this call
    remedy: str
    line: int = 0  #: line of the function that uses the value; 0 if other code uses it
    relation: bool = False  #: the subject is a condition, and the values are those of its left side

    def text(self, width: int = WIDTH) -> str:
        """Return one line of at most ``width`` columns."""
        wanted = self.difference(1 << 20)
        for most in (len(self.frame.name), 32, 20):
            where = f"{_name(self.frame.name, most)} ({_file(self.frame.file)}:{self.line or self.frame.line})"
            if len(where) + 2 + len(wanted) <= width:
                return f"{where}: {wanted}"
        return f"{where}: {self.difference(width - len(where) - 2)}"

    def difference(self, width: int = WIDTH) -> str:
        """Return the line without its beginning, the function's name and place."""
        field = f"{self.field} " if self.field else ""
        values = [v for v in (self.expected, self.seen) if v is not None]
        longest = max(map(len, values), default=0)
        for most in (longest, 40, 28, 20):
            told = [_shortened(v, most) for v in values]
            if len(told) == 2 and self.relation:
                said = f": seen {told[1]}, was {told[0]}"
            elif len(told) == 2:
                another = "another " if self.expected == self.seen else ""  # two classes of one name, for instance
                said = f": {field}expected {told[0]}, seen {another}{told[1]}"
            else:
                said = f": {field}seen {told[0]}" if told else ""
            room = width - len(said)
            if room >= min(len(self.subject), 40):
                break
        text = f"{_end(self.subject, max(room, 16))}{said}"
        rest = width - len(text) - 2  # the remedy gets the rest of the line
        return f"{text}; {_shortened(self.remedy, rest)}" if rest >= 12 else _shortened(text, width)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 1)]}..."


def _name(text: str, width: int) -> str:
    """Shorten a qualified name: drop enclosing functions, then everything between the beginning and the last name."""
    text = text.rpartition("<locals>.")[2]
    if len(text) <= width:
        return text
    last = f"...{text.rpartition('.')[2]}"
    return f"{text[: width - len(last)]}{last}" if len(last) < width - 4 else _shortened(text, width)


def _end(text: str, width: int) -> str:
    """Shorten a path to its end, which says more than its beginning."""
    return text if len(text) <= width else f"...{text[len(text) - width + 3 :]}"


def _file(file: str) -> str:
    return _shortened(os.path.basename(file) or file, 28)


_FIELD_REMEDIES = {
    "type": "use one class",
    "dispatch keys": "use one kind of tensor",
    "dtype": "use one dtype",
    "device": "use one device",
    "requires_grad": "use one requires_grad",
    "number of dimensions": "use one number of dimensions",
    "sizes": "pad to few sizes",
    "strides": "use contiguous()",
    "identity": "pass distinct tensors",
}


def reason(failure: Any, frame: Frame) -> Reason:
    """Make a Reason from a text of the core, a str whose attributes are the parts of the failure."""
    part, found, was, place, field = (getattr(failure, k, None) for k in ("part", "found", "was", "place", "field"))
    file, line = getattr(failure, "line", None) or ("", 0)
    at = int(line) if file == frame.file and int(line) in frame.lines else 0
    if field == "state":
        said = str(getattr(failure, "reason", "")).partition(":")[0]
        return Reason(frame, said or "torch's modes", "", was, found, "use one mode for all calls", at)
    if place is not None and field is not None:
        name = frame.rename(guard_words.place(place))
        return Reason(frame, _named(name), field, was, found, _FIELD_REMEDIES.get(field, "use one kind"), at)
    tree = guard_words.parsed(str(part)) if part is not None else None
    predicted = guard_words.prediction(tree.operand if isinstance(tree, ast.UnaryOp) else None)
    if predicted is not None:
        name, truth = predicted
        return Reason(frame, f"the branch on data in {name}", "", str(truth), str(not truth), "use torch.where", at)
    subject, what, remedy = _subject(str(part) if part is not None else str(failure), found)
    relation = isinstance(tree, ast.Compare) and len(tree.ops) == 1 and what == "" and _is_relation(tree)
    return Reason(frame, _named(frame.rename(subject)), what, was, found, remedy, at, relation)


def _named(place: str) -> str:
    return f"an intermediate value, {place}" if place.startswith("stack[") else place


def _subject(part: str, found: str | None) -> tuple[str, str, str]:
    """Return (subject, field, remedy) of a Reason for a condition that does not check a tensor."""
    tree = guard_words.parsed(part)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        tree = tree.operand
    helper = guard_words.called(tree)
    if isinstance(tree, ast.Call) and helper is not None and tree.args:
        first = ast.unparse(tree.args[0])
        if helper in _HELPERS:
            what, remedy = _HELPERS[helper]
            return guard_words.place(first), what, remedy
        if helper in ("___hasattr", "___type_hasattr", "___dict_contains") and len(tree.args) == 2:
            one, other = guard_words.place(first), guard_words.place(ast.unparse(tree.args[1]))
            text = f"{one} in {other}" if helper == "___dict_contains" else f"attribute {other} of {one}"
            return text, "", "keep it as it was at the first call"
    if helper == "___is_grad_enabled":
        return "grad mode", "", "use one grad mode for all calls"
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _compared(tree, found)
    return guard_words.words(part, lambda _: None), "", "keep it the same for all calls"


_HELPERS = {
    "___check_type_id": ("type", "use one type"),
    "___check_obj_id": ("", "use the same object"),
    "___check_mutation": ("", "do not change it between calls"),
    "___cell_empty": ("", "set it before the first call"),
    "___loads": ("", "keep it in place"),
    "___ends_in_code": ("what it replaces", "let it end elsewhere"),
    "___ends": ("", "let it end elsewhere"),
}


def _compared(tree: ast.Compare, found: str | None) -> tuple[str, str, str]:
    left = tree.left
    helper = guard_words.called(left)
    if isinstance(left, ast.Call) and left.args:
        inner = guard_words.place(ast.unparse(left.args[0]))
        if helper in ("___dict_keys", "___param_names"):
            return inner, "keys" if helper == "___dict_keys" else "parameter names", "use the same keys"
        if (isinstance(left.func, ast.Name) and left.func.id == "len") or helper in (
            "___tuple_iterator_len",
            "___iterator_left",
        ):
            return inner, "length", "use one length"
    sizes = any(map(guard_words.is_dimension, ast.walk(tree)))
    remedy = _FIELD_REMEDIES["sizes"] if sizes else _value_remedy(found)
    return guard_words.place(ast.unparse(tree if _is_relation(tree) else left)), "", remedy


def _is_relation(tree: ast.Compare) -> bool:
    """Report whether a condition holds for more than one value of its left side. It is then shown as a whole."""
    right = tree.comparators[0]
    if not isinstance(tree.ops[0], ast.Eq):
        return not isinstance(tree.ops[0], (ast.Is, ast.IsNot))
    if isinstance(right, ast.Name):
        return right.id not in ("inf", "nan")
    return isinstance(right, (ast.Attribute, ast.Subscript, ast.BinOp))


def _value_remedy(found: str | None) -> str:
    try:
        number = ast.literal_eval(found) if found else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        number = None
    if isinstance(number, (int, float, complex)) and not isinstance(number, bool):
        return "use a tensor instead of a number"
    return "use fewer values"


def lines(failures: Sequence[Any], code: CodeType, first_type: type | None, indent: str = "") -> list[str]:
    """Return a line for each entry that did not serve a call, newest entry first."""
    frame = Frame.of(code, first_type)
    out = [f"{indent}{reason(f, frame).text(WIDTH - len(indent))}" for f in failures[:MOST]]
    if len(failures) > MOST:
        out.append(f"{indent}and {len(failures) - MOST} more entries: godynamo.guards(fn) shows them")
    return out
