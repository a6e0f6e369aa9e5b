"""copy.copy and copy.deepcopy of instances: by object.__reduce_ex__, with lookups in copy's order."""

from __future__ import annotations

import copy
import dataclasses
import enum

import pytest
import torch

from harness.cases import Case, Cases, check

cases = Cases()


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Config:
    a: int = 1
    b: list = dataclasses.field(default_factory=lambda: [1, {"k": 2}])


class Told:
    """Records the reads of its attributes, and references itself."""

    reads: list[str] = []

    def __init__(self):
        self.config, self.color, self.me = Config(), Color.RED, self

    def __getattribute__(self, name):
        if name != "__class__":
            Told.reads.append(name)
        return object.__getattribute__(self, name)


class State:
    def __init__(self):
        self.v = 3

    def __getstate__(self):
        return {"v": self.v + 1}

    def __setstate__(self, state):
        self.v = state["v"] * 2


class Own:
    def __init__(self):
        self.v = [1]

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return 5


class Slotted:
    __slots__ = ("v",)

    def __init__(self):
        self.v = [1]


class Nothing:
    pass


@cases
def of_the_programs_own(x):
    c = Config()
    deep, flat = copy.deepcopy(c), copy.copy(c)
    deep.b[1]["k"] = 7
    return x + 1, c, deep, flat, flat.b is c.b, deep.b is c.b


@cases(args=lambda: (Config(5), [Config()]))
def of_the_callers(x, c, many):
    deep = copy.deepcopy(c)
    deep.a += 1
    return x + deep.a, deep, c, copy.deepcopy(many)


@cases(args=lambda: (Told(),))
def told(x, t):
    Told.reads.clear()
    deep = copy.deepcopy(t)
    return x + 1, deep.me is deep, deep.config is t.config, deep.color is Color.RED, list(Told.reads)


@cases
def with_state(x):
    return x + 1, copy.deepcopy(State()).v, copy.copy(State()).v


@cases
def with_nothing(x):
    n = Nothing()
    return x + 1, vars(copy.deepcopy(n)), vars(copy.copy(n))


@cases(args=lambda: (Own(),), breaks=(0, 1))
def with_its_own(x, o):
    return x + 1, copy.deepcopy(o) is o, copy.copy(o)


@cases(args=lambda: (Slotted(),), breaks=1)
def with_slots(x, s):
    return x + 1, copy.deepcopy(s).v


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_copies(case: Case):
    check(case)


def test_a_class_that_begins_to_say_how():
    import godynamo

    class Late:
        def __init__(self):
            self.v = 1

    def f(x, c):
        return x + 1, copy.deepcopy(c).v

    x, compiled, c = torch.ones(2), godynamo.optimize(f), Late()
    assert compiled(x, c)[1] == 1
    Late.__reduce_ex__ = lambda self, protocol: (Config, (8,), {"v": 9})
    assert compiled(x, c)[1] == f(x, c)[1] == 9
    del Late.__reduce_ex__
    Late.__deepcopy__ = lambda self, memo: State()
    assert compiled(x, c)[1] == 3
