"""Exceptions of CPython's C code that the program catches: text and arguments are known without a graph break."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter
from harness.cases import reasons


class Slots:
    __slots__ = ("a",)


class Plain:
    @property
    def read_only(self) -> int:
        return 1

    def __len__(self) -> int:
        return -1


def unbound() -> Any:
    if len("") > 1:
        value = 1
    return value


RAISING: dict[str, Callable[[], Any]] = {
    "missing key": lambda: {"a": 1}["b"],
    "missing key that is a tuple": lambda: {}[(1, "x")],
    "pop of a missing key": lambda: {"a": 1}.pop("b"),
    "popitem of an empty dict": lambda: {}.popitem(),
    "pop of an empty dict, which hashes no key": lambda: {}.pop([]),
    "pop of an empty set": lambda: set().pop(),
    "remove from a set": lambda: {1}.remove(2),
    "index of a list": lambda: [1, 2][5],
    "index of a tuple": lambda: (1, 2)[5],
    "index of a range": lambda: range(2)[5],
    "index of a text": lambda: "ab"[5],
    "pop of an empty list": lambda: [].pop(),
    "pop of an empty deque": lambda: collections.deque().pop(),
    "missing attribute": lambda: Plain().missing,
    "missing attribute of a class": lambda: Plain.missing,
    "missing attribute of a list": lambda: [].missing,
    "missing attribute of an int": lambda: (1).missing,
    "slot without a value": lambda: Slots().a,
    "property without a setter": lambda: setattr(Plain(), "read_only", 1),
    "attribute of slots": lambda: setattr(Slots(), "b", 1),
    "call of an instance": lambda: Plain()(),
    "call of a list": lambda: [](),
    "subscript of an instance": lambda: Plain()[0],
    "item of an instance": lambda: Plain().__class__.__name__[0] and Plain()[0:1],
    "unhashable": lambda: {[]: 1},
    "unhashable in a tuple": lambda: {([],): 1},
    "operands": lambda: 1 + "a",
    "operands of instances": lambda: Plain() + Plain(),
    "comparison": lambda: Plain() < Plain(),
    "concatenation": lambda: [1] + (2,),
    "length below zero": lambda: len(Plain()),
    "length of an int": lambda: len(5),
    "minimum of nothing": lambda: min([]),
    "maximum of nothing": lambda: max(()),
    "list without the value": lambda: [1].index(2),
    "removal from a list": lambda: [1].remove(2),
    "removal from a deque": lambda: collections.deque([1]).remove(2),
    "tuple without the value": lambda: (1,).index(2),
    "text without the value": lambda: "a".index("b"),
    "too few to unpack": lambda: [(a, b) for a, b in [(1,)]],
    "too many to unpack": lambda: [(a, b) for a, b in [(1, 2, 3)]],
    "zip of other lengths": lambda: list(zip([1], [1, 2], strict=True)),
    "integer of a text": lambda: int("x"),
    "division by zero": lambda: 1 // 0,
    "format": lambda: "%d %d" % (1,),  # noqa: F507
    "format of a missing field": lambda: "{} {}".format(1),  # noqa: F524
    "format of a missing name": lambda: "{a}".format(b=1),  # noqa: F522, F524
    "unbound variable": unbound,
    "unknown name": lambda: no_such_name,  # type: ignore[name-defined] # noqa: F821
    "argument missing": lambda: (lambda a: a)(),  # type: ignore[misc,call-arg]
    "argument too many": lambda: (lambda a: a)(1, 2),  # type: ignore[misc,call-arg]
    "argument of another name": lambda: (lambda a: a)(b=1),  # type: ignore[misc,call-arg]
    "not iterable": lambda: list(5),  # type: ignore[call-overload]
    "not an iterator": lambda: next(5),  # type: ignore[call-overload]
    "not a manager": lambda: contextlib.ExitStack().enter_context(5),  # type: ignore[arg-type]
    "no factory": lambda: collections.defaultdict(5),  # type: ignore[call-overload]
    "changed while walked": lambda: [d.update(b=2) for d in [{"a": 1}] for _ in d],
}

#: CPython determines the text of these, so the graph breaks
SPLIT = frozenset({"not a manager", "not iterable"})


@pytest.mark.row("S004-107")
@pytest.mark.parametrize("name", RAISING)
def test_caught(name: str) -> None:
    run = RAISING[name]

    def f(x: torch.Tensor) -> Any:
        y = x + 1
        try:
            run()
        except Exception as error:
            return y * 2, str(error), error.args, type(error).__name__, len(error.args)
        return y

    backend = CompileCounter()
    compiled = godynamo.optimize(f, backend=backend)
    x = torch.ones(2)
    for _ in range(2):
        expected, actual = f(x), compiled(x)
        assert torch.equal(expected[0], actual[0])
        assert actual[1:] == expected[1:]
    assert _C.counters()["internal_errors"] == 0
    if name not in SPLIT:
        assert not reasons() and backend.frame_count == 1, reasons()
