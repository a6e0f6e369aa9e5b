"""Weak references: made by the program, come with the frame, dead ones, callbacks, the containers of the weakref module."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from .support import check_calls


class Thing:
    def __init__(self, v: Any) -> None:
        self.v = v


def numbers(*values: int) -> list[Callable[[], tuple[Any, ...]]]:
    """Arguments of one call each: a tensor and a number."""

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
