# ruff: noqa: F401 - programs use these names
import abc
import builtins
import collections
import collections.abc
import contextlib
import copy
import dataclasses
import enum
import functools
import math
import numbers
import operator
import types
import typing

import torch

LOG = []
LIMIT = 3
TABLE = {1: "one", "k": 2}
N = float("nan")


class Data:
    """A data descriptor."""

    def __init__(self, value):
        self.value = value

    def __get__(self, obj, owner):
        return (self.value, obj is None)

    def __set__(self, obj, value):
        LOG.append(("set", value))


class NonData:
    """A descriptor without __set__."""

    def __init__(self, value):
        self.value = value

    def __get__(self, obj, owner):
        return ("got", self.value, obj is None)


class Plainest:
    def __init__(self, value):
        self.value = value


class Mixin:
    k = "mixin"

    def hello(self):
        return "mixin hello"

    def __len__(self):
        return 4


class Base:
    k = "base"

    def __init__(self, *args):
        self.v = len(args)

    def hello(self):
        return ("base hello", self.v)


class Duck(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return True if hasattr(other, "quack") else NotImplemented


class Shape(abc.ABC):
    def area(self):
        return 5


def helper(v, w=2, *, z=3):
    return (v, w, z, LIMIT)


def other(v, w=5, *, z=6):
    return ("other", v, w, z)


def closed(value):
    def inner(v):
        return (value, v)

    return inner


def drawn(v):
    yield 1
    yield v


def own(thing):
    """Return a class of the program; raise for others, which outlive the program."""
    if thing.__module__ != "program":
        raise TypeError("not the program's own")
    return thing


def failed(error):
    return (type(error).__name__, str(error))
