"""Floats and bools that operations return, as operands and results of a graph, with each kind of backend."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import counted
from harness.optimizers import same


@pytest.fixture(autouse=True)
def fresh() -> None:
    godynamo.reset()


class Unchanged:
    """A backend that returns the graph."""

    __godynamo_backend__ = True

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, gm: torch.fx.GraphModule, _example_inputs: Any) -> Callable[..., Any]:
        self.graphs += 1
        return gm.forward


class Compiled(Unchanged):
    """A backend that returns a function of its own, which may depend on the examples."""

    def __call__(self, gm: torch.fx.GraphModule, _example_inputs: Any) -> Callable[..., Any]:
        self.graphs += 1
        return lambda *inputs: gm(*inputs)


class TensorsOnly(Unchanged):
    """A backend that supports no results other than tensors."""

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        self.graphs += 1
        results = torch.utils._pytree.tree_leaves(gm(*[x.clone() for x in example_inputs]))
        if not all(isinstance(r, torch.Tensor) for r in results):
            raise TypeError("only tensors are supported")
        return lambda *inputs: gm(*inputs)


def changed(x: torch.Tensor) -> Any:
    a = x + 1
    k = float(a.sum())
    a.mul_(1.0 / k)
    return a, k, [k, k + 1]


def caught(x: torch.Tensor) -> Any:
    try:
        return x * (1.0 / float((x - x).sum()))
    except ZeroDivisionError as error:
        return str(error)


def into_lists(x: torch.Tensor) -> Any:
    a, b = torch.empty(1), torch.empty(3)
    r = torch.split_with_sizes_copy(x, [1, 1], out=(a, b))
    return r, a, b


PROGRAMS: dict[str, Callable[..., Any]] = {
    "item": lambda x: x.sum().item(),
    "equal": lambda x: torch.equal(x, x),
    "method": lambda x: (x.equal(x + 1), x.allclose(x), x + 1),
    "not": lambda x: not torch.equal(x, x - x),
    "divisor": lambda x: x * (2.0 / (float(x.sum()) + 100)),
    "mixed": lambda x: x * (x.sum().item() * 2 - 1),
    "text": lambda x: f"{x.sum().item()}",
    "bool": lambda x: bool(x.sum() > 0),
    "list": lambda x: x.tolist(),
    "dtype": lambda x: (x.half() * float(x.sum()), x.long() * float(x.sum())),
    "argument": lambda x: torch.nn.functional.leaky_relu(x, 1 / (1 + float((x * x).sum()))),
    "changed": changed,
    "caught": caught,
    "out": into_lists,
    "no out": lambda x: (torch.unbind_copy(x, out=None), torch.max(x, 0, out=None)),
}
INPUTS = [torch.tensor(v) for v in ([1.0, 2.0], [2.0, 5.0], [-8.0, -7.0], [0.5, 0.0])]


def outcome(fn: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return fn(x.clone())
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("backend", ["eager", Unchanged, Compiled, TensorsOnly], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_eagers(name, backend):
    optimized = godynamo.optimize(PROGRAMS[name], backend=backend if isinstance(backend, str) else backend())
    for x in INPUTS:
        assert same(outcome(optimized, x), outcome(PROGRAMS[name], x))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_backend_that_returns_the_graph_gets_one(name):
    backend = Unchanged()
    optimized = godynamo.optimize(PROGRAMS[name], backend=backend)
    for x in INPUTS:
        outcome(optimized, x)
    assert (backend.graphs, counted("translations")) == (1, 1)


def test_a_division_by_zero_raises_at_its_line():
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        return y * (1.0 / float(x.sum()))

    optimized = godynamo.optimize(f, backend=Unchanged())
    for x in (torch.ones(2), torch.zeros(2)):
        outcomes = []
        for fn in (f, optimized):
            try:
                outcomes.append(fn(x))
            except ZeroDivisionError as error:
                frames = traceback.extract_tb(error.__traceback__)
                outcomes.append([str(error), frames[-1].lineno, frames[-1].line])
        assert same(*outcomes)


def test_batch_norm_without_momentum_is_one_graph():
    ours, theirs = [torch.nn.BatchNorm1d(3, momentum=None) for _ in range(2)]
    backend = Unchanged()
    optimized = godynamo.optimize(ours, backend=backend)
    for n in range(4):
        torch.manual_seed(n)
        x = torch.randn(4, 3)
        assert same(optimized(x), theirs(x))
        assert same(ours.state_dict(), theirs.state_dict())
    assert backend.graphs == 1
