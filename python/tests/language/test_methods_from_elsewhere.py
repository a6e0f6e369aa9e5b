"""C methods and fields that a class has from another class, or under another name."""

from __future__ import annotations

import collections
import copy
import enum
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo

Pair = collections.namedtuple("Pair", "a b")


class Slots:
    __slots__ = ("a", "b")


MADE: dict[str, tuple[type, tuple[Any, ...]]] = {
    "object": (object, ()),
    "int": (int, (3,)),
    "str": (str, ("abc",)),
    "float": (float, (1.5,)),
    "complex": (complex, (1j,)),
    "list": (list, ([1, 2, 0],)),
    "tuple": (tuple, ((1, 2, 0),)),
    "dict": (dict, ({"a": 1, 0: 2},)),
    "set": (set, ([1, 0],)),
    "frozenset": (frozenset, ([1, 0],)),
    "OrderedDict": (collections.OrderedDict, ([("a", 1), (0, 2)],)),
    "defaultdict": (collections.defaultdict, (int, {"a": 1})),
    "deque": (collections.deque, ([1, 2],)),
    "ValueError": (ValueError, ("a", 1)),
    "Pair": (Pair, (1, 2)),
    "Slots": (Slots, ()),
}

#: the base class, the name and the value of the attribute, and the code that uses it
TAKEN: list[tuple[str, str, Any, Callable[[Any], Any]]] = [
    ("list", "index", tuple.__getnewargs__, lambda o: o.index(1)),
    ("list", "add", list.append, lambda o: (o.add(5), o)),
    ("set", "bit_length", set.remove, lambda o: o.bit_length()),
    ("complex", "count", collections.OrderedDict.update, lambda o: o.count(1)),
    ("str", "get", str.join, lambda o: o.get("xy")),
    ("defaultdict", "__bool__", complex.__bool__, lambda o: o.__bool__()),
    ("float", "foo", dict.__ror__, lambda o: o.foo([5])),
    ("float", "get", float.__getnewargs__, lambda o: o.get(0)),
    ("str", "__getattr__", str.__format__, lambda o: hasattr(o, "zz")),
    ("str", "__sizeof__", str.__sizeof__, lambda o: o.__sizeof__()),
    ("OrderedDict", "update", dict.update, lambda o: (o.update({1: 2}), list(o))),
    ("OrderedDict", "keys", dict.clear, lambda o: {**o}),
    ("ValueError", "keys", dict.keys, lambda o: list(o.keys())),
    ("ValueError", "args", Slots.a, lambda o: o.args),
    ("ValueError", "__str__", str.upper, str),
    ("Pair", "append", list.extend, lambda o: o.append(3)),
    ("Pair", "a", Pair.__dict__["b"], lambda o: o.a),
    ("Pair", "a", Slots.a, lambda o: o.a),
    ("int", "a", slice.start, lambda o: o.a),
    ("object", "get", slice.start, lambda o: o.get("a")),
    ("object", "update", collections.OrderedDict.update, lambda o: o.update({1: 2})),
    ("object", "__getitem__", int.__le__, lambda o: o.__getitem__(0)),
    ("object", "__call__", dict.get, lambda o: o(1)),
    ("deque", "__len__", list.__len__, len),
    ("frozenset", "__iter__", list.__iter__, list),
    ("int", "__hash__", object.__repr__, hash),
    ("dict", "__hash__", object.__hash__, lambda o: (hash(o) == hash(o), {o: 1}[o])),
    ("list", "__eq__", object.__eq__, lambda o: (o == o, o == [1, 2, 0], [1, 2, 0] == o)),
    ("int", "__repr__", object.__repr__, lambda o: (len(f"{o!r}") > 9, len(str(o)) > 9)),
    ("ValueError", "__str__", object.__str__, lambda o: len(str(o)) > 9),
    ("str", "__iter__", list.__iter__, lambda o: list(o)),
    ("dict", "__contains__", dict.get, lambda o: "a" in o),
    ("tuple", "__reversed__", list.__reversed__, lambda o: list(reversed(o))),
    ("dict", "fromkeys", int.__dict__["from_bytes"], lambda o: type(o).fromkeys([1])),
]


def outcomes(wrap: Callable[..., Any], prepare: Callable[[], Any], ask: Callable[[Any], Any]) -> list[Any]:
    """Return the results of three calls, their exceptions (caught inside) and the state of the object."""

    def fn(x: torch.Tensor, o: Any) -> Any:
        y = x + 1
        try:
            r = ask(o)
        except Exception as error:
            r = type(error), str(error)
        return r, y * 2

    o, fast = prepare(), wrap(fn)
    got = []
    for _ in range(3):
        r, y = fast(torch.ones(2), o)
        got.append((str(r), y.tolist()))
    return got


def same(prepare: Callable[[], Any], ask: Callable[[Any], Any]) -> None:
    assert outcomes(godynamo.optimize("eager"), prepare, ask) == outcomes(lambda fn: fn, prepare, ask)


