"""Conversions, atoms, displays, primaries and calls: rows S004-59 to S004-79."""

from __future__ import annotations

import math
import types
from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import nn

from harness.graph_counts import one_graph, same, split, unsupported, x3

row = pytest.mark.row
Point = namedtuple("Point", "a b")


class Logged:
    """Records the order of the calls of ``log``."""

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


# ---- conversions and atoms


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

    # The first graph contains an int. The backend returns another callable, so the code is captured again, as two
    # graphs.
    split(f, x3(), torch.tensor(2.5), at_most=3)


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
@pytest.mark.parametrize(
    "value", [3, 2.75, True, "17", -0.0, Number(5.5), Number(0)], ids=lambda v: str(getattr(v, "v", repr(v)))
)
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


# ---- displays


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


# ---- primaries


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


# ---- calls


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
