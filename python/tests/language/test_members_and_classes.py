"""Members of enum classes and classes with metaclasses: the methods that C code calls, and what guards the results."""

from __future__ import annotations

import builtins
import collections
import collections.abc
import copy
import enum
import operator
import types
import typing
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo

LOG: list[Any] = []


class Logs(type):
    def __getattr__(cls, name: str) -> Any:
        LOG.append(name)
        raise AttributeError(name)


class Named(metaclass=Logs):
    pass


class Row(tuple, metaclass=Logs):
    pass


class Table(dict, metaclass=Logs):
    pass


class Shown(str, enum.Enum):
    RED = "1"

    def __repr__(self) -> str:
        LOG.append("repr")
        return "shown"

    def __call__(self) -> None:
        """Members are callable."""


class Level(enum.IntEnum):
    RED = 1


class Answers(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        LOG.append(value)
        return cls.RED


class Reads(enum.IntEnum):
    RED = 1

    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)
        return object.__getattribute__(self, name)


class ReadsToo(int):
    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)
        return super().__getattribute__(name)


class Quiet(types.SimpleNamespace):
    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)


class Deletes:
    def __delitem__(self, key: Any) -> None:
        """Deletes nothing."""


class Stores:
    def __setitem__(self, key: Any, value: Any) -> None:
        """Stores nothing."""


class Slotted(typing.Generic[typing.TypeVar("T")]):
    __slots__ = ()


class Handled(enum.IntEnum):
    RED = 1

    def __torch_function__(self, *args: Any) -> Any:
        return "handled"


class Indexes(str, enum.Enum):
    RED = "1"

    def __index__(self) -> int:
        LOG.append("index")
        return 1


class ReadsSuper(int):
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


class Loud(str):
    def __str__(self) -> str:
        return "LOUD"


class Unjoined:
    def __iter__(self) -> Any:
        return None


class Renamed:
    prop = property(lambda self: 1)
    other = prop


Renamed.__qualname__ = "Re.Named"


class Rows(namedtuple("Rows", "a b")):
    """A namedtuple subclass whose instances have dicts."""


KEPT_ROW: Any = Rows(1, "b")
LOOP: Any = ValueError("text")
LOOP.extra = LOOP


class Odd(frozenset):
    def __iter__(self) -> Any:
        return None


class Odder(set):
    def __iter__(self) -> Any:
        return None


class Closed(collections.UserDict):
    __contains__ = None  # type: ignore[assignment]


class Indexed(int):
    def __index__(self) -> int:
        LOG.append("index")
        return 65


class Text(str):
    """A subclass of str."""


class Uncalled(int):
    __init__ = None  # type: ignore[assignment]


