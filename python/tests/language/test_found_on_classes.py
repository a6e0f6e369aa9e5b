"""What C code finds on a class: enum members by value, special methods that are None, texts that run user code."""

from __future__ import annotations

import collections
import enum
import operator
import typing
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo

LOG: list[Any] = []


class Level(enum.IntEnum):
    RED = 1


class Renamed:
    def __init__(self) -> None:
        """A method."""


def flag_with_hooks() -> Any:
    """Return a flag class whose members log the attributes that are read and stored."""
    flag: Any = enum.Flag("flag", "ON OFF")
    flag.__getattr__ = lambda self, name: LOG.append(name)
    flag.__setattr__ = lambda self, name, value: LOG.append((name, value))
    return flag


@pytest.mark.parametrize("value", [{}, [], 3, 7, Level.RED, (1,), None, 1.0, True])
@pytest.mark.parametrize(
    "make", [flag_with_hooks, lambda: enum.Flag("flag", "ON OFF"), lambda: enum.IntEnum("kind", "ON")]
)
def test_a_value_without_a_member(make: Callable[[], Any], value: Any) -> None:
    def outcomes(wrap: Callable[..., Any]) -> list[str]:
        flag, out = make(), []

        def fn(x: torch.Tensor) -> Any:
            try:
                r = flag(value)
            except Exception as error:
                r = type(error), str(error)
            return x + 1, r

        call = wrap(fn)
        for _ in range(2):
            LOG.clear()
            out.append(str((call(torch.ones(2)), LOG)))
        return out

    assert outcomes(godynamo.optimize("eager")) == outcomes(lambda fn: fn)


class Mode(enum.Enum):
    """An enum class with a custom __str__."""

    ON = 1
    OFF = 2

    def __str__(self) -> str:
        return "mode"


def test_members_by_their_value_are_captured() -> None:
    flag = enum.Flag("flag", "ON OFF")

    @godynamo.optimize("eager")
    def fn(x: torch.Tensor) -> Any:
        return x + 1, Mode(1), Mode(Mode.OFF), flag(3), flag(flag.ON), [m.value for m in Mode]

    expected = [Mode.ON, Mode.OFF, flag.ON | flag.OFF, flag.ON, [1, 2]]
    assert list(fn(torch.ones(2)))[1:] == expected
    assert godynamo.explain(fn)(torch.ones(2)).graph_break_count == 0


class Iterated(set):
    def __iter__(self) -> Any:
        LOG.append("iter")
        return super().__iter__()


class LoudMeta(type):
    def __getattr__(cls, name: str) -> Any:
        LOG.append(name)
        raise AttributeError(name)


class LoudClass(metaclass=LoudMeta):
    pass


class ReadsMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        LOG.append(name)
        return super().__getattribute__(name)


class ReadsClass(metaclass=ReadsMeta):
    pass


class LoudText(enum.Enum):
    ON = 1

    def __repr__(self) -> str:
        LOG.append("repr")
        return "on"


class ReadsMember(enum.Enum):
    ON = 1

    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)
        return super().__getattribute__(name)


class Reads:
    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)
        return super().__getattribute__(name)


class HoldsReads:
    held = Reads()


#: values and operations on them; a guard's text names the value, and no code of its class runs to print it
PRINTED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "a set of a class": (lambda: Iterated([1, 2]), lambda v: operator.iand(v, v) is v),
    "a set with a member": (lambda: {LoudText.ON}, len),
    "a deque with a member": (lambda: collections.deque([LoudText.ON]), len),
    "a tuple with a member": (lambda: (LoudText.ON, (LoudText.ON,)), len),
    "a slice with a member": (lambda: slice(LoudText.ON), lambda v: v.stop is LoudText.ON),
    "an alias of a class": (lambda: list[LoudClass], lambda v: v is not None),
    "a union with a class": (lambda: int | ReadsClass, lambda v: isinstance(3, v)),
    "a union without its class": (lambda: int | ReadsClass, lambda v: isinstance("a", v)),
    "a tuple with a class": (lambda: (int, (ReadsClass, str)), lambda v: (isinstance("a", v), issubclass(str, v))),
    "a typing union with a class": (lambda: typing.Union[ReadsClass, int], lambda v: isinstance(3, v)),
    "an alias of a class that reads": (lambda: list[ReadsClass], lambda v: v is not None),
    "an instance of an enum class": (lambda: ReadsMember, lambda v: type(object.__new__(v)) is v),
    "an instance of a class with an object": (
        lambda: HoldsReads,
        lambda v: (type(object.__new__(v)) is v, type(v()) is v),
    ),
    "an alias of aliases": (lambda: dict[str, list[LoudClass]], lambda v: v is not None),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_text_of_a_guard_runs_no_code_of_the_user(name: str) -> None:
    make, use = PRINTED[name]

    def fn(x: torch.Tensor, v: Any) -> Any:
        return x + 1, use(v)

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    for _ in range(2):
        outcomes = []
        for run in (fn, fast):
            v = make()
            LOG.clear()
            outcomes.append((str(run(x, v)), list(LOG)))
        assert outcomes[0] == outcomes[1]


