"""TorchScript types under godynamo, from Any to the containers of modules: rows S004-01 to S004-31."""

from __future__ import annotations

import sys
from collections import namedtuple
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb, one_graph, same, split, x3

row = pytest.mark.row


class Plain:
    pass


# ---- meta type


@row("S004-01")
@pytest.mark.parametrize(
    ("pair", "expected"), [((1, 2.0), (2, 2.0)), ((1, (100, 200)), (2, (100, 200)))], ids=["float", "tuple"]
)
def test_any_parameter(pair: Any, expected: Any) -> None:
    def inc_first_element(x: Tuple[int, Any]) -> Any:
        return (x[0] + 1, x[1])

    same(inc_first_element, pair)
    assert godynamo.optimize(inc_first_element, backend=nb())(pair) == expected


@row("S004-01")
def test_any_parameter_beside_a_tensor() -> None:
    one_graph(lambda x, p: (x + p[0], p[0] + 1, p[1]), x3(), (1, (100, 200)))


@row("S004-02")
@pytest.mark.parametrize("value", [torch.ones(2), 7, Plain()], ids=["tensor", "int", "object"])
def test_any_bound_and_returned(value: Any) -> None:
    def f(x: torch.Tensor, a: Any) -> Any:
        b: Any = a
        return x + 1, b

    one_graph(f, x3(), value)


@row("S004-03")
@pytest.mark.parametrize("value", [None, 0, "text", torch.ones(1), Plain()])
def test_any_identity(value: Any) -> None:
    one_graph(lambda x, a: (x + 1, a is None, a is not None), x3(), value)


@row("S004-04")
def test_any_isinstance_and_print() -> None:
    def f(a: Any) -> bool:
        b = a + 1
        print(a)
        return isinstance(b * 2, torch.Tensor)

    split(f, torch.ones(2))


@row("S004-05")
@pytest.mark.parametrize("value", [torch.ones(2), 3, "s", (1, [2.5])], ids=["tensor", "int", "str", "nested"])
def test_any_printable(value: Any) -> None:
    def f(x: torch.Tensor, a: Any) -> Any:
        y = x + 1
        print(a)
        return y * 2

    split(f, x3(), value)


@row("S004-06")
def test_list_of_any_sorts() -> None:
    def f(x: torch.Tensor, items: List[Any]) -> Any:
        items.sort()
        return x + 1, items, sorted(items, reverse=True)

    one_graph(f, x3(), [3, 1, 2])
    one_graph(f, x3(), ["b", "a"])
    same(f, x3(), [1, "a"])


# ---- primitive types