Pair = namedtuple("Pair", "a b")
Quietly = namedtuple("Quietly", "a b")
copy.copy(Named())  # CPython caches the names of the slots in the class
OPERATIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "a class is copied from": lambda x: type(copy.copy(Named())).__name__,
    "a class is formatted": lambda x: f"{Row((1,))!r:9}" + "{:3}".format(""),
    "a class is called": lambda x: (Table(), Row()),
    "a member in a container is printed": lambda x: (str((Shown.RED,)), repr([[Shown.RED]]), f"{ {1: Shown.RED} }"),
    "a member is callable": lambda x: (callable(Shown.RED), callable(Level.RED), callable(3), callable(Pair(1, 2))),
    "a class of members with two arguments": lambda x: Level(1, 2),
    "a class of members with many": lambda x: Level(*[1, "RED"], module="m"),
    "a value that is missed": lambda x: (Answers(7), Level(True)),
    "the class of a member": lambda x: isinstance(Reads.RED, (list, tuple)),
    "a bound method": lambda x: ReadsToo(1).__add__(torch.ones(2)),
    "a member for a tensor": lambda x: torch.sum(Level.RED),
    "a member among tensors": lambda x: torch.stack([x, Level.RED]),
    "a namespace's text": lambda x: repr(Quiet(k=1)),
    "a namespace's comparison": lambda x: types.SimpleNamespace.__eq__(3, 4),
    "a namespace's comparison with a partial": lambda x: types.SimpleNamespace.__eq__(str.upper.__get__("a"), 4),
    "a class that only deletes": lambda x: operator.setitem(Deletes(), 1, 2),
    "a class that only stores": lambda x: operator.delitem(Stores(), 1),
    "no container": lambda x: 1 in Closed(),
    "an int's own index": lambda x: (chr(Indexed(66)), bin(Indexed(1)), hex(Indexed(1)), [1, 2][Indexed(1)]),
    "no initializer": lambda x: Uncalled(0),
    "the least of a tuple and its subclass": lambda x: min([Pair(1, "b"), (1, 2)]),
    "the most of a tuple and its subclass": lambda x: max([Pair(1, "b"), (1, 2)]),
    "a buffer repeated": lambda x: operator.imul(bytearray(b"ab"), [1]),
    "a buffer repeated by a buffer": lambda x: operator.imul(bytearray(b"ab"), bytearray()),
    "a matrix product in place": lambda x: operator.imatmul(x, 2.5),
    "a text that reads nothing of a mapping": lambda x: ("12" % range(3), "12" % [1], "%%" % {}, "12" % b"a"),  # noqa: F507
    "a text that is not found in": lambda x: [
        type(t) for t in (*Text("").split(Text("a")), *Text("ab").partition("x"))
    ],
    "a text split": lambda x: (Text("a,b").split(","), Text("ab").upper(), Text("x").rpartition("x")),
    "a dict's subclass and an OrderedDict": lambda x: type(Table({1: 2}) | collections.OrderedDict(k=0)).__name__,
    "an OrderedDict after a dict": lambda x: type({1: 2} | collections.OrderedDict(k=0)).__name__,
    "an instance without a dict": lambda x: type(copy.deepcopy(Slotted())).__name__,
    "a member with a handler": lambda x: torch.add(x, Handled.RED),
    "an operand's index": lambda x: 3 | Indexes.RED,  # type: ignore[operator]
    "an attribute of a tuple": lambda x: (setattr(KEPT_ROW, "extra", {"k": 1}), KEPT_ROW.extra),
    "an attribute of a tuple that is not there": lambda x: KEPT_ROW.absent,
    "an object in itself": lambda x: torch.tensor(LOOP),
    "a property without a setter": lambda x: setattr(Renamed(), "prop", 3),
    "a property without a deleter": lambda x: delattr(Renamed(), "prop"),
    "a text's own format": lambda x: Loud("ab").__format__(""),
    "a class read by the builtin type": lambda x: ReadsSuper(1).__class__.__name__,
    "what cannot be joined": lambda x: ",".join(Unjoined()),
    "members of a set's subclass": lambda x: ({*Odd([1])}, set(Odder([2])), {3} | Odder([4]), {5}.union(Odd([6]))),
    "a text and a deque": lambda x: "12" % collections.deque(),  # noqa: F507
    "a text that reads nothing is itself": lambda x: [type(Text(t) % []).__name__ for t in ("", "1")],
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_is_cpythons(operation: Callable[[torch.Tensor], Any]) -> None:
    def fn(x: torch.Tensor) -> Any:
        y = x * 2
        try:
            r = operation(y)
        except Exception as error:
            r = type(error), str(error), type(error.__context__)
        return y + 1, r

    def outcome(call: Callable[..., Any]) -> str:
        LOG.clear()
        return str((call(torch.ones(2)), LOG))

    expected, got = outcome(fn), godynamo.optimize("eager")(fn)
    assert [outcome(got), outcome(got)] == [expected, expected]


def members() -> Any:
    return enum.Flag("Mode", "ON OFF"), enum.IntEnum("Number", "ONE TWO")


