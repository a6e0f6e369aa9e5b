"""dataclasses: frozen, with slots, ordered, hashed, printed; class statements inside captured functions."""

from __future__ import annotations

import dataclasses
import reprlib
from typing import Any

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter
from harness.cases import Case, Cases, check, outcome, reasons

cases = Cases()


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    k: int = 2

    def __post_init__(self):
        object.__setattr__(self, "extra", self.k + 1)


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    x: Any
    k: int = 2


@dataclasses.dataclass(order=True)
class Ordered:
    k: int
    name: str = dataclasses.field(default="n", compare=False)


@dataclasses.dataclass(unsafe_hash=True)
class Hashed:
    k: int
    m: str = "m"


@dataclasses.dataclass(frozen=True)
class Base:
    a: int


@dataclasses.dataclass(frozen=True)
class Derived(Base):
    b: int = 3


@dataclasses.dataclass
class Link:
    name: str
    next: Any = None


class Printed(list):
    @reprlib.recursive_repr(fillvalue="<again>")
    def __repr__(self):
        return "Printed(" + ", ".join(map(repr, self)) + ")"


@cases
def made_inside(x):
    r = Frozen(x + 1, 3)
    return r, r.extra, r.k, FrozenSlots(x).k, Derived(1).b


@cases
def stored_into_a_frozen_one(x):
    texts = []
    for r in (Frozen(x), FrozenSlots(x)):
        try:
            r.k = 5
        except dataclasses.FrozenInstanceError as error:
            texts.append((str(error), error.args, isinstance(error, AttributeError)))
        try:
            del r.k
        except AttributeError as error:
            texts.append(str(error))
    return x + 1, texts


@cases(args=lambda: (Frozen(torch.ones(4)),))
def a_frozen_one_of_the_callers(x, r):
    y = r.x * r.k + x
    try:
        r.k = 3
    except dataclasses.FrozenInstanceError as error:
        return y, str(error), dataclasses.replace(r, k=4).k, r


@cases
def ordered_and_hashed(x):
    return (
        x + 1,
        Ordered(1) < Ordered(2),
        sorted([Ordered(3), Ordered(1)])[0].k,
        Ordered(1) == Ordered(1, "z"),
        hash(Hashed(1)) == hash(Hashed(1)),
        {Hashed(1): 5}[Hashed(1)],
        len({Base(1), Base(1)}),
    )


@cases
def helpers(x):
    r = Derived(1, 2)
    return (
        x + 1,
        dataclasses.replace(r, b=9),
        [f.name for f in dataclasses.fields(r)],
        dataclasses.is_dataclass(r),
        r == Derived(1, 2),
        dataclasses.asdict(r),
        dataclasses.astuple(r),
    )


@cases
def printed(x):
    link = Link("a", Link("b"))
    link.next.next = link
    return x + 1, repr(Derived(1, 2)), str(Ordered(1)), repr(link), repr([link])


@cases
def printed_by_reprlib(x):
    p = Printed([1, 2])
    p.append(p)
    return x + 1, repr(p), f"{p}"


@cases(args=lambda: (Link("a", Link("b")),))
def printed_of_the_callers(x, link):
    return x + 1, repr(link), repr(link.next)


@pytest.mark.row("S004-47")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_dataclasses(case: Case) -> None:
    check(case)


def class_statement(x):
    y = x + 1

    class Scale:
        factor = 3

        def __call__(self, v):
            return v * self.factor + y.shape[0]

    return Scale()(y) * 2


def class_with_bases(x):
    y = x + 1

    class Mine(ValueError, metaclass=type):
        pass

    try:
        raise Mine("text")
    except ValueError as error:
        return y * 2, str(error), type(error).__name__, type(error) is Mine


@pytest.mark.row("S004-117")
@pytest.mark.parametrize("fn", [class_statement, class_with_bases], ids=lambda f: f.__name__)
def test_a_class_statement_splits_once(fn: Any) -> None:
    backend = CompileCounter()
    compiled = godynamo.optimize(fn, backend=backend)
    assert outcome(compiled, (torch.arange(3.0),)) == outcome(fn, (torch.arange(3.0),))
    assert len(reasons()) == 1 and backend.frame_count == 2
    for _ in range(3):
        assert outcome(compiled, (torch.arange(3.0),)) == outcome(fn, (torch.arange(3.0),))


def test_another_build_class(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    made = []
    own = builtins.__build_class__

    def counting(*args: Any, **kwargs: Any) -> Any:
        made.append(args[1])
        return own(*args, **kwargs)

    compiled = godynamo.optimize(class_statement, backend="eager")
    compiled(torch.ones(2))
    monkeypatch.setattr(builtins, "__build_class__", counting)
    compiled(torch.ones(2))
    assert made == ["Scale"]
