"""Classes: dataclasses, enums, metaclasses, abstract classes, subclasses of builtin types, class-level protocols."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


@dataclass
class Config:
    a: int
    b: Any = 2
    c: list = field(default_factory=list)

    def total(self):
        return self.a + self.b


@dataclass(frozen=True)
class Frozen:
    a: Any
    b: int = 1


@dataclass(slots=True)
class SlotData:
    a: Any
    b: list = field(default_factory=list)


@dataclass(order=True)
class Orders:
    a: int
    b: int = field(default=0, compare=False)


@dataclass
class Post:
    a: Any
    b: Any = field(init=False)
    c: dataclasses.InitVar[int] = 3

    def __post_init__(self, c):
        self.b = self.a + c


@dataclass(kw_only=True)
class KwOnly:
    a: int
    b: int = 2


@dataclass
class Inherits(Config):
    d: int = 9


@cases
def dataclass_made(x):
    c = Config(1, x)
    c.c.append(3)
    d = Config(1)
    e = KwOnly(a=1)
    f = Inherits(1, 2, [3], 4)
    return c, d, e, f, c.total(), d == Config(1), d != Config(2), repr(d), x + 1


@cases
def dataclass_frozen(x):
    f = Frozen(x)
    g = Frozen(1)
    return f, g == Frozen(1), hash(g) == hash(Frozen(1)), {g: 1}[Frozen(1)], f.a + 1


@cases
def dataclass_slots(x):
    s = SlotData(x)
    s.b.append(1)
    s.a = s.a + 1
    return s, s.a


@cases
def dataclass_order(x):
    return (
        Orders(1) < Orders(2),
        Orders(1, 5) == Orders(1, 6),
        sorted([Orders(2), Orders(1)])[0].a,
        max(Orders(1), Orders(3)).a,
        x + 1,
    )


@cases
def dataclass_post_init(x):
    return Post(x), Post(1, c=5).b


@cases
def dataclass_functions(x):
    c = Config(1, 5, [1])
    d = dataclasses.replace(c, a=3)
    return (
        d,
        d.c is c.c,
        dataclasses.asdict(c),
        dataclasses.astuple(c),
        [f.name for f in dataclasses.fields(c)],
        dataclasses.is_dataclass(c),
        x + 1,
    )


@cases
def dataclass_asdict_of_tensor(x):
    c = Config(1, [x], [1])
    d = dataclasses.replace(c, b=x + 1)
    return d, [f.name for f in dataclasses.fields(Config)], x * 2


@cases(args=lambda: (Config(1), Frozen(2), SlotData(3)))
def dataclass_of_the_caller(x, c, f, s):
    c.a = x + 1
    c.c.append(f.a)
    s.b.append(c)
    g = dataclasses.replace(f, b=3)
    return c.total(), g, f == Frozen(2)


@cases(breaks=1)
def dataclass_frozen_store(x):
    f = Frozen(1)
    y = x + 1
    f.a = 2
    return y


@cases(breaks=1)
def dataclass_missing_argument(x):
    y = x + 1
    return y, Config()


class Color(enum.Enum):
    RED = 1
    GREEN = "g"
    BLUE = (1, 2)

    @property
    def low(self):
        return self.name.lower()

    def describe(self):
        return f"{self.name}={self.value}"

    @classmethod
    def default(cls):
        return cls.RED


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = enum.auto()
    AB = A | B


class Text(str, enum.Enum):
    ONE = "one"
    TWO = "two"


@cases
def enum_members(x):
    return (
        (
            Color.RED,
            Color.RED.value,
            Color.GREEN.name,
            Color.BLUE.value[1],
            Color("g"),
            Color["RED"],
            Color((1, 2)),
            Color.RED.low,
        ),
        (
            Color.GREEN.describe(),
            Color.default(),
            list(Color),
            [c.name for c in Color],
            len(Color),
            Color.RED in Color,
            str(Color.RED),
        ),
        (
            Color.RED is Color.RED,
            Color.RED == Color.RED,
            Color.RED != Color.GREEN,
            Color.RED == 1,
            {Color.RED: 1}[Color.RED],
            repr(Color.RED),
        ),
        (
            isinstance(Color.RED, Color),
            type(Color.RED) is Color,
            Color.__members__["RED"],
            f"{Color.RED}",
            Color.RED in (Color.RED,),
        ),
        x + 1,
    )


@cases
def int_enum(x):
    return (
        Level.LOW + 1,
        Level.LOW < Level.HIGH,
        max(Level),
        int(Level.HIGH),
        Level(2),
        [10, 20, 30][Level.LOW],
        x * Level.HIGH,
        Level.LOW == 1,
    )


@cases
def flags(x):
    f = Flags.A | Flags.C
    return (
        f,
        Flags.A in f,
        f & Flags.A,
        ~Flags.A,
        f ^ Flags.B,
        bool(f & Flags.B),
        f.value,
        Flags.AB,
        Flags.AB == Flags.A | Flags.B,
        list(f),
        f.name,
        Flags(3),
        x + 1,
    )


@cases
def text_enum(x):
    return (
        Text.ONE == "one",
        Text("two"),
        Text.ONE.upper(),
        {"one": 1}[Text.ONE],
        Text.ONE.value,
        Text.ONE in ("one",),
        x + 1,
    )


@cases(args=lambda: (Color.GREEN, Flags.B))
def enum_of_the_caller(x, c, f):
    if c is Color.GREEN and c in {Color.GREEN, Color.RED}:
        x = x + 1
    match c:
        case Color.RED:
            x = x * 3
        case Color.GREEN:
            x = x * 5
    return x, c.low, f | Flags.A, c.describe()


@cases(breaks=1)
def enum_missing(x):
    y = x + 1
    return y, Color(99)


class Meta(type):
    registry = []
    flag = "meta"

    def __call__(cls, *args, **kwargs):
        obj = super().__call__(*args, **kwargs)
        obj.tag = cls.__name__
        return obj

    def shout(cls):
        return cls.__name__.upper()

    @property
    def label(cls):
        return "label " + cls.__name__

    def __getitem__(cls, k):
        return (cls.__name__, k)

    def __len__(cls):
        return 3

    def __contains__(cls, v):
        return v == 1

    def __iter__(cls):
        return iter([1, 2])


class WithMeta(metaclass=Meta):
    v = 1

    def __init__(self, a):
        self.a = a


class Singleton(type):
    instances = {}

    def __call__(cls, *args):
        if cls not in cls.instances:
            cls.instances[cls] = super().__call__(*args)
        return cls.instances[cls]


@cases
def metaclass(x):
    w = WithMeta(x)
    return (
        w,
        w.tag,
        WithMeta.shout(),
        WithMeta.label,
        WithMeta.v,
        WithMeta.flag,
        WithMeta[2],
        len(WithMeta),
        1 in WithMeta,
        list(WithMeta),
        x + 1,
    )


@cases
def plain_subclass_of_metaclass(x):
    return (
        type(WithMeta) is Meta,
        isinstance(WithMeta, Meta),
        WithMeta.__name__,
        WithMeta.__mro__[0] is WithMeta,
        WithMeta.__bases__,
        x + 1,
    )


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    def double(self):
        return self.area() * 2


class Square(Shape):
    def __init__(self, s):
        self.s = s

    def area(self):
        return self.s * self.s


@cases
def abstract_class(x):
    s = Square(x)
    return s.double(), isinstance(s, Shape), issubclass(Square, Shape), s


@cases(breaks=1)
def abstract_instance(x):
    y = x + 1
    return y, Shape()


T = TypeVar("T")


class Typed(Generic[T]):
    def __init__(self, v: T) -> None:
        self.v = v


@cases
def generic_class(x):
    return Typed(x), Typed[int](1).v, x + 1


class MyList(list):
    def __init__(self, items=(), name="n"):
        super().__init__(items)
        self.name = name

    def total(self):
        return sum(self)

    def append(self, v):
        super().append(v)
        self.last = v


class MyDict(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = []

    def __setitem__(self, k, v):
        self.log.append(k)
        super().__setitem__(k, v)

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class AttrDict(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class MyTuple(tuple):
    def __new__(cls, *items):
        return super().__new__(cls, items)

    def first(self):
        return self[0]


class MyInt(int):
    def half(self):
        return self // 2


class MyStr(str):
    tag = "t"

    def shout(self):
        return self.upper() + "!"


@cases
def list_subclass(x):
    m = MyList([1, 2])
    m.append(3)
    m.extend([4])
    m[0] = 10
    return (
        m,
        m.total(),
        len(m),
        m[1:],
        m.last,
        m.name,
        list(m),
        [v for v in m],
        3 in m,
        m == [10, 2, 3, 4],
        m + [1],
        isinstance(m, list),
        x + 1,
    )


@cases(args=lambda: (MyList([1, 2]),))
def list_subclass_of_the_caller(x, m):
    m.append(x + 1)
    m[0] = 5
    m.sort(key=lambda v: 0)
    del m[1]
    m.name = "changed"
    return len(m), m[0], [v for v in m]


@cases
def dict_subclass(x):
    m = MyDict(a=1)
    m["b"] = x
    m.update(c=3)
    return m, m["a"], m.log, len(m), list(m), "b" in m, m.get("zz"), dict(m), {**m}, isinstance(m, dict), m.a, x + 1


@cases(args=lambda: (MyDict(a=1), AttrDict(a=1)))
def dict_subclass_of_the_caller(x, m, a):
    m["b"] = x + 1
    m.log.append("z")
    a["q"] = 2
    del m["a"]
    return m["b"], a["a"], list(m.items()), a["q"]


@cases
def attr_dict(x):
    a = AttrDict(k=1)
    a.t = x
    return a, a.k, a.t + 1


@cases
def tuple_subclass(x):
    t = MyTuple(1, x)
    return t, t.first(), len(t), t[1] + 1, t + (2,), isinstance(t, tuple)


@cases(args=lambda: (MyTuple(1, 2), MyInt(7), MyStr("abc")))
def immutable_subclasses_of_the_caller(x, t, i, s):
    return (
        t.first(),
        t,
        i.half(),
        i + 1,
        type(i + 1),
        i,
        s.shout(),
        s.upper(),
        s,
        s.tag,
        s + "d",
        {s: 1}["abc"],
        i == 7,
        x * i,
        t[1],
        len(s),
    )


@cases
def immutable_subclasses(x):
    i, s = MyInt(9), MyStr("q")
    return i, s, i.half(), s.shout(), type(s.upper()), type(i + 1), isinstance(i, int), x + i


class Plugin:
    registry = {}

    def __init_subclass__(cls, name=None, **kw):
        super().__init_subclass__(**kw)
        Plugin.registry[name] = cls


class PluginA(Plugin, name="a"):
    def run(self, x):
        return x + 1


@cases
def registry(x):
    return Plugin.registry["a"]().run(x), list(Plugin.registry)


class Counted(enum.Enum):
    """Members with attributes of their own."""

    A = 1
    B = 2

    def hit(self):
        self.hits = getattr(self, "hits", 0) + 1
        return self.hits


@cases(breaks=(2, 2))
def state_of_a_member(x):
    y = x + 1
    Counted.B.hits = 3
    return Counted.B.hits, Counted.B.__dict__["hits"], y


@functools.singledispatch
def told_by_class(value):
    return "something"


@told_by_class.register
def _(value: int):
    return "int"


@cases
def single_dispatch(x):
    return told_by_class(1), told_by_class("a"), told_by_class(x), x + 1


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_classes(case: Case) -> None:
    check(case)


def test_attributes_of_members_are_guarded() -> None:
    """A member is always the same object, but its attributes may change."""

    @godynamo.optimize
    def look(x, member):
        return x + member.hits, member.value

    for hits in (1, 2, 5):
        Counted.A.hits = hits
        y, value = look(torch.zeros(2), Counted.A)
        assert y.tolist() == [hits, hits] and value == 1