CHANGES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], None]]] = {
    "how members are copied": (
        lambda flag, number: (copy.copy(number.ONE), copy.copy(flag.ON)),
        lambda flag, number: setattr(number, "__copy__", lambda self: "copied"),
    ),
    "how members are copied deeply": (
        lambda flag, number: copy.deepcopy([number.ONE]),
        lambda flag, number: setattr(number, "__deepcopy__", lambda self, memo: "copied"),
    ),
    "the member of a value": (
        lambda flag, number: (flag(1), [m for m in flag.ON | flag.OFF], flag.ON & flag.ON),
        lambda flag, number: flag._value2member_map_.update({1: flag.OFF}),
    ),
    "the name of a class": (
        lambda flag, number: f"{flag} {number!r} {[flag]}",
        lambda flag, number: setattr(flag, "__name__", "Renamed"),
    ),
    "the module of a class": (
        lambda flag, number: repr([number.__mro__]),
        lambda flag, number: setattr(number, "__module__", "moved"),
    ),
    "a member's attributes": (
        lambda flag, number: bytes(flag.ON),
        lambda flag, number: setattr(flag.ON, "__dict__", {"k": 4}),
    ),
    "a member's value": (
        lambda flag, number: flag.ON & flag.ON,
        lambda flag, number: setattr(flag.ON, "_value_", 7),
    ),
    "a member as a key": (
        lambda flag, number: {flag.ON: 1, (flag.OFF,): 2}[flag.ON],
        lambda flag, number: setattr(flag.ON, "__dict__", {"k": 4}),
    ),
    "a member's bases": (
        lambda flag, number: isinstance(flag.ON, Renamed),
        lambda flag, number: Renamed in flag.__bases__ or setattr(flag, "__bases__", (Renamed, *flag.__bases__)),
    ),
    "a class named in an error": (
        lambda flag, number: number(flag),
        lambda flag, number: setattr(number, "__qualname__", "Re.Named"),
    ),
    "the order of members": (
        lambda flag, number: ([m.name for m in flag], list(number)),
        lambda flag, number: (flag._member_names_.reverse(), number._member_names_.reverse()),
    ),
    "a value that gets a member": (
        lambda flag, number: number(7),
        lambda flag, number: number._value2member_map_.update({7: number.ONE}),
    ),
    "a value's member that is another's": (
        lambda flag, number: number(1),
        lambda flag, number: number._value2member_map_.update({1: number.TWO}),
    ),
    "reads by another type's method": (
        lambda flag, number: hasattr(flag.ON, "value"),
        lambda flag, number: setattr(flag, "__getattribute__", str.__getattribute__),
    ),
    "reads by None": (
        lambda flag, number: number.ONE.value,
        lambda flag, number: setattr(number, "__getattribute__", None),
    ),
    "a member's texts": (
        lambda flag, number: str([number.ONE]),
        lambda flag, number: setattr(number, "__repr__", lambda self: "changed"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str) -> None:
    read, change = CHANGES[name]

    def fn(x: torch.Tensor, flag: Any, number: Any) -> Any:
        try:
            r = read(flag, number)
        except Exception as error:
            r = type(error), str(error)
        return x + 1, r

    def outcomes(call: Callable[..., Any]) -> list[str]:
        out, classes = [], members()
        for _ in range(2):
            out += [str(call(torch.ones(2), *classes)) for _ in range(2)]
            change(*classes)
        return [*out, str(call(torch.ones(2), *classes))]

    assert outcomes(godynamo.optimize("eager")(fn)) == outcomes(fn)


@pytest.mark.parametrize("make", [object.__new__, lambda cls: cls(), lambda cls: copy.deepcopy(KEPT)])
def test_a_class_that_becomes_abstract_makes_no_instance(make: Callable[[type], Any]) -> None:
    def fn(x: torch.Tensor) -> Any:
        try:
            made = type(make(Kept)).__name__
        except TypeError as error:
            made = str(error)
        return x + 1, made

    call = godynamo.optimize("eager")(fn)
    expected = []
    try:
        for names in (frozenset(), frozenset(["k"]), frozenset()):
            Kept.__abstractmethods__ = names  # type: ignore[attr-defined]
            expected.append(fn(torch.ones(2))[1])
            assert [call(torch.ones(2))[1] for _ in range(2)] == expected[-1:] * 2
    finally:
        Kept.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    assert expected[0] == "Kept" == expected[2] != expected[1]


class Kept:
    pass


KEPT = Kept()


@pytest.mark.parametrize("name", ["divmod", "rdivmod", "call", "add", "rmul", "round", "float"])
def test_a_tuples_class_gets_a_method(name: str) -> None:
    cls = namedtuple("cls", "a b")

    def fn(x: torch.Tensor, p: Any) -> Any:
        r = []
        for operation in (
            lambda: divmod(p, 2),
            lambda: divmod(2, p),
            lambda: callable(p),
            lambda: p + 3,
            lambda: 2 * p,
        ):
            try:
                r.append(operation())
            except TypeError as error:
                r.append(str(error))
        return x + 1, r

    p, x, call = cls(1, "b"), torch.ones(2), godynamo.optimize("eager")(fn)
    for _ in range(2):
        assert str(call(x, p)) == str(fn(x, p)) == str(call(x, p))
        setattr(cls, f"__{name}__", lambda self, *other: ("got", other))


class Plain:
    pass


class Shared:
    pass


class Derived(Plain):
    pass


class Word(str):
    pass


class Listed(list):
    pass


def matched(o: Any) -> str:
    match o:
        case [first, *_]:
            return f"sequence {first}"
        case {"k": value}:
            return f"mapping {value}"
    return "neither"


LATER: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "a global": (lambda: undefined, lambda: globals().update(undefined=3)),  # type: ignore[name-defined]  # noqa: F821
    "a builtin": (lambda: undefined, lambda: setattr(builtins, "undefined", 4)),  # type: ignore[name-defined]  # noqa: F821
    "a sequence": (lambda: matched(Plain()), lambda: collections.abc.Sequence.register(Plain)),
    "a field's attribute": (lambda: "{0.extra}".format(Word("a")), lambda: setattr(Word, "extra", 5)),
    "a super class": (
        lambda: super(Shared, Derived()).__repr__()[:2],
        lambda: Shared in Derived.__mro__ or setattr(Derived, "__bases__", (Shared,)),
    ),
    "an initializer": (
        lambda: Listed([1]),
        lambda: setattr(Listed, "__init__", property(lambda self: lambda *a: 3)),
    ),
    "an attribute of a tuple": (lambda: LATER_ROW.later, lambda: setattr(LATER_ROW, "later", 6)),
}
LATER_ROW: Any = Rows(1, "b")


@pytest.mark.parametrize("name", LATER)
def test_what_comes_later_is_seen(name: str) -> None:
    read, change = LATER[name]

    def fn(x: torch.Tensor) -> Any:
        try:
            r = read()
        except Exception as error:
            r = type(error), str(error)
        return x + 1, r

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    try:
        for _ in range(2):
            assert str(fast(x)) == str(fn(x)) == str(fast(x))
            change()
        assert str(fast(x)) == str(fn(x))
    finally:
        globals().pop("undefined", None)
        vars(builtins).pop("undefined", None)


class Asked(enum.Flag):
    A = 1

    def __index__(self) -> int:
        LOG.append("index")
        return 1

    def __lt__(self, other: Any) -> bool:
        LOG.append("lt")
        return False


def answered(self: Any, name: str) -> Any:
    LOG.append(name)


Asked.__getattr__ = answered  # type: ignore[attr-defined]


class Handled(enum.IntEnum):
    A = 1

    def __getattr__(self, name: str) -> Any:
        return None


class Reads(enum.Flag):
    A = 1

    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)
        return super().__getattribute__(name)


