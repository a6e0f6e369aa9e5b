"""Sources of values: every kind of argument and source, aliasing, laziness, exotic operations."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import math
import types
from collections import OrderedDict
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import check, describe, entries, nb, no_translation, outcome, texts, translations, unsupported

Point = collections.namedtuple("Point", "x y")
GLOBAL_LIST = [1, 2.5, "three"]
GLOBAL_DICT = {"k": 4, ("t", 1): 5}


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Pair:
    left: int
    right: float


class User:
    kind = "user"
    __slots__ = ("__dict__", "slotted")

    def __init__(self, value: Any = 1) -> None:
        self.value = value
        self.slotted = 7

    @property
    def double(self):
        return self.value * 2

    def method(self, x):
        return x + self.value


def a_function(x):
    return x * 3


# ---- S002-82 ---------------------------------------------------------------------------------------------------------

# The argument, an operation on it, another value of the same kind, and a word in the guard text ("": any).
KINDS: dict[str, tuple[Any, Any, Any, str]] = {
    "None": (None, lambda x, v: x + (1 if v is None else 2), 3, "v"),
    "int": (2, lambda x, v: x + v, 3, "v == 2"),
    "float": (2.5, lambda x, v: x + v, 3.5, "v == 2.5"),
    "complex": (1 + 2j, lambda x, v: x + v, 2j, "v"),
    "bool": (True, lambda x, v: x + 1 if v else x - 1, False, "v"),
    "str": ("ab", lambda x, v: x + len(v), "abc", "v == 'ab'"),
    "bytes": (b"ab", lambda x, v: x + v[0], b"cd", "v == b'ab'"),
    "list": ([1, 2], lambda x, v: x + v[0] + len(v), [1, 2, 3], "len(v)"),
    "tuple": ((1, 2), lambda x, v: x + v[0] + len(v), (1, 2, 3), "len(v)"),
    "dict": ({"a": 1}, lambda x, v: x + v["a"] + len(v), {"a": 2}, "v"),
    "set": ({1, 2}, lambda x, v: x + (1 if 1 in v else 2), {3}, ""),
    "frozenset": (frozenset({1}), lambda x, v: x + (1 if 1 in v else 2), frozenset({2}), ""),
    "range": (range(0, 3), lambda x, v: x + sum(v), range(0, 4), "range(0, 3)"),
    "slice": (slice(0, 2), lambda x, v: x[v] + 1, slice(1, 3), "slice(0, 2"),
    "Size": (torch.Size([3]), lambda x, v: x + v[0], torch.Size([4]), ""),
    "dtype": (torch.float64, lambda x, v: x.to(v), torch.float16, ""),
    "device": (torch.device("cpu"), lambda x, v: x + torch.ones(3, device=v), torch.device("cpu", 0), ""),
    "module": (math, lambda x, v: x + v.pi, types.SimpleNamespace(pi=3), ""),
    "function": (a_function, lambda x, v: v(x), lambda x: x - 1, ""),
    "builtin": (abs, lambda x, v: x + v(-1), len, ""),
    "method": (User(4).method, lambda x, v: v(x), User(5).method, ""),
    "class": (Pair, lambda x, v: x + v(1, 2.0).left, Point, ""),
    "enum": (Color.RED, lambda x, v: x + (1 if v is Color.RED else 2), Color.BLUE, ""),
    "namedtuple": (Point(1, 2), lambda x, v: x + v.x * v.y, Point(3, 4), ""),
    "dataclass": (Pair(1, 2.0), lambda x, v: x + v.left * v.right, Pair(2, 2.0), "v.left"),
    "tensor": (torch.ones(3), lambda x, v: x + v, torch.ones(1), "___check_tensors"),
    "Parameter": (torch.nn.Parameter(torch.ones(3)), lambda x, v: (x + v).detach(), torch.ones(3), "___check_tensors"),
    "nn.Module": (torch.nn.Linear(3, 2), lambda x, v: v(x).detach(), torch.nn.Linear(3, 4), ""),
    "user object": (User(3), lambda x, v: x + v.value, User(4), "v.value"),
    "partial": (functools.partial(a_function), lambda x, v: v(x), functools.partial(abs), ""),
    "OrderedDict": (OrderedDict(a=1), lambda x, v: x + v["a"], OrderedDict(b=2, a=3), ""),
}


@pytest.mark.row("S002-82")
@pytest.mark.parametrize("kind", list(KINDS))
def test_an_argument_of_each_kind_is_captured_and_guarded(kind: str) -> None:
    value, use, other, word = KINDS[kind]

    def f(x, v):
        return use(x, v)

    backend = nb()
    w = godynamo.optimize(f, backend=backend)
    x = torch.randn(3)
    expected = outcome(f, (x, value))
    assert outcome(w, (x, value)) == expected
    assert len(backend) == 1, "captured in one graph"
    [entry] = entries(w)
    assert word in entry.text
    with no_translation():
        assert outcome(w, (x, value)) == expected
    assert outcome(w, (x, other)) == outcome(f, (x, other))
    assert outcome(w, (x, value)) == expected


@pytest.mark.row("S002-83")
def test_a_range_is_guarded_by_equality() -> None:
    def f(x, r):
        for i in r:
            x = x + i
        return x

    w = godynamo.optimize(f, backend=(backend := nb()))
    x = torch.randn(2)
    assert torch.equal(w(x, range(0, 3)), f(x, range(0, 3)))
    assert "r == range(0, 3)" in texts(w)[0]
    with no_translation():
        w(x, range(3))
    with translations(1):
        assert torch.equal(w(x, range(1, 3)), f(x, range(1, 3)))
    assert len(backend) == 2
    with translations(1):
        assert torch.equal(w(x, range(0, 3, 2)), f(x, range(0, 3, 2)))


# ---- S002-84, 85 -----------------------------------------------------------------------------------------------------


def appends(a, b, x):
    a.append(x + 1)
    b.append(2)
    return len(a), len(b), a is b


@pytest.mark.row("S002-84")
def test_one_object_by_two_paths_is_one_tracker() -> None:
    shared: list[Any] = []
    check(appends, shared, shared, torch.randn(2))
    check(appends, [], [], torch.randn(2))
    w = godynamo.optimize(appends, backend=nb())
    both: list[Any] = []
    assert w(both, both, torch.randn(2))[:2] == (2, 2) and len(both) == 2
    assert w([], [], torch.randn(2)) == (1, 1, False), "not served by the entry of the aliased call"
    assert w(both, both, torch.randn(2))[2] is True


@pytest.mark.row("S002-84")
def test_an_object_reached_through_another_is_one_tracker() -> None:
    def f(user, items, x):
        user.value.append(1)
        items.append(2)
        return x + len(user.value), user.value is items

    items: list[Any] = []
    check(f, User(items), items, torch.randn(2))
    check(f, User([]), items, torch.randn(2))


@pytest.mark.row("S002-85")
def test_an_unused_argument_has_no_value_guard() -> None:
    def f(x, unused, used, obj=None):
        return x + used

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    w(x, 1, 2)
    [text] = texts(w)
    assert "used == 2" in text and "unused" not in text.replace("___", "") and "obj" not in text
    with no_translation():
        for unused in (2, "text", None, [1], torch.ones(1)):
            assert torch.equal(w(x, unused, 2, User()), x + 2)


@pytest.mark.row("S002-85")
def test_an_element_that_is_not_read_has_no_value_guard() -> None:
    w = godynamo.optimize(lambda x, items: x + items[0], backend=nb())
    x = torch.randn(2)
    w(x, [1, 2])
    with no_translation():
        assert torch.equal(w(x, [1, 99]), x + 1)
    with translations(1):
        assert torch.equal(w(x, [5, 2]), x + 5)


# ---- S002-81: read again in transformed code -------------------------------------------------------------------------


def reads_everything(free: Any) -> Any:
    def f(x, local, obj, items, d, module, *rest, k=1, **more):
        y = x + 1
        got = unsupported(y)
        # the resume function loads each of these itself, or receives it from the code before the break
        return (
            got * 2, local, obj.value, obj.slotted, type(obj).kind, items[1], d["k"], free, GLOBAL_LIST[2],
            GLOBAL_DICT["k"],
            module.weight, rest[0], k, more["m"], obj.double, len, math.pi,
        )  # fmt: skip

    return f


@pytest.mark.row("S002-81")
def test_each_kind_of_source_is_read_after_a_break() -> None:
    args = (torch.randn(3), [1], User(5), [1, 2], {"k": 9}, torch.nn.Linear(2, 2), "rest")
    check(reads_everything("free"), *args, k=3, m=4)


LOADS: dict[str, Any] = {
    "local": lambda x, o: (o, unsupported(x + 1)),
    "attribute": lambda x, o: (o.value, unsupported(x + 1)),
    "slot": lambda x, o: (o.slotted, unsupported(x + 1)),
    "type": lambda x, o: (type(o), unsupported(x + 1)),
    "class attribute": lambda x, o: (o.kind, unsupported(x + 1)),
    "method": lambda x, o: (o.method, unsupported(x + 1)),
    "property": lambda x, o: (o.double, unsupported(x + 1)),
    "global": lambda x, o: (GLOBAL_LIST, unsupported(x + 1)),
    "global item": lambda x, o: (GLOBAL_LIST[0], GLOBAL_DICT[("t", 1)], unsupported(x + 1)),
    "builtin": lambda x, o: (len, unsupported(x + 1)),
    "module attribute": lambda x, o: (math.sin, torch.relu, unsupported(x + 1)),
    "constant": lambda x, o: ((1, "two"), unsupported(x + 1)),
    "tensor attribute": lambda x, o: (x.shape, x.dtype, unsupported(x + 1)),
    "dict": lambda x, o: (o.__dict__, unsupported(x + 1)),
}


@pytest.mark.row("S002-81")
@pytest.mark.parametrize("kind", list(LOADS))
def test_a_value_on_the_stack_is_loaded_for_the_break(kind: str) -> None:
    backend = check(LOADS[kind], torch.randn(3), User([1, 2]))
    assert backend.all_ops() == ["add"]


@pytest.mark.row("S002-81")
def test_a_tuple_iterator_keeps_its_place() -> None:
    def f(x, iterator):
        first = next(iterator)
        y = unsupported(x + first)
        return y * next(iterator), iterator

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    for _ in range(2):
        ours, theirs = iter((2, 3, 4)), iter((2, 3, 4))
        assert torch.equal(w(x, ours)[0], f(x, theirs)[0]) and list(ours) == list(theirs) == [4]


# ---- S002-78: operations a kind lacks --------------------------------------------------------------------------------


class Odd:
    def __getitem__(self, key):
        return ("item", key)

    def __call__(self, *args):
        return ("called", len(args))

    def __iter__(self):
        return iter((1, 2))

    def __len__(self):
        return 5

    def __add__(self, other):
        return "added"

    def __radd__(self, other):
        return "radded"

    def __contains__(self, item):
        return item == 3

    def __eq__(self, other):
        return "equal"

    __hash__ = None  # type: ignore[assignment]

    def __enter__(self):
        return "entered"

    def __exit__(self, *args):
        return None

    def __bool__(self):
        return False

    def __format__(self, spec):
        return f"<{spec}>"

    def __matmul__(self, other):
        return "matmul"

    def __index__(self):
        return 1


OPERATIONS: dict[str, Any] = {
    "getitem": lambda v: v[0],
    "slice": lambda v: v[0:1],
    "call": lambda v: v(),
    "iterate": lambda v: [i for i in v],
    "unpack": lambda v: [*v],
    "len": lambda v: len(v),
    "add": lambda v: v + v,
    "radd": lambda v: 1 + v,
    "matmul": lambda v: v @ v,
    "contains": lambda v: 3 in v,
    "equal": lambda v: v == v,
    "less": lambda v: v < v,
    "negative": lambda v: -v,
    "truth": lambda v: 1 if v else 2,
    "attribute": lambda v: v.no_such_attribute,
    "method": lambda v: v.no_such_method(1),
    "format": lambda v: f"{v:>3}",
    "hash": lambda v: {v: 1}[v],
    "store": lambda v: setattr(v, "zz", 1),
    "delete item": lambda v: v.__delitem__(0),
    "index": lambda v: [1, 2, 3][v],
    "bool": lambda v: bool(v),
    "isinstance": lambda v: isinstance(v, (list, Odd)),
    "int": lambda v: int(v),
    "reversed": lambda v: list(reversed(v)),
}
EXOTIC: dict[str, Any] = {
    "odd object": Odd,
    "int": lambda: 3,
    "None": lambda: None,
    "str": lambda: "abc",
    "list": lambda: [1, 2],
    "dict": lambda: {0: 1},
    "tensor": lambda: torch.arange(3.0),
    "module": lambda: math,
    "function": lambda: a_function,
    "class": lambda: Pair,
    "range": lambda: range(3),
    "nn.Module": lambda: torch.nn.ReLU(),
    "enum": lambda: Color.RED,
}


@pytest.mark.row("S002-78")
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_an_operation_a_kind_lacks_breaks_the_graph_and_never_crashes(operation: str) -> None:
    use = OPERATIONS[operation]

    def f(x, v):
        y = x + 1
        return y, use(v)

    for kind, make in EXOTIC.items():
        theirs = strip(outcome(f, (torch.ones(2), make())))
        w = godynamo.optimize(f, backend=nb())
        for _ in range(2):
            assert strip(outcome(w, (torch.ones(2), make()))) == theirs, kind
    from godynamo import _C

    assert _C.counters()["internal_errors"] == 0


def strip(result: dict[str, Any]) -> Any:
    """Return the outcome as text, without addresses in reprs."""
    import re

    return re.sub(r"0x[0-9a-f]+", "0x", repr(result))


def test_describe_tells_values_apart() -> None:
    """Check the comparison itself: which values it considers equal and which not."""
    one = [1]
    assert describe([one, one]) != describe([[1], [1]])
    assert describe(1) != describe(True) != describe(1.0) and describe(0.0) != describe(-0.0)
    assert describe(torch.ones(2)) == describe(torch.ones(2)) != describe(torch.ones(2, dtype=torch.float64))
    assert describe({"a": 1, "b": 2}) != describe({"b": 2, "a": 1})
