"""Simple statements: rows S004-101 to S004-117."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import pytest
import torch

import godynamo
from harness.graph_counts import nb, one_graph, same, split, x3

row = pytest.mark.row
_count = 0
_shared: Any = None


class Holder:
    def __init__(self, v: Any = 1) -> None:
        self.v = v
        self.d = {"k": 1}
        self.reads = 0

    def key(self) -> str:
        self.reads += 1
        return "k"

    def me(self) -> Holder:
        self.reads += 1
        return self


@row("S004-101")
def test_expression_statement() -> None:
    def f(x: torch.Tensor, items: list[int]) -> Any:
        x + 5
        "dropped"
        items.pop
        items.append(3)
        ...
        return x * 2

    def g(x: torch.Tensor) -> Any:
        x.add_(1)
        return x * 2

    one_graph(f, x3(), [1])
    one_graph(g, x3())


@row("S004-102")
def test_assignment() -> None:
    def f(x: torch.Tensor, o: Holder, d: dict[str, Any], items: list[Any]) -> Any:
        a = b = c = [x + 1]
        (e, [g, *h]), o.v = (1, [2, 3, 4]), 5
        d["a"], items[0], items[1:2] = 6, x * 2, [7, 8]
        o.v, o.d["z"] = o.d, o.v
        i, j = j, i = 1, 2
        a.append(1)
        return a is b is c, len(c), e, g, h, i, j

    one_graph(f, x3(), Holder(), {}, [1, 2])


AUGMENTED = {
    "+=": lambda a, b: _aug_add(a, b),
    "-=": lambda a, b: _aug_sub(a, b),
    "*=": lambda a, b: _aug_mul(a, b),
    "/=": lambda a, b: _aug_div(a, b),
    "//=": lambda a, b: _aug_floordiv(a, b),
    "%=": lambda a, b: _aug_mod(a, b),
    "**=": lambda a, b: _aug_pow(a, b),
    "<<=": lambda a, b: _aug_lshift(a, b),
    ">>=": lambda a, b: _aug_rshift(a, b),
    "&=": lambda a, b: _aug_and(a, b),
    "^=": lambda a, b: _aug_xor(a, b),
    "|=": lambda a, b: _aug_or(a, b),
    "@=": lambda a, b: _aug_matmul(a, b),
}
for _name, _op in zip(
    "add sub mul div floordiv mod pow lshift rshift and xor or matmul".split(), AUGMENTED, strict=True
):
    exec(f"def _aug_{_name}(a, b):\n    alias = a\n    a {_op} b\n    return a, alias\n")


@row("S004-103")
@pytest.mark.parametrize("op", AUGMENTED)
def test_augmented_assignment(op: str) -> None:
    augmented = AUGMENTED[op]
    integers = op in ("<<=", ">>=", "&=", "^=", "|=")
    if op == "@=":
        one_graph(augmented, torch.randn(3, 3), torch.randn(3, 3))
        same(augmented, [1], 2)
        return
    tensor = torch.tensor([5, 3, 2]) if integers else x3()
    one_graph(augmented, tensor, 2)
    godynamo.reset()
    one_graph(augmented, tensor, tensor + 1)
    godynamo.reset()
    one_graph(lambda x, n: (x + 1, augmented(n, 2)), x3(), 7)
    if not integers:
        godynamo.reset()
        one_graph(lambda x, n: (x + 1, augmented(n, 2)), x3(), 7.5)
    godynamo.reset()
    same(lambda x, n: (x + 1, augmented(n, 2)), x3(), "s")


@row("S004-103")
def test_augmented_assignment_of_containers() -> None:
    def f(x: torch.Tensor, items: list[Any], s: set[int], d: dict[str, int], t: tuple[int, ...]) -> Any:
        alias, salias = items, s
        items += [x + 1]
        items *= 2
        items += "ab"
        s |= {3}
        s &= {1, 3}
        d |= {"b": 2}
        t += (4,)
        return alias is items, salias is s, t, len(items)

    one_graph(f, x3(), [1], {1, 2}, {"a": 1}, (1, 2))


class InPlace:
    def __init__(self) -> None:
        self.log: list[Any] = []

    def __iadd__(self, other: Any) -> Any:
        self.log.append(other)
        return self

    def __mul__(self, other: Any) -> Any:
        return ("mul", other)


@row("S004-103")
def test_augmented_assignment_of_objects() -> None:
    def f(x: torch.Tensor, o: Any) -> Any:
        p = o
        o += 3
        p *= 4
        return x + 1, p, o

    one_graph(f, x3(), InPlace())


@row("S004-104")
def test_augmented_targets_are_evaluated_once() -> None:
    def f(x: torch.Tensor, o: Holder, items: list[int]) -> Any:
        o.d[o.key()] += 1
        o.me().v += 2
        o.me().d[o.key()] *= 10
        i = 0
        items[(i := i + 1)] -= 5
        return x + o.v, o.reads, i

    one_graph(f, x3(), Holder(), [1, 2])


@row("S004-105")
def test_annotated_assignment() -> None:
    def f(x: torch.Tensor, o: Holder, d: dict[str, Any]) -> Any:
        y: torch.Tensor = x + 1
        o.v: int = 5  # type: ignore[misc]
        d["k"]: str = "v"  # type: ignore[misc]
        (z): int = 3
        return y, z

    one_graph(f, x3(), Holder(), {})


class Custom(Exception):
    def __init__(self, a: int, b: str) -> None:
        super().__init__(a, b)
        self.a = a


RAISES = {
    "class": lambda: ValueError,
    "instance": lambda: ValueError("text"),
    "own": lambda: Custom(1, "b"),
    "key": lambda: KeyError("k"),
    "not an exception": lambda: 5,
    "plain class": lambda: int,
}


@row("S004-106")
@pytest.mark.parametrize("what", RAISES)
def test_raise(what: str) -> None:
    def f(x: torch.Tensor, error: Any) -> Any:
        y = x + 1
        raise error
        return y

    make = RAISES[what]
    same(f, x3(), make())
    same(lambda x: f(x, make()), x3())


@row("S004-106")
def test_raise_made_here() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        if n == 0:
            raise ValueError(f"n is {n}")
        if n == 1:
            raise Custom(n, "b") from KeyError("cause")
        if n == 2:
            try:
                raise KeyError("inner")
            except KeyError:
                raise
        if n == 3:
            raise
        if n == 4:
            raise ValueError("t") from None
        return y

    for n in range(6):
        godynamo.reset()
        same(f, x3(), n)


@row("S004-106")
def test_cause_and_context_of_raised() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        try:
            {}["k"]
        except KeyError as e:
            raise ValueError("v") from e
        return y

    compiled = godynamo.optimize(f, backend=nb())
    for _ in range(2):
        with pytest.raises(ValueError, match="^v$") as info:
            compiled(x3())
        assert isinstance(info.value.__cause__, KeyError)
        assert info.value.__context__ is info.value.__cause__


@row("S004-107")
def test_raise_caught_in_the_same_frame() -> None:
    def f(x: torch.Tensor) -> Any:
        try:
            try:
                {}["k"]
            except KeyError as e:
                raise ValueError("from key") from e
        except ValueError as e:
            text = str(e)
        return x + 1, text

    one_graph(f, x3())


@row("S004-108")
def test_assert() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        assert n > 0, f"n is {n}"
        assert n > 1
        return y * 2

    one_graph(f, x3(), 3)
    same(f, x3(), 0)
    same(f, x3(), 1)


@row("S004-109")
def test_assert_on_tensor() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        assert y.sum() > 0
        z = y * 2
        assert torch.all(z > -1000), "message"
        return z

    split(f, x3(), at_most=3)
    same(f, -x3())
    same(f, x3() * 1000)


@row("S004-110")
def test_return() -> None:
    def nothing(x: torch.Tensor, o: Holder) -> None:
        o.v = x + 1

    def bare(x: torch.Tensor, o: Holder) -> Any:
        o.v = x + 1
        if o.reads == 0:
            return
        return 3

    def several(x: torch.Tensor, o: Holder) -> Any:
        return x + 1, o.v, *[1, 2]

    def in_loop(x: torch.Tensor, o: Holder) -> Any:
        for i in range(5):
            for j in range(5):
                if i * j == 6:
                    return x + i, j
        return None

    def in_with(x: torch.Tensor, o: Holder) -> Any:
        with torch.no_grad():
            return x + 1

    def in_try(x: torch.Tensor, o: Holder) -> Any:
        try:
            return x + 1
        finally:
            o.v = "final"

    def overridden(x: torch.Tensor, o: Holder) -> Any:
        while True:
            try:
                return x + 1
            finally:
                break
        return x * 2

    for f in (nothing, bare, several, in_loop, in_with, in_try, overridden):
        godynamo.reset()
        one_graph(f, x3(), Holder())


@row("S004-111")
def test_del() -> None:
    def g(x: torch.Tensor, o: Holder, d: dict[str, int], items: list[int]) -> Any:
        y = x + 1
        z = y * 2
        del y
        del o.v, d["a"], items[0], items[1:]
        return z

    one_graph(g, x3(), Holder(), {"a": 1, "b": 2}, [1, 2, 3])


@row("S004-111")
def test_del_errors() -> None:
    def unbound(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        if n:
            del y
        return y

    def twice(x: torch.Tensor, n: int) -> Any:
        y = x + n
        del y
        del y

    def attribute(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        o = Holder()
        del o.missing
        return y

    def item(x: torch.Tensor, n: int) -> Any:
        y = x + 1
        d = {1: 2}
        del d[n]
        return y

    def cell(x: torch.Tensor, n: int) -> Any:
        y = x + 1

        def g() -> Any:
            return y

        del y
        return g()

    def index(x: torch.Tensor, n: int) -> Any:
        items = [x + 1]
        del items[n + 3]

    for f in (unbound, twice, attribute, item, cell, index):
        godynamo.reset()
        same(f, x3(), 5)


@row("S004-112")
def test_pass() -> None:
    def f(x: torch.Tensor) -> Any:
        pass
        for _ in range(2):
            pass
        if x.shape[0] == 3:
            pass
        return x + 1

    one_graph(f, x3())


@row("S004-113", "S004-195")
def test_print() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        print("start", n, sep="-", end="|")
        y = x + 1
        print(y, [n, y.shape], {"a": None}, sep="\n", flush=True)
        print()
        z = y * 2
        print("end", z.dtype, (n,), 2.5, True, end="")
        return z

    split(f, x3(), 3, at_most=3)


class Printed:
    def __str__(self) -> str:
        return "a Printed"


@row("S004-113", "S004-195")
def test_print_of_objects_and_to_files() -> None:
    def f(x: torch.Tensor, o: Any, out: Any) -> Any:
        y = x + 1
        print(o, o)
        print("to file", y.sum(), file=out)
        print("default", file=None)
        return y * 2, out.getvalue()

    backend = nb()
    compiled = godynamo.optimize(f, backend=backend)
    for _ in range(3):
        eager_out, out = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()) as eager_text:
            expected = f(x3(), Printed(), eager_out)
        with contextlib.redirect_stdout(io.StringIO()) as text:
            actual = compiled(x3(), Printed(), out)
        assert torch.equal(actual[0], expected[0])
        assert actual[1] == expected[1]
        assert text.getvalue() == eager_text.getvalue()
    assert len(backend) >= 2 or len(backend.ops()) == 3


@row("S004-113", "S004-195")
def test_print_errors() -> None:
    same(lambda x: (x + 1, print(1, sep=3)), x3())
    same(lambda x: (x + 1, print(1, bad=3)), x3())
    same(lambda x: (x + 1, sys.stdout.write("text\n")), x3())


@row("S004-114")
def test_break_and_continue() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        for i in range(n):
            if i == 1:
                continue
            for j in range(n):
                if j == 2:
                    break
                x = x + i * j
            else:
                x = x * 100
            if i == 3:
                break
        k = 0
        while True:
            k += 1
            if k < 3:
                continue
            break
        return x, k

    one_graph(f, x3(), 5)


@row("S004-114")
def test_break_and_continue_in_blocks() -> None:
    def f(x: torch.Tensor, log: list[Any]) -> Any:
        for i in range(4):
            with torch.no_grad():
                if i == 1:
                    continue
                x = x + i
                try:
                    if i == 2:
                        break
                finally:
                    log.append(i)
        return x

    one_graph(f, x3(), [])


def bump_global(by: int) -> int:
    global _count
    _count += by
    return _count


def read_global() -> int:
    return _count


@row("S004-115")
def test_global_and_nonlocal() -> None:
    def f(x: torch.Tensor) -> Any:
        global _count
        _count = 10
        seen = [read_global(), bump_global(5)]
        _count = _count + 1
        outer = 0

        def inner() -> None:
            nonlocal outer
            outer += 3

        inner()
        inner()
        return x + _count, seen, outer, read_global()

    one_graph(f, x3())
    assert _count == 16


@row("S004-115")
def test_global_seen_by_other_functions_at_once() -> None:
    seen: list[Any] = []

    def observer() -> None:
        seen.append(_shared)

    opaque = godynamo.disable(observer)

    def f(x: torch.Tensor) -> Any:
        global _shared
        _shared = "first"
        opaque()
        _shared = "second"
        y = x + 1
        opaque()
        return y

    godynamo.optimize(f, backend=nb())(x3())
    assert seen == ["first", "second"]


@row("S004-115")
def test_deleted_global() -> None:
    def f(x: torch.Tensor) -> Any:
        global _to_delete
        _to_delete = 3
        y = x + _to_delete
        del _to_delete
        return y

    def g(x: torch.Tensor) -> Any:
        return x + _not_defined_anywhere  # type: ignore[name-defined] # noqa: F821

    same(f, x3())
    assert "_to_delete" not in globals()
    same(g, x3())


@row("S004-116")
def test_import() -> None:
    def f(x: torch.Tensor) -> Any:
        import collections.abc as abc
        import math
        import os.path
        from functools import reduce as red  # noqa: F401
        from math import floor, pi

        return x + math.e + pi, floor(2.5), isinstance([], abc.Sequence), os.path.sep

    one_graph(f, x3())


@row("S004-116")
def test_relative_import() -> None:
    # As in a module of the package ``harness``: this file itself is in no package.
    module = {"__name__": "harness.importing", "__package__": "harness"}
    exec(
        "def f(x):\n"
        "    from . import graph_counts as here\n"
        "    from .graph_counts import x3 as make\n"
        "    return x + 1, here.__name__, make() + 1\n",
        module,
    )
    one_graph(module["f"], x3())


@row("S004-116")
def test_import_of_a_module_not_yet_imported() -> None:
    def f(x: torch.Tensor) -> Any:
        import this_is_not_a_module  # type: ignore[import-not-found]  # noqa: F401

        return x + 1

    def g(x: torch.Tensor) -> Any:
        from math import not_a_name  # type: ignore[attr-defined]  # noqa: F401

        return x + 1

    def h(x: torch.Tensor) -> Any:
        y = x + 1
        import colorsys

        return y * 2, colorsys.rgb_to_hsv(1.0, 0.0, 0.0)

    same(f, x3())
    same(g, x3())
    sys.modules.pop("colorsys", None)
    godynamo.reset()
    split(h, x3(), at_most=3)


def doubled(fn: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) * 2

    return wrapper


@row("S004-117")
def test_def_and_decorators() -> None:
    def f(x: torch.Tensor, k: int) -> Any:
        @doubled
        def g(v: Any, *, by: int = k) -> Any:
            "doc"
            return v * by

        def h(n: int) -> int:
            return 1 if n <= 1 else n * h(n - 1)

        return g(x), g(x, by=5), h(4), h.__name__

    one_graph(f, x3(), 3)


@row("S004-117")
def test_class_statement() -> None:
    def f(x: torch.Tensor, k: int) -> Any:
        y = x + 1

        class Local:
            factor = k

            def scale(self, v: Any) -> Any:
                return v * self.factor

        return Local().scale(y) + 1, Local.__name__

    split(f, x3(), 3, at_most=2, calls=1)  # every call creates another class
