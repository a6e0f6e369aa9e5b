"""dir() of a class: the names are CPython's, and a class that lists others is translated again."""

from __future__ import annotations

import torch

import godynamo


class Base:
    scale = 2

    def public(self):
        return self.scale


class Derived(Base):
    other = 3


class Listing(type):
    def __dir__(cls):
        return ["listed", "by", "me"]


class Listed(metaclass=Listing):
    pass


def names(x, cls):
    found = [name for name in dir(cls) if not name.startswith("_")]
    return x + len(found), found, type(dir(cls)).__name__


def equal(a, b):
    return torch.equal(a[0], b[0]) and a[1:] == b[1:]


def test_names_of_a_class():
    x = torch.ones(2)
    w = godynamo.optimize(names)
    for cls in (Base, Derived, int, torch.nn.Linear, Listed, Base):
        assert equal(w(x, cls), names(x, cls)), cls
    assert godynamo.explain(names)(x, Derived).graph_break_count == 0


def test_a_name_that_comes_later():
    class Grows:
        first = 1

    x = torch.ones(2)
    w = godynamo.optimize(names)
    assert equal(w(x, Grows), names(x, Grows))
    Grows.second = 2
    assert w(x, Grows)[1] == ["first", "second"]
    del Grows.first
    assert w(x, Grows)[1] == ["second"]


def test_a_name_that_the_function_sets():
    class Changes:
        pass

    def fn(x):
        Changes.name = 1
        had = "name" in dir(Changes)
        del Changes.name
        return x + 1, had, "name" in dir(Changes)

    assert godynamo.optimize(fn)(torch.ones(2))[1:] == (True, False)


def test_the_list_is_a_new_one():
    def fn(x):
        first = dir(Derived)
        first.append("mine")
        return x + 1, "mine" in dir(Derived), first[-1]

    w = godynamo.optimize(fn)
    for _ in range(2):
        assert w(torch.ones(2))[1:] == (False, "mine")
