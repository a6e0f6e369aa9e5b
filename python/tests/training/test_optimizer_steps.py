"""optimizer.step() alone, optimized: one graph from the second step on, with eager's bits."""

from __future__ import annotations

import gc
import importlib
import re
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import optim

import godynamo
from harness.capture import counted
from harness.optimizers import Run, compare, pair, same

pytestmark = pytest.mark.usefixtures("fresh")

ONE_GRAPH: dict[str, Callable[[Any], optim.Optimizer]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.05),
    "SGD with momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "SGD, Nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.5, nesterov=True),
    "SGD, maximize": lambda p: optim.SGD(p, lr=0.001, maximize=True),
    "Adagrad": lambda p: optim.Adagrad(p),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adam": lambda p: optim.Adam(p),
    "AdamW": lambda p: optim.AdamW(p),
    "Adamax": lambda p: optim.Adamax(p),
    "NAdam": lambda p: optim.NAdam(p),
    "RMSprop": lambda p: optim.RMSprop(p, momentum=0.5, centered=True),
    "Rprop": lambda p: optim.Rprop(p),
    "Adam, amsgrad": lambda p: optim.Adam(p, amsgrad=True),
    "Adam, foreach": lambda p: optim.Adam(p, foreach=True),
    "Adam, fused": lambda p: optim.Adam(p, fused=True),
    "AdamW, foreach": lambda p: optim.AdamW(p, foreach=True),
    "RMSprop, foreach": lambda p: optim.RMSprop(p, momentum=0.5, centered=True, foreach=True),
    "SGD, foreach": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, foreach=True),
    "SGD, fused": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, fused=True),
    "Adagrad, fused": lambda p: optim.Adagrad(p, fused=True),
}
OTHERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "ASGD": lambda p: optim.ASGD(p),
    "Adafactor": lambda p: optim.Adafactor(p),
    "RAdam": lambda p: optim.RAdam(p),
    "RAdam, foreach": lambda p: optim.RAdam(p, foreach=True),
}


