"""Handwritten guard programs: text and nodes side by side, as the Go side emits them."""

from __future__ import annotations

import types
from typing import Any

from godynamo import _C

STRONG, WEAK, OWNER = 0, 1, 2
ALL_FIELDS, ALL_DIMS = 255, 2**64 - 1
PRESENT, STATE, THREADS = 1, 2, 8


class Place:
    """The source of a value: its text and its register."""

    def __init__(self, text: str, reg: int):
        self.text, self.reg = text, reg


class Program:
    """Builds one entry for a function: ``p = Program(f); x = p.slot("x"); p.type_is(x, int); entry = p.entry()``."""

    def __init__(self, function: types.FunctionType, names: list[str] | None = None):
        self.function = function
        self.code = function.__code__
        count = self.code.co_argcount + self.code.co_kwonlyargcount
        self.names = names or [*self.code.co_varnames[:count], *self.code.co_freevars]
        self.nslots = len(self.names)
        self.nregs = self.nslots + 2
        self.nodes: list[tuple[Any, ...]] = []
        self.consts: list[tuple[Any, int]] = []
        self.tensors: list[tuple[Any, ...]] = []
        self.tensor_names: list[str] = []
        self.parts: list[str] = []
        self.ncaches = self.nkept = 0
        self.sizes: list[tuple[Any, ...]] = []
        self.late: list[tuple[str, tuple[Any, ...]]] = []  # (part, node) of each node after TENSORS
        self.extra: list[int] = []
        self.more: dict[str, Any] = {}
        self._part("___guarded_code.valid")
        self._node("VALID")

    # ---- pieces

    def _part(self, text: str) -> None:
        self.parts.append(text)

    def _node(self, op: str, src: int = 0, a: int = 0, b: int = 0, flags: int = 0, dst: int = 0) -> None:
        self.nodes.append((op, flags, dst, src, len(self.parts) - 1, a, b))

    def const(self, obj: Any, keep: int = STRONG) -> int:
        self.consts.append((obj, keep))
        return len(self.consts) - 1

    def cache(self) -> int:
        self.ncaches += 1
        return self.ncaches - 1

    def fetch(self, base: Place, text: str, op: str, a: int = 0, b: int = 0) -> Place:
        """Append an access node; it belongs to the next part."""
        self.nodes.append((op, 0, self.nregs, base.reg, len(self.parts), a, b))
        self.nregs += 1
        return Place(text, self.nregs - 1)

    # ---- places

    def slot(self, name: str) -> Place:
        return Place(name, self.names.index(name))

    def globals(self) -> Place:
        return Place("G", self.nslots)

    def global_(self, name: str) -> Place:
        return self.fetch(self.globals(), name, "DICT_GET", self.const(name), self.cache())

    def cell(self, name: str) -> Place:
        return self.fetch(self.slot(name), name, "CELL")

    def attr(self, base: Place, name: str) -> Place:
        return self.fetch(base, f"{base.text}.{name}", "ATTR", self.const(name), self.cache())

    def item(self, base: Place, key: Any) -> Place:
        return self.fetch(base, f"{base.text}[{key!r}]", "DICT_GET", self.const(key), self.cache())

    def index(self, base: Place, i: int) -> Place:
        return self.fetch(base, f"{base.text}[{i}]", "INDEX", i % 2**32)

    def type_of(self, base: Place) -> Place:
        return self.fetch(base, f"type({base.text})", "TYPE")

    def type_attr(self, base: Place, name: str) -> Place:
        return self.fetch(base, f"___type_lookup({base.text}, {name!r})", "TYPE_ATTR", self.const(name))

    def helper(self, base: Place, text: str, op: str, a: int = 0, b: int = 0) -> Place:
        return self.fetch(base, text.format(base.text), op, a, b)

    # ---- checks

    def check(self, text: str, op: str, src: Place | None = None, a: int = 0, b: int = 0, flags: int = 0) -> None:
        self._part(text)
        self._node(op, src.reg if src is not None else 0, a, b, flags)

    def type_is(self, p: Place, kind: type, keep: int = WEAK) -> None:
        self.check(f"___check_type_id({p.text}, {id(kind)})", "TYPE_MATCH", p, self.const(kind, keep))

    def is_(self, p: Place, obj: Any, keep: int = WEAK) -> None:
        self.check(f"___check_obj_id({p.text}, {id(obj)})", "ID_MATCH", p, self.const(obj, keep))

    def equals(self, p: Place, value: Any, text: str | None = None) -> None:
        self.check(text or f"___equals({p.text}, {value!r})", "EQUALS", p, self.const(value))

    def length(self, p: Place, n: int) -> None:
        self.check(f"len({p.text}) == {n}", "LENGTH", p, n)

    def has_attr(self, p: Place, name: str, present: bool) -> None:
        text = f"___hasattr({p.text}, {name!r})"
        self.check(
            text if present else "not " + text, "HAS_ATTR", p, self.const(name), self.cache(), PRESENT if present else 0
        )

    def type_has_attr(self, p: Place, name: str, present: bool) -> None:
        text = f"___type_hasattr({p.text}, {name!r})"
        self.check(
            text if present else "not " + text, "TYPE_HAS_ATTR", p, self.const(name), 0, PRESENT if present else 0
        )

    def keys(self, p: Place, keys: tuple[Any, ...]) -> None:
        self.check(f"___dict_keys({p.text}) == {keys!r}", "DICT_KEYS", p, self.const(keys), self.cache())

    def contains(self, p: Place, key: Any, present: bool) -> None:
        text = f"___dict_contains({key!r}, {p.text})"
        self.check(
            text if present else "not " + text,
            "DICT_CONTAINS",
            p,
            self.const(key),
            self.cache(),
            PRESENT if present else 0,
        )

    def same(self, p: Place, q: Place, same: bool = True) -> None:
        self.check(f"{p.text} is {'' if same else 'not '}{q.text}", "SAME" if same else "DIFFERENT", p, q.reg)

    def tensor(
        self, p: Place, example: Any, fields: int = ALL_FIELDS, sizes: int = ALL_DIMS, strides: int = ALL_DIMS
    ) -> None:
        self.tensors.append((p.reg, fields, sizes, strides, example))
        self.tensor_names.append(p.text)

    def condition(self, text: str, *steps: tuple[Any, ...]) -> None:
        """Check a condition on sizes. A step is (name, dimension, register, number), or shorter."""
        self.late.append((text, ("SHAPE_ENV", 0, len(self.sizes), len(steps))))
        self.sizes += [(*step, *(0, 0, 0)[len(step) - 1 :]) for step in steps]

    def size(self, p: Place, dim: int, what: str = "size") -> Place:
        """Fetch a tensor's size or stride, after the tensors have been checked."""
        text, reg = f"{p.text}.{what}()[{dim}]", self.nregs
        self.late.append((f"___loads({text})", (f"TENSOR_{what.upper()}", p.reg, dim, self.nkept, 0, reg)))
        self.nregs += 1
        self.nkept += 1
        return Place(text, reg)

    # ---- the entry

    def spec(self) -> dict[str, Any]:
        if self.tensors:
            self._part(f"___check_tensors({', '.join(self.tensor_names)})")
            self._node("TENSORS", 0, 0, len(self.tensors), STATE | THREADS)
        for text, node in self.late:
            self._part(text)
            self._node(*node)
        return {
            "nslots": self.nslots,
            "nregs": self.nregs,
            "ncaches": self.ncaches,
            "nkept": self.nkept,
            "sizes": self.sizes,
            "nodes": self.nodes,
            "consts": self.consts,
            "tensors": self.tensors,
            "parts": self.parts,
            "extra": self.extra,
            "function": self.function,
            "orig_code": self.code,
            **self.more,
        }

    def entry(self) -> Any:
        return _C.make_entry(self.spec())
