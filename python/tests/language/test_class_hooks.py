"""Class methods written in C, called by super() in a class method of the same name."""

from __future__ import annotations

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
