"""Facts about a program's classes that only CPython or torch knows: error texts, tables of members, handlers."""

from __future__ import annotations

import collections
import copy
import enum

import pytest
import torch

import godynamo


class Indexed:
    __index__ = lambda self: ()  # noqa: E731


class Bytes(bytes):
    pass


class Answers(int):
    def __getattr__(self, name):
        return "attr " + name


class Reader:
    read: list[str] = []

    def __getattr__(self, name):
        Reader.read.append(name)
        raise AttributeError(name)


class HashedMeta(type):
    def __hash__(cls):
        raise ValueError("hashed")


class Hashed(metaclass=HashedMeta):
    pass


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


def copies():
    Reader.read.clear()
    copy.copy(Reader())
    return list(Reader.read)


OPERATIONS = {
    "a repeat count's __index__": lambda x: [0] * Indexed(),
    "a pair of an OrderedDict": lambda x: collections.OrderedDict("k"),
    "a pair of a dict": lambda x: dict([(1, 2), (3,)]),
    "concatenation of a subclass": lambda x: Bytes(b"a") + Hashed(),
    "a set in a set": lambda x: {1, 2} in {1, 2},
    "a set discarded from a set": lambda x: {frozenset([1])}.discard({1}),
    "an operand that answers reads": lambda x: x ** Answers(2),
    "a function's operand that answers reads": lambda x: torch.add(x, Answers(2)),
    "a dict of a subclass": lambda x: torch.add(x, collections.defaultdict(list)),
    "copy asks the class": lambda x: copies(),
    "a class whose metaclass hashes": lambda x: len({Hashed(), Hashed()}),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_is_cpythons(operation):
    def fn(x):
        y = x * 2
        try:
            r = operation(y)
        except Exception as error:
            r = type(error), str(error)
        return y + 1, r

    x = torch.ones(2)
    got = godynamo.optimize("eager")(fn)
    for _ in range(2):
        assert str(got(x)) == str(fn(x))


@pytest.mark.parametrize("read", [list, lambda kind: kind["ON"], lambda kind: [m for m in kind]])
def test_a_table_of_members_that_changes(read):
    class Mode(enum.Enum):
        ON = 1
        OFF = 2

    def fn(x):
        return x + 1, read(Mode)

    x = torch.ones(2)
    got = godynamo.optimize("eager")(fn)
    assert got(x)[1] == fn(x)[1]
    Mode._member_map_["ON"] = Mode.OFF
    assert got(x)[1] == fn(x)[1]


def test_a_member_that_only_the_table_has():
    class Mode(enum.Enum):
        ON = 1

    def fn(x):
        try:
            r = Mode.OFF
        except AttributeError as error:
            r = str(error)
        return x + 1, r

    x = torch.ones(2)
    got = godynamo.optimize("eager")(fn)
    assert got(x)[1] == fn(x)[1]
    assert "OFF" in got(x)[1]
    Mode._member_map_["OFF"] = Mode.ON
    assert got(x)[1] == fn(x)[1]  # since 3.12 attributes are not looked up in the table