@pytest.mark.parametrize("inherited", [False, True])
@pytest.mark.parametrize(
    "base, name, taken, ask",
    TAKEN,
    ids=[f"{b}.{n}={t.__qualname__ if hasattr(t, '__qualname__') else n}" for b, n, t, _ in TAKEN],
)
def test_taken(base: str, name: str, taken: Any, ask: Callable[[Any], Any], inherited: bool) -> None:
    def prepare() -> Any:
        extended, args = MADE[base]
        first: Any = type("C", (extended,), {})
        o = (type("C", (first,), {}) if inherited else first)(*args)
        setattr(first, name, taken)
        return o

    same(prepare, ask)


def test_a_method_from_elsewhere_is_called_for_what_it_is() -> None:
    class Shelf(list):  # type: ignore[type-arg]
        put = list.append

    def fn(x: torch.Tensor, shelf: Any) -> Any:
        shelf.put(x)
        return x + len(shelf)

    shelf = Shelf()
    explained = godynamo.explain(fn)(torch.ones(2), shelf)
    assert explained.graph_break_count == 0
    assert godynamo.optimize(fn)(torch.ones(2), shelf).tolist() == [len(shelf) + 1.0] * 2


def test_a_second_name_of_a_slot() -> None:
    class Place:
        __slots__ = ("a", "b")

    Place.second = Place.__dict__["a"]  # type: ignore[attr-defined]

    def ask(o: Any) -> Any:
        o.a = 1
        o.second = o.second + 1
        o.a += 1
        return o.a, o.second

    same(Place, ask)


def test_a_class_whose_metaclass_makes_it_a_descriptor() -> None:
    class Meta(type):
        def __get__(cls, o: Any, owner: Any = None) -> Any:
            return "got", o is None

    Held = Meta("Held", (), {})

    class Owner:
        held = Held

    same(Owner, lambda o: (o.held, Owner.held, type(o).held))


def test_the_text_of_an_enum_class_follows_its_bases() -> None:
    class Plain(enum.Enum):
        pass

    def outcome(wrap: Callable[..., Any]) -> list[str]:
        class Colour(enum.Flag):
            RED = 1

        def fn(x: torch.Tensor) -> Any:
            return f"{Colour}", x + 1

        call, got = wrap(fn), []
        for bases in [(enum.Flag,), (Plain,)]:
            Colour.__bases__ = bases
            got.append(call(torch.ones(2))[0])
        return got

    assert outcome(godynamo.optimize("eager")) == outcome(lambda fn: fn)


def test_a_member_that_reads_its_attributes_by_another_method() -> None:
    def prepare() -> Any:
        class Colour(str, enum.Enum):
            RED = "1"

        Colour.__getattribute__ = object.__init__  # type: ignore[assignment, method-assign]
        return Colour.RED

    same(prepare, lambda o: hasattr(o, "value"))


def test_an_ordered_dict_that_lacks_its_own_order() -> None:
    class Unordered(collections.OrderedDict):  # type: ignore[type-arg]
        __setitem__ = dict.__setitem__  # type: ignore[assignment]

    same(lambda: Unordered(k=1), lambda o: (len(o), list(o), isinstance(o, dict), o.get("k")))


def test_copying_leaves_the_class_as_copy_leaves_it() -> None:
    class Reduced:
        __reduce__ = object.__dir__

    same(Reduced, lambda o: copy.copy(o))
    assert "__slotnames__" not in vars(Reduced)


@pytest.mark.parametrize("taken", [list.__ne__, dict.pop, str.join], ids=lambda d: d.__name__)
def test_a_method_that_a_class_gets_behind_a_split_is_refused_by_the_call(taken: Any) -> None:
    """The call's arguments are evaluated before it fails, as in CPython; an early look-up would fail at once."""
    said: list[int] = []

    @godynamo.disable
    def say(n: int) -> int:
        said.append(n)
        return n

    def f(x: Any, o: Any) -> Any:
        y = x + 1
        return o.taken(say(3)), y

    def outcomes(call: Callable[..., Any]) -> list[Any]:
        class Late:
            pass

        out: list[Any] = []
        for n in range(3):
            if n == 1:
                Late.taken = taken  # type: ignore[attr-defined]
            said.clear()
            with pytest.raises((AttributeError, TypeError)) as error:
                call(torch.ones(1), Late())
            out.append((error.type, str(error.value), list(said)))
        return out

    assert outcomes(godynamo.optimize(f)) == outcomes(f)


class Number(enum.IntEnum):
    ONE = 1
    __call__ = type.__dict__["__call__"]
    add = set.add
    length = int.bit_length


class Text(str, enum.Enum):
    ONE = "one"
    __call__ = type.__dict__["__call__"]
    add = list.append
    length = str.__len__


@pytest.mark.parametrize("member", [Number.ONE, Text.ONE])
@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.__call__(1),
        lambda m: m.__call__,
        lambda m: m(1),
        lambda m: m.add(2),
        lambda m: m.add,
        lambda m: m.length(),
        lambda m: callable(m),
    ],
)
def test_a_member_of_an_enum_class_has_a_method_from_elsewhere(member: Any, ask: Callable[[Any], Any]) -> None:
    def f(x: Any, m: Any) -> Any:
        y = x + 1
        try:
            return y, ask(m)
        except (TypeError, AttributeError) as e:
            return y, str(e)

    assert godynamo.optimize(f)(torch.ones(1), member) == f(torch.ones(1), member)
