"""Expressions: rows S004-59 to S004-100."""

from __future__ import annotations

import asyncio
import math
import types
from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import nn

import godynamo

from .support import nb, one_graph, same, split, unsupported, x3

row = pytest.mark.row
Point = namedtuple("Point", "a b")


class Logged:
    """Calls of ``log`` leave their order behind."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def __call__(self, value: Any) -> Any:
        self.log.append(value)
        return value


class Number:
    def __init__(self, v: float) -> None:
        self.v = v

    def __index__(self) -> int:
        return int(self.v)

    def __float__(self) -> float:
        return float(self.v)

    def __int__(self) -> int:
        return int(self.v)

    def __bool__(self) -> bool:
        return bool(self.v)

    def __str__(self) -> str:
        return f"Number {self.v}"

    def __complex__(self) -> complex:
        return complex(self.v)


# ---- conversions and atoms --------------------------------------------------------------------------------------------


@row("S004-59")
def test_tensor_as_index() -> None:
    def f(x: torch.Tensor, items: list[int], t: torch.Tensor) -> Any:
        y = x + 1
        return y * items[t], items[t:]

    split(f, x3(), [1, 2, 3], torch.tensor(1), at_most=3)


@row("S004-59")
@pytest.mark.parametrize("to", [int, float, bool, complex], ids=lambda t: t.__name__)
def test_tensor_to_number(to: Any) -> None:
    def f(x: torch.Tensor, t: torch.Tensor) -> Any:
        y = x + 1
        return y * to(t)

    split(f, x3(), torch.tensor(2.5))


@row("S004-59")
def test_operator_index_of_tensor() -> None:
    def f(x: torch.Tensor, t: torch.Tensor) -> Any:
        y = x + 1
        return y, range(t.item())[-1], math.sqrt(t), hex(t)

    split(f, x3(), torch.tensor(4), at_most=3)
    same(f, x3(), torch.tensor(4.0))
    same(f, x3(), torch.ones(2))


@row("S004-60")
def test_str_as_device() -> None:
    one_graph(lambda x: x.to("cpu") + torch.zeros(3, device="cpu"), x3())


@row("S004-61")
def test_tuple_where_a_list_is_expected() -> None:
    one_graph(lambda x: x.view((2, 2)).permute((1, 0)).sum((0, 1)) + x.view([2, 2]).sum(), torch.randn(4))


@row("S004-62")
@pytest.mark.parametrize("value", [3, 2.75, True, "17", -0.0, Number(5.5), Number(0)], ids=repr)
def test_explicit_conversions(value: Any) -> None:
    one_graph(lambda x, v: (x + 1, float(v), int(v), bool(v), str(v)), x3(), value)


@row("S004-62")
def test_conversion_errors() -> None:
    same(lambda x, v: (x + 1, int(v)), x3(), "no")
    same(lambda x, v: (x + 1, float(v)), x3(), [])
    same(lambda x, v: (x + 1, complex(v)), x3(), Number(2))


class Mangled:
    __hidden = 3

    def __secret(self) -> int:
        return self.__hidden

    def show(self, x: Any) -> Any:
        __local = x * self.__secret()
        return __local


@row("S004-63")
def test_identifiers() -> None:
    def f(x: torch.Tensor) -> Any:
        é = x + 1
        ſ = 2
        _ = é * s  # noqa: F821 (NFKC: the same name)
        _1__x = _
        return _1__x

    def g(x: torch.Tensor) -> Any:
        größe = x + 1
        _ = größe * 2
        名 = _
        return 名

    one_graph(g, x3())
    same(f, x3())
    one_graph(lambda x: Mangled().show(x), x3())


@row("S004-64")
def test_literals() -> None:
    one_graph(
        lambda x: (
            x + 1,
            [0x1F, 0o17, 0b101, 1_000_000, 10**20, 1e3, 1_0.5e-3, 0xDEAD_BEEF],
            [
                "ab",
                r"\n",
                "\u00e9",
                "\x41",
                """three
