"""TorchScript types under godynamo: rows S004-01 to S004-48."""

from __future__ import annotations

import array
import collections
import dataclasses
import enum
import types
import typing
from collections import namedtuple
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
import torch
from torch import nn

import godynamo

from .support import nb, one_graph, same, split, x3

row = pytest.mark.row


class Plain:
    pass


# ---- meta type --------------------------------------------------------------------------------------------------------


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


# ---- primitive types --------------------------------------------------------------------------------------------------


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


# ---- structural types -------------------------------------------------------------------------------------------------


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
    assert len(backend) == 1  # the arm without an operation has no graph
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
    with pytest.raises(NameError, match="^name 'Tuple' is not defined$"):
        godynamo.optimize(f, backend=nb())(x3())


# ---- built-in classes -------------------------------------------------------------------------------------------------


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
    if not torch.cuda.is_available():
        pytest.skip("torch.Stream needs an accelerator, this build runs on the CPU")
    stream = torch.Stream(device="cuda")
    split(lambda x: (x + 1, stream.device), x3())


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


# ---- custom classes ---------------------------------------------------------------------------------------------------


class MyClass:
    name = "MyClass"

    def __init__(self, x: int):
        self.x = x

    def inc(self, val: int) -> None:
        self.x += val

    def assign_y(self, v: Any) -> None:
        self.y = v


@row("S004-32")
def test_class_made_in_the_function() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        a = MyClass(n)
        a.inc(3)
        a.inc(4)
        return x + a.x, a.x

    one_graph(f, x3(), 1)


@row("S004-33")
def test_class_as_argument() -> None:
    def f(x: torch.Tensor, a: MyClass) -> Any:
        a.inc(2)
        a.assign_y(x * 2)
        return x + a.x, a.y

    one_graph(f, x3(), MyClass(5))


@row("S004-34")
def test_class_attribute() -> None:
    one_graph(lambda x, a: (x + 1, a.name, MyClass.name), x3(), MyClass(1))
    assert godynamo.optimize(lambda a: a.name, backend=nb())(MyClass(1)) == "MyClass"


class Base:
    def __init__(self, k: Any) -> None:
        self.k = k

    def scale(self, x: Any) -> Any:
        return x * self.k

    def who(self) -> str:
        return "base"


class Mixin:
    def who(self) -> str:
        return "mixin+" + super().who()  # type: ignore[misc]


class Derived(Mixin, Base):
    def __init__(self, k: Any) -> None:
        super().__init__(k)
        self.extra = 1

    def scale(self, x: Any) -> Any:
        return super().scale(x) + self.extra


@row("S004-35")
def test_subclassing() -> None:
    one_graph(lambda x: (Derived(2).scale(x), Derived(2).who(), isinstance(Derived(1), Base)), x3())
    one_graph(lambda x, d: (d.scale(x), d.who()), x3(), Derived(3))


@row("S004-36")
def test_later_method_wins() -> None:
    class Twice:
        def m(self, x: Any) -> Any:
            return x + 1

        def m(self, x: Any) -> Any:  # type: ignore[no-redef]
            return x * 3

    one_graph(lambda x, t: t.m(x), x3(), Twice())


@row("S004-37")
def test_attribute_not_set_in_init() -> None:
    class Foo:
        def __init__(self) -> None:
            self.y = 1

        def assign_x(self, v: Any) -> None:
            self.x = v

    def f(x: torch.Tensor) -> Any:
        o = Foo()
        o.assign_x(x + 1)
        return o.x * o.y

    one_graph(f, x3())


class WithIgnored:
    @torch.jit.ignore
    def ignored(self, x: Any) -> Any:
        return x + 1

    @torch.jit.unused
    def unused(self, x: Any) -> Any:
        return x * 2


@row("S004-38")
def test_ignored_methods() -> None:
    one_graph(lambda x, o: o.unused(o.ignored(x)), x3(), WithIgnored())


class Descriptor:
    def __get__(self, obj: Any, cls: Any = None) -> Any:
        return self if obj is None else obj.k * 2

    def __set__(self, obj: Any, value: Any) -> None:
        obj.k = value


class Attributes:
    described = Descriptor()

    def __init__(self, k: Any) -> None:
        self.k = k

    @property
    def prop(self) -> Any:
        return self.k + 1

    @prop.setter
    def prop(self, value: Any) -> None:
        self.k = value - 1


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class Fallback:
    def __init__(self) -> None:
        self.real = 2

    def __getattr__(self, name: str) -> Any:
        if name.startswith("n_"):
            return len(name)
        raise AttributeError(name)


class Intercepts:
    def __init__(self) -> None:
        self.real = 2

    def __getattribute__(self, name: str) -> Any:
        if name == "virtual":
            return 10
        return object.__getattribute__(self, name)