class TextMeta(type):
    def __repr__(cls) -> str:
        LOG.append("repr")
        return "text"

    def __getattribute__(cls, name: str) -> Any:
        LOG.append(name)
        return type.__getattribute__(cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        LOG.append(name)

    def __hash__(cls) -> int:
        LOG.append("hash")
        return 1

    def __index__(cls) -> int:
        LOG.append("index")
        return 1


class OfTextMeta(metaclass=TextMeta):
    pass


class TextOfMeta(str, metaclass=TextMeta):
    pass


class Hashed(enum.Enum):
    A = 1

    def __hash__(self) -> int:
        LOG.append("hash")
        return 7


class SaysInt:
    @property
    def __class__(self) -> Any:
        LOG.append("class")
        return int


class ReadsArgs(Exception):
    def __getattribute__(self, name: str) -> Any:
        LOG.append(name)
        return super().__getattribute__(name)


class LessIsUnknown:
    def __lt__(self, other: Any) -> Any:
        LOG.append("lt")
        return NotImplemented

    def __gt__(self, other: Any) -> Any:
        LOG.append("gt")
        return True


class ReprText(str):
    def __repr__(self) -> str:
        LOG.append("repr")
        return "text"


class NoFormat(float):
    __format__ = None  # type: ignore[assignment]


class SlottedText(str):
    __slots__ = ("slot",)


class Ordered(collections.OrderedDict):  # type: ignore[type-arg]
    pass


class Queue(collections.deque):  # type: ignore[type-arg]
    pass


class SetSaysLess(set):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return -1


class ShownPair(Rows):
    def __repr__(self) -> str:
        LOG.append("repr")
        return "pair"


class EndlessItems(Exception):
    def __getitem__(self, i: int) -> int:
        LOG.append(i)
        assert i < 5
        return i


class KeysRaise(str):
    def keys(self) -> Any:
        return super().keys()  # type: ignore[misc]


class ItsReverse(collections.OrderedDict):  # type: ignore[type-arg]
    def __reversed__(self) -> Any:
        LOG.append("reversed")
        return super().__reversed__()


class NoReads:
    pass


NoReads.__getattribute__ = None  # type: ignore[assignment,method-assign]


class ComparedFirst:
    @classmethod
    def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "handled"

    def __eq__(self, other: object) -> Any:
        return None


class PlainHook(collections.UserDict):  # type: ignore[type-arg]
    def __subclasshook__(cls, *a: Any) -> Any:  # type: ignore[override]
        LOG.append("hook")
        return NotImplemented


#: values and the C code that receives them
GIVEN: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "a range of a member": (lambda: Asked.A, lambda v, x: range(v)),
    "a slice to a member": (lambda: Asked.A, lambda v, x: "abc"[v:]),
    "a member as a size": (lambda: Asked.A, lambda v, x: x.view(1, 2, v)),
    "a sum over a member": (lambda: Asked.A, lambda v, x: x.reshape(1, 2).sum(v)),
    "sorted members": (lambda: Asked.A, lambda v, x: sorted([v, v])),
    "issubclass of a member": (lambda: Asked.A, lambda v, x: issubclass(v, int)),
    "an iterator of a member": (lambda: Asked.A, lambda v, x: iter(v) and 1),
    "a tensor and a member": (lambda: Handled.A, lambda v, x: v ^ torch.ones(2)),
    "the truth of a member": (lambda: Reads.A, lambda v, x: bool(v)),
    "format of a member": (lambda: Reads.A, lambda v, x: format(v)),
    "a copy of a member": (lambda: Reads.A, lambda v, x: copy.deepcopy(v) is v),
    "a set times a class": (lambda: OfTextMeta, lambda v, x: {1} * v),
    "a class in a list": (lambda: OfTextMeta, lambda v, x: [1, 2][v]),
    "a method of a text": (lambda: TextOfMeta("ab"), lambda v, x: v.startswith("a")),
    "a copy of an instance": (lambda: OfTextMeta(), lambda v, x: type(copy.copy(v)) is type(v)),
    "the type of a set": (lambda: {Hashed.A}, lambda v, x: type(v).__name__),
    "isinstance with a tuple": (SaysInt, lambda v, x: isinstance(v, (str, SaysInt))),
    "isinstance with a union": (SaysInt, lambda v, x: isinstance(v, str | int)),
    "the args of an exception": (lambda: ReadsArgs("a"), lambda v, x: v.args),
    "sorted instances": (LessIsUnknown, lambda v, x: len(sorted([v, LessIsUnknown()]))),
    "sorted tuples": (LessIsUnknown, lambda v, x: len(sorted([(v, 1), (LessIsUnknown(), 2)]))),
    "a number of a text": (lambda: ReprText("a"), lambda v, x: int(v)),
    "a key that is missing": (lambda: ReprText("a"), lambda v, x: {}[v]),
    "format that is None": (lambda: NoFormat(0.0), lambda v, x: f"{v:>5}"),
    "vars without a dict": (lambda: SlottedText("a"), lambda v, x: vars(v)),
    "ascii of a subclass": (lambda: Ordered(a=1), lambda v, x: ascii(v)),
    "a text % a deque": (lambda: Queue([1]), lambda v, x: operator.mod("k", v)),
    "a deleted place of a deque": (lambda: collections.deque([1]), lambda v, x: operator.delitem(v, "k")),
    "the text of a set": (lambda: SetSaysLess([1]), lambda v, x: f"{v} {v!r}"),
    "a width that is a tuple": (lambda: ShownPair(1, "b"), lambda v, x: "{:>{}}".format(1, v)),
    "a dict of items without end": (EndlessItems, lambda v, x: dict(v)),
    "keys that raise": (lambda: KeysRaise("a"), lambda v, x: {**v}),
    "an iterator left on the stack": (lambda: ItsReverse(a=1), lambda v, x: reversed(v) and 1),
    "isinstance without reads": (NoReads, lambda v, x: isinstance(v, (list, tuple))),
    "an operand before its handler": (ComparedFirst, lambda v, x: {1: v} == {1: torch.ones(2)}),
    "a hook that is no class method": (PlainHook, lambda v, x: isinstance(v, PlainHook)),
    "a function among members": (lambda: Asked, lambda v, x: len in v),
    "a list += a bytearray": (lambda: [1], lambda v, x: operator.iadd(v, bytearray(b"a")) is v),
}


