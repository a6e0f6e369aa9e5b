"""Instances of subclasses of builtin types, and class calls: behaviour of the subclass and of the builtin type."""

from __future__ import annotations

import collections
import typing

import pytest

from harness.cases import Case, Cases, check

cases = Cases()


class Words(dict):
    """A dict."""


class Row(list):
    """A list."""


class Pair(tuple):
    """A tuple."""


class Index(int):
    """An int with another value as an index."""

    def __index__(self):
        return 42


class Real(float):
    """A float."""


class Point(typing.NamedTuple):
    """A named tuple with a custom text."""

    a: int
    b: int = 1

    def __str__(self):
        return f"{self.a} -> {self.b}"


def _split(*values):
    exec("")
    return values


@cases(breaks=2, graphs=1)
def views_of_an_instance_that_is_made_real(x):
    y = x + 1
    d = Words(a=1)
    keys, items = d.keys(), d.items()
    _split(keys)
    d["c"] = 1
    return d, keys, items, y


@cases(breaks=4, graphs=1)
def iterator_and_method_of_an_instance_that_is_made_real(x):
    y = x + 1
    row = Row([1, 2, 3])
    it, add = iter(row), row.append
    next(it)
    _split(it, add)
    add(4)
    return list(it), row, y


@cases(args=lambda: (Pair((1, 2)),))
def parts_of_a_tuple_are_plain(x, p):
    q = Pair((1, x))
    return [type(v).__name__ for v in (p[:], p + (), p * 1, tuple(p), q[:], q + (), () + q, tuple(q))], x + 1


@cases
def number_of_an_int_with_an_index(x):
    return int(Index(7)), [int(Index(3)) for _ in range(2)], list(range(50))[Index(7)], x + 1


@cases(breaks=2, graphs=1)
def hash_of_a_nan_is_its_own(x):
    y = x + 1
    v = Real("nan")
    return hash(v) == object.__hash__(v), y


@cases
def texts_of_a_named_tuple(x):
    p = Point(42)
    return str(p), repr(p), f"{p}", "%s" % (p,), x + 1


@cases(breaks=1)
def from_keys_of_an_instance(x):
    y = x + 1
    return type(Words().fromkeys("a")).__name__, y


class Made:
    """Passes its arguments to object."""

    def __new__(cls, *args):
        return super().__new__(cls, *args)


@cases
def too_many_arguments_for_object(x):
    y = x + 1
    Made()
    try:
        Made(1)
    except TypeError as e:
        return str(e), y


T = typing.TypeVar("T")


class Slotted(typing.Generic[T]):
    """Has no __dict__, so an alias cannot set ``__orig_class__`` on an instance."""

    __slots__ = ("a",)


@cases
def alias_of_a_class_with_slots(x):
    s = Slotted[int]()
    s.a = 1
    return s.a, hasattr(s, "__orig_class__"), x + 1


ASKED: list[str] = []


class Asked(type):
    """A metaclass that records the names that its ``__getattr__`` receives."""

    def __getattr__(cls, name):
        ASKED.append(name)
        raise AttributeError(name)


class Named(tuple, metaclass=Asked):
    """Its aliases are created by tuple's __class_getitem__, and forward missing attributes to the class."""


@cases
def alias_of_a_class_whose_metaclass_is_asked(x):
    ASKED.clear()
    row = Named[int]((1, 2))
    return row, list(ASKED), x + 1


@cases(breaks=1, graphs=1)
def alias_that_makes_no_instances(x):
    y = x + 1
    try:
        typing.List[int]()
    except TypeError as e:
        return str(e), y


class Other:
    """A class."""


class Says:
    """Claims to be of another class."""

    @property
    def __class__(self):
        return Other


@cases(args=lambda: (Says(),))
def instance_that_names_its_class(x, s):
    y = x + 1
    return isinstance(s, Other), isinstance(s, (str, Says)), y


@cases(breaks=1, graphs=1)
def computed_text_is_another_object(x):
    y = x + 1
    a = "xyzpdq"
    b = a[:3] + a[3:]
    return a == b, a is b, y


class Backwards(dict):
    """A dict whose iteration order differs from its storage order."""

    def __iter__(self):
        return iter(sorted(dict.keys(self), reverse=True))

    def __len__(self):
        return 7


@cases(args=lambda: (Backwards(a=1, b=2),))
def dict_with_an_order_of_its_own(x, d):
    return list(d), len(d), d["a"], x + d["b"]


@cases(args=lambda: (collections.OrderedDict(a=1, b=2),), breaks=1)
def storage_taken_from_an_ordered_dict(x, d):
    y = x + 1
    dict.__setitem__(d, "a", 5)
    return d["a"], y


class Printed(set):
    def __repr__(self):
        return "<" + set.__repr__(self) + ">"


class Listed(list):
    def __repr__(self):
        return "<" + list.__repr__(self) + ">"


@cases(args=lambda: (Printed([1, 2]), Listed([3])))
def the_builtin_s_own_text(x, s, row):
    return (
        [repr(s), str(s), set.__repr__(s), repr(Printed()), repr(Printed([5])), f"{s}"],
        [repr(row), str(row), list.__repr__(row), repr(Listed([x.shape[0]]))],
        x + 1,
    )


class Refusing(int):
    def __truediv__(self, other):
        return NotImplemented

    __rtruediv__ = __truediv__


@cases(args=lambda: (Refusing(1), Refusing(2)), breaks=1, graphs=2)
def operators_that_both_refuse(x, a, b):
    out = [a / 2, 3 / b, a / 2.0, a + b]
    y = x + 1
    try:
        out.append(a / b)
    except TypeError as e:
        out.append(str(e))
    return out, y * 2


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_subclasses(case: Case) -> None:
    check(case)


def test_unions_of_the_same_classes_in_another_order() -> None:
    """They are equal, but isinstance stops at the first class that decides."""
    import godynamo

    @godynamo.optimize
    def check_both(kind):
        try:
            return isinstance(1, kind)
        except TypeError as e:
            return str(e)

    with godynamo.config.patch(translate_everything=True):
        assert check_both(typing.Union[int, T]) is True
        assert "arg 2 must be" in check_both(typing.Union[T, int])
        assert check_both(typing.Union[int, T]) is True