@row("S004-39")
def test_property() -> None:
    def f(x: torch.Tensor, o: Attributes) -> Any:
        before = o.prop
        o.prop = 9
        return x + before, o.k

    one_graph(f, x3(), Attributes(4))


@row("S004-39")
def test_slots() -> None:
    def f(x: torch.Tensor, o: Slotted) -> Any:
        o.b = o.a + 1
        return x + o.b, hasattr(o, "b"), hasattr(o, "c")

    same(f, x3(), Slotted(4))
    one_graph(lambda x, o: x + o.a, x3(), Slotted(4))


@row("S004-39")
def test_descriptor() -> None:
    def f(x: torch.Tensor, o: Attributes) -> Any:
        before = o.described
        o.described = 9
        return x + before, o.k

    one_graph(f, x3(), Attributes(4))


@row("S004-39")
def test_getattr_fallback() -> None:
    one_graph(lambda x, o: (x + o.real, o.n_abc), x3(), Fallback())


@row("S004-39")
def test_getattribute() -> None:
    split(lambda x, o: (x + 1) * o.virtual + o.real, x3(), Intercepts(), at_most=3)


# ---- enums ------------------------------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class BaseColor(enum.Enum):
    def foo(self) -> str:
        return self.name.lower()


class Shade(BaseColor):
    RED = 1
    GREEN = "g"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class FL(enum.Flag):
    A = enum.auto()
    B = enum.auto()


class IFL(enum.IntFlag):
    A = 1
    B = 2


@row("S004-40")
@pytest.mark.parametrize("a", list(Color))
@pytest.mark.parametrize("b", list(Color))
def test_enum(a: Color, b: Color) -> None:
    def enum_fn(x: Color, y: Color) -> bool:
        if x == Color.RED:
            return True
        return x == y

    assert godynamo.optimize(enum_fn, backend=nb())(a, b) is enum_fn(a, b)
    one_graph(
        lambda x, a, b: (
            x + a.value,
            enum_fn(a, b),
            a is Color.RED,
            a.name,
            {Color.RED: 1, Color.GREEN: 2}[a],
            a in (b,),
            a != b,
        ),
        x3(),
        a,
        b,
    )


@row("S004-41")
@pytest.mark.parametrize("a", list(Shade))
def test_enum_of_a_base_without_members(a: Shade) -> None:
    one_graph(lambda x, a: (x + 1, a == Shade.RED, a.value, isinstance(a, BaseColor)), x3(), a)


@row("S004-42")
def test_other_enums() -> None:
    one_graph(lambda x, n: (x + n, n + 1, n < Number.TWO, n == 1, n.name), x3(), Number.ONE)
    one_graph(lambda x, v: (x + v.value, v == FL.A | FL.B, bool(v & FL.A)), x3(), FL.A | FL.B)
    one_graph(lambda x, v: (x + int(v), v | IFL.B, v & 1), x3(), IFL.A)


@row("S004-42")
def test_enum_methods_and_class() -> None:
    one_graph(lambda x, a: (x + 1, a.foo()), x3(), Shade.GREEN)
    one_graph(lambda x: (x + len(Color), Color(2), Color["RED"], [c.name for c in Color]), x3())


# ---- modules ----------------------------------------------------------------------------------------------------------


class TestModule(nn.Module):
    __test__ = False

    def __init__(self, v: Any) -> None:
        super().__init__()
        self.x = v

    def forward(self, inc: Any) -> Any:
        return self.x + inc


@row("S004-43")
def test_two_instances_of_a_module() -> None:
    assert godynamo.optimize(TestModule(1), backend=nb())(3) == 4
    one_graph(TestModule(torch.ones([5])), 3)
    backend = nb()
    f = godynamo.optimize(lambda m, x: m(x) * 2, backend=backend)
    for v in (1, torch.ones(3), 1, 2.5):
        assert torch.equal(f(TestModule(v), x3()), (v + x3()) * 2)
    assert len(backend) == 3


@row("S004-44")
def test_module_init_is_not_translated() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            try:
                self.k = [int(line) for line in "1 2 3".split()][-1]
                raise ValueError("any Python")
            except ValueError:
                globals()["_made"] = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.k

    one_graph(Odd(), x3())


@row("S004-45")
def test_module_constructed_inside() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        torch.manual_seed(0)
        layer = nn.Linear(3, 2)
        return layer(y) * 2

    split(f, x3(), at_most=4)


@row("S004-45")
def test_user_module_constructed_inside() -> None:
    split(lambda x: TestModule(2)(x + 1) * 2, x3(), at_most=3)


