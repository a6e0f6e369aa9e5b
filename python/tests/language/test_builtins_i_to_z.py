"""The table of builtin functions from id on: rows S004-181 to S004-213."""

from __future__ import annotations

import abc
import collections
import contextlib
import io
import math
import numbers
import sys
import types
import typing
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb, one_graph, same, split, x3
from test_builtins_a_to_h import Bare, Bare2, Methods, OnlyIndex, SubMethods, Thing, raises, with_tensor

row = pytest.mark.row


@row("S004-181")
def test_id() -> None:
    compiled = godynamo.optimize(lambda x, o: (x + 1, id(o), id(x) == id(x), id(None), id(int), id(x)), backend=nb())
    for _ in range(3):
        x, o = x3(), Bare()
        assert compiled(x, o)[1:] == (id(o), True, id(None), id(int), id(x))
    split(lambda x, o: (x + 1, id(o) == id(o), id(o) != id(x)), x3(), Bare(), at_most=5)


def test_id_of_a_module() -> None:
    module = torch.nn.ReLU()

    def f(x: torch.Tensor, ref: int) -> torch.Tensor:
        return x * 2 if id(module) == ref else x + 1

    one_graph(f, x3(), id(module))
    one_graph(f, x3(), id(module) + 1)


@row("S004-182")
def test_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        text = input("prompt> ")
        return y * int(text)

    backend = nb()
    compiled = godynamo.optimize(f, backend=backend)
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.StringIO("5\n"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert torch.equal(compiled(x3()), (x3() + 1) * 5)
        assert out.getvalue() == "prompt> "
    assert 1 <= len(backend) <= 2


@row("S004-183")
def test_int() -> None:
    with_tensor(
        lambda s, v, o: (
            int(s, 16),
            int("ff", base=16),
            int(v),
            int(-v),
            int(),
            int("12"),
            int(True),
            int(o),
            int("0b11", 0),
            int(b"7"),
            int(" 1_000 "),
        ),
        "ff",
        2.75,
        Thing(),
    )
    # The first graph contains the int. The backend returns another callable, so the code is captured again, as two
    # graphs.
    split(lambda x: x + int(x.sum()), x3(), at_most=3)
    raises(lambda: int("zz"))
    raises(lambda: int("9", 8))
    raises(lambda: int(2.5, 10))
    raises(lambda: int([]))
    raises(lambda: int(float("nan")))
    raises(lambda o: int(o), Bare())


class Meta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return instance == 42

    def __subclasscheck__(cls, sub: Any) -> bool:
        return sub is int


class ByMeta(metaclass=Meta):
    pass


class Abstract(abc.ABC):
    @abc.abstractmethod
    def m(self) -> None: ...


class Registered:
    pass


Abstract.register(Registered)


class Hooked(abc.ABC):
    @classmethod
    def __subclasshook__(cls, sub: type) -> Any:
        return hasattr(sub, "quacks")


class Duck:
    quacks = True


@typing.runtime_checkable
class SupportsQuack(typing.Protocol):
    quacks: bool


@row("S004-184")
def test_isinstance() -> None:
    with_tensor(
        lambda n, s, o: (
            isinstance(n, int), isinstance(True, int), isinstance(n, (str, int)), isinstance(s, (bytes, (str, float))), isinstance(n, int | str),  # noqa: E501
            isinstance(None, int | None), isinstance([], collections.abc.Sequence), isinstance({},
            collections.abc.Mapping),
            isinstance(o, collections.abc.Sized), isinstance(o, collections.abc.Callable), isinstance(n,
            numbers.Number),
            isinstance(o, Thing), isinstance(Thing, type), isinstance(len, types.BuiltinFunctionType), isinstance(n,
            object),
            isinstance([], collections.abc.Iterable), isinstance(o, typing.Sized), isinstance([1], typing.List),
        ),
        3, "s", Thing(),
    )  # fmt: skip
    one_graph(
        lambda x: (
            x + 1,
            isinstance(x, torch.Tensor),
            isinstance(x + 1, nn.Parameter),
            isinstance(x.shape, tuple),
            isinstance(x.sum(), (int, torch.Tensor)),
        ),
        x3(),
    )
    module = nn.Linear(3, 3)
    one_graph(lambda x: (x + 1, isinstance(module, nn.Module), isinstance(module, (nn.ReLU, nn.Linear))), x3())


@row("S004-184")
def test_isinstance_decided_by_classes() -> None:
    with_tensor(lambda r, d: (isinstance(r, Abstract), isinstance(d, Abstract)), Registered(), Duck())
    split(lambda x, d, r: (x + 1, isinstance(d, Hooked), isinstance(r, Hooked)), x3(), Duck(), Registered(), at_most=4)
    one_graph(lambda x: (x + 1, isinstance(42, ByMeta), isinstance(41, ByMeta), isinstance(ByMeta(), ByMeta)), x3())
    split(lambda x: (x + 1, isinstance(42, (str, ByMeta))), x3(), at_most=4)
    split(lambda x, d: (x + 1, isinstance(d, SupportsQuack)), x3(), Duck(), at_most=4)
    raises(lambda: isinstance(1, 5))
    raises(lambda: isinstance(1, list[int]))
    raises(lambda: isinstance("s", (int, 5)))
    raises(lambda: isinstance(1))


@row("S004-185")
def test_issubclass() -> None:
    with_tensor(
        lambda: (
            issubclass(int, object),
            issubclass(bool, (str, int)),
            issubclass(Thing, collections.abc.Sized),
            issubclass(Registered, Abstract),
            issubclass(int, int | str),
            issubclass(nn.Linear, nn.Module),
            issubclass(list, collections.abc.Sequence),
        )
    )
    with_tensor(lambda o: (issubclass(type(o), Thing), issubclass(o.__class__, Bare)), Thing())
    split(lambda x: (x + 1, issubclass(int, ByMeta), issubclass(Duck, Hooked)), x3(), at_most=4)
    raises(lambda: issubclass(5, int))
    raises(lambda: issubclass(int, 5))


class Counting:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> int:
        self.n += 1
        return self.n


@row("S004-186")
def test_iter_and_next() -> None:
    def f(x: torch.Tensor, items: list[int], d: dict[str, int]) -> Any:
        it = iter(items)
        first = next(it)
        it2 = iter(it)
        rest = list(it2)
        done = next(it, "default")
        return x + 1, first, rest, done, it is it2, next(iter(d)), next(iter("ab")), next(iter(x)), next(iter(range(3)))

    one_graph(f, x3(), [1, 2, 3], {"k": 1})
    raises(lambda: next(iter([])))
    raises(lambda: next([]))
    raises(lambda: iter(5))
    raises(lambda: next(iter([]), 1, 2))
    raises(lambda: iter(5, 3))


@row("S004-186")
def test_iter_with_a_sentinel() -> None:
    def f(x: torch.Tensor, c: Counting) -> Any:
        out = []
        for n in iter(c, 4):
            out.append(x * n)
        return out, list(iter(c, 7)), c.n

    one_graph(f, x3(), Counting())

    def local(x: torch.Tensor) -> Any:
        items = [1, 2, 0, 3]
        return x + 1, list(iter(lambda: items.pop(0), 0)), items

    one_graph(local, x3())


@row("S004-187")
def test_len() -> None:
    one_graph(
        lambda x, o, d: (
            x + len(x),
            len(o),
            len(d),
            len("abc"),
            len(()),
            len(range(5)),
            len({1, 2}),
            len(b"ab"),
            len(x.shape),
        ),
        x3(),
        Thing(),
        {"a": 1},
    )
    raises(lambda: len(5))
    raises(lambda o: len(o), Bare())
    raises(lambda: len())
    same(lambda x: len(x.sum() + 1), x3())


@row("S004-188")
def test_list() -> None:
    one_graph(
        lambda x, t: (
            list(t),
            list(),
            list("ab"),
            list(x),
            list({1: 2}),
            list(range(2)),
            list([x + 1]),
            list(zip(t, t)),
            list(map(str, t)),
        ),
        x3(),
        (1, 2),
    )
    with_tensor(lambda o: list(o), Thing())
    raises(lambda: list(5))
    raises(lambda: list(1, 2))
    raises(lambda: list(x=1))


@row("S004-189")
def test_map() -> None:
    one_graph(
        lambda x, items: (
            list(map(lambda v: x * v, items)),
            list(map(lambda a, b: a + b, items, (5, 6, 7))),
            list(map(str, items)),
            [*map(abs, [-1, x])],
        ),
        x3(),
        [1, 2],
    )
    one_graph(lambda x: tuple(map(torch.sin, (x, x + 1))), x3())
    raises(lambda: list(map(len, [5])))
    raises(lambda: map(len))
    raises(lambda: list(map(len, 5)))


@row("S004-190")
def test_max_and_min() -> None:
    with_tensor(
        lambda items, d: (
            max(items),
            min(items),
            max(1, 2.5, -3),
            min("ba"),
            max(items, key=lambda v: -v),
            min([], default="none"),
            max(d, key=d.get),
            max([1, 1.0]),
            max(1.0, 1),
            min((2, "a"), (1, "b")),
            max("abc", "b", key=len),
        ),
        [3, 1, 2],
        {"a": 5, "b": 9},
    )
    split(lambda x: (x + 1, max(x[0], x[1])), x3(), at_most=3)
    split(lambda x: (x + 1, max(x)), x3(), at_most=6)
    raises(lambda: max([]))
    raises(lambda: max())
    raises(lambda: max(5))
    raises(lambda: min(1, "a"))
    raises(lambda: max(1, 2, default=3))
    raises(lambda: max([1], bad=3))


@row("S004-191")
def test_memoryview_object_oct() -> None:
    with_tensor(lambda n, o: (oct(n), oct(-n), oct(o)), 8, Thing())
    split(lambda x: (x + 1, memoryview(b"abc")[1], memoryview(b"abc").tobytes()), x3(), at_most=4)
    one_graph(lambda x: (x + 1, object() is object(), object() == 3, isinstance(object(), object)), x3())
    raises(lambda: oct(1.5))
    raises(lambda: object(1))


@row("S004-192")
def test_open(tmp_path: Any) -> None:
    path = str(tmp_path / "file")

    def f(x: torch.Tensor, path: str) -> Any:
        y = x + 1
        with open(path, "w") as out:
            out.write(f"{y.shape[0]}")
        with open(path) as source:
            text = source.read()
        return y * int(text)

    same(f, x3(), path)

    def plain(x: torch.Tensor, path: str) -> Any:
        y = x + 1
        out = open(path, "w")
        out.write("7")
        out.close()
        return y * 2

    split(plain, x3(), path, at_most=5)
    assert (tmp_path / "file").read_text() == "7"
    raises(lambda p: open(p + "/missing"), path)


@row("S004-193")
def test_ord() -> None:
    with_tensor(lambda s: (ord(s), ord("a"), ord(b"b"), ord("\U0001f600")), "中")
    raises(lambda: ord("ab"))
    raises(lambda: ord(""))
    raises(lambda: ord(5))


@row("S004-194")
def test_pow() -> None:
    one_graph(
        lambda x, n: (
            pow(x, 2),
            pow(2, x),
            pow(x, n),
            pow(n, 3),
            pow(n, -1),
            pow(n, 2, 5),
            pow(2.0, 0.5),
            pow(base=2, exp=n),
            pow(n, 5, mod=7),
        ),
        x3(),
        3,
    )
    with_tensor(lambda o: (pow(o, 2), o**2), Thing())
    raises(lambda: pow(0, -1))
    raises(lambda: pow(2, 3, 0))
    raises(lambda: pow(2.5, 3, 2))
    raises(lambda: pow("a", 2))


class Prop:
    def __init__(self) -> None:
        self.log: list[Any] = []
        self._v: Any = 1

    @property
    def v(self) -> Any:
        self.log.append("get")
        return self._v

    @v.setter
    def v(self, value: Any) -> None:
        self.log.append("set")
        self._v = value

    @v.deleter
    def v(self) -> None:
        self.log.append("del")
        self._v = None

    @property
    def readonly(self) -> Any:
        return self._v


@row("S004-196")
def test_property() -> None:
    def f(x: torch.Tensor, o: Prop) -> Any:
        o.v += 5
        y = x + o.v
        o.v = y
        got = o.v * 2
        del o.v
        return got, o.v, o.readonly

    one_graph(f, x3(), Prop())
    raises(lambda o: setattr(o, "readonly", 3), Prop())
    raises(lambda o: delattr(o, "readonly"), Prop())


@row("S004-197")
def test_range() -> None:
    with_tensor(
        lambda n, o: (
            range(n)[2], 3 in range(n), 9 in range(n), range(10)[2:8:3], list(reversed(range(n))), len(range(0, 10, 3)), range(n) == range(0, n), range(5, 0, -2)[-1],  # noqa: E501
            range(3).index(2), range(3).count(1), list(range(o)), range(2, 9, 3).start, range(2, 9, 3).stop, range(2, 9, 3).step, "a" in range(3), bool(range(0)), sum(range(n)),  # noqa: E501
            range(n), [*range(-2, 2)], 2.0 in range(3),
        ),
        5, OnlyIndex(),
    )  # fmt: skip
    raises(lambda: range(1, 2, 0))
    raises(lambda: range(1.5))
    raises(lambda: range())
    raises(lambda: range("a"))


@row("S004-198")
def test_repr() -> None:
    with_tensor(
        lambda o, s: (repr(o), repr(s), repr([1, s]), repr({"a": (1.5, None)}), repr(int), repr(2.0), repr(...)),
        Thing(),
        "it's",
    )
    split(lambda x: ((y := x + 1) * 2, repr(y)), x3(), at_most=3)
    one_graph(lambda x: (x + 1, repr(x.shape), repr(x.dtype), repr(torch.device("cpu"))), x3())


@row("S004-199")
def test_reversed() -> None:
    with_tensor(
        lambda items, d, o: (
            list(reversed(items)),
            [*reversed((1, 2))],
            list(reversed(range(3))),
            list(reversed(d)),
            list(reversed("ab")),
            list(reversed(o)),
            list(reversed(d.items())),
        ),
        [1, 2],
        {"a": 1, "b": 2},
        Thing(),
    )
    one_graph(lambda x: [v * 2 for v in reversed([x, x + 1])], x3())
    raises(lambda: reversed({1, 2}))
    raises(lambda: reversed(5))
    raises(lambda: reversed(iter([1])))
    same(lambda x: [v + 1 for v in reversed(x)], x3())


@row("S004-200")
def test_round() -> None:
    with_tensor(
        lambda v, n, o: (
            round(v),
            round(0.5),
            round(1.5),
            round(-2.5),
            round(2.675, 2),
            round(v, 1),
            round(n, -2),
            round(o),
            round(o, 3),
            round(v, None),
            round(number=v, ndigits=1),
        ),
        2.345,
        1250,
        Thing(),
    )
    one_graph(lambda x: (x.round(), x.round(decimals=1)), x3())
    same(lambda x: (x + 1, round(x)), x3())  # a TypeError: a tensor has no __round__
    raises(lambda: round("s"))
    raises(lambda: round(float("nan")))
    raises(lambda: round(1.5, "a"))


@row("S004-203")
def test_slice() -> None:
    one_graph(
        lambda x, items: (
            x[slice(1, None)],
            items[slice(2)],
            items[slice(None, None, -1)],
            slice(1, 2, 3).start,
            slice(1, 5).indices(3),
            slice(1) == slice(None, 1),
            x[slice(0, 2)] + 1,
        ),
        x3(),
        [1, 2, 3],
    )
    raises(lambda: slice())
    raises(lambda: [1, 2][slice("a")])


class Keyed:
    def __init__(self, k: int, tag: str) -> None:
        self.k = k
        self.tag = tag

    def __lt__(self, other: Any) -> bool:
        return self.k < other.k


@row("S004-204")
def test_sorted() -> None:
    with_tensor(
        lambda items, pairs, d: (
            sorted(items),
            sorted(items, reverse=True),
            sorted(pairs, key=lambda p: p[0]),
            sorted(pairs, key=lambda p: p[0], reverse=True),
            sorted("hello"),
            sorted(d),
            sorted(d.items(), key=lambda kv: -kv[1]),
            sorted(["b", "A"], key=str.lower),
            sorted({3, 1, 2}),
            sorted(items, key=None),
        ),
        [3, 1, 2],
        [(1, "b"), (0, "z"), (1, "a"), (0, "y")],
        {"x": 1, "y": 2},
    )
    with_tensor(
        lambda items: [o.tag for o in sorted(items)], [Keyed(2, "a"), Keyed(1, "b"), Keyed(2, "c"), Keyed(1, "d")]
    )
    split(lambda x: [v + 1 for v in sorted([x[0], x[1]])], x3(), at_most=3)
    raises(lambda: sorted([1, "a"]))
    raises(lambda: sorted(5))
    raises(lambda: sorted([1], bad=2))
    raises(lambda: sorted())


@row("S004-205")
def test_staticmethod() -> None:
    one_graph(lambda x, o: (Methods.static(x), o.static(x, n=4), SubMethods.static(x)), x3(), Methods())

    def f(x: torch.Tensor) -> Any:
        return staticmethod(Methods.static)(x)

    split(f, x3(), at_most=2)


@row("S004-206")
def test_str() -> None:
    with_tensor(
        lambda o, n: (
            str(o),
            str(n),
            str(),
            str(b"a", "utf8"),
            str(b"\xff", "utf8", "replace"),
            str(object=5),
            str(b"a", encoding="ascii"),
            str([1, "a"]),
            str(None),
            str(1.0),
            str(True),
        ),
        Thing(),
        5,
    )
    split(lambda x: ((y := x + 1) * 2, str(y)), x3(), at_most=3)
    raises(lambda: str(b"\xff", "utf8"))
    raises(lambda: str(b"a", "no-such-encoding"))
    raises(lambda: str(1, "utf8"))


@row("S004-207")
def test_sum() -> None:
    one_graph(
        lambda x, items: (
            sum([x, x]),
            sum(items),
            sum(items, 10),
            sum([x], start=x),
            sum([[1], [2]], []),
            sum(x),
            sum([1.5, 2]),
            sum(()),
            sum(v * 2 for v in items),
            sum({1: 2}),
        ),
        x3(),
        [1, 2],
    )

    def floats(x: torch.Tensor, v: float, w: float) -> Any:
        tenths = [0.1] * 10
        return (
            x + 1,
            sum(tenths),
            sum(tenths, 0.3),
            sum([True, 0.1, 2, 0.2, 0.3]),
            sum([v, 0.2, 0.3]),
            sum([w * 0.1, 0.2, w * 0.3, v]),
            sum([0.1 * x.shape[0]] * 10),
        )

    for v, w in ((0.1, 0.7), (0.3, 0.9), (0.7, 0.6)):  # 3.12 carries the rounding errors along
        same(floats, x3(), v, w)
    compiled = godynamo.optimize(floats)
    for n, v, w in ((2, 0.1, 0.7), (3, 0.3, 0.9), (7, 0.7, 0.6)):
        assert compiled(torch.ones(n), v, w)[1:] == floats(torch.ones(n), v, w)[1:]
    raises(lambda: sum(["a"]))
    raises(lambda: sum(["a"], ""))
    raises(lambda: sum(5))
    raises(lambda: sum())


class Top:
    def m(self, x: Any) -> Any:
        return x + 1

    @property
    def p(self) -> int:
        return 5

    @classmethod
    def c(cls) -> str:
        return cls.__name__


class Left(Top):
    def m(self, x: Any) -> Any:
        return super().m(x) * 2


class Right(Top):
    def m(self, x: Any) -> Any:
        return super(Right, self).m(x) * 3

    @property
    def p(self) -> int:
        return super().p + 1


class Bottom(Left, Right):
    def m(self, x: Any) -> Any:
        return super().m(x) - 1

    def others(self) -> Any:
        return super().p, super().c(), super(Left, self).m(1), getattr(super(), "missing", None)

    def in_comprehension(self, x: Any) -> Any:
        parent = super()
        return [parent.m(v) for v in (x, x * 2)]

    def missing(self) -> Any:
        return super().no_such


@row("S004-208")
def test_super() -> None:
    one_graph(lambda x: (Bottom().m(x), Bottom().others(), Bottom().in_comprehension(x)), x3())
    one_graph(lambda x, b: (b.m(x), b.others()), x3(), Bottom())
    raises(lambda: Bottom.__dict__["missing"](Bottom()))
    raises(lambda: super())


@row("S004-209")
def test_type() -> None:
    with_tensor(
        lambda o, n: (
            type(o),
            type(n) is int,
            type(o).__name__,
            type(None),
            type(type(o)),
            type(o)(4).v,
            type([]) == list,
            type(len),
            type(lambda: 1),
            type(o).kind,
            type(1.5)(2),
            type(...),
        ),
        Thing(),
        5,
    )
    one_graph(lambda x: (x + 1, type(x) is torch.Tensor, type(x.shape), type(x).__name__, type(x.dtype)), x3())

    def three(x: torch.Tensor) -> Any:
        y = x + 1
        made = type("Made", (Thing,), {"extra": 5})
        return y * made().extra

    split(three, x3(), at_most=2, calls=1)  # every call creates another class
    raises(lambda: type())
    raises(lambda: type(1, 2))


@row("S004-210")
def test_vars() -> None:
    one_graph(lambda x, o: (x + 1, vars(o)["v"], sorted(vars(o))), x3(), Bare2())
    split(lambda x: (x + 1, vars(Methods)["k"], "pi" in vars(math)), x3(), at_most=4)
    raises(lambda: vars(5))

    def no_argument(x: torch.Tensor, n: int) -> Any:
        y = x + n
        return sorted(vars()), y

    same(no_argument, x3(), 2)


@row("S004-212")
def test_import_function() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        m = __import__("math")
        return y * m.floor(2.5)

    split(f, x3(), at_most=3)
    raises(lambda: __import__("no_such_module_anywhere"))


@row("S004-213")
def test_locals() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        k = [n]
        seen = locals()
        z = y * 2
        return sorted(seen), seen["y"] is y, seen["k"] is k, z, seen

    same(f, x3(), 2)

    def cells(x: torch.Tensor, n: int) -> Any:
        y = x + 1

        def g() -> Any:
            return y, n

        del n
        return sorted(locals()), g

    def deleted(x: torch.Tensor, n: int) -> Any:
        y = x + n
        del n
        return sorted(locals()), y

    same(deleted, x3(), 2)
    compiled = godynamo.optimize(cells, backend=nb())
    for _ in range(2):
        assert compiled(x3(), 1)[0] == cells(x3(), 1)[0]


def asks_twice(x: Any, n: int) -> Any:
    a = locals()
    y = x + n
    b = locals()
    return a is b, sorted(a), y


def asks_in_a_loop(x: Any, n: int) -> Any:
    out = []
    for i in range(2):
        out.append(sorted(locals()))
        x = x + i
    return x + n, out


def changes_it(x: Any, n: int) -> Any:
    y = x + n
    d = locals()
    d["extra"] = 1
    return sorted(d), d["n"], y


def evaluates_in_a_loop(x: Any, n: int) -> Any:
    y = x + 1
    for i in range(2):
        y = y + eval("n * i")
    return y, i


def executes(x: Any, n: int) -> Any:
    y = x + 1
    exec("n = 100")
    return y + n, eval("n")


def leaves_a_name(x: Any, n: int) -> Any:
    y = x + n
    exec("made = n + 5")
    return y + eval("made")


def evaluates_and_catches(x: Any, n: int) -> Any:
    y = x + 1
    try:
        z = eval("undefined_name")
    except NameError as e:
        z = str(e)
    return y * 2, z


@row("S004-170", "S004-171", "S004-213")
@pytest.mark.parametrize(
    "fn", [asks_twice, asks_in_a_loop, changes_it, evaluates_in_a_loop, executes, leaves_a_name, evaluates_and_catches]
)
def test_frames_that_look_at_themselves(fn: Any) -> None:
    same(fn, x3(), 2)


@row("S004-213")
def test_locals_is_captured() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        return "{n} {k}".format(k=3, **{"n": locals()["n"]}), y * 2

    split(f, x3(), 2, at_most=3)
