"""Statements about builtins, resolution rules and the table of builtin functions and values: rows S004-141 to S004-217."""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import io
import math
import numbers
import sys
import types
import typing
from math import pi as module_pi
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import add as torch_add
from torch import nn

import godynamo

from . import support
from .support import nb, one_graph, same, split, x3

row = pytest.mark.row


class Thing:
    """A user object with every conversion."""

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


class Bare:
    pass


def with_tensor(fn: Any, *args: Any) -> None:
    """The row's code C: fn's value comes back beside a tensor operation, from one graph."""
    godynamo.reset()
    one_graph(lambda x, *a: (x + 1, fn(*a)), x3(), *args)


def raises(fn: Any, *args: Any) -> None:
    """The row's code X, with a tensor operation before the exception."""
    godynamo.reset()
    with pytest.raises(Exception):  # noqa: B017 - the test below compares it
        fn(*args)
    same(lambda x, *a: (x + 1, fn(*a)), x3(), *args)


# ---- the statements tuple, getattr, hasattr, zip, enumerate ------------------------------------------------------------


@row("S004-141")
def test_tuple_of_iterables() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    named = nn.ModuleDict({"a": nn.ReLU()})

    def func(x: torch.Tensor) -> Any:
        return x + 1, x * 2

    def f(x: torch.Tensor, items: list[int], d: dict[str, int]) -> Any:
        abc_ = func(x)
        a, b = func(x)
        return (
            abc_,
            a,
            b,
            tuple(x),
            tuple(items),
            tuple((1, 2)),
            tuple(d),
            tuple("ab"),
            len(tuple(layers)),
            tuple(named),
        )

    one_graph(f, x3(), [1, 2], {"a": 1})
    with_tensor(lambda: (tuple(), tuple(range(3)), tuple(v for v in (1, 2))))
    raises(lambda: tuple(5))
    raises(lambda: tuple(1, 2))


@row("S004-142", "S004-176")
def test_getattr() -> None:
    def f(x: torch.Tensor, o: Any, name: str) -> Any:
        computed = "ki" + "nd"
        return (
            getattr(x, "shape"),
            getattr(x, "re" + "lu")(),
            getattr(o, "v"),
            getattr(o, computed),
            getattr(o, name, "default"),
            getattr(o, "missing", x),
            getattr(torch, "sin")(x),
            getattr(math, "pi"),
            getattr(torch._C, "_no_such_name", None),
            getattr(F, "relu")(x),
        )

    one_graph(f, x3(), Bare2(), "v")
    godynamo.reset()
    one_graph(f, x3(), Bare2(), "nothing")
    raises(lambda o: getattr(o, "missing"), Bare2())
    raises(lambda o: getattr(o, 5), Bare2())
    raises(lambda o: getattr(o), Bare2())
    same(lambda x: (x + 1, torch.classes.no_such_library.thing), x3())


class Bare2:
    kind = "bare"

    def __init__(self) -> None:
        self.v = 4


@row("S004-143", "S004-178")
def test_hasattr() -> None:
    with_tensor(
        lambda o: (
            hasattr(o, "v"),
            hasattr(o, "no"),
            hasattr(o, "kind"),
            hasattr(torch, "sin"),
            hasattr(torch._C, "_no"),
            hasattr(5, "real"),
            hasattr([], "append"),
            hasattr(int, "nope"),
            hasattr(math, "pi"),
        ),
        Bare2(),
    )
    one_graph(lambda x: (x + 1, hasattr(x, "shape"), hasattr(x, "no_such_attribute"), hasattr(x, "relu")), x3())
    module = nn.Linear(3, 3)
    one_graph(lambda x: (x + 1, hasattr(module, "weight"), hasattr(module, "no"), hasattr(module, "forward")), x3())
    raises(lambda o: hasattr(o, 5), Bare2())


@row("S004-144", "S004-211")
def test_zip() -> None:
    a, b = [1, 2], [2, 3, 4]
    with_tensor(lambda a, b: list(zip(a, b)), a, b)
    with_tensor(lambda a, b: list(zip(tuple(a), b)), a, b)
    with_tensor(lambda a, b: list(zip(a, b)), [1.3, 2.4], b)
    with_tensor(lambda a, b: (list(zip()), list(zip(a)), dict(zip("ab", b)), list(zip(*[(1, 2), (3, 4)]))), a, b)
    with_tensor(lambda a: list(zip(a, (5, 6), strict=True)), a)
    one_graph(lambda x, y: [v * w for v, w in zip(x, y)], x3(), x3())
    raises(lambda a, b: list(zip(a, b, strict=True)), a, b)
    raises(lambda a, b: list(zip(b, a, strict=True)), a, b)
    raises(lambda a: list(zip(a, 5)), a)

    def consumed(x: torch.Tensor) -> Any:
        it = iter([1, 2, 3])
        first = list(zip(it, [10]))
        return x + 1, first, list(it)

    one_graph(consumed, x3())