lines""",
                "\N{BULLET}",
            ],
            [b"ab\x00", rb"\x", b"ac"],
            [2j, 1.5j],
            ...,
            (True, False, None),
        ),
        x3(),
    )


@row("S004-65")
def test_parenthesised_forms() -> None:
    one_graph(lambda x: (x + 1, (), (1,), ((1), (2,), ((3,),)), (x)), x3())


# ---- displays ---------------------------------------------------------------------------------------------------------


@row("S004-66")
def test_list_display_order() -> None:
    def f(x: torch.Tensor, log: Any) -> Any:
        return [log(3), x + log(1), log(2), [log(0)]]

    one_graph(f, x3(), Logged())


@row("S004-67")
def test_dict_display() -> None:
    def f(x: torch.Tensor, log: Any) -> Any:
        return {log("a"): log(1), log("b"): x * 2, log("a"): log(3), 1: "int", 1.0: "float", True: "bool"}  # noqa: F601

    one_graph(f, x3(), Logged())


@row("S004-68")
def test_list_comprehension() -> None:
    def f(x: torch.Tensor, items: list[int]) -> Any:
        i = "outer"
        a = [x + i for i in items if i % 2]
        b = [[i * j for j in range(i)] for i in items]
        c = [(i, j) for i in items for j in items if i < j]
        return a, b, c, i

    one_graph(f, x3(), [1, 2, 3])


@row("S004-69")
def test_dict_comprehension() -> None:
    one_graph(lambda x, items: {k: x * v for k, v in items if v}, x3(), [("a", 1), ("b", 0), ("c", 2)])


@row("S004-70")
def test_set_and_generator_expressions() -> None:
    one_graph(lambda x: (x + 1, {1, 2, 1}, {i % 2 for i in range(4)}), x3())
    one_graph(lambda x: x + sum(i * i for i in range(4)), x3())
    one_graph(lambda x: sum(x * i for i in range(3)), x3())
    one_graph(lambda x: torch.stack([*(x * i for i in range(3))]), x3())
    one_graph(
        lambda x: (x + 1, any(i > 2 for i in range(4)), tuple(i for i in range(2)), ",".join(str(i) for i in (1, 2))),
        x3(),
    )


@row("S004-71")
def test_unsupported_call_in_a_comprehension() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        z = [unsupported(y * i) for i in range(2)]
        return z[0] + z[1]

    split(f, x3(), at_most=6)

    def g(x: torch.Tensor) -> Any:
        y = x + 1
        z = [print(i) or i for i in range(2)]
        return y * z[1]

    split(g, x3())


# ---- primaries --------------------------------------------------------------------------------------------------------


@row("S004-72")
def test_attribute_reference() -> None:
    module = nn.Linear(3, 3)
    space = types.SimpleNamespace(k=2)
    one_graph(
        lambda x, o, p: (
            x.T.shape,
            x.requires_grad,
            module.weight + x,
            module.in_features,
            math.pi,
            p.a + p.b,
            x.dtype,
        ),
        x3(),
        Number(1),
        Point(1, 2),
    )
    one_graph(lambda x: x + space.k, x3())
    same(lambda x: (x + 1).missing, x3())
    same(lambda x, o: (x + 1, o.missing), x3(), Number(1))


@row("S004-73")
@pytest.mark.parametrize(
    ("value", "key"),
    [
        ([1, 2, 3], 1),
        ([1, 2, 3], -1),
        ([1], 5),
        ((1, 2), -2),
        ((1, 2), 2),
        ("abc", -1),
        ("abc", 3),
        ({"a": 1}, "a"),
        ({"a": 1}, "b"),
        (range(3, 9, 2), 1),
        (range(3), 3),
        ([1], "a"),
        (b"ab", 0),
        (3, 0),
        ({1: 2}, []),
    ],
    ids=str,
)
def test_subscription(value: Any, key: Any) -> None:
    def f(x: torch.Tensor, v: Any, k: Any) -> Any:
        return x + 1, v[k]

    try:
        value[key]
    except (LookupError, TypeError):
        same(f, x3(), value, key)
    else:
        one_graph(f, x3(), value, key)


@row("S004-74")
def test_module_containers_by_computed_key() -> None:
    layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
    named = nn.ModuleDict({"layer0": nn.Linear(3, 3), "layer1": nn.Tanh()})

    def f(x: torch.Tensor, i: int) -> Any:
        for k in range(2):
            x = named[f"layer{k}"](layers[k - i](x))
        return x

    one_graph(f, x3(), 1)


@row("S004-75")
@pytest.mark.parametrize(
    "value", ["abcdef", (1, 2, 3, 4), [1, 2, 3, 4], range(10), b"abcd"], ids=lambda v: type(v).__name__
)
def test_slicing(value: Any) -> None:
    one_graph(
        lambda x, v: (x + 1, v[1:3], v[::-1], v[-2:], v[:-1], v[::2], v[3:1], v[1:100], v[-100:2], v[:], v[5:0:-2]),
        x3(),
        value,
    )
    same(lambda x, v: (x + 1, v[::0]), x3(), value)


@row("S004-76")
def test_tensor_indexing() -> None:
    def f(x: torch.Tensor, idx: torch.Tensor) -> Any:
        return (
            x[0],
            x[1, 2],
            x[1:, ::2],
            x[..., -1],
            x[None, :, None],
            x[[0, 2]],
            x[:, [0, 1], ...],
            x[idx],
            x[idx, 1:],
            x[-1][-1],
            x[True],
            x[()],
            x[slice(1, 3)],
            x[0:2, None, ..., 0],
        )

    one_graph(f, torch.randn(3, 4), torch.tensor([2, 0]))


@row("S004-76")
def test_tensor_mask_indexing() -> None:
    split(lambda x, m: (x + 1)[m] * 2, torch.randn(3, 4), torch.tensor([True, False, True]))
    split(lambda x: x[x > 0].sum() + 1, torch.randn(3, 4))
    same(lambda x: x[5], x3())
    same(lambda x: (x + 1)[0, 0], x3())


@row("S004-77")
def test_slice_assignment_and_deletion() -> None:
    def f(x: torch.Tensor, items: list[Any]) -> Any:
        items[1:3] = [x + 1, 7, 8]
        items[::2] = list(range(len(items[::2])))
        del items[0]
        del items[1:2]
        items[:0] = (9,)
        return len(items)

    one_graph(f, x3(), [1, 2, 3, 4])


@row("S004-77")
def test_tensor_item_assignment() -> None:
    def f(x: torch.Tensor, m: torch.Tensor) -> Any:
        y = x.clone()
        y[1:3] = 0
        y[m] = 5.0
        y[0] = x[2]
        y[...] += 1
        x[0] = 9
        return y

    one_graph(f, x3(), torch.tensor([True, False, False]))


# ---- calls ------------------------------------------------------------------------------------------------------------


def every(a, b=2, /, c=3, *args, d, e=5, **kwargs):  # type: ignore[no-untyped-def]
    return a, b, c, args, d, e, kwargs


@row("S004-78")
def test_calls() -> None:
    def f(x: torch.Tensor, items: Any, named: Any, log: Any) -> Any:
        return (
            every(x + 1, d=4),
            every(1, 2, 3, 4, x, d=6, z=7),
            every(*items, d=1, **named),
            every(*items, *items, d=log(1), **{"q": log(2)}, r=log(3)),
            every(log("a"), *[log("b")], d=log("d"), c=log("c")),
        )

    one_graph(f, x3(), [1, 2], {"e": 9, "z": 0}, Logged())


def only(a, b=2, *, c):  # type: ignore[no-untyped-def]
    return a


def posonly(a, b, /, k=3):  # type: ignore[no-untyped-def]
    return a


def nothing():  # type: ignore[no-untyped-def]
    return None


class Ctor:
    def __init__(self, a: Any) -> None:
        self.a = a

    def method(self, a: Any) -> Any:
        return a


WRONG_CALLS = {
    "missing one": lambda x: only(c=x + 1),
    "missing keyword-only": lambda x: only(x + 1),
    "missing two": lambda x: every(),
    "too many": lambda x: only(x + 1, 2, 3, c=1),
    "too many, none taken": lambda x: nothing(x + 1),
    "unexpected keyword": lambda x: only(x + 1, c=1, z=2),
    "several unexpected": lambda x: only(x + 1, c=1, z=2, y=3),
    "multiple values": lambda x: only(x + 1, a=2, c=3),
    "positional-only by keyword": lambda x: posonly(a=x + 1, b=2),
    "one positional-only missing": lambda x: posonly(x + 1),
    "keyword not a string": lambda x: every(x + 1, **{1: 2}, d=2),
    "repeated keyword": lambda x: every(x + 1, d=2, **{"d": 3}),
    "star of no iterable": lambda x: every(*(5), d=x + 1),
    "double star of no mapping": lambda x: every(x + 1, **5),
    "class": lambda x: Ctor(),
    "class, too many": lambda x: Ctor(x + 1, 2),
    "method": lambda x: Ctor(x + 1).method(),
    "method, too many": lambda x: Ctor(x + 1).method(1, 2),
    "lambda": lambda x: (lambda a: a)(x + 1, 2),
    "local function": lambda x: (lambda a, *, k: a)(x + 1),
    "builtin": lambda x: len(x + 1, 2),
    "not callable": lambda x: (x + 1, (5)()),
    "None": lambda x: (x + 1, (None)(1)),
    "object": lambda x: (x + 1, Ctor(1)()),
    "object()": lambda x: (x + 1, object(3)),
}


@row("S004-79")
@pytest.mark.parametrize("name", WRONG_CALLS)
def test_call_errors(name: str) -> None:
    same(WRONG_CALLS[name], x3())


@row("S004-79")
@pytest.mark.parametrize(
    "name", ["missing one", "too many", "unexpected keyword", "multiple values", "class", "method"]
)
def test_call_errors_caught(name: str) -> None:
    wrong = WRONG_CALLS[name]

    def f(x: torch.Tensor) -> Any:
        try:
            return wrong(x)
        except TypeError as e:
            return x * 2, str(e)

    same(f, x3())


# ---- operators --------------------------------------------------------------------------------------------------------

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
            f"{n}|{v:.3f}|{s!r:>10}|{n:0{w}d}|{v!s}|{s!a}|{{}}|{n=}|{v:{w}.{1}e}|{n:,}|{n:#x}|{s:^{w}}|{f'{n}'}|{None}|{[1, n]}",
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
