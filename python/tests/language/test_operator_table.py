"""Operators, unpacking, closures and texts: rows S004-80 to S004-100."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter
from harness.graph_counts import nb, one_graph, same, split, x3
from test_expressions import Logged, Number

row = pytest.mark.row


# ---- operators

INT = torch.tensor([5, -3, 2])

OPERATORS = {
    "**": ("S004-80", lambda a, b: a**b),
    "*": ("S004-82", lambda a, b: a * b),
    "/": ("S004-82", lambda a, b: a / b),
    "//": ("S004-82", lambda a, b: a // b),
    "%": ("S004-82", lambda a, b: a % b),
    "+": ("S004-82", lambda a, b: a + b),
    "-": ("S004-82", lambda a, b: a - b),
    "<<": ("S004-85", lambda a, b: a << b),
    ">>": ("S004-85", lambda a, b: a >> b),
    "&": ("S004-86", lambda a, b: a & b),
    "^": ("S004-86", lambda a, b: a ^ b),
    "|": ("S004-86", lambda a, b: a | b),
    "<": ("S004-87", lambda a, b: a < b),
    ">": ("S004-87", lambda a, b: a > b),
    "==": ("S004-87", lambda a, b: a == b),
    ">=": ("S004-87", lambda a, b: a >= b),
    "<=": ("S004-87", lambda a, b: a <= b),
    "!=": ("S004-87", lambda a, b: a != b),
}
OPERANDS = {
    "int": 3,
    "negative": -2,
    "float": 2.5,
    "bool": True,
    "zero": 0,
    "str": "ab",
    "list": [1, 2],
    "tuple": (1, 3),
    "set": {1, 2},
    "None": None,
    "complex": 1 + 2j,
}


@pytest.mark.parametrize("op", [pytest.param(name, marks=row(r)) for name, (r, _) in OPERATORS.items()])
@pytest.mark.parametrize("left", OPERANDS)
def test_operator_on_python_values(op: str, left: str) -> None:
    operator = OPERATORS[op][1]

    def f(x: torch.Tensor, a: Any, b: Any) -> Any:
        return x + 1, operator(a, b)

    for right in OPERANDS.values():
        try:
            operator(OPERANDS[left], right)
        except Exception:
            same(f, x3(), OPERANDS[left], right, calls=1)
        else:
            one_graph(f, x3(), OPERANDS[left], right, calls=2)


@pytest.mark.parametrize("op", [pytest.param(name, marks=row(r)) for name, (r, _) in OPERATORS.items()])
@pytest.mark.parametrize("swapped", [False, True])
def test_operator_on_tensors(op: str, swapped: bool) -> None:
    operator = OPERATORS[op][1]
    f = (lambda a, b: operator(b, a)) if swapped else operator
    bitwise = op in ("<<", ">>", "&", "^", "|")
    tensors = (
        [INT, torch.tensor([True, False, True])] if bitwise else [x3(), INT, x3().reshape(3, 1), torch.tensor(2.0)]
    )
    for a in tensors:
        for b in (2, True, 0.5, INT, x3(), torch.tensor(3), None, "s", [1]):
            try:
                f(a.clone(), b)
            except Exception:
                same(f, a, b, calls=1)
            else:
                if isinstance(b, (torch.Tensor, int, float)):
                    one_graph(f, a, b, calls=2)
                else:
                    same(f, a, b, calls=1)
            godynamo.reset()


@row("S004-80")
def test_power_binds() -> None:
    one_graph(lambda x, n: (x**2, 2**x, x**n, -(2**-3), 2**3**2, (2**3) ** 2, -(2**n), n**-1, x**-1), x3(), 3)


@row("S004-81")
def test_unary() -> None:
    one_graph(lambda x, i, m: (-x, +x, ~i, ~m, -i, not 3, not "", -(-2), ~5, +True, -2.5), x3(), INT, INT > 0)
    one_graph(lambda x, n, v: (x + 1, -n, +n, ~n, not n, -v, +v, not v), x3(), 7, 2.5)
    same(lambda x, s: (x + 1, -s), x3(), "s")
    same(lambda x: ~(x + 1), x3())


@row("S004-82")
@pytest.mark.parametrize("op", ["/", "//", "%"])
def test_zero_division(op: str) -> None:
    operator = OPERATORS[op][1]
    same(lambda x, n: (x + 1, operator(1, n)), x3(), 0)
    same(lambda x, n: (x + 1, operator(1.0, n)), x3(), 0.0)


@row("S004-82")
def test_broadcasting() -> None:
    one_graph(lambda a, b: (a * b, a + b, a / 2, a // 2, a % 2, 2 - a), torch.randn(3, 1), torch.randn(1, 4))
    same(lambda a, b: a * b, torch.randn(3), torch.randn(4))


@row("S004-83")
def test_matmul() -> None:
    one_graph(lambda a, b, v: (a @ b, a @ v, v @ v), torch.randn(2, 3), torch.randn(3, 2), x3())
    same(lambda a: a @ a, torch.randn(2, 3))
    same(lambda a: (a + 1, 2 @ 3), x3())


@row("S004-84")
def test_sequence_arithmetic() -> None:
    one_graph(
        lambda x, s, t: (
            x + 1,
            [1, x] * 2,
            2 * [0],
            s * 3,
            3 * s,
            t + [4],
            [0] + t,
            (1,) + (2,),
            2 * (1, 2),
            t * 0,
            t * -1,
        ),
        x3(),
        "ab",
        [1, 2],
    )
    same(lambda x, t: (x + 1, t + (1,)), x3(), [1])
    same(lambda x, t: (x + 1, t * 1.5), x3(), [1])


@row("S004-86")
def test_set_operators() -> None:
    one_graph(lambda x: (x + 1, {1, 2} & {2, 3}, {1} | {2}, {1, 2} ^ {2}, {1, 2} - {1}, {1} < {1, 2}), x3())


class Ordered:
    def __init__(self, k: int) -> None:
        self.k = k

    def __lt__(self, other: Any) -> Any:
        return self.k < other.k if isinstance(other, Ordered) else NotImplemented

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, Ordered) and self.k == other.k

    def __hash__(self) -> int:
        return hash(self.k)

    def __ge__(self, other: Any) -> Any:
        return "not a bool"


@row("S004-87")
def test_user_comparison() -> None:
    one_graph(
        lambda x, a, b: (x + 1, a < b, a > b, a == b, a != b, a >= b, a <= b, a == 3, a != 3),
        x3(),
        Ordered(1),
        Ordered(2),
    )
    same(lambda x, a: (x + 1, a < 3), x3(), Ordered(1))
    same(lambda x, a: (x + 1, a <= 3), x3(), Number(1))


@row("S004-88")
def test_chained_comparison() -> None:
    def f(x: torch.Tensor, log: Any, n: int) -> Any:
        return x + 1, 1 < log(n) < 10 < log(20), log(1) > log(2) > log(3), 1 < n == 5 != 6

    one_graph(f, x3(), Logged(), 5)
    one_graph(f, x3(), Logged(), 50)


class Holds:
    def __contains__(self, item: Any) -> bool:
        return item == 3


class Iterates:
    def __iter__(self) -> Any:
        return iter([1, 2, 3])


class Indexed:
    def __getitem__(self, i: int) -> int:
        if i > 3:
            raise IndexError(i)
        return i * 10


@row("S004-89")
@pytest.mark.parametrize(
    "container",
    [
        [1, 2, 3],
        (1, 3),
        {3: 1},
        {1, 3},
        frozenset({3}),
        range(5),
        Holds(),
        "a3",
        [3.0],
        [None],
        Iterates(),
        Indexed(),
        5,
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_membership(container: Any) -> None:
    item = "3" if container == "a3" else 3

    def f(x: torch.Tensor, c: Any, v: Any) -> Any:
        return x + 1, v in c, v not in c

    try:
        item in container
    except TypeError:
        same(f, x3(), container, item)
    else:
        one_graph(f, x3(), container, item)


@row("S004-89")
def test_tensor_membership() -> None:
    one_graph(lambda x, y: (x + 1, x in [x, y], x in (x,), x in {x: 1}), x3(), x3())
    split(lambda x: (x + 1, 3.25 in x), x3(), at_most=3)
    same(lambda x, y: (x + 1, x in [y]), x3(), x3())


@row("S004-90")
def test_identity() -> None:
    def f(x: torch.Tensor, a: Any, b: Any, n: int, s: str) -> Any:
        y = x
        return x + 1, y is x, a is b, a is not None, n is None, type(n) is int, n is True, s is None, ... is ..., x is a

    one_graph(f, x3(), [1], [1], 5, "s")
    one_graph(lambda x, n: (x + 1, n is n, 5 is n), x3(), 5)  # noqa: F632


@row("S004-90")
@pytest.mark.parametrize("value", [1000, 2.5, "text with spaces", (1, 2), 2**70], ids=str)
def test_identity_of_constants(value: Any) -> None:
    def f(x: torch.Tensor, a: Any, b: Any) -> Any:
        c = a
        return x + 1, a is b, a is c, b is b

    other = type(value)(value) if not isinstance(value, tuple) else (1, 2)
    compiled = godynamo.optimize(f, backend=nb())
    for a, b in ((value, value), (value, other), (value, value)):
        assert compiled(x3(), a, b)[1:] == f(x3(), a, b)[1:]
    made = int("1000")
    for a, b in ((made, int("1000")), (made, made)):
        assert compiled(x3(), a, b)[1:] == f(x3(), a, b)[1:]


class Sized:
    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n


@row("S004-91")
@pytest.mark.parametrize(
    "a",
    [0, 5, "", "s", [], [0], None, {}, Number(0), Number(1), Sized(0), Sized(2)],
    ids=lambda v: f"{type(v).__name__}{bool(v)}",
)
def test_boolean_operators(a: Any) -> None:
    def f(x: torch.Tensor, a: Any, log: Any) -> Any:
        return x + 1, a and log(1), a or log(2), not a, (a or None) and 3, a and a or a, bool(a)

    one_graph(f, x3(), a, Logged())


class BadBool:
    def __bool__(self) -> Any:
        return 3


class Raises:
    def __bool__(self) -> Any:
        raise ValueError("no truth")


@row("S004-91")
@pytest.mark.parametrize("value", [BadBool(), Raises(), Sized(-1)], ids=lambda v: type(v).__name__)
def test_truth_errors(value: Any) -> None:
    same(lambda x, v: (x + 1, 1 if v else 2), x3(), value)


@row("S004-92")
def test_boolean_operators_on_tensors() -> None:
    def f(x: torch.Tensor, y: int) -> Any:
        z = (x.sum() > 0) and y
        w = (x.sum() < 0) or y
        return x + z, w, not x.sum()

    split(f, x3(), 3, at_most=5)
    split(f, -x3(), 3, at_most=5)


@row("S004-93")
@pytest.mark.parametrize("flag", [True, False])
def test_conditional_expression(flag: bool) -> None:
    one_graph(lambda x, c: (x + 1, x * 2 if c else "text", 1 if not c else [2] if c else None), x3(), flag)


@row("S004-94")
@pytest.mark.parametrize("sign", [1, -1])
def test_conditional_expression_on_a_tensor(sign: int) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x * 2
        return y + 1 if y.sum() > 0 else y - 1

    split(f, x3() * sign)


@row("S004-95")
def test_starred() -> None:
    def f(x: torch.Tensor, t: Any, d: Any) -> Any:
        a, *b, c = t
        *e, g = [x, x + 1]
        [h, [i, *j]] = 1, (2, 3, 4)
        (k,) = {5: 6}
        (*m,) = "ab"
        return [*b, *t, a], {**d, "z": c}, (*b, g), {*t}, e, h, i, j, k, m

    one_graph(f, x3(), (1, 2, 3, 4), {"y": 2, "z": 0})


UNPACKING_ERRORS = {
    "too many": lambda x: _unpack2(x, [1, 2, 3]),
    "too few": lambda x: _unpack2(x, (1,)),
    "too few starred": lambda x: _unpack_starred(x, [1]),
    "no iterable": lambda x: _unpack2(x, 5),
    "no iterable starred": lambda x: _unpack_starred(x, None),
    "string": lambda x: _unpack2(x, "abc"),
    "dict": lambda x: _unpack2(x, {1: 2}),
    "iterator": lambda x: _unpack2(x, iter([1, 2, 3])),
    "tensor": lambda x: _unpack2(x, x),
}


def _unpack2(x: Any, v: Any) -> Any:
    y = x + 1
    a, b = v
    return y, a, b


def _unpack_starred(x: Any, v: Any) -> Any:
    y = x + 1
    a, b, *c = v
    return y, a, b, c


@row("S004-95")
@pytest.mark.parametrize("name", UNPACKING_ERRORS)
def test_unpacking_errors(name: str) -> None:
    same(UNPACKING_ERRORS[name], x3())


@row("S004-96")
def test_walrus() -> None:
    def f(x: torch.Tensor) -> Any:
        if (n := x.shape[0]) > 2:
            x = x * n
        while (n := n - 1) > 0:
            x = x + n
        found = [last := i for i in range(3)]
        return (y := x + 1), y, n, last, found

    one_graph(f, x3())


@row("S004-97")
def test_lambdas_and_closures() -> None:
    def f(x: torch.Tensor, k: int) -> Any:
        count = 0
        fns = [lambda v, i=i: v * i for i in range(3)]
        late = [lambda: i for i in range(3)]

        def bump(by: int = k) -> int:
            nonlocal count
            count += by
            return count

        def outer() -> Any:
            def inner() -> Any:
                return count + k

            return inner

        bump()
        k = 10
        return [g(x) for g in fns], [g() for g in late], bump(1), count, outer()()

    one_graph(f, x3(), 3)


@row("S004-97")
def test_closures_returned() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        n = 3

        def g(v: Any) -> Any:
            return v * n + y

        return g

    compiled = godynamo.optimize(f, backend=nb())
    for _ in range(3):
        assert torch.equal(compiled(x3())(x3()), f(x3())(x3()))


class Formatted:
    def __format__(self, spec: str) -> str:
        return f"<{spec}>"

    def __repr__(self) -> str:
        return "Formatted!"


@row("S004-98")
def test_fstrings() -> None:
    one_graph(
        lambda x, n, v, s, w: (
            x + 1,
            f"{n}|{v:.3f}|{s!r:>10}|{n:0{w}d}|{v!s}|{s!a}|{{}}|{n=}|{v:{w}.{1}e}|{n:,}|"
            f"{n:#x}|{s:^{w}}|{f'{n}'}|{None}|{[1, n]}",
        ),
        x3(),
        1234,
        2.5,
        "é",
        9,
    )


@row("S004-98")
def test_fstring_of_objects() -> None:
    one_graph(lambda x, o: (x + 1, f"{o}", f"{o:spec}", f"{o!r}", f"{o!s:>12}"), x3(), Formatted())
    one_graph(lambda x, o: (x + 1, f"{x.shape}", f"{x.dtype}", f"{x.device}", f"{type(o).__name__}"), x3(), 1)
    same(lambda x, n: (x + 1, f"{n:zz}"), x3(), 3)


@row("S004-98")
def test_fstring_of_a_tensor() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        s = f"{y} {y.sum():.2f} {y.shape}"
        return y * 2, s

    split(f, x3(), at_most=4)


@row("S004-99")
def test_str_methods() -> None:
    one_graph(
        lambda x, s: (
            x + 1,
            s.upper(),
            s.split(),
            " ".join(["a", s]),
            s.replace("a", "b"),
            s.strip(),
            s.startswith("a"),
            s.endswith(("b", "c")),
            s.find("b"),
            s.partition(" "),
            s.encode("utf8"),
            s.isalpha(),
            s.zfill(9),
            s.center(11, "*"),
            s.format(1, k=2),
            "%s %d %5.2f %r %%" % (s, 3, 2.5, s),
            "%(a)s" % {"a": 1},
            "{} {1} {0}".replace("{}", "").format(1, 2),
            "{a.real:>{w}}".format(a=3, w=5),
            s.maketrans("a", "b"),
            s.count("a"),
            s.title(),
            s.splitlines(),
            "".join(reversed(s)),
        ),
        x3(),
        "abc a",
    )
    same(lambda x, s: (x + 1, s % (1, 2)), x3(), "%d")
    same(lambda x, s: (x + 1, s.format()), x3(), "{}")
    same(lambda x, s: (x + 1, s.index("z")), x3(), "abc")


@row("S004-100")
def test_yield_expression() -> None:
    def gen(x: torch.Tensor) -> Any:
        got = yield x + 1
        yield x * got

    def f(x: torch.Tensor) -> Any:
        g = gen(x)
        return next(g), g.send(3)

    one_graph(f, x3())


@row("S004-100")
def test_await_expression() -> None:
    async def inner(x: torch.Tensor) -> Any:
        return x + 1

    async def outer(x: torch.Tensor) -> Any:
        y = await inner(x)
        return y * 2

    def f(x: torch.Tensor) -> Any:
        return asyncio.run(outer(x))

    same(f, x3())
    compiled = godynamo.optimize(outer, backend=nb())
    assert torch.equal(asyncio.run(compiled(x3())), asyncio.run(outer(x3())))


@pytest.mark.parametrize("odd", [None, "text", [1]], ids=repr)
def test_an_operand_that_cannot_be_captured_does_not_split_later_calls(odd: Any) -> None:
    def fn(x: torch.Tensor, y: Any) -> torch.Tensor | None:
        z = x * 2
        try:
            return z + y
        except TypeError:
            return None

    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter)
    assert compiled(x3(), odd) is None
    counter.clear()
    assert torch.equal(compiled(x3(), 2), x3() * 2 + 2)
    assert (counter.frame_count, counter.op_count) == (1, 2)
