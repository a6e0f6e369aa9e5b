"""After a graph break, a variable of an outer function that has no value is what it is in CPython: a NameError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C


def deleted_by_the_rest() -> Callable[..., Any]:
    n = 1

    def f(x: torch.Tensor, cut: bool) -> torch.Tensor:
        nonlocal n
        y = x + n
        godynamo.graph_break()
        if cut:
            del n
        return y * n

    return f


def deleted_by_a_callee() -> Callable[..., Any]:
    n = 1

    def cut() -> None:
        nonlocal n
        del n

    def f(x: torch.Tensor, do: bool) -> torch.Tensor:
        y = x + 1
        godynamo.graph_break()
        if do:
            cut()
        return y * n

    return f


def without_a_value_yet() -> Callable[..., Any]:
    def f(x: torch.Tensor, _: bool) -> Any:
        y = x + 1
        godynamo.graph_break()
        try:
            return y * n
        except NameError as e:
            godynamo.graph_break()
            return str(e), [y + k for k in range(2)], lambda: n

    if False:
        n = 0
    return f


def a_class_inside() -> Callable[..., Any]:
    n = 2

    class Base:
        def f(self, x: torch.Tensor, _: bool) -> Any:
            return x * n

    class Derived(Base):
        def f(self, x: torch.Tensor, cut: bool) -> Any:
            nonlocal n
            godynamo.graph_break()
            y = super().f(x, cut)
            if cut:
                del n
            return y, __class__, n  # type: ignore[name-defined] # noqa: F821

    return Derived().f


def outcome(call: Callable[[], Any]) -> Any:
    try:
        got = call()
    except NameError as e:
        return type(e).__name__, str(e)
    parts = got if isinstance(got, tuple) else (got,)
    return [p.tolist() if isinstance(p, torch.Tensor) else getattr(p, "__qualname__", str(p)) for p in parts]


@pytest.mark.parametrize(
    "make", [deleted_by_the_rest, deleted_by_a_callee, without_a_value_yet, a_class_inside], ids=lambda m: m.__name__
)
def test_variables_without_a_value(make: Callable[[], Callable[..., Any]]) -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        f = make()
        plain = getattr(f, "__func__", f)
        cell = plain.__closure__[plain.__code__.co_freevars.index("n")]
        g, seen = wrap(f), []
        for cut in (False, True, False, True, False):
            seen.append(outcome(lambda: g(torch.ones(2), cut)))  # noqa: B023
            seen.append(outcome(lambda: g(torch.ones(2), False)))
            cell.cell_contents = 5
        return seen

    assert run(godynamo.optimize) == run(lambda f: f)
    assert _C.counters()["internal_errors"] == 0
