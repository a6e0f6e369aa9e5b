"""Exceptions that captured code raises and catches have CPython's types and texts: rows S004-73, 79, 95, 107, 111."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch

from harness.graph_counts import one_graph, same, x3
from test_expressions import WRONG_CALLS
from test_operator_table import UNPACKING_ERRORS

row = pytest.mark.row
Pair = namedtuple("Pair", "a b")


class Obj:
    slot = 3

    def __init__(self) -> None:
        self.here = 1

    @property
    def only_read(self) -> int:
        return 5


class BadInit:
    def __init__(self) -> Any:
        return 5


def unbound(x: Any) -> Any:
    if x is None:
        y = 1
    return y


def unbound_cell(x: Any) -> Any:
    def inner() -> Any:
        return late

    r = inner()
    late = 1
    return r


def deleted_cell(x: Any) -> Any:
    kept = 1

    def inner() -> Any:
        return kept

    del kept
    return kept


def del_item(container: Any, key: Any) -> None:
    del container[key]


def set_item(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def del_attr(o: Any) -> None:
    del o.missing


def set_attr(o: Any) -> None:
    o.only_read = 3


ERRORS = {
    "list index": lambda x: [1, 2][5],
    "list index negative": lambda x: [1, 2][-5],
    "list index text": lambda x: [1, 2]["a"],
    "tuple index": lambda x: (1, x)[5],
    "tuple index float": lambda x: (1, x)[1.5],
    "tuple index known": lambda x: (1, 2)[5],
    "range index": lambda x: range(3)[7],
    "str index": lambda x: "abc"[7],
    "dict key": lambda x: {"a": x}["b"],
    "dict key int": lambda x: {"a": x}[5],
    "dict key tuple": lambda x: {"a": x}[(1, 2)],
    "dict key unhashable": lambda x: {"a": x}[[]],
    "int subscript": lambda x: (3)[0],
    "None subscript": lambda x: None[0],
    "object subscript": lambda x: Obj()[0],
    "function subscript": lambda x: del_attr[0],
    "class subscript": lambda x: Obj[0],
    "list assignment": lambda x: set_item([1], 5, x),
    "tuple assignment": lambda x: set_item((1, x), 0, 2),
    "str assignment": lambda x: set_item("abc", 0, "b"),
    "int assignment": lambda x: set_item(5, 0, "b"),
    "object assignment": lambda x: set_item(Obj(), 0, "b"),
    "list deletion": lambda x: del_item([x], 5),
    "dict deletion": lambda x: del_item({}, "k"),
    "tuple deletion": lambda x: del_item((1, x), 0),
    "object deletion": lambda x: del_item(Obj(), 0),
    "pop empty": lambda x: [].pop(),
    "pop index": lambda x: [x].pop(4),
    "remove": lambda x: [1, 2].remove(5),
    "list.index": lambda x: [1, 2].index(5),
    "tuple.index": lambda x: (1, 2).index(5),
    "dict.pop": lambda x: {"a": x}.pop("b"),
    "dict.popitem": lambda x: {}.popitem(),
    "set.remove": lambda x: {1}.remove(2),
    "set.pop": lambda x: set().pop(),
    "set.clear arity": lambda x: {1}.clear(0),
    "set.pop arity": lambda x: {1}.pop(0),
    "set.isdisjoint arity": lambda x: {1}.isdisjoint(1, 2),
    "set.symmetric_difference arity": lambda x: {1}.symmetric_difference([], []),
    "list.append arity": lambda x: [].append(),
    "list.append keyword": lambda x: [].append(a=1),
    "list.insert arity": lambda x: [].insert(1),
    "list.pop type": lambda x: [x].pop("a"),
    "list.extend type": lambda x: [x].extend(5),
    "dict.get arity": lambda x: {"a": x}.get(),
    "dict.update type": lambda x: {"a": x}.update(5),
    "dict.update items": lambda x: {"a": x}.update([(1, 2, 3)]),
    "dict.update length": lambda x: {"a": x}.update([1]),
    "dict of int": lambda x: dict(5),
    "dict twice": lambda x: dict({}, {}),
    "attribute": lambda x: Obj().missing,
    "class attribute": lambda x: Obj.missing,
    "int attribute": lambda x: (5).missing,
    "list attribute": lambda x: [x].missing,
    "tuple attribute": lambda x: (1, x).missing,
    "namedtuple attribute": lambda x: Pair(1, x).missing,
    "function attribute": lambda x: del_attr.missing,
    "None attribute": lambda x: None.missing,
    "super attribute": lambda x: super(Obj, Obj()).missing,
    "attribute deletion": lambda x: del_attr(Obj()),
    "property without setter": lambda x: set_attr(Obj()),
    "int attribute assignment": lambda x: setattr(5, "a", x),
    "name": lambda x: not_a_global_name,  # type: ignore[name-defined] # noqa: F821
    "unbound local": unbound,
    "unbound free": unbound_cell,
    "deleted cell": deleted_cell,
    "int + str": lambda x: 1 + "a",
    "list + int": lambda x: [x] + 1,
    "list + tuple": lambda x: [x] + (1,),
    "tuple + list": lambda x: (1, x) + [1],
    "dict + dict": lambda x: {"a": x} + {},
    "object + int": lambda x: Obj() + 1,
    "int - object": lambda x: 1 - Obj(),
    "object @ object": lambda x: Obj() @ Obj(),
    "object ** int": lambda x: Obj() ** 2,
    "list * float": lambda x: [x] * 1.5,
    "-object": lambda x: -Obj(),
    "~float": lambda x: ~1.5,
    "-list": lambda x: -[x],
    "object < object": lambda x: Obj() < Obj(),
    "int < list": lambda x: 1 < [x],
    "int < str": lambda x: 1 < "a",
    "zero division": lambda x: 1 // 0,
    "in int": lambda x: 1 in 5,
    "in object": lambda x: 1 in Obj(),
    "len of int": lambda x: len(5),
    "len of object": lambda x: len(Obj()),
    "iter of int": lambda x: iter(5),
    "for over int": lambda x: [v for v in 5],
    "for over object": lambda x: [v for v in Obj()],
    "for over function": lambda x: [v for v in del_attr],
    "next of list": lambda x: next([x]),
    "next at the end": lambda x: next(iter([])),
    "int of text": lambda x: int("no"),
    "float of list": lambda x: float([]),
    "max of nothing": lambda x: max([]),
    "min of nothing": lambda x: min(()),
    "sum of texts": lambda x: sum(["a"], ""),
    "zip strict shorter": lambda x: list(zip([1, 2], [1], strict=True)),
    "zip strict longer": lambda x: list(zip([1], [1, 2], strict=True)),
    "zip strict third": lambda x: list(zip([1, 2], [1, 2], [1], strict=True)),
    "sorted mixed": lambda x: sorted([1, "a"]),
    "isinstance": lambda x: isinstance(x, 5),
    "init returns": lambda x: BadInit(),
    "namedtuple arity": lambda x: Pair(1),
    "namedtuple keyword": lambda x: Pair(1, 2, c=3),
    "len of 0-d": lambda x: len(x.sum()),
    "tensor size": lambda x: x.size(4),
    "tensor attribute": lambda x: x.not_an_attribute,
    "chr": lambda x: chr(-1),
    "format": lambda x: format(5, "zz"),
    "percent": lambda x: "%d" % "a",
    "str.format": lambda x: "{}".format(),  # noqa: F524
    "str.index": lambda x: "abc".index("z"),
    "str arity": lambda x: "abc".split(1, 2, 3),
    "import": lambda x: __import__("no_such_module_at_all"),
    **{f"call: {name}": fn for name, fn in WRONG_CALLS.items()},
    **{f"unpack: {name}": fn for name, fn in UNPACKING_ERRORS.items()},
}


@row("S004-73", "S004-79", "S004-95", "S004-107", "S004-111")
@pytest.mark.parametrize("name", ERRORS)
def test_text_of_a_caught_exception(name: str) -> None:
    fails = ERRORS[name]

    def f(x: torch.Tensor) -> Any:
        try:
            fails(x)
        except Exception as e:
            return x * 2, type(e).__name__, str(e), [str(a) for a in e.args]
        return x, None, None, None

    same(f, x3())


@row("S004-107")
def test_common_errors_are_captured() -> None:
    def f(x: torch.Tensor, d: dict[str, Any], items: list[Any]) -> Any:
        out = []
        for look in (lambda: d["missing"], lambda: items[9], lambda: int("no"), lambda: d.missing, lambda: 1 // 0):
            try:
                look()
            except (KeyError, IndexError, ValueError, AttributeError, ZeroDivisionError) as e:
                out.append(str(e))
        return x * len(out), out

    one_graph(f, x3(), {"a": 1}, [1])