@row("S004-145", "S004-169")
def test_enumerate() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def f(x: torch.Tensor) -> Any:
        for i, layer in enumerate(layers):
            x = layer(x) + i
        for i, r in enumerate(x, start=2):
            x = x + i * r
        return (
            x,
            list(enumerate("ab")),
            list(enumerate((1, 2), 5)),
            list(enumerate({"k": 1})),
            [*enumerate(range(2), -1)],
        )

    one_graph(f, x3())
    raises(lambda: list(enumerate(5)))
    raises(lambda: list(enumerate([1], "s")))
    raises(lambda: enumerate())


# ---- resolution rules --------------------------------------------------------------------------------------------------


@row("S004-146")
def test_python_implementation_is_inlined() -> None:
    assert one_graph(lambda x: support.x3() + x, x3()).ops()[-1] == "add"


@row("S004-147")
def test_wrapper_becomes_its_node() -> None:
    assert one_graph(lambda x: F.relu(x) + F.softmax(x, dim=0), x3()).ops() == ["relu", "softmax", "add"]


@row("S004-148")
def test_aliases_become_the_same_node() -> None:
    backend = one_graph(lambda x: torch_add(torch.add(x, 1), torch.functional.torch.add(x, 2)), x3())
    targets = {n.target for n in backend.graphs[0].graph.nodes if n.op == "call_function"}
    assert len(targets) == 1, targets


def _shadowing() -> Any:
    def all(x: Any) -> Any:
        return x * 100

    return lambda x: all(x) + 1


len_shadowed = types.FunctionType(
    compile("lambda x: len(x)", "shadow.py", "eval").co_consts[0], {"len": lambda x: x + 7}, "len_shadowed"
)


@row("S004-149")
def test_builtins_are_resolved_by_object() -> None:
    one_graph(_shadowing(), x3())
    assert torch.equal(godynamo.optimize(len_shadowed, backend=nb())(x3()), x3() + 7)
    one_graph(len_shadowed, x3())
    renamed = abs
    one_graph(lambda x: renamed(x), x3())


@row("S004-149")
def test_replaced_builtin_is_seen() -> None:
    f = godynamo.optimize(lambda x, items: x + len(items), backend=nb())
    assert torch.equal(f(x3(), [1]), x3() + 1)
    original = builtins.len
    builtins.len = lambda v: 50  # type: ignore[assignment]
    try:
        changed = f(x3(), [1])
    finally:
        builtins.len = original
    assert torch.equal(changed, x3() + 50)
    assert torch.equal(f(x3(), [1]), x3() + 1)


@row("S004-150")
def test_value_snapshot_is_guarded() -> None:
    backend = nb()
    f = godynamo.optimize(lambda x: x * math.pi + module_pi, backend=backend)
    g = f.__wrapped__
    assert torch.equal(f(x3()), g(x3()))
    original = math.pi
    math.pi = 3  # type: ignore[misc]
    try:
        assert torch.equal(f(x3()), x3() * 3 + module_pi)
    finally:
        math.pi = original  # type: ignore[misc]
    assert torch.equal(f(x3()), x3() * original + module_pi)
    assert len(backend) == 2


# ---- functions, in the table's order -----------------------------------------------------------------------------------


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
    split(lambda x: x + float(x.sum()), x3(), at_most=2)
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
            format(n), format(n, "05d"), format(v, ".3f"), format(s, ">9"), format(s, "*^9"), format(n, ","), format(n, "#x"),
            format(n, "b"), format(v, "e"), format(v, "%"), format(o, "spec"), format(None), format(True), format(1 + 2j, ".1f"),
            format([1]), "{:>{}}|{!r}|{0}".replace("{0}", "").format(s, 7, s), "{1} {0}".format(n, s), "{0.real}".format(n),
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
            frozenset(items), frozenset(), set(items), set(), set("ab") & set("b"), set(items) | {9}, {1, 2} - {1}, {1} ^ {2},
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


@row("S004-181")
def test_id() -> None:
    compiled = godynamo.optimize(lambda x, o: (x + 1, id(o), id(x) == id(x), id(None), id(int), id(x)), backend=nb())
    for _ in range(3):
        x, o = x3(), Bare()
        assert compiled(x, o)[1:] == (id(o), True, id(None), id(int), id(x))
    split(lambda x, o: (x + 1, id(o) == id(o), id(o) != id(x)), x3(), Bare(), at_most=5)


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
    split(lambda x: x + int(x.sum()), x3(), at_most=2)
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
            isinstance(None, int | None), isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping),
            isinstance(o, collections.abc.Sized), isinstance(o, collections.abc.Callable), isinstance(n, numbers.Number),
            isinstance(o, Thing), isinstance(Thing, type), isinstance(len, types.BuiltinFunctionType), isinstance(n, object),
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
    split(lambda x: (x + 1, isinstance(42, ByMeta), isinstance(41, ByMeta)), x3(), at_most=4)
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

    split(three, x3(), at_most=2, calls=1)  # every call makes another class
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


# ---- builtin values ----------------------------------------------------------------------------------------------------


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