@pytest.mark.parametrize("schedule", [False, True], ids=["", "with a scheduler"])
@pytest.mark.parametrize("name", [*ONE_GRAPH, *OTHERS])
def test_bits_are_eagers(name, schedule):
    a, b = pair({**ONE_GRAPH, **OTHERS}[name], schedule)
    a.train()
    b.train()
    compare(a, b)


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph_from_the_second_step_on(name):
    run = Run(ONE_GRAPH[name], godynamo.optimize, False)
    run.train(2)
    before, breaks = counted("translations"), godynamo.utils.counters["graph_break"].copy()
    run.train(4)
    assert counted("translations") == before
    explained = godynamo.explain(run.optimizer.step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
    assert godynamo.utils.counters["graph_break"] == breaks


def test_one_graph_after_torch_compile_has_disabled_parts_of_optimizers():
    importlib.import_module("torch._dynamo")
    test_one_graph_from_the_second_step_on("Adam")


def test_a_scheduler_costs_one_more_translation():
    run = Run(ONE_GRAPH["SGD with momentum"], godynamo.optimize, True)
    run.train(3)
    before = counted("translations")
    run.train(5)
    assert counted("translations") == before


def test_a_function_that_only_calls_a_step_is_captured_from_the_second_call_on():
    step = godynamo.optimize(lambda run: run.optimizer.step())
    for name in ("SGD with momentum", "Adam"):
        a, b = pair(ONE_GRAPH[name])
        b.step = lambda b=b: step(b)
        a.train(6)
        b.train(6)
        compare(a, b)
    assert sum(entry.hits for entry in godynamo.cache_entries(step)) >= 10


def test_a_step_that_another_optimized_function_has_called():
    make = ONE_GRAPH["SGD with momentum"]
    first = Run(make, lambda step: step, False)
    first.train(1)
    godynamo.optimize(lambda: re.sub("a", lambda _: str(first.optimizer.step()), "a"))()  # leaves step() to CPython
    second = Run(make, godynamo.optimize, False)
    second.train(3)
    assert len(godynamo.cache_entries(second.step)) == 1


def twice(change: Callable[[Run], Any]) -> None:
    for name in ("SGD with momentum", "Adam"):
        a, b = pair(ONE_GRAPH[name])
        for run in (a, b):
            run.train(3)
            change(run)
            run.train(3)
        compare(a, b)


def test_a_parameter_without_a_gradient():
    def freeze(run):
        run.model[0].weight.requires_grad_(False)
        run.model[0].weight.grad = None

    twice(freeze)


def test_a_group_that_is_added():
    def add(run):
        run.extra = torch.nn.Parameter(torch.ones(3))
        run.extra.grad = torch.ones(3)
        run.optimizer.add_param_group({"params": [run.extra], "lr": 0.5})

    twice(add)


def test_a_state_that_is_loaded():
    twice(lambda run: run.optimizer.load_state_dict(run.optimizer.state_dict()))


def test_a_state_that_is_cleared():
    twice(lambda run: run.optimizer.state.clear())


def test_hooks_run():
    for when in ("register_step_pre_hook", "register_step_post_hook"):
        calls: list[int] = []

        def register(run, when=when, calls=calls):
            getattr(run.optimizer, when)(lambda *_: calls.append(1))

        twice(register)
        assert len(calls) == 2 * 2 * 3


def test_a_closure():
    for make in (ONE_GRAPH["Adam"], lambda p: optim.LBFGS(p, max_iter=3)):
        a, b = pair(make)
        for run in (a, b):

            def closure(run=run):
                run.optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(run.model(run.inputs[0]), run.inputs[1])
                loss.backward()
                return loss

            run.losses = [run.step(closure).item() for _ in range(4)]
        compare(a, b)


@pytest.mark.usefixtures("unpatched_torch")
def test_the_closure_of_a_step_of_lbfgs_is_one_graph():
    """Its step makes as many calls as the data requires, in CPython."""
    for search in (None, "strong_wolfe"):
        godynamo.reset()
        a, b = pair(lambda p, search=search: optim.LBFGS(p, max_iter=4, line_search_fn=search))

        def train(run):
            def closure():
                run.optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(run.model(run.inputs[0]), run.inputs[1])
                loss.backward()
                return loss

            return run.optimizer.step(closure)

        step = godynamo.optimize(train)
        for i in range(8):
            before = counted("translations")
            assert torch.equal(train(a), step(b))
            assert i < 2 or counted("translations") == before
        assert same(a.optimizer.state_dict(), b.optimizer.state_dict())
        assert same(a.model.state_dict(), b.model.state_dict())
        explained = godynamo.explain(train)(b)
        assert explained.graph_count == 1 and "target=backward" in explained.graphs[0]


def test_a_step_that_raises():
    def shrink(run):
        run.optimizer.state[run.model[2].bias]["exp_avg"] = torch.zeros(3, 3)

    a, b = pair(ONE_GRAPH["Adam"])
    errors = []
    for run in (a, b):
        run.train(3)
        shrink(run)
        with pytest.raises(RuntimeError) as caught:
            run.train(1)
        errors.append(str(caught.value))
        assert torch.is_grad_enabled()
    assert errors[0] == errors[1]
    assert same(a.model.state_dict(), b.model.state_dict())


def test_nothing_is_kept_alive():
    run = Run(ONE_GRAPH["Adam"], godynamo.optimize, False)
    run.train(4)
    parameters = [weakref.ref(p) for p in run.model.parameters()]
    gradients = [weakref.ref(p.grad) for p in run.model.parameters()]
    run.optimizer.zero_grad()
    gc.collect()
    assert [g() for g in gradients] == [None] * 4
    del run
    gc.collect()
    assert [p() for p in parameters] == [None] * 4


# ---- gradients -------------------------------------------------------------------------------------------------------


def scaled(x, p):
    return x * 2 if p.grad is None else x * p.grad


def test_a_gradient_is_read():
    g = godynamo.optimize(scaled)
    x, p = torch.ones(3), torch.nn.Parameter(torch.ones(3))
    for grad in (None, torch.ones(3), torch.full((3,), 3.0), torch.ones(1), torch.ones(3, dtype=torch.float64), None):
        p.grad = grad if grad is None or grad.shape == p.shape and grad.dtype == p.dtype else None
        p2 = torch.nn.Parameter(torch.ones_like(grad)) if grad is not None else p
        p2.grad = grad
        assert torch.equal(g(x, p2), scaled(x, p2))
        assert torch.equal(g(x, p), scaled(x, p))


def test_one_translation_for_gradients_of_one_kind():
    g = godynamo.optimize(scaled)
    x, p = torch.ones(3), torch.nn.Parameter(torch.ones(3))
    for i in range(5):
        p.grad = torch.full((3,), float(i))
        assert torch.equal(g(x, p), x * i)
    assert len(godynamo.cache_entries(g)) == 1


def test_a_gradient_of_an_inner_node_warns_as_in_eager():
    y = torch.ones(3, requires_grad=True) * 2
    g = godynamo.optimize(scaled)
    for f in (scaled, g, g):
        with pytest.warns(UserWarning, match="not a leaf"):
            assert torch.equal(f(torch.ones(3), y), torch.full((3,), 2.0))
    y.retain_grad()
    y.sum().backward()
    assert torch.equal(g(torch.ones(3), y), torch.ones(3))


def test_a_gradient_under_a_function_mode():
    class Counts(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    g = godynamo.optimize(scaled)
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    g(torch.ones(3), p)
    seen = []
    for f in (scaled, g):
        with Counts() as mode:
            f(torch.ones(3), p)
        seen.append(mode.calls)
    assert seen[0] == seen[1] > 0


def test_a_gradient_of_a_subclass_goes_through_its_handler():
    class Tagged(torch.Tensor):
        reads = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Tagged.reads += 1
            return super().__torch_function__(func, types, args, kwargs or {})

    x, t = torch.ones(3), torch.ones(3).as_subclass(Tagged)
    scaled(x, t)
    want, Tagged.reads = Tagged.reads, 0
    godynamo.optimize(scaled)(x, t)
    assert Tagged.reads == want


def test_a_dict_with_tensors_as_keys():
    def f(x, table, key):
        return x * table[key]["by"]

    g = godynamo.optimize(f)
    keys = [torch.nn.Parameter(torch.ones(1)) for _ in range(3)]
    table = {k: {"by": float(i)} for i, k in enumerate(keys)}
    for key in (*keys, keys[0]):
        assert torch.equal(g(torch.ones(2), table, key), f(torch.ones(2), table, key))
    with pytest.raises(KeyError):
        g(torch.ones(2), table, torch.ones(1))
    table[keys[0]] = {"by": 7.0}
    assert torch.equal(g(torch.ones(2), table, keys[0]), torch.full((2,), 7.0))
    del table[keys[0]]
    with pytest.raises(KeyError):
        g(torch.ones(2), table, keys[0])
