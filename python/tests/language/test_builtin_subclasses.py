"""Instances of subclasses of builtin types: C code calls the same methods of their classes as in CPython."""

from __future__ import annotations

import collections
import enum
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C

LOG: list[Any] = []
N = float("nan")


def own(base: type, *args: Any, **methods: Any) -> Any:
    """Return an instance of a subclass of ``base`` with these special methods, each returning the given value."""

    def method(name: str, value: Any) -> Callable[..., Any]:
        def call(self: Any, *args: Any) -> Any:
            LOG.append(name)
            return value

        return call

    made = {f"__{name}__": method(name, value) for name, value in methods.items()}
    return type("C", (base,), made)(*args)


Pair = collections.namedtuple("Pair", "a b")


class Reflected(Pair):
    def __rsub__(self, other: Any) -> Any:
        return ("rsub", other)


class Fields(Pair):
    extra = property(lambda self: self.a + 1)

    def __len__(self) -> int:
        return 7


class Left:
    def __add__(self, other: Any) -> Any:
        return NotImplemented

    def __radd__(self, other: Any) -> Any:
        return ("radd", type(self).__name__)


class Right(Left):
    """Extends Left and overrides nothing."""


class Loud(enum.IntEnum):
    RED = 1
    BLUE = 2

    def __eq__(self, other: Any) -> Any:
        LOG.append("eq")
        return "equal"

    __hash__ = enum.IntEnum.__hash__

    def __isub__(self, other: Any) -> Any:
        LOG.append("isub")
        return 5


def added(o: Any, v: Any) -> Any:
    o += v
    return o


CASES: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "text": (
        lambda o: ("%s" % o, f"{o}", str(o), repr(o), "{}".format(o), f"{o:>4}"),
        [
            own(str, "ab"),
            own(str, "ab", str="S"),
            own(str, "ab", repr="R"),
            own(int, 5, repr="R"),
            own(float, 1.5, str="S"),
        ],
    ),
    "format": (lambda o: f"{o:.2f}", [own(int, 5), own(int, 5, float=1.25), own(float, 2.0), own(str, "ab")]),
    "percent": (lambda o: "%d %s" % (o, o), [own(int, 5), own(int, 5, str="S"), own(dict), own(str, "a")]),
    "truth": (
        lambda o: (bool(o), not o, 1 if o else 2),
        [
            own(int, 5, len=0),
            own(int, 5, bool=False),
            own(list, [1], bool=False),
            own(str, "", len=3),
            own(int, 5, bool=3),
        ],
    ),
    "index": (
        lambda o: (operator.index(o), [1, 2, 3][o], "abc"[:o], list(range(o))),
        [own(int, 1, index=2), own(int, 1, int=0), own(float, 1.0), own(object, index="i"), own(object, index=1)],
    ),
    "int": (lambda o: int(o), [own(int, 5, int=21), own(float, 1.5, trunc=9), own(str, "12", trunc=9), own(list)]),
    "complex": (lambda o: complex(o), [own(int, 5, float=1.5), own(complex, 1j, complex=2j), own(float, N), own(dict)]),
    "iteration": (
        lambda o: (list(o), [*o], tuple(o), 1 in o, len(o)),
        [own(str, "ab", iter=iter(())), own(tuple, (1,), contains=True), own(list, [1, 2]), own(dict, {1: 2})],
    ),
    "an operator that no class takes": (
        lambda o: o // "x",
        [own(str, "ab"), own(bytes, b"a"), own(tuple, (1,)), own(dict), own(int, 1), own(float, 1.0)],
    ),
    "unary": (
        lambda o: (-o, abs(o), ~o),
        [own(int, 5), own(str, "a"), own(int, 5, neg="n"), own(list), own(int, -1, abs=3)],
    ),
    "comparison": (
        lambda o: (o == 5, 5 == o, o != 5),
        [own(int, 5), own(int, 5, eq=NotImplemented), own(float, N), own(int, 5, eq=[])],
    ),
    "order": (lambda o: o < 3, [own(int, 5), own(str, "a"), own(int, 5, lt="lt"), own(list, [1])]),
    "in place": (
        lambda o: added(o, 2),
        [own(int, 5), own(int, 5, iadd=NotImplemented), own(int, 5, iadd=7), own(str, "a"), own(tuple, (1,))],
    ),
    "text in place": (
        lambda o: operator.imod(o, "x"),
        [own(str, "%s"), own(str, "%s", imod=3), own(str, "%s", rmod=3)],
    ),
    "a method of another type": (
        lambda o: (list.__len__(o), dict.get(o, 1)),
        [own(str, "ab"), own(list, [1]), own(dict, {1: 2}), own(tuple)],
    ),
    "a method of object": (
        lambda o: (object.__repr__(o)[:9], o.__str__(), object.__hash__(o) == hash(o)),
        [own(int, 5), collections.Counter("aab"), range(3), ValueError("text"), own(str, "a", hash=7)],
    ),
    "rounding": (
        lambda o: (round(o), math.trunc(o), math.floor(o)),
        [own(float, 1.5), own(bytes), own(int, 5, round=3)],
    ),
    "a mapping": (
        lambda o: {**o, "k": 1},
        [(), [("a", 1)], own(str, "ab"), own(dict, a=2), own(tuple, ()), own(list)],
    ),
    "keys of a text": (lambda o: "%(k)s" % o, [{"k": 1}, own(dict, k=2), own(tuple, ()), 3, own(object)]),
    "reflected": (lambda o: 2 - o, [Reflected(1, 2), Pair(1, 2), own(int, 1, rsub="r"), own(tuple, (1,))]),
    "reflected, inherited": (lambda o: (Left() + o, o + Left()), [Right(), Left(), 3]),
    "fields of a tuple": (lambda o: (o.a, o.b, o.extra, len(o), o[0]), [Fields(1, "b"), Pair(1, 2)]),
    "an instance that is hashed": (
        lambda o: {1: 2}.get(o, 3),
        [own(int, 1), own(set), own(list), own(str, "a", hash=1)],
    ),
    "not a number": (
        lambda o: (o in [o], N in [N], [N].index(N), [o].count(o), {o: 1}[o], [N] == [N], o == o, N in {N}),
        [N, own(float, N), 1.5],
    ),
    "a member of an enum": (lambda o: (o == 1, o in [Loud.BLUE], [1] < [o]), [Loud.RED]),
    "a member of an enum, in place": (lambda o: operator.isub(o, {}), [Loud.RED]),
    "a sequence repeated in place": (lambda o: operator.imul(o, [1]), [2, own(int, 2), {1}, own(object)]),
    "deletion of an item": (lambda o: operator.delitem(o, 1), [own(object), own(str, "a"), own(tuple, (1,))]),
    "a union that keeps the class": (lambda o: type(o | {"k": 1}).__name__, [own(dict), own(collections.OrderedDict)]),
    "pairs of a tensor": (lambda o: dict(o), [torch.ones(2), torch.ones(2, 2), own(str, "ab")]),
}