@pytest.mark.parametrize("name", GIVEN)
def test_c_code_is_given_values_of_classes(name: str) -> None:
    make, use = GIVEN[name]

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


#: expressions about a class and its member, evaluated again after both have changed
TOLD: dict[str, Callable[[Any, Any], Any]] = {
    "% with a dict": lambda kind, v: "%s" % {"a": v},
    "iteration": lambda kind, v: len(list(v)),
    "len": lambda kind, v: len(v),
    "the module": lambda kind, v: v.__module__,
    "an attribute": lambda kind, v: v.__getattribute__("later"),
    "an index": lambda kind, v: [0][v],
    "a range": lambda kind, v: range(v),
    "an order": lambda kind, v: sorted([v, v]),
    "a subscript": lambda kind, v: v["k"],
    "xor of bytes": lambda kind, v: operator.ixor(bytearray(b"a"), v),
    "bytes of a class": lambda kind, v: bytearray(kind),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_members_say_is_read_again(name: str) -> None:
    kind: Any = enum.Flag("kind", {"A": 1, "B": 2, "C": 3})
    read = TOLD[name]

    def fn(x: torch.Tensor) -> Any:
        try:
            r = read(kind, kind.C)
        except Exception as error:
            r = type(error), str(error)
        return x + 1, r

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    kind.__name__, kind.__module__, kind.C._value_, kind.C.later = "Renamed", "elsewhere", 1, 5
    assert str(fast(x)) == str(fn(x)) == str(fast(x))


def test_an_exception_whose_initializer_is_no_function() -> None:
    class Failed(Exception):
        pass

    def fn(x: torch.Tensor) -> Any:
        try:
            r = str(Failed("a"))
        except TypeError as error:
            r = str(error)
        return x + 1, r

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    Failed.__init__ = staticmethod(lambda *a: 4)  # type: ignore[assignment,method-assign]
    assert str(fast(x)) == str(fn(x))


def test_an_enum_class_that_gets_another_metaclass() -> None:
    kind: Any = enum.Flag("kind", {"A": 1})

    class Counts(type):
        def __call__(cls, *args: Any) -> Any:
            return "made", args

    def fn(x: torch.Tensor) -> Any:
        return x + 1, kind(1)

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    kind.__class__ = Counts
    assert str(fast(x)) == str(fn(x))


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
def test_a_copy_stores_into_the_dict_past_a_descriptor(backend: Any) -> None:
    seen: list[Any] = []

    class Holds:
        def __init__(self) -> None:
            self.v = 3

    def fn(x: torch.Tensor, o: Holds) -> Any:
        made = copy.deepcopy(o)
        godynamo.graph_break()
        return x + 1, vars(made)

    fast, x, o = godynamo.optimize(backend=backend)(fn), torch.ones(2), Holds()
    assert str(fast(x, o)) == str(fn(x, o))
    Holds.v = property(lambda self: 5, lambda self, v: seen.append(v))  # type: ignore[assignment]
    for _ in range(2):
        assert str(fast(x, o)) == str(fn(x, o))
    assert not seen
