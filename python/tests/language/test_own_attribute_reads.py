"""Objects whose class defines ``__getattribute__``: the method is inlined; guards and generated code bypass it."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


class Config:
    """Like a model's configuration: some names are aliases of attributes."""

    renamed = {"alias": "real"}
    __slots__ = ("__dict__", "slot")

    def __init__(self, **kwargs):
        self.real, self.slot, self.flag = 2, 5, True
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __getattribute__(self, name):
        if name != "renamed" and name in super().__getattribute__("renamed"):
            name = super().__getattribute__("renamed")[name]
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        super().__setattr__(self.renamed.get(name, name), value)

    def method(self):
        return self.flag


class Logged:
    """Records the reads of its attributes."""

    def __init__(self):
        self.reads, self.a = [], 1

    def __getattribute__(self, name):
        if name != "reads":
            self.reads.append(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        if name == "made_up":
            return 7
        raise AttributeError(name)


def config():
    return (Config(),)


@cases(args=config)
def renamed_and_slot(x, c):
    return x * c.alias + c.slot


@cases(args=config)
def method_of_it(x, c):
    return x + 1 if c.method() else x


@cases(args=config)
def stores_and_reads(x, c):
    c.new, c.alias = 3, 9
    return x * c.new + c.real, c.alias


@cases(args=config)
def missing(x, c):
    try:
        c.nothing  # noqa: B018
    except AttributeError as e:
        return x + 1, str(e), hasattr(c, "nothing"), getattr(c, "nothing", 4)


@cases(args=lambda: (Logged(),))
def reads_are_told(x, c):
    y = x + c.a
    return y * c.made_up, getattr(c, "other", 2), c.reads


@cases(args=lambda: (Logged(),))
def bound_method_leaves(x, c):
    return x + 1, c.__init__.__name__, c.reads


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_own_attribute_reads(case: Case):
    check(case)


def reads(x, c):
    y = x * c.alias + c.slot
    if hasattr(c, "nope"):
        y = y * 100
    return y + 1 if c.flag else y


def test_changed_objects_and_classes():
    """Guards detect a changed or new attribute, another __getattribute__, and an attribute of the class."""
    x = torch.ones(3)
    compiled = godynamo.optimize(reads)
    for values in ({}, {"real": 5}, {"real": 5}, {"slot": 9}, {"flag": False}, {"nope": 1}):
        assert torch.equal(compiled(x, Config(**values)), reads(x, Config(**values))), values
    original = Config.__getattribute__
    try:
        Config.__getattribute__ = lambda self, name: 3 if name == "alias" else object.__getattribute__(self, name)
        assert torch.equal(compiled(x, Config()), reads(x, Config()))
        del Config.__getattribute__
        with pytest.raises(AttributeError, match="alias"):
            compiled(x, Config())
        Config.alias = 11
        assert torch.equal(compiled(x, Config()), reads(x, Config()))
    finally:
        Config.__getattribute__ = original
        del Config.alias
    assert torch.equal(compiled(x, Config()), reads(x, Config()))


def doubled(x, c):
    return x * c.value


def test_class_that_begins_to_read_itself():
    """A class gets a __getattribute__ after the translation."""

    class Plain:
        def __init__(self):
            self.value = 2

    x, compiled = torch.ones(2), godynamo.optimize(doubled)
    c = Plain()
    assert torch.equal(compiled(x, c), x * 2)
    Plain.__getattribute__ = lambda self, name: 5
    assert torch.equal(compiled(x, c), x * 5)
    del Plain.__getattribute__
    assert torch.equal(compiled(x, c), x * 2)
