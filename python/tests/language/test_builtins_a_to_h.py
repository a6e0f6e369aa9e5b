"""The table of builtin functions up to hex, and builtin values: rows S004-151 to S004-180, S004-214 to S004-217."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb, one_graph, same, split, x3

row = pytest.mark.row


class Thing:
    """A user object with every conversion method."""

    kind = "thing"

    def __init__(self, v: Any = 3) -> None:
        self.v = v

    def __abs__(self) -> Any:
        return ("abs", self.v)

    def __index__(self) -> int:
        return int(self.v)

    def __float__(self) -> float:
        return self.v + 0.5

    def __int__(self) -> int:
        return 10 * int(self.v)

    def __complex__(self) -> complex:
        return complex(self.v, 1)

    def __bool__(self) -> bool:
        return self.v != 0

    def __len__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return f"Thing({self.v})"

    def __str__(self) -> str:
        return f"thing {self.v}"

    def __format__(self, spec: str) -> str:
        return f"{self.v}:{spec}"

    def __round__(self, n: Any = None) -> Any:
        return ("round", self.v, n)

    def __divmod__(self, other: Any) -> Any:
        return ("divmod", other)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        return ("pow", other, modulo)

    def __reversed__(self) -> Any:
        return iter(["r", self.v])

    def __call__(self, v: Any) -> Any:
        return v

    def __hash__(self) -> int:
        return 99

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Thing)

    def __trunc__(self) -> int:
        return 1

    def __bytes__(self) -> bytes:
        return b"thing"

    def __iter__(self) -> Any:
        return iter([self.v, 1])

    def __dir__(self) -> Any:
        return ["b", "a"]


class Bare2:
    kind = "bare"

    def __init__(self) -> None:
        self.v = 4


class Bare:
    pass


def with_tensor(fn: Any, *args: Any) -> None:
    """Check the row's code C: fn's value is returned together with a tensor operation, from one graph."""
    godynamo.reset()
    one_graph(lambda x, *a: (x + 1, fn(*a)), x3(), *args)


def raises(fn: Any, *args: Any) -> None:
    """Check the row's code X, with a tensor operation before the exception."""
    godynamo.reset()
    with pytest.raises(Exception):  # noqa: B017 - the test below compares it
        fn(*args)
    same(lambda x, *a: (x + 1, fn(*a)), x3(), *args)


# ---- functions, in the table's order


@row("S004-151")
def test_abs() -> None:
    one_graph(lambda x: abs(x) + abs(-3) + abs(-2.5), x3())
    with_tensor(lambda n, v, o: (abs(n), abs(v), abs(o), abs(3 + 4j), abs(True)), -3, -0.0, Thing())
    raises(lambda: abs("s"))
    raises(lambda o: abs(o), Bare())
    raises(lambda: abs())


@row("S004-152", "S004-153")
@pytest.mark.parametrize("fn", [all, any])
def test_all_and_any(fn: Any) -> None:
    with_tensor(
        lambda items, o: (
            fn(items),
            fn([]),
            fn([0, ""]),
            fn((1, o)),
            fn({1: 2}),
            fn("a"),
            fn([[], [0]]),
            fn(v > 1 for v in items),
        ),
        [1, 2, 0],
        Thing(0),
    )
    split(lambda x: (x + 1, fn([x[0] > 0, x[1] > 0])), x3(), at_most=4)
    split(lambda x: (x + 1, fn(x > 0)), x3(), at_most=4)
    raises(lambda: fn(5))
    raises(lambda: fn([1], [2]))


@row("S004-154")
def test_ascii() -> None:
    with_tensor(lambda s, o: (ascii(s), ascii([s, 1]), ascii(o), ascii(None)), "é中\n", Thing())


@row("S004-155")
def test_bin() -> None:
    with_tensor(lambda n, o: (bin(n), bin(-n), bin(0), bin(True), bin(o), bin(2**70)), 5, Thing())
    raises(lambda: bin(1.5))
    raises(lambda o: bin(o), Bare())


@row("S004-156")
def test_bool() -> None:
    with_tensor(
        lambda n, o, z: (
            bool(n),
            bool(),
            bool(""),
            bool([0]),
            bool(o),
            bool(z),
            bool(None),
            bool(0.0),
            bool({}),
            bool(int),
        ),
        5,
        Thing(),
        Thing(0),
    )
    split(lambda x: (x + 1, bool(x.sum() > 0)), x3(), at_most=3)
    raises(lambda: bool(1, 2))
    same(lambda x: (x + 1, bool(x)), x3())