OPERANDS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "next": ({"__next__": None}, next),
    "len": ({"__len__": None}, lambda v: [len(v)]),
    "bool": ({"__bool__": None}, lambda v: 1 if v else 2),
    "an index": ({"__index__": None}, lambda v: [1, 2][v]),
    "a call": ({"__call__": None}, lambda v: v()),
    "an order": ({"__lt__": None}, lambda v: v < 3),
    "equality": ({"__eq__": None}, lambda v: v == 3),
    "iteration": ({"__iter__": None, "__getitem__": lambda self, i: (1,)[i]}, list),
    "a subscript": ({"__getitem__": None}, lambda v: v[0]),
    "absolute": ({"__abs__": None}, abs),
    "with": ({"__enter__": None, "__exit__": None}, lambda v: v.__enter__()),
    "a reflected operator": ({"__rsub__": None}, lambda v: 2.5 - v),
    "bytearray % a set": ({"__rmod__": lambda self, other: 7}, lambda v: operator.imod(bytearray(b"ab"), v)),
    "a range and an operator": ({"__rmod__": lambda self, other: 7}, lambda v: range(3) % v),
    "a slice and an operator": ({"__ror__": lambda self, other: 7}, lambda v: (slice(3) | v, int | v)),
}


@pytest.mark.parametrize("base", [object, int, set])
@pytest.mark.parametrize("name", OPERANDS)
def test_a_special_method_that_is_none_or_comes_later(name: str, base: Any) -> None:
    members, use = OPERANDS[name]

    def fn(x: torch.Tensor, v: Any) -> Any:
        try:
            r = use(v)
        except Exception as error:
            r = type(error), str(error)
        return x + 1, r

    fast, x, made = godynamo.optimize("eager")(fn), torch.ones(2), type("Made", (base,), members)()
    assert str(fast(x, made)) == str(fn(x, made)) == str(fast(x, made))


class Keeps(collections.defaultdict):
    def __setitem__(self, key: Any, value: Any) -> None:
        LOG.append(key)


class OddReads(float):
    __getattribute__ = property(lambda self: lambda *a: 3)  # type: ignore[assignment]


ASKED: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "a default is stored by the class": (lambda: Keeps(int), lambda v, x: (v["k"], len(v))),
    "a method's class": (lambda: Renamed().__init__, lambda v, x: v.__class__),
    "a method of a class": (
        lambda: collections.UserDict({1: 2}).copy,
        lambda v, x: (v.__class__, v.__name__, v.__doc__),
    ),
    "a method's own methods": (lambda: collections.UserDict({1: 2}).keys, lambda v, x: [*v.__call__()]),
    "a method's hash": (lambda: collections.UserDict({1: 2}).keys, lambda v, x: v.__hash__() == hash(v)),
    "a number whose reads are odd": (lambda: OddReads(1.5), lambda v, x: x | v),
}


@pytest.mark.parametrize("name", ASKED)
def test_c_code_finds_other_methods(name: str) -> None:
    make, use = ASKED[name]

    def fn(x: torch.Tensor, v: Any) -> Any:
        try:
            r = use(v, x)
        except Exception as error:
            r = type(error), str(error)
        return x + 1, r

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    for _ in range(2):
        outcomes = []
        for run in (fn, fast):
            v = make()
            LOG.clear()
            outcomes.append((str(run(x, v)), list(LOG)))
        assert outcomes[0] == outcomes[1]


