"""Weak references: created in the program or outside, dead ones, callbacks, the weakref module's containers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from harness.cases import check_calls


class Thing:
    def __init__(self, v: Any) -> None:
        self.v = v


def numbers(*values: int) -> list[Callable[[], tuple[Any, ...]]]:
    """Return the arguments of one call each: a tensor and a number."""

    def call(value: int) -> Callable[[], tuple[Any, ...]]:
        return lambda: (torch.full((3,), float(value)), value)

    return [call(v) for v in values]


CALLS = numbers(1, 1, 2, 1)


def a_callback_at_del() -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        log: list[str] = []
        o = Thing(k)
        r = weakref.ref(o, lambda _: log.append("died"))
        y = x + o.v
        log.append("before")
        del o
        log.append("after")
        return y, log, r() is None

    return f


def a_callback_and_no_effect_after_it() -> Callable[..., Any]:
    log: list[int] = []

    def f(x: torch.Tensor, k: int) -> Any:
        o = Thing(k)
        weakref.finalize(o, log.append, k)
        del o
        return x + len(log), list(log)

    return f


def a_callback_of_what_an_object_holds() -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        log: list[str] = []
        o = Thing(Thing(k))
        r = weakref.ref(o.v, lambda _: log.append("died"))
        y = x + o.v.v
        del o
        return y, list(log), r() is None

    return f


def a_callback_on_some_calls() -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        log = ["start"]
        o = Thing(k)
        r = weakref.ref(o, lambda _: log.append("died")) if k == 1 else weakref.ref(o)
        log.append("before")
        del o
        return x * 2, list(log), r() is None

    return f


def a_dictionary_of_weak_values() -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        d: Any = weakref.WeakValueDictionary()
        o = Thing(k)
        d["a"] = o
        y = x + d["a"].v, len(d)
        del o
        return y, len(d), "a" in d

    return f


@pytest.mark.parametrize(
    "make",
    [
        a_callback_at_del,
        a_callback_and_no_effect_after_it,
        a_callback_of_what_an_object_holds,
        a_callback_on_some_calls,
        a_dictionary_of_weak_values,
    ],
    ids=lambda m: m.__name__,
)
def test_callbacks_run_where_the_object_dies(make: Callable[[], Callable[..., Any]]) -> None:
    check_calls(make, CALLS, graphs=4 if "no_effect" in make.__name__ else 2)


# ---- references from outside the frame ----


def called() -> Callable[..., Any]:
    o = Thing(3)
    r = weakref.ref(o)

    def f(x: torch.Tensor, k: int) -> Any:
        return x + r().v, r() is o, r() is None, r() is r()

    return f


def of_an_attribute() -> Callable[..., Any]:
    parent, child = Thing(2), Thing(None)
    child.parent = weakref.ref(parent)

    def f(x: torch.Tensor, k: int) -> Any:
        return x * child.parent().v, parent.v

    return f


def a_dictionary_of_the_frames() -> Callable[..., Any]:
    o = Thing(5)
    d = weakref.WeakValueDictionary({"a": o})

    def f(x: torch.Tensor, k: int) -> Any:
        return x + d["a"].v, len(d), "b" in d, d.get("b"), d["a"] is o, d.get("a").v

    return f


@pytest.mark.parametrize("make", [called, of_an_attribute, a_dictionary_of_the_frames], ids=lambda m: m.__name__)
def test_a_reference_of_the_frames_is_called_without_a_split(make: Callable[[], Callable[..., Any]]) -> None:
    check_calls(make, CALLS, graphs=1, translations=[1, 0, 0, 0])


def test_an_object_that_died_and_one_that_took_its_place() -> None:
    held: list[Thing] = []

    def make() -> Callable[..., Any]:
        held[:] = [Thing(3)]
        box = Thing(weakref.ref(held[0]))

        def f(x: torch.Tensor, k: int) -> Any:
            alive = box.v()
            return (x - 1, "dead") if alive is None else (x + alive.v, "alive")

        def change(k: int) -> None:
            if k == 2:
                held.clear()
            if k == 3:
                held[:] = [Thing(30)]
                box.v = weakref.ref(held[0])

        f.change = change  # type: ignore[attr-defined]
        current[:] = [f]
        return f

    current: list[Any] = []

    def call(k: int) -> Callable[[], tuple[Any, ...]]:
        def arguments() -> tuple[Any, ...]:
            current[0].change(k)
            return torch.ones(2), 0

        return arguments

    check_calls(make, [call(1), call(1), call(2), call(2), call(3), call(3)], graphs=3, translations=[1, 0, 1, 0, 1, 0])


def behind_an_effect() -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        box = [Thing(k)]
        holder = Thing(box)
        r = weakref.ref(box[0])
        first = r() is box[0]
        holder.v.clear()
        return x + 1, first, r() is None

    return f


def let_go_of_by_the_rest() -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        o = Thing(k)
        r = weakref.ref(o)
        y = x + r().v
        del o
        return y, r() is None

    return f


def emptied_by_the_function() -> Callable[..., Any]:
    held = [Thing(1)]
    refs = [weakref.ref(held[0])]

    def f(x: torch.Tensor, k: int) -> Any:
        before = refs[-1]() is None
        held.clear()
        after = refs[-1]() is None
        held.append(Thing(k))
        refs.append(weakref.ref(held[0]))
        return x + 1, before, after

    return f


@pytest.mark.parametrize(
    "make", [behind_an_effect, let_go_of_by_the_rest, emptied_by_the_function], ids=lambda m: m.__name__
)
def test_what_the_program_ends_is_dead(make: Callable[[], Callable[..., Any]]) -> None:
    check_calls(make, CALLS, graphs={"behind_an_effect": 1, "let_go_of_by_the_rest": 2}.get(make.__name__, 1))


def attribute_holder() -> Any:
    holder = Thing(None)
    holder.v = Thing(1)
    return holder


def of_a_popped_item(holder: Any, x: torch.Tensor) -> Any:
    kept = holder.pop()
    ref = weakref.ref(kept)
    kept = None
    return ref() is None, x + 1


def of_a_cleared_item(holder: Any, x: torch.Tensor) -> Any:
    ref = weakref.ref(holder[0])
    holder.clear()
    return ref() is None, x + 1


def of_a_replaced_attribute(holder: Any, x: torch.Tensor) -> Any:
    ref = weakref.ref(holder.v)
    holder.v = None
    return ref() is None, x + 1


def held_by_a_variable(holder: Any, x: torch.Tensor) -> Any:
    y = holder.v
    ref = weakref.ref(y)
    holder.v = None
    before = ref() is None
    y = None
    return before, ref() is None, x + 1


def of_a_key(holder: Any, x: torch.Tensor) -> Any:
    kept = holder.pop()
    refs = {weakref.ref(kept): 1}
    kept = None
    return [r() is None for r in refs], x + 1


LISTED, ATTRIBUTE = (lambda: [Thing(1)]), attribute_holder


@pytest.mark.parametrize(
    ("f", "make"),
    [
        (of_a_popped_item, LISTED),
        (of_a_cleared_item, LISTED),
        (of_a_replaced_attribute, ATTRIBUTE),
        (held_by_a_variable, ATTRIBUTE),
        (of_a_key, LISTED),
    ],
)
def test_a_reference_keeps_nothing_alive(f: Callable[..., Any], make: Callable[[], Any]) -> None:
    expected = f(make(), torch.ones(2))
    optimized = godynamo.optimize(f)
    for _ in range(3):
        assert repr(optimized(make(), torch.ones(2))) == repr(expected)