@row("S004-157")
def test_breakpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def recorder(*args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        calls.append((args, kwargs, frame.f_code.co_name, {k: type(v).__name__ for k, v in frame.f_locals.items()}))

    def f(x: torch.Tensor) -> Any:
        y = x + 1
        breakpoint()
        return y * 2

    monkeypatch.setattr(sys, "breakpointhook", recorder)
    backend = nb()
    compiled = godynamo.optimize(f, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(x3()), (x3() + 1) * 2)
    assert len(calls) == 2
    assert all(c[0] == () and c[1] == {} and c[2] == "f" for c in calls), calls
    assert all(c[3].get("x") == c[3].get("y") == "Tensor" for c in calls), calls
    assert len(backend) == 2


@row("S004-158")
def test_bytearray() -> None:
    def f(x: torch.Tensor) -> Any:
        b = bytearray(b"ab")
        b.append(99)
        b[0] = 65
        b += b"!"
        return x + len(b), b, bytes(b), b[1], bytearray(3), bytearray([1, 2])

    split(f, x3(), at_most=8)
    raises(lambda: bytearray("s"))


@row("S004-159")
def test_bytes() -> None:
    with_tensor(
        lambda n, s: (
            bytes(n),
            bytes([1, 2]),
            bytes(s, "utf8"),
            bytes(),
            bytes(b"a"),
            b"ab"[0],
            b"ab".hex(),
            b"a" + b"b",
            b"ab".decode(),
        ),
        3,
        "é",
    )
    with_tensor(lambda o: bytes(o), Thing())
    raises(lambda: bytes("s"))
    raises(lambda: bytes([300]))


@row("S004-160")
def test_callable() -> None:
    with_tensor(
        lambda o, b: (
            callable(o),
            callable(b),
            callable(len),
            callable(int),
            callable(5),
            callable(lambda: 1),
            callable(torch.sin),
            callable(Thing),
        ),
        Thing(),
        Bare(),
    )
    one_graph(lambda x: (x + 1, callable(x), callable(x.relu)), x3())


@row("S004-161")
def test_chr() -> None:
    with_tensor(lambda n, o: (chr(n), chr(97), chr(0x10FFFF), chr(o), chr(True)), 0x4E2D, Thing(65))
    raises(lambda n: chr(n), -1)
    raises(lambda n: chr(n), 0x110000)
    raises(lambda: chr("a"))


class Methods:
    k = 3

    @classmethod
    def by_class(cls, x: Any) -> Any:
        return x * cls.k, cls.__name__

    @staticmethod
    def static(x: Any, n: int = 2) -> Any:
        return x * n


class SubMethods(Methods):
    k = 5

    @classmethod
    def by_class(cls, x: Any) -> Any:
        return super().by_class(x)


@row("S004-162")
def test_classmethod() -> None:
    one_graph(
        lambda x, o: (Methods.by_class(x), o.by_class(x), SubMethods.by_class(x), SubMethods().by_class(x)),
        x3(),
        Methods(),
    )
    split(lambda x: (x + 1, classmethod(len).__func__([1])), x3(), at_most=3)


@row("S004-163")
def test_compile() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        code = compile("a * 2", "<made>", "eval")
        return eval(code, {"a": y})

    split(f, x3(), at_most=3)
    raises(lambda: compile("a *", "<made>", "eval"))


@row("S004-164")
def test_complex() -> None:
    with_tensor(
        lambda v, o: (complex(v), complex(1, v), complex("1+2j"), complex(), complex(real=1, imag=2), complex(o)),
        2.5,
        Thing(),
    )
    one_graph(lambda x, v: x * complex(v, 1), x3(), 2.5)
    raises(lambda: complex("x"))


@row("S004-165", "S004-202")
def test_setattr_and_delattr() -> None:
    def f(x: torch.Tensor, o: Any, name: str) -> Any:
        setattr(o, "made", x + 1)
        setattr(o, name, 5)
        delattr(o, "v")
        return getattr(o, name), hasattr(o, "v"), o.made * 2

    one_graph(f, x3(), Bare2(), "computed")
    raises(lambda o: delattr(o, "missing"), Bare2())
    raises(lambda o: setattr(o, 5, 1), Bare2())
    raises(lambda: setattr(5, "a", 1))


@row("S004-202")
def test_setattr_on_modules_and_tensors() -> None:
    def module(x: torch.Tensor, m: Any) -> Any:
        setattr(m, "count", m.count + 1)
        return x + m.count

    class Counting(nn.Module):
        count = 0

    one_graph(module, x3(), Counting())
    one_graph(lambda x, m: (setattr(m, "items", 3), x + m.items)[1], x3(), Counting())

    def tensor(x: torch.Tensor) -> Any:
        y = x + 1
        setattr(x, "note", 5)
        return y * x.note

    split(tensor, x3(), at_most=3)


@row("S004-166")
def test_dict() -> None:
    one_graph(
        lambda x, d, p: (
            dict(a=x + 1),
            dict(d),
            dict(p, z=1),
            dict(),
            dict([("k", x * 2)]),
            dict(zip("ab", (1, 2))),
            dict(d, **d),
            dict.fromkeys("ab", 0),
        ),
        x3(),
        {"a": 1},
        [("q", 2)],
    )
    raises(lambda: dict(5))
    raises(lambda: dict([1]))
    raises(lambda: dict([(1, 2, 3)]))
    raises(lambda: dict({}, {}))


@row("S004-167")
def test_dir() -> None:
    split(lambda x, o: (x + 1, dir(o), "append" in dir([]), dir(Methods)[-3:]), x3(), Thing(), at_most=5)

    def no_argument(x: torch.Tensor) -> Any:
        y = x + 1
        names = dir()
        return y * 2, names

    same(no_argument, x3())


@row("S004-168")
def test_divmod() -> None:
    with_tensor(
        lambda n, v, o: (divmod(n, 3), divmod(-n, 3), divmod(v, 0.5), divmod(n, -2), divmod(o, 2)), 7, 2.75, Thing()
    )
    same(lambda x: (x + 1, divmod(x, 2)), x3())  # a TypeError: a tensor has no __divmod__
    one_graph(lambda x: (x // 2, x % 2), x3())
    raises(lambda: divmod(1, 0))
    raises(lambda: divmod("a", 1))


@row("S004-170")
def test_eval() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        k = 10
        return eval("y * n + k")

    def given(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        return eval("a * b", {"a": y}, {"b": n}) + 1

    split(given, x3(), 3, at_most=3)
    same(f, x3(), 3)
    raises(lambda: eval("1 +"))
    raises(lambda: eval("undefined_here"))


@row("S004-170")
def test_eval_is_captured_around() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        k = eval("n * 2")
        return y * k

    split(f, x3(), 3, at_most=3)


_written: Any = None


@row("S004-171")
def test_exec() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        exec("global _written\n_written = n * 5")
        space: dict[str, Any] = {"y": y}
        exec("z = y * 2", space)
        return space["z"] + _written

    same(f, x3(), 3)
    assert _written == 15

    def given(x: torch.Tensor, n: int) -> Any:
        space: dict[str, Any] = {"y": x + n}
        exec("z = y * 2", space)
        return space["z"] + 1

    split(given, x3(), 3, at_most=3)


@row("S004-172")
def test_filter() -> None:
    one_graph(
        lambda x, items: (
            x + 1,
            list(filter(None, items)),
            list(filter(lambda v: v > 1, items)),
            next(filter(bool, items)),
        ),
        x3(),
        [0, 1, 2],
    )
    raises(lambda: list(filter(None, 5)))
    raises(lambda: filter(None))


@row("S004-173")
def test_float() -> None:
    with_tensor(
        lambda n, s, o: (
            float(n),
            float(s),
            float(),
            float(o),
            float("nan") != float("nan"),
            float("-inf"),
            float(True),
            float(" 1e3 "),
        ),
        3,
        "2.5",
        Thing(),
    )
    split(lambda x: x + float(x.sum()), x3(), at_most=3)
    raises(lambda: float("x"))
    raises(lambda: float(2j))
    raises(lambda o: float(o), Bare())


class OnlyIndex:
    def __index__(self) -> int:
        return 6


@row("S004-173", "S004-183")
def test_index_is_honoured() -> None:
    with_tensor(
        lambda o: (float(o), int(o), [0] * 2, "abcdefgh"[o], list(range(8))[o], range(o)[-1], hex(o)), OnlyIndex()
    )


@row("S004-174")
def test_format() -> None:
    with_tensor(
        lambda n, v, s, o: (
            format(n), format(n, "05d"), format(v, ".3f"), format(s, ">9"), format(s, "*^9"), format(n, ","), format(n,
            "#x"),
            format(n, "b"), format(v, "e"), format(v, "%"), format(o, "spec"), format(None), format(True), format(1 +
            2j, ".1f"),
            format([1]), "{:>{}}|{!r}|{0}".replace("{0}", "").format(s, 7, s), "{1} {0}".format(n, s),
            "{0.real}".format(n),
        ),
        1234, 2.5, "é", Thing(),
    )  # fmt: skip
    raises(lambda: format(3, "zz"))
    raises(lambda: format([1], "d"))
    raises(lambda: format("s", "d"))


@row("S004-175", "S004-201")
def test_sets() -> None:
    with_tensor(
        lambda items: (
            frozenset(items), frozenset(), set(items), set(), set("ab") & set("b"), set(items) | {9}, {1, 2} - {1},
            {1} ^ {2},
            {1}.union([2], (3,)), {1, 2}.intersection([2]), {1, 2}.difference([1]), {1}.issubset({1, 2}), {1, 2} >= {1}, len({1, 1}),  # noqa: E501
            1 in {1}, {1}.isdisjoint([2]), frozenset([1]) == {1}, hash(frozenset([1])) == hash(frozenset([1])), set(items) == {1, 2},  # noqa: E501
        ),
        [1, 2, 2],
    )  # fmt: skip

    def changed(x: torch.Tensor, s: set[int]) -> Any:
        s.add(5)
        s.discard(1)
        s.remove(2)
        s.update([7], {8})
        t = s.copy()
        t.clear()
        return x + len(s), t, s.pop() in (5, 7, 8)

    one_graph(changed, x3(), {1, 2})
    raises(lambda: set(5))
    raises(lambda: {[]})
    raises(lambda s: s.remove(9), {1})


@row("S004-177")
def test_globals() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        return y * globals()["_factor"], "_factor" in globals(), globals() is y.shape

    split(f, x3(), at_most=4)


_factor = 3


@row("S004-177")
def test_globals_written_through() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        globals()["_made_by_globals"] = 5
        return y * _made_by_globals  # type: ignore[name-defined] # noqa: F821

    same(f, x3())
    assert globals()["_made_by_globals"] == 5


@row("S004-179")
def test_hash() -> None:
    with_tensor(
        lambda s, o: (
            hash(5),
            hash(2.5),
            hash(s),
            hash((1, s)),
            hash(None) == hash(None),
            hash(o),
            hash(True),
            hash(int) == hash(int),
        ),
        "text",
        Thing(),
    )
    compiled = godynamo.optimize(lambda x: (x + 1, hash(x) == hash(x), hash(x)), backend=nb())
    for _ in range(2):
        x = x3()
        assert compiled(x)[1:] == (True, hash(x))
    raises(lambda: hash([]))
    raises(lambda: hash({}))
    raises(lambda: hash(([],)))


@row("S004-180")
def test_hex() -> None:
    with_tensor(lambda n, o: (hex(n), hex(-n), hex(o), hex(2**70)), 255, Thing())
    raises(lambda: hex("a"))


# ---- builtin values


@row("S004-214")
def test_true_false_none() -> None:
    with_tensor(lambda: (True, False, None, True + 1, not None, True is True, None == 0, True == 1, [True].index(1)))


class Partial:
    def __add__(self, other: Any) -> Any:
        return NotImplemented

    def __eq__(self, other: Any) -> Any:
        return NotImplemented

    def __hash__(self) -> int:
        return 1


class Reflecting:
    def __radd__(self, other: Any) -> Any:
        return "reflected"


@row("S004-215")
def test_not_implemented() -> None:
    with_tensor(
        lambda p, r: (p + r, p == r, p != r, NotImplemented is NotImplemented, p.__add__(1)), Partial(), Reflecting()
    )
    raises(lambda p: p + 1, Partial())


@row("S004-216")
def test_ellipsis() -> None:
    one_graph(lambda x: (x[...], x[..., 0] + 1, ..., Ellipsis is ..., [Ellipsis]), torch.randn(2, 3))


@row("S004-217")
def test_module_values() -> None:
    def f(x: torch.Tensor) -> Any:
        return x + (1 if __debug__ else 2), __name__, __file__, __doc__

    one_graph(f, x3())