def test_an_enum_class_that_lost_its_metaclass() -> None:
    class Plain(type):
        pass

    kind: Any = enum.Enum("kind", {"A": "a"}, type=str)
    member = kind.A
    kind.__class__ = Plain

    def fn(x: torch.Tensor) -> Any:
        said: list[Any] = []
        for use in (lambda: kind.__members__, lambda: list(kind), lambda: len(kind), lambda: member.upper()):
            try:
                said.append(use())
            except Exception as error:
                said.append(str(error))
        return x + 1, said

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    Plain.__iter__ = lambda cls: iter([1, 2])  # type: ignore[attr-defined]
    assert str(fast(x)) == str(fn(x))


def test_a_default_factory_that_a_subclass_hides() -> None:
    class Counts(collections.defaultdict):  # type: ignore[type-arg]
        pass

    def fn(x: torch.Tensor) -> Any:
        counts = Counts(int)
        counts["a"] += 2
        return x + 1, counts

    fast, x = godynamo.optimize("eager", nopython=True)(fn), torch.ones(2)
    for hidden in (None, str):
        if hidden is not None:
            Counts.default_factory = hidden  # type: ignore[assignment]
        outcomes = []
        for run in (fn, fast):
            counts = run(x)[1]
            outcomes.append((dict(counts), vars(counts), counts["b"]))
        assert outcomes[0] == outcomes[1] == ({"a": 2}, {}, 0)


@pytest.mark.parametrize("use", [lambda v: "%s" % {"a": {v}}, lambda v: str([slice(v)]), lambda v: f"{ {v} }"])
def test_the_text_of_a_container_calls_what_is_in_it_once(use: Callable[[Any], Any]) -> None:
    class Loud(enum.Flag):
        ON = 1

        def __repr__(self) -> str:
            LOG.append("repr")
            return "loud"

    def fn(x: torch.Tensor) -> Any:
        return x + 1, use(Loud.ON)

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    for _ in range(2):
        outcomes = []
        for run in (fn, fast):
            LOG.clear()
            outcomes.append((run(x)[1], list(LOG)))
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("init", [list.__repr__, object.__repr__])
def test_an_init_that_is_another_method(init: Any) -> None:
    class Counts(collections.defaultdict):  # type: ignore[type-arg]
        pass

    def fn(x: torch.Tensor) -> Any:
        try:
            return x + 1, Counts(int)
        except TypeError as error:
            return x, str(error)

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    Counts.__init__ = init  # type: ignore[assignment,method-assign]
    assert str(fast(x)) == str(fn(x))


def test_super_asks_a_member_for_its_class() -> None:
    class Loud(enum.Enum):
        ON = 1

        def __getattribute__(self, name: str) -> Any:
            LOG.append(name)
            return object.__getattribute__(self, name)

    class Other(enum.Enum):
        ON = 1

    def fn(x: torch.Tensor, o: Any) -> Any:
        try:
            return x + 1, super(Other, o).__repr__()
        except TypeError as error:
            return x, str(error)

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    outcomes = []
    for run in (fn, fast):
        LOG.clear()
        outcomes.append((str(run(x, Loud.ON)), list(LOG)))
    assert outcomes[0] == outcomes[1]


@godynamo.disable
def opaque(value: Any) -> Any:
    return value


class Kept(list):
    def put(self, x: torch.Tensor) -> Any:
        super().append((x + 1, opaque(2)))
        length = super().__len__
        opaque(3)
        return length() + len(self)


class Stored:
    def __init__(self, x: torch.Tensor) -> None:
        super().__init__()
        self.x = x

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, opaque(value))


@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "callable"])
def test_methods_of_super_live_across_a_break(backend: Any) -> None:
    def fn(x: torch.Tensor) -> Any:
        kept = Kept()
        return kept.put(x), str(kept), Stored(x).x * 2

    fast = godynamo.optimize(fn, backend=backend)
    godynamo.utils.counters.clear()
    for x in (torch.ones(2), torch.zeros(2)):
        assert str(fast(x)) == str(fn(x))
    assert not godynamo.utils.counters["frames"]["skipped"]
