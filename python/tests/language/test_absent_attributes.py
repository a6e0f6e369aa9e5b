"""hasattr, getattr and `except AttributeError` if a descriptor, a property or a hook reports a missing attribute."""

from __future__ import annotations

import collections
import functools

import pytest
import torch

import godynamo
from godynamo import _C


class Refuses:
    def __get__(self, obj, owner=None):
        raise AttributeError("refused")


class RefusesAsData(Refuses):
    def __set__(self, obj, value):
        pass


class Names:
    own = 1
    get, data = Refuses(), RefusesAsData()

    def __init__(self):
        self.__dict__["data"] = 3

    @property
    def prop(self):
        return self.nowhere

    @functools.cached_property
    def cached(self):
        raise AttributeError("cached")

    @classmethod
    @property
    def of_class(cls):
        raise AttributeError("of_class")


class Falls(Names):
    def __getattr__(self, name):
        if name == "nowhere":
            raise AttributeError(name)
        return name


class Raises(Names):
    def __getattr__(self, name):
        raise AttributeError(name)


class Hides(Names):
    def __init__(self):
        super().__init__()
        self.get = 2

    def __getattribute__(self, name):
        if name in ("get", "own", "absent"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)


class HidesAndFalls(Hides):
    def __getattr__(self, name):
        return 4


class FallsToAProperty(Names):
    @property
    def __getattr__(self):
        return lambda name: ("property", name)


class HidesAndFallsToAProperty(Hides):
    __getattr__ = FallsToAProperty.__dict__["__getattr__"]


class Meta(type):
    get_meta = Refuses()

    def __getattr__(cls, name):
        return name


class OfMeta(Names, metaclass=Meta):
    pass


class Module(torch.nn.Module):
    get, data = Refuses(), RefusesAsData()
    prop = Names.prop

    def __init__(self):
        super().__init__()
        self.register_buffer("own", torch.ones(1))


KINDS = (
    Names, Falls, Raises, Hides, HidesAndFalls, FallsToAProperty, HidesAndFallsToAProperty, OfMeta, Module,
)  # fmt: skip
OBJECTS = {c.__name__: c() for c in KINDS} | {
    "a class": Names,
    "a class of a metaclass": OfMeta,
}
NAMES = "own get data prop cached of_class absent get_meta __len__".split()


def has(o, name):
    return hasattr(o, name)


def value(o, name):
    return repr(getattr(o, name, 0))


def with_default(o, name):
    return getattr(o, name, None) is None


def caught(o, name):
    try:
        getattr(o, name)
    except AttributeError as error:
        return type(error).__name__
    return "there"


@pytest.mark.parametrize("ask", [has, value, with_default, caught])
@pytest.mark.parametrize("of", OBJECTS)
def test_absent_attributes(of, ask):
    obj, errors = OBJECTS[of], _C.counters()["internal_errors"]
    for name in NAMES:

        def fn(x, name=name):
            return x + 1, ask(obj, name)

        optimized = godynamo.optimize(fn)
        for _ in range(2):
            assert optimized(torch.ones(1))[1] == fn(torch.ones(1))[1], name
    assert _C.counters()["internal_errors"] == errors


def test_a_class_that_comes_to_have_the_attribute():
    class Late(Raises):
        pass

    obj = Late()
    optimized = godynamo.optimize(lambda x: (x + 1, hasattr(obj, "get"), hasattr(obj, "absent")))
    assert optimized(torch.ones(1))[1:] == (False, False)
    Late.get = 1
    assert optimized(torch.ones(1))[1:] == (True, False)
    Late.absent = 1
    assert optimized(torch.ones(1))[1:] == (True, True)


def test_an_ordered_dict_that_gets_attributes():
    def fn(x, d):
        try:
            seen = d.extra
        except AttributeError as error:
            seen = str(error)
        d.extra = 3
        return x + 1, seen, list(d.keys())

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    plain, dicts = collections.OrderedDict(k=1), collections.OrderedDict(k=1)
    for _ in range(2):
        assert str(fast(x, dicts)) == str(fn(x, plain))
    plain.keys = dicts.keys = lambda: "ab"
    assert str(fast(x, dicts)) == str(fn(x, plain))
    del plain.extra, dicts.extra, plain.keys, dicts.keys
    assert str(fast(x, dicts)) == str(fn(x, plain))
