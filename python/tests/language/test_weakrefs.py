"""Weak references: created in the program or outside, dead ones, callbacks, the weakref module's containers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import break_reasons, describe, nb, no_translation, translations
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


# ---- references that the program makes to objects of the frame, and WeakKeyDictionary


class Slotted:
    __slots__ = ("v",)


def made_ref(x: torch.Tensor, o: Any) -> Any:
    r = weakref.ref(o)
    return x + r().v, r is weakref.ref(o), type(r) is weakref.ref, isinstance(r, weakref.ref)


def returned_ref(x: torch.Tensor, o: Any) -> Any:
    r = weakref.ref(o)
    return x + 1, r is weakref.ref(o), [r, weakref.ref(o)][0]() is o


def ref_of_a_tensor(x: torch.Tensor, o: Any) -> Any:
    return weakref.ref(x)() + o.v, weakref.ref(x) is weakref.ref(x)


def tensor_in_a_dict(x: torch.Tensor, d: Any) -> Any:
    try:
        return x + 1, d[x]
    except RuntimeError as e:
        return x + 2, str(e)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("f", [made_ref, returned_ref, ref_of_a_tensor])
def test_refs_to_objects_of_the_frame(f, whole):
    godynamo.reset()
    x, o = torch.ones(3), Thing(2)
    g = godynamo.optimize(f, backend=nb() if whole else "eager")
    with translations(1):
        for _ in range(3):
            assert describe(g(x, o)) == describe(f(x, o))
    assert not break_reasons()
    other = Thing(5)
    assert describe(g(x, other)) == describe(f(x, other))


def test_a_ref_that_leaves_the_frame():
    o = Thing(1)
    g = godynamo.optimize(lambda x, o: (x + 1, weakref.ref(o)))
    for _ in range(2):
        assert g(torch.ones(3), o)[1] is weakref.ref(o)
    r = weakref.ref(o)
    del o
    assert r() is None


def test_a_ref_that_was_passed_and_one_that_is_made():
    def f(x, r, o):
        return x + 1, r is weakref.ref(o)

    o, other = Thing(1), Thing(2)
    g = godynamo.optimize(f)
    for r in (weakref.ref(o), weakref.ref(o, print), weakref.ref(other), weakref.ref(o)):
        assert describe(g(torch.ones(3), r, o)) == describe(f(torch.ones(3), r, o))


def test_an_object_without_weak_references():
    def f(x, o):
        try:
            return x, weakref.ref(o)
        except TypeError as e:
            return x + len(str(e))

    x, o = torch.ones(3), Slotted()
    assert describe(godynamo.optimize(f)(x, o)) == describe(f(x, o))


def by_key(x: torch.Tensor, d: Any, o: Any) -> Any:
    return x * (d[o] if o in d else 7) + d.get(o, 9)


@pytest.mark.parametrize("whole", [False, True])
def test_weak_key_dictionary(whole):
    godynamo.reset()
    x, a, b = torch.ones(3), Thing(1), torch.nn.Linear(3, 3)
    d: Any = weakref.WeakKeyDictionary({a: 2.0, b: 3.0})
    g = godynamo.optimize(by_key, backend=nb() if whole else "eager")
    for key in (a, a, b, b, Thing(4)):
        assert describe(g(x, d, key)) == describe(by_key(x, d, key))
    assert not break_reasons()
    with no_translation():
        g(x, d, a)
    for change in (lambda: d.update({a: 5.0}), lambda: d.pop(b)):
        change()
        for key in (a, b):
            assert describe(g(x, d, key)) == describe(by_key(x, d, key))
    del a, b
    key = Thing(3)
    assert describe(g(x, d, key)) == describe(by_key(x, d, key))


def test_a_weak_key_dictionary_of_tensors():
    """Two references of one tensor are compared by its elements, which fails."""
    x = torch.ones(3)
    d: Any = weakref.WeakKeyDictionary({x: 2.0})
    g = godynamo.optimize(tensor_in_a_dict)
    for _ in range(2):
        assert describe(g(x, d)) == describe(tensor_in_a_dict(x, d))
