"""assume_constant_result: functions that are called while translating, with objects as arguments and results."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from harness.capture import break_reasons, describe, nb, translations

X = torch.ones(3)
MARKS = [godynamo.assume_constant_result, torch._dynamo.assume_constant_result]
SETTINGS: dict[str, Any] = {"scale": 2.0, "table": [torch.full((3,), 4.0)]}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    @torch._dynamo.assume_constant_result
    def size(self) -> int:
        return self.weight.shape[0]

    @torch._dynamo.assume_constant_result
    def mask(self) -> torch.Tensor:
        return torch.arange(3) > 0

    @torch._dynamo.assume_constant_result
    def itself(self, n: int) -> Any:
        return [self, {"weight": self.weight, "n": n}]

    def forward(self, x: torch.Tensor) -> Any:
        me, parts = self.itself(3)
        me_again, _ = self.itself(3)
        y = (x * self.size() + self.mask()) * parts["weight"] + parts["n"]
        return y, me is self, parts["weight"] is self.weight, me is me_again


def positive(t: torch.Tensor) -> bool:
    return bool(t.sum() > 0)


def shifted(t: torch.Tensor) -> torch.Tensor:
    return t.detach() + 1


def length(values: list[Any]) -> int:
    return len(values)


def settings(name: str) -> Any:
    return SETTINGS[name]


FUNCTIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (positive, lambda x, f: x * 2 if f(x) else x * 3),
    (shifted, lambda x, f: x * f(x) + f(t=x)),
    (length, lambda x, f: x * f([x.shape[0], 2])),
    (settings, lambda x, f: x * f("scale") + f(name="table")[0]),
]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("mark", MARKS, ids=["ours", "torch's"])
@pytest.mark.parametrize("fn, use", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_graph_and_one_call(fn, use, mark, whole):
    calls = []

    def constant(*args, **kwargs):
        calls.append(1)
        return fn(*args, **kwargs)

    constant = mark(constant)
    godynamo.reset()
    g = godynamo.optimize(lambda x: use(x, constant), backend=nb() if whole else "eager")
    with translations(1):
        first = describe(g(X))
        made = len(calls)
        for _ in range(2):
            assert describe(g(X)) == first == describe(use(X, fn))
    assert len(calls) == made
    assert not break_reasons()


@pytest.mark.parametrize("whole", [False, True])
def test_methods(whole):
    godynamo.reset()
    model = Model()
    g = godynamo.optimize(model, backend=nb() if whole else "eager")
    for _ in range(2):
        assert describe(g(X)) == describe(model(X))
    assert not break_reasons()


def test_the_result_lives_as_long_as_the_translation():
    made: list[weakref.ref[torch.Tensor]] = []

    @godynamo.assume_constant_result
    def fresh():
        t = torch.full((3,), 5.0)
        made.append(weakref.ref(t))
        return t

    g = godynamo.optimize(lambda x: x + fresh())
    for _ in range(2):
        assert torch.equal(g(X), X + 5)
        gc.collect()
    assert made[-1]() is not None
    del g
    gc.collect()
    assert made[-1]() is None


def test_lists_in_results_are_new_in_each_call():
    @godynamo.assume_constant_result
    def values():
        return [1, 2]

    def f(x):
        v = values()
        v.append(3)
        return x * len(v), v

    g = godynamo.optimize(f)
    first = g(X)[1]
    assert describe(g(X)) == describe(f(X))
    assert first == [1, 2, 3] and g(X)[1] is not first


def test_changed_arguments_break_the_graph():
    """The function would see the state from before the changes."""

    class Counter:
        n = 0

    @godynamo.assume_constant_result
    def n_of(counter):
        return counter.n

    @godynamo.assume_constant_result
    def sum_of(t):
        return t.sum().item()

    def attribute(x, counter):
        counter.n += 1
        return x * n_of(counter)

    def in_place(x, counter):
        y = x.add_(1)
        return y * sum_of(x)

    def computed(x, counter):
        return x * sum_of(x + 1)

    for f in (attribute, in_place, computed):
        for _ in range(2):
            ours, theirs = Counter(), Counter()
            assert describe(godynamo.optimize(f)(X.clone(), ours)) == describe(f(X.clone(), theirs))
            assert ours.n == theirs.n


def test_errors():
    @godynamo.assume_constant_result
    def fails(t):
        raise ValueError("no")

    def f(x):
        try:
            return x * fails(x)
        except ValueError as e:
            return x + len(e.args[0])

    assert torch.equal(godynamo.optimize(f)(X), f(X))


def test_results_with_a_history():
    w = torch.ones(3, requires_grad=True)

    @godynamo.assume_constant_result
    def scaled(w):
        return w * 2

    g = godynamo.optimize(lambda x, w: (x * scaled(w)).sum())
    for _ in range(2):
        w.grad = None
        g(X, w).backward()
        assert torch.equal(w.grad, torch.full((3,), 2.0))
