"""Custom classes, enums, modules and records under godynamo: rows S004-32 to S004-48."""

from __future__ import annotations

import array
import collections
import dataclasses
import enum
import types
import typing
from typing import Any, List, Optional

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb, one_graph, same, split, x3

row = pytest.mark.row


class Two(typing.NamedTuple):
    first: int
    second: int


TwoOthers = collections.namedtuple("TwoOthers", "first second")


# ---- custom classes


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


# ---- enums


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


# ---- modules


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


# ---- other records


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
        [Two(1, 2), Two(True, 2), TwoOthers(1, 2)],
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
