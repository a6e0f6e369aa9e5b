"""Represents an entry's guards as objects (with kind, place and the user's line), as text and as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import guard_words, source_lines

Line = tuple[str, int]  #: file, line from 1

#: beginning of a condition without a recorded kind of guard -> the word that is shown as the condition's kind
_WITHOUT_KIND = {
    "___guarded_code.valid": "VALID",
    "___loads(": "LOADS",
    "___check_global_state(": "GLOBAL_STATE",
}


@dataclass(frozen=True)
class Guard:
    """One assumption that a translation makes about a call.

    >>> guard = godynamo.guards(f)[0].guards[1]  # doctest: +SKIP
    >>> guard.kind, guard.name, guard.words, guard.line  # doctest: +SKIP
    ('TYPE_MATCH', 'n', 'type(n) is int', ('program.py', 12))
    """

    #: the guarded place, as an expression: ``x``, ``self._modules['layer']``, ``G['torch'].nn``; "" for the process
    name: str
    #: TYPE_MATCH, TENSOR_MATCH, ...; VALID (the entry is valid) and LOADS (a value can be read) are not kinds of guards
    kind: str
    #: family of the place: LOCAL, GLOBAL, LOCAL_NN_MODULE, GLOBAL_NN_MODULE, CONSTANT, or ""
    source: str
    #: the condition as a Python expression, evaluated with the names that the whole guard text of the cache entry uses;
    #: all tensors share one condition
    text: str
    #: the condition in words
    words: str
    #: (file, line) of the user's code that was being translated when the guard was made, or None
    line: Line | None

    @property
    def create_fn_name(self) -> str:
        """The kind of guard, under torch's name for the attribute."""
        return self.kind

    @property
    def is_nn_module(self) -> bool:
        """Whether the guard checks a place inside an nn.Module."""
        return self.source.endswith("NN_MODULE")

    def __str__(self) -> str:
        return self.words + (f"  # {source_lines.short(self.line[0])}:{self.line[1]}" if self.line else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, ``line`` as [file, line] or None."""
        return {
            "name": self.name,
            "kind": self.kind,
            "source": self.source,
            "text": self.text,
            "words": self.words,
            "line": list(self.line) if self.line else None,
        }


@dataclass
class GuardTree:
    """Guards grouped by place: ``x.weight`` is a child of ``x``. ``str()`` draws the tree."""

    name: str  #: the place in words, "" at the root
    guards: list[Guard] = field(default_factory=list)  #: guards of exactly this place
    children: list[GuardTree] = field(default_factory=list)  #: places that are read from this place

    def __iter__(self) -> Iterator[GuardTree]:
        return iter(self.children)

    def to_dict(self) -> dict[str, Any]:
        """Return the name, guards and children as plain dicts and lists."""
        return {
            "name": self.name,
            "guards": [g.to_dict() for g in self.guards],
            "children": [c.to_dict() for c in self.children],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        if self.name:
            yield self.name
        own = [f"{guard.kind}: {guard}" for guard in self.guards]
        below = [list(child._lines("")) for child in self.children]
        rows = [[text] for text in own] + below
        for i, row in enumerate(rows):
            last = i == len(rows) - 1
            corner, bar = ("", "") if not self.name else ("└─ ", "   ") if last else ("├─ ", "│  ")
            yield indent + corner + row[0]
            for line in row[1:]:
                yield indent + bar + line


@dataclass
class GuardText:
    """The guards of one entry: a Python expression, and its parts with the user's lines that needed them."""

    text: str  #: executable in the environment of godynamo._called.guard_env
    parts: list[tuple[str, Line | None]]  #: the conditions in the order of checking
    hits: int  #: calls served by the entry
    valid: bool  #: False after an object that the entry depends on has died, and after reset()
    function: str = ""  #: the user's function, with file and line
    file: str = ""
    line: int = 0
    guards: list[Guard] = field(default_factory=list)  #: the conditions as objects, with one per tensor

    def tree(self) -> GuardTree:
        """Return the guards by place; see :class:`GuardTree`."""
        root = GuardTree("")
        made: dict[str, GuardTree] = {}

        def at(name: str) -> GuardTree:
            if name not in made:
                above = guard_words.base(name)
                made[name] = GuardTree(guard_words.place(name, members=False))
                (root if above is None else at(above)).children.append(made[name])
            return made[name]

        for guard in self.guards:
            (at(guard.name) if guard.name else root).guards.append(guard)
        return root

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, with the guards as dicts."""
        return {
            "function": self.function,
            "file": self.file,
            "line": self.line,
            "hits": self.hits,
            "valid": self.valid,
            "text": self.text,
            "guards": [g.to_dict() for g in self.guards],
        }

    def __str__(self) -> str:
        lines = [self.text]
        for part, where in self.parts:
            lines.append(f"  {part}" + (f"  # {where[0]}:{where[1]}" if where else ""))
        return "\n".join(lines)


def of_entry(entry: Any) -> GuardText:
    """Return the guards of a GuardedCode."""
    parts = list(zip(entry.parts, entry.part_lines or (None,) * len(entry.parts), strict=True))
    code = entry.orig_code
    out = GuardText(" and ".join(entry.parts), parts, entry.hits, entry.valid, guards=list(_guards(entry, parts)))
    if code is not None:
        out.function, out.file, out.line = code.co_qualname, code.co_filename, code.co_firstlineno
    return out


def _guards(entry: Any, parts: list[tuple[str, Line | None]]) -> Iterator[Guard]:
    kinds: dict[int, list[list[str]]] = {}
    for row in ((entry.info or {}).get("guard_kinds") or "").splitlines():
        number, *rest = row.split("\t")
        kinds.setdefault(int(number), []).append(rest)
    tensors = entry.tensor_checks()
    for i, (text, line) in enumerate(parts):
        rows = kinds.get(i) or [_without_kind(text)]
        if rows[0][0] != "TENSOR_MATCH":
            said = guard_words.words(text, entry.const_by_id)
            for kind, source, name, *_ in rows:
                yield Guard(name, kind, source, text, said, line)
            continue
        for row, check in zip(rows, tensors, strict=False):
            kind, source, name, *where = row
            said = guard_words.tensor(guard_words.place(name, entry.const_by_id), check)
            yield Guard(name, kind, source, text, said, (where[1], int(where[0])) if len(where) == 2 else line)


def _without_kind(text: str) -> list[str]:
    for start, kind in _WITHOUT_KIND.items():
        if text.startswith(start):
            return [kind, "", text[len(start) : -1] if kind == "LOADS" else ""]
    return ["OTHER", "", ""]