@row("S004-46")
def test_forward_calls_other_methods() -> None:
    class M(nn.Module):
        def mul(self, x: torch.Tensor, k: int) -> torch.Tensor:
            return x * k

        @torch.jit.export
        def exported(self, x: torch.Tensor) -> torch.Tensor:
            return self.mul(x, 3) + 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.exported(self.mul(x, 2))

    one_graph(M(), x3())
    m = M()
    one_graph(lambda x: m.exported(x), x3())


# ---- other records ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Record:
    x: Any
    k: int = 2
    items: List[int] = dataclasses.field(default_factory=list)

    def scaled(self) -> Any:
        return self.x * self.k


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    k: int = 2


class Typed(typing.TypedDict):
    x: Any
    k: int


@row("S004-47")
def test_dataclass_argument() -> None:
    def f(r: Record) -> Any:
        r.items.append(r.k)
        r.k += 1
        return r.scaled(), r.x + 1

    one_graph(f, Record(x3()))


@row("S004-47")
def test_records_as_arguments() -> None:
    one_graph(lambda r: r.x * r.k, Frozen(x3()))
    one_graph(lambda d: d["x"] * d["k"], Typed(x=x3(), k=3))

    def f(n: types.SimpleNamespace) -> Any:
        n.made = n.x * n.k
        return n.made + 1

    one_graph(f, types.SimpleNamespace(x=x3(), k=2))


@row("S004-47")
def test_records_made_inside() -> None:
    one_graph(lambda x: Record(x).scaled(), x3())
    one_graph(lambda x: Frozen(x, k=3).x + 1, x3())
    one_graph(lambda x: Typed(x=x + 1, k=2), x3())
    one_graph(lambda x: types.SimpleNamespace(a=x + 1).a * 2, x3())


@row("S004-47")
def test_dataclass_helpers() -> None:
    one_graph(
        lambda x, r: (x + 1, dataclasses.replace(r, k=5).k, [f.name for f in dataclasses.fields(r)]), x3(), Frozen(1)
    )


@row("S004-48")
@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset({1, 2}),
        b"ab",
        bytearray(b"ab"),
        collections.deque([1, 2]),
        collections.OrderedDict(a=1),
        collections.defaultdict(int, a=1),
        collections.Counter("aab"),
        array.array("i", [1, 2]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_other_containers(value: Any) -> None:
    one_graph(lambda x, v: (x + len(v), len(v), list(v), bool(v)), x3(), value)


@row("S004-48")
def test_other_containers_changed() -> None:
    def f(x: torch.Tensor, s: Any, d: Any, o: Any, dd: Any) -> Any:
        s.add(3)
        d.append(4)
        d.appendleft(0)
        o["b"] = 2
        o.move_to_end("a")
        dd["new"] += 2
        return x + len(s), d.popleft(), list(o), dd["new"]

    one_graph(f, x3(), {1, 2}, collections.deque([1]), collections.OrderedDict(a=1), collections.defaultdict(int, a=1))


@row("S004-48")
def test_other_containers_made() -> None:
    one_graph(
        lambda x: (
            x + 1,
            set([1, 2]) | {3},
            frozenset([1]),
            collections.deque([x * 2], maxlen=2),
            collections.OrderedDict([("a", x * 3)]),
            collections.defaultdict(list, k=[1]),
        ),
        x3(),
    )


@row("S004-48")
def test_counter() -> None:
    one_graph(lambda x: (x + 1, collections.Counter("aab").most_common(1)), x3())


@row("S004-28", "S004-48", "S004-10")
@pytest.mark.parametrize(
    "values",
    [
        [torch.Size([2, 3]), torch.Size([2]), torch.Size([]), torch.Size([2, 3, 4])],
        [{1}, {True}, {1.0}, {1}],
        [frozenset({0.0}), frozenset({-0.0}), frozenset({0})],
        [{(1, 2)}, {(True, 2)}],
        [(1, 2), (True, 2), (1.0, 2), (1, 2, 3)],
        [range(0), range(1, 1), range(2, 2)],
        [MyTuple(1, 2), MyTuple(True, 2), Pair(1, 2)],
        [Color.RED, Color.GREEN, Number.ONE, 1],
        [int | str, str | None, int, (int, str), Optional[int]],
    ],
    ids=lambda v: type(v[0]).__name__,
)
def test_values_that_are_equal_or_alike_are_told_apart(values: Any) -> None:
    def f(x: torch.Tensor, v: Any) -> Any:
        return x + 1, str(v), v == values[0], type(v).__name__, len(v) if hasattr(v, "__len__") else None

    compiled = godynamo.optimize(f, backend=nb())
    for v in [*values, *values]:
        assert compiled(x3(), v)[1:] == f(x3(), v)[1:]
