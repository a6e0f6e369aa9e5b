"""Methods by which classes react: C's own, called by super() in a class method of the same name; checks of tensors."""

from __future__ import annotations

import abc

import torch

import godynamo


class Base:
    made: list[str] = []

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Base.made.append(cls.__name__)


def test_init_subclass_reaches_objects_own():
    def makes(x):
        class Sub(Base):
            pass

        return x + 1, Sub.__name__

    del Base.made[:]
    with godynamo.optimize("eager"), godynamo.config.patch(translate_everything=True):
        for _ in range(3):
            assert makes(torch.ones(2))[1] == "Sub"
    assert Base.made == ["Sub"] * 3


def test_subclasshook_reaches_objects_own():
    class Hooked:
        @classmethod
        def __subclasshook__(cls, other):
            return super().__subclasshook__(other)

        @classmethod
        def ask(cls, x):
            return x + 1, super().__subclasshook__(int)

    assert godynamo.optimize(Hooked.ask)(torch.ones(2))[1] is NotImplemented


def test_checks_of_tensors_run_once():
    """isinstance of a tensor with a class whose own code decides: the code runs as in CPython."""
    calls = []

    def make():
        class Checks(type):
            def __subclasscheck__(cls, other):
                calls.append(("subclass", other))
                return True

        class Instances(Checks):
            def __instancecheck__(cls, value):
                calls.append(("instance", type(value)))
                return False

        class Hooked(abc.ABC):
            @classmethod
            def __subclasshook__(cls, other):
                calls.append(("hook", other))
                return False

        return Checks("One", (), {}), Instances("Two", (), {}), Hooked

    def f(x, one, two, hooked):
        y = x + 1
        calls.append("before")
        found = (
            isinstance(y, one),
            isinstance(y, two),
            isinstance(y, hooked),
            isinstance(y, (one, two)),
            issubclass(type(y), one),
        )
        match torch.nn.Parameter(y):
            case hooked() | two():
                found += (3,)
        calls.append("after")
        return found

    x = torch.ones(2)
    want = [(f(x, *kinds), list(calls), calls.clear()) for kinds in [make()] for _ in range(3)]
    optimized = godynamo.optimize(f)
    got = [(optimized(x, *kinds), list(calls), calls.clear()) for kinds in [make()] for _ in range(3)]
    assert got == want