@row("S004-07")
@pytest.mark.parametrize("value", [0, 1, -1, 2**80, -(2**63)])
def test_int(value: int) -> None:
    one_graph(lambda x, n: (x + 1, n + 1, n * n, n // 3, n % 7, -n, n.bit_length()), x3(), value)


@row("S004-08")
@pytest.mark.parametrize("value", [0.5, float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e308])
def test_float(value: float) -> None:
    one_graph(lambda x, v: (x + v, v + 1.0, v * 10, v == v, -v), x3(), value)


@row("S004-08")
def test_minus_zero_is_not_zero() -> None:
    f = godynamo.optimize(lambda x, v: (x + 1, v * 2.0), backend=nb())
    texts = [str(f(x3(), v)[1]) for v in (0.0, -0.0, 0.0, -0.0)]
    assert texts == ["0.0", "-0.0", "0.0", "-0.0"]


@row("S004-09")
def test_complex() -> None:
    one_graph(lambda x, v: (x * v, v * v, v.real, v.imag, v.conjugate(), abs(v)), x3(), 1 + 2j)


@row("S004-10")
def test_bool_is_not_int() -> None:
    backend = nb()
    f = godynamo.optimize(lambda x, v: (x + 1, type(v).__name__, v + 1, str(v)), backend=backend)
    assert [f(x3(), v)[1:] for v in (True, 1, True, 1)] == [("bool", 2, "True"), ("int", 2, "1")] * 2
    one_graph(lambda x, v: (x + 1, v, not v), x3(), True)


@row("S004-11")
@pytest.mark.parametrize("value", ["", "abc", "é中\U0001f600", "\ud800"])
def test_str(value: str) -> None:
    one_graph(lambda x, s: (x + 1, s + "!", len(s), s * 2, s[:1], s == "abc", [ord(c) for c in s]), x3(), value)


@row("S004-12")
def test_none() -> None:
    one_graph(lambda x, v: (x + 1 if v is None else x, v, v == None, bool(v), str(v)), x3(), None)


# ---- structural types


@row("S004-13")
def test_tuple() -> None:
    def f(x: torch.Tensor, t: Tuple[Any, ...]) -> Any:
        a, (b, c), *rest = t
        u = (x, a, (), (b,), (x * 2, (c, x + 1)))
        return u, t[0], t[-1], t[1:], t < (2,), t == (1, (2, 3), 4), u[4][1][0], len(t), rest, t + (5,), t * 2

    one_graph(f, x3(), (1, (2, 3), 4))


class MyTuple(NamedTuple):
    first: int
    second: int


class TensorTuple(NamedTuple):
    first: torch.Tensor
    second: int = 5

    def both(self) -> Any:
        return self.first * self.second


@row("S004-14")
def test_typed_named_tuple() -> None:
    def inc(x: MyTuple) -> Tuple[int, int]:
        return (x.first + 1, x.second + 1)

    same(inc, MyTuple(first=1, second=2))
    assert godynamo.optimize(inc, backend=nb())(MyTuple(1, 2)) == (2, 3)
    one_graph(lambda t: (t.first + 1, t.second, t.both(), t[0] * 2, len(t)), TensorTuple(x3()))
    one_graph(lambda x: TensorTuple(x + 1), x3())
    one_graph(lambda x: TensorTuple(second=2, first=x + 1).both(), x3())


Pair = namedtuple("Pair", ["first", "second"])


@row("S004-15")
def test_untyped_named_tuple() -> None:
    def inc(x: MyTuple) -> Tuple[int, int]:
        return (x.first + 1, x.second + 1)

    assert godynamo.optimize(inc, backend=nb())(Pair(1, 2)) == (2, 3)
    one_graph(lambda x, p: (x + p.first, p._replace(second=x), p._fields), x3(), Pair(1, 2))
    one_graph(lambda x, p: (x + 1, p._asdict()), x3(), Pair(1, 2))
    one_graph(lambda x: Pair._make([x + 1, 2]), x3())


@row("S004-16")
def test_list() -> None:
    def f(x: torch.Tensor, items: List[int]) -> Any:
        items.append(4)
        items.extend([5, 6])
        items.insert(0, 9)
        last = items.pop()
        first = items.pop(0)
        items.reverse()
        where = items.index(4)
        count = items.count(2)
        items.remove(2)
        items.sort()
        copied = items.copy()
        copied.clear()
        return x + 1, last, first, where, count, copied, items + [1], items * 2, 3 in items

    one_graph(f, x3(), [1, 2, 3])


@row("S004-16")
def test_list_of_tensors() -> None:
    def f(x: torch.Tensor, items: List[torch.Tensor]) -> Any:
        items.append(x + 1)
        items.insert(0, x * 2)
        items.reverse()
        return torch.stack(items), len(items), items.pop()

    one_graph(f, x3(), [x3()])


@row("S004-17")
@pytest.mark.parametrize("keys", [("a", "b"), (1, 2), (1.5, 2.5), (True, False)], ids=["str", "int", "float", "bool"])
def test_dict(keys: Any) -> None:
    def f(x: torch.Tensor, d: Dict[Any, Any], k: Any, m: Any) -> Any:
        d[m] = x * 2
        got = d.get(k), d.get("none"), d.get("none", 3)
        set_default = d.setdefault("new", 7), d.setdefault(k, 8)
        d.update({"u": 1}, w=2)
        popped = d.pop("u"), d.pop("nothing", None)
        return x + d[k], got, set_default, popped, list(d.items()), list(d.keys()), list(d.values()), k in d, len(d)

    one_graph(f, x3(), {keys[0]: 1}, *keys)


@row("S004-18")
def test_dict_with_tensor_keys() -> None:
    one_graph(lambda x: {x: x + 1}[x], x3())

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        d = {x: 1, y: 2}
        return x + d[y], len(d), x in d

    one_graph(f, x3(), x3())


@row("S004-19")
def test_optional() -> None:
    def f(x: torch.Tensor, o: Optional[torch.Tensor]) -> Any:
        return x if o is None else x + o

    backend = nb()
    g = godynamo.optimize(f, backend=backend)
    for o in (None, x3(), None, x3()):
        assert torch.equal(g(x3(), o), f(x3(), o))
    assert len(backend) == 1  # the branch without an operation has no graph
    one_graph(f, x3(), x3())


@row("S004-20")
def test_union() -> None:
    def f(x: torch.Tensor, v: Union[int, None, str]) -> Any:
        if v is None:
            return x * 2
        return x + v if isinstance(v, int) else x - len(v)

    for v in (3, None, "four"):
        one_graph(f, x3(), v)
    g = godynamo.optimize(f, backend=nb())
    for v in (3, None, "four", 3, None):
        assert torch.equal(g(x3(), v), f(x3(), v))


@row("S004-21")
def test_future() -> None:
    def f(x: torch.Tensor) -> Any:
        fut: torch.futures.Future[Any] = torch.futures.Future()
        fut.set_result(x + 1)
        return fut.wait() * 2

    split(f, x3(), at_most=3)


@row("S004-23")
def test_annotation_of_an_unknown_name() -> None:
    text = "def inc(x: Tuple[int, int]):\n    return (x[0] + 1, x[1] + 1)\n"

    def f(x: torch.Tensor) -> Any:
        y = x + 1
        exec(compile(text, "test-tuple.py", "exec", dont_inherit=True), {})
        return y

    same(f, x3())
    if sys.version_info >= (3, 14):  # annotations are computed when they are read
        assert torch.equal(godynamo.optimize(f, backend=nb())(x3()), x3() + 1)
        return
    with pytest.raises(NameError, match="^name 'Tuple' is not defined$"):
        godynamo.optimize(f, backend=nb())(x3())


# ---- built-in classes


class SubTensor(torch.Tensor):
    def __deepcopy__(self, memo: Any) -> Any:
        return self.detach().as_subclass(torch.Tensor).clone().as_subclass(type(self))


class SubWithTorchFunction(SubTensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


@row("S004-24")
@pytest.mark.parametrize("cls", [SubTensor, SubWithTorchFunction])
def test_tensor_subclasses(cls: Any) -> None:
    with godynamo.config.patch(traceable_tensor_subclasses=frozenset({SubTensor, SubWithTorchFunction})):
        one_graph(lambda x: (x + 1).relu() * 2, x3().as_subclass(cls))


@row("S004-25")
def test_parameter() -> None:
    p = nn.Parameter(x3())
    one_graph(lambda x, p: (x * p, isinstance(p, nn.Parameter), isinstance(p, torch.Tensor)), x3(), p)
    one_graph(lambda x: x * p, x3())


@row("S004-26")
def test_device() -> None:
    class A:
        def __init__(self) -> None:
            self.x = x3()

        def f(self, y: torch.device) -> torch.Tensor:
            return self.x.to(device=y)

    def g(x: torch.Tensor) -> Any:
        return A().f(torch.device("cpu")) + x

    same(g, x3())
    one_graph(lambda x, d: (x.to(device=d) + 1, d.type, d.index, d == torch.device("cpu")), x3(), torch.device("cpu"))
    one_graph(lambda x: (torch.zeros(3, device=torch.device("cpu")) + x, x.device), x3())


@row("S004-26")
def test_device_in_the_seed_s_class() -> None:
    class A:
        def __init__(self) -> None:
            self.x = torch.ones(3)

        def f(self, y: torch.device) -> torch.Tensor:
            return self.x.to(device=y)

    def g() -> Any:
        a = A()
        return a.f(torch.device("cpu"))

    one_graph(g)


@row("S004-27")
def test_stream() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    split(lambda x: (x + 1, torch.Stream(device=device).device_type), x3())
    stream = torch.Stream(device=device)
    split(lambda x: ((x + 1) * 2, stream.device, stream.stream_id, isinstance(stream, torch.Stream)), x3(), at_most=3)
    split(lambda x: (x + 1, stream == stream, hash(stream) == hash(stream)), x3(), at_most=3)


@row("S004-28")
@pytest.mark.parametrize(
    "value",
    [torch.float64, torch.strided, torch.contiguous_format, torch.Size([2, 3]), torch.per_tensor_affine],
    ids=["dtype", "layout", "memory_format", "size", "qscheme"],
)
def test_constants_of_torch(value: Any) -> None:
    other = {torch.float64: torch.float32}.get(value, value) if isinstance(value, torch.dtype) else value
    one_graph(lambda x, v: (x + 1, v == other, str(v), v), x3(), value)


@row("S004-28")
def test_constants_in_operations() -> None:
    one_graph(
        lambda x: (
            x.to(torch.float64),
            torch.zeros(torch.Size([3]), dtype=torch.int32),
            x.dtype.is_floating_point,
            x.layout is torch.strided,
            x.shape.numel(),
            x.contiguous(memory_format=torch.contiguous_format) + 1,
            torch.finfo(torch.float32).max,
            torch.iinfo(torch.int8).min,
        ),
        x3(),
    )


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.items = nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)])
        self.named = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Tanh()})

    def forward(self, x: torch.Tensor, what: str) -> Any:
        if what == "list":
            for layer in self.items:
                x = layer(x)
            for layer in self.items[1:]:
                x = layer(x)
            return self.items[0](x), self.items[-1](x), len(self.items)
        for layer in self.named.values():
            x = layer(x)
        for key, layer in self.named.items():
            x = layer(x) + len(key)
        names = [k for k in self.named]
        return self.named["b"](x), names, list(self.named.keys()), "a" in self.named, "z" in self.named, len(self.named)


@row("S004-29")
def test_module_list() -> None:
    one_graph(Layers(), x3(), "list")


@row("S004-30")
def test_module_dict() -> None:
    one_graph(Layers(), x3(), "dict")


@row("S004-31")
def test_module_list_changed_outside() -> None:
    class M(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.items = nn.ModuleList([nn.ReLU()])
            self.named = nn.ModuleDict({"a": nn.Tanh()})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.items:
                x = layer(x)
            for layer in self.named.values():
                x = layer(x)
            return x

    m = M()
    backend = nb()
    compiled = godynamo.optimize(m, backend=backend)
    assert torch.equal(compiled(x3()), m.forward(x3()))
    assert len(backend) == 1
    m.items.append(nn.Sigmoid())
    assert torch.equal(compiled(x3()), m.forward(x3()))
    assert len(backend) == 2
    m.named["b"] = nn.Sigmoid()
    assert torch.equal(compiled(x3()), m.forward(x3()))
    assert len(backend) == 3
    assert torch.equal(compiled(x3()), m.forward(x3()))
    assert len(backend) == 3