def outcome(fn: Callable[..., Any], *args: Any) -> Any:
    LOG.clear()
    try:
        x, value = fn(*args)
        return x.tolist(), repr(value), list(LOG)
    except Exception as error:
        return type(error).__name__, str(error), list(LOG)


@pytest.mark.parametrize("name", CASES)
def test_an_instance_is_what_cpython_takes_it_for(name: str) -> None:
    question, values = CASES[name]
    errors: list[Any] = []
    before = _C.set_callback("internal_error", errors.append)
    translated = _C.counters()["translations"]
    try:
        for value in values:

            def f(x: torch.Tensor, o: Any) -> Any:
                y, r = x * 2, []
                try:
                    r.append(question(o))
                except Exception as error:
                    r.append((type(error).__name__, str(error)))
                return y + 1, r

            fast = godynamo.optimize(f)
            for _ in range(2):
                assert outcome(fast, torch.ones(2), value) == outcome(f, torch.ones(2), value)
    finally:
        _C.set_callback("internal_error", before)
    assert not errors
    assert _C.counters()["translations"] > translated


@pytest.mark.parametrize(
    ("what", "value"),
    [("{}", own(int, 5)), ("{:4}", own(float, 1.5)), ("%d", own(int, 5)), ("%s", own(str, "ab"))],
)
def test_plain_subclasses_are_captured_whole(what: str, value: Any) -> None:
    def f(x: torch.Tensor, o: Any) -> Any:
        return x + 1, what % o if "%" in what else what.format(o), -o if isinstance(o, (int, float)) else o + "c"

    assert outcome(godynamo.optimize(f, nopython=True), torch.ones(2), value) == outcome(f, torch.ones(2), value)


class Loud(str):
    """A str that C code must not compare."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    __hash__ = str.__hash__


DIGITS = re.compile(r"\d+")


def test_a_search_reads_only_the_text():
    def found(x, s):
        m = DIGITS.search(s)
        return x + int(m.group()), m.span()

    def whole(x, s):
        m = DIGITS.search(s)
        return x + 1, m.string is s, type(m.string)

    text = Loud("ab12")
    for fn, captured in ((found, True), (whole, False)):
        compiled = godynamo.optimize(fn)
        for s in (text, text, Loud("xyz7"), "3", text):
            assert compiled(torch.ones(1), s)[1:] == fn(torch.ones(1), s)[1:]
        if captured:
            assert not godynamo.utils.counters["graph_break"]


def test_comparisons_of_torchs_version():
    def fn(x):
        new = torch.__version__ >= "1.7.0", torch.__version__ < (1, 2), torch.__version__ == "no version"
        return x * 2 if new[0] else x, new

    explained = godynamo.explain(fn)(torch.ones(2))
    assert explained.graph_break_count == 0, explained.break_reasons
    assert godynamo.optimize(fn)(torch.ones(2))[1] == fn(torch.ones(2))[1] == (True, False, False)
