"""Several objects that end at one place: their finalizers run in CPython's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import godynamo


class Ends:
    """Records its end."""

    log: list[str] = []

    def __init__(self, name: str, held: Any = None) -> None:
        self.name = name
        self.held = held

    def __del__(self) -> None:
        Ends.log.append(self.name)


@pytest.fixture(autouse=True)
def fresh_log() -> Iterator[None]:
    Ends.log.clear()
    yield
    Ends.log.clear()


def of_a_list(x):
    items = [Ends("a"), Ends("b"), Ends("c")]
    return x * len(items)


def of_a_tuple_in_a_list(x):
    items = [(Ends("a"), Ends("b")), Ends("c")]
    return x * len(items)


def of_a_dict(x):
    items = {"k": Ends("a"), "l": Ends("b")}
    return x * len(items)


def of_an_object(x):
    outer = Ends("a", held=[Ends("b"), Ends("c")])
    last = Ends("d")
    return x * len(outer.held) if last else x


def made_in_another_order(x):
    late = early = None
    early = Ends("early")
    late = Ends("late")
    late, early = early, late
    return x * 2 if late else early


def held_twice(x):
    first = Ends("a")
    items = [first, Ends("b")]
    return x * len(items)


def rebound(x):
    items = [Ends("a"), Ends("b")]
    x = x * len(items)
    items = [Ends("c"), Ends("d")]
    x = x + 1
    del items
    return x


def deleted_in_a_loop(x):
    for i in range(2):
        pair = (Ends(f"a{i}"), Ends(f"b{i}"))
        x = x + len(pair)
    return x


def of_a_generator(x):
    def items():
        first = Ends("a")
        last = Ends("b")
        yield 2
        yield first, last

    running = items()
    x = x * next(running)
    kept = Ends("c")
    return x if kept else running


CASES = [
    of_a_list, of_a_tuple_in_a_list, of_a_dict, of_an_object, made_in_another_order, held_twice, rebound,
    deleted_in_a_loop, of_a_generator,
]  # fmt: skip


def in_a_callee(fn: Callable[..., Any]) -> Callable[..., Any]:
    def caller(x):
        y = fn(x)
        mark = Ends("caller")
        return y * 2 if mark else y

    return caller


def before_a_break(fn: Callable[..., Any]) -> Callable[..., Any]:
    def caller(x):
        kept = Ends("kept")
        y = fn(x)
        print(end="")
        return y * 2 if kept else y

    return caller


@pytest.mark.parametrize("around", [lambda fn: fn, in_a_callee, before_a_break], ids=["alone", "callee", "break"])
@pytest.mark.parametrize("fn", CASES)
def test_objects_end_in_cpythons_order(fn, around) -> None:
    run = around(fn)
    x = torch.ones(2)
    expected = run(x)
    plain = Ends.log[:]
    assert len(plain) > 1
    optimized = godynamo.optimize(run)
    for _ in range(3):
        Ends.log.clear()
        assert torch.equal(optimized(x), expected)
        assert Ends.log == plain
