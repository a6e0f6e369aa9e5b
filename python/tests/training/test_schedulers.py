"""Schedulers of the learning rate inside a training step: numbers that change are values computed at run time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler as schedulers

import godynamo
from harness.capture import counted
from harness.optimizers import Run, compare, same

pytestmark = pytest.mark.usefixtures("fresh")

#: name → (scheduler, number of phases: each has other branches, and so a translation of its own)
SCHEDULERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "CosineAnnealingLR": (lambda o: schedulers.CosineAnnealingLR(o, 50), 1),
    "CosineAnnealingWarmRestarts": (lambda o: schedulers.CosineAnnealingWarmRestarts(o, 30), 1),
    "OneCycleLR": (lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=80, cycle_momentum=False), 1),
    "OneCycleLR, momentum": (lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=80), 1),
    "CyclicLR": (lambda o: schedulers.CyclicLR(o, 0.001, 0.1, cycle_momentum=False), 1),
    "MultiStepLR": (lambda o: schedulers.MultiStepLR(o, [4, 9], gamma=0.5), 3),
    "LinearLR": (lambda o: schedulers.LinearLR(o, 0.1, total_iters=30), 1),
    "PolynomialLR": (lambda o: schedulers.PolynomialLR(o, 30, power=2.0), 1),
    "LambdaLR, cosine": (lambda o: schedulers.LambdaLR(o, lambda i: 0.5 * (1 + math.cos(math.pi * i / 50))), 1),
    "LambdaLR, power": (lambda o: schedulers.LambdaLR(o, lambda i: 0.95**i), 1),
    "LambdaLR, warm-up": (lambda o: schedulers.LambdaLR(o, warm_up), 2),
    "MultiplicativeLR": (lambda o: schedulers.MultiplicativeLR(o, lambda i: 0.95), 1),
    "SWALR": (lambda o: torch.optim.swa_utils.SWALR(o, 0.05, anneal_epochs=30), 1),
    "SequentialLR": (
        lambda o: schedulers.SequentialLR(
            o, [schedulers.LinearLR(o, 0.1, total_iters=5), schedulers.CosineAnnealingLR(o, 50)], [5]
        ),
        4,
    ),
    "ChainedScheduler": (
        lambda o: schedulers.ChainedScheduler(
            [schedulers.ConstantLR(o, total_iters=3), schedulers.ExponentialLR(o, 0.9)], o
        ),
        3,
    ),
    "ReduceLROnPlateau": (lambda o: schedulers.ReduceLROnPlateau(o, patience=30), 2),
}


def warm_up(i: int) -> float:
    """Return the factor of a warm-up and a cosine, as transformers write it."""
    if i < 5:
        return float(i) / float(max(1, 5))
    progress = float(i - 5) / float(max(1, 50 - 5))
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * progress)))


def run_of(name: str) -> tuple[Run, Callable[[], torch.Tensor]]:
    """Return a run and its whole step, with the scheduler inside."""
    run = Run(lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), lambda step: step, False)
    scheduler = SCHEDULERS[name][0](run.optimizer)
    metric = isinstance(scheduler, schedulers.ReduceLROnPlateau)

    def step() -> torch.Tensor:
        run.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(run.model(run.inputs[0]), run.inputs[1])
        loss.backward()
        run.optimizer.step()
        scheduler.step(*[loss.item()] if metric else [])
        return loss

    return run, step


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_step_is_not_translated_again(name):
    (a, plain), (b, step) = run_of(name), run_of(name)
    optimized = godynamo.optimize(step)
    before = counted("translations")
    for _ in range(20):
        assert torch.equal(optimized(), plain())
        assert same([g["lr"] for g in b.optimizer.param_groups], [g["lr"] for g in a.optimizer.param_groups])
    compare(a, b)
    assert counted("translations") - before <= 4 + SCHEDULERS[name][1]  # the first call has two pieces
    assert max(entry.hits for entry in godynamo.cache_entries(optimized)) >= 12
    explained = godynamo.explain(step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


@pytest.mark.parametrize("name", ["CosineAnnealingLR", "OneCycleLR", "SWALR"])
def test_steps_of_an_optimizer_and_a_scheduler_without_the_pass(name):
    runs = []
    for wrap in (lambda f: f, godynamo.optimize):
        run = Run(lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), lambda step: step, False)
        scheduler = SCHEDULERS[name][0](run.optimizer)

        def update(run=run, scheduler=scheduler):
            run.optimizer.step()
            scheduler.step()

        update = wrap(update)
        run.step = update
        run.train(20)
        runs.append(run)
    compare(*runs)
    assert max(entry.hits for entry in godynamo.cache_entries(update)) >= 12


@pytest.mark.parametrize("name", ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "SWALR"])
def test_bits_over_several_periods(name):
    (a, plain), (b, step) = run_of(name), run_of(name)
    optimized = godynamo.optimize(step)
    for _ in range(120):
        assert torch.equal(optimized(), plain())
    compare(a, b)


def test_a_number_that_is_looked_up():
    def f(x, state, table, others):
        n = state["n"]
        if n in table:
            return x * table[n]
        return x + (n not in others) + n

    table, others = {3: 5.0, 6: 7.0}, {"a": 1, 4: 2}
    optimized = godynamo.optimize(f)
    x = torch.ones(2)
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 4, 10**15, True, 3.0):
        assert torch.equal(optimized(x, {"n": n}, table, others), f(x, {"n": n}, table, others)), n
    assert len(godynamo.cache_entries(optimized)) < 8
    table[9] = 2.0
    for n in (8, 9, 10):
        assert torch.equal(optimized(x, {"n": n}, table, others), f(x, {"n": n}, table, others)), n


# ---- numbers whose computation raises, where a handler of the program is active --------------------------------------


class Block:
    """A context manager that logs how its block ends."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __enter__(self) -> None:
        self.log.append("enter")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.log.append(("exit", repr(error), traceback and (traceback.tb_lineno, traceback.tb_frame.f_code.co_name)))
        return isinstance(error, ValueError)


def cosine(number: float) -> float:
    return math.cos(number * 2)


FAILING: dict[str, Callable[[float, float], float]] = {
    "cos": lambda v, w: cosine(v),
    "division": lambda v, w: w / (v - 2.0),
    "floor division": lambda v, w: w // (v - 2.0),
    "remainder": lambda v, w: w % (v - 2.0),
    "exp": lambda v, w: math.exp(v * w),
    "log": lambda v, w: math.log(2.0 - v),
    "int": lambda v, w: int(v * w),
    "power": lambda v, w: v**w,
    "two": lambda v, w: math.sqrt(3.0 - v) + 1 / (w - 1.5),
}
NUMBERS = [(0.5, 1.0), (1.0, 2.0), (1.5, 3.0), (2.0, 3.0), (float("inf"), 3.0), (float("nan"), 1.5), (-3.0, 0.5)]
NUMBERS += [(900.0, 2.0), (1e200, 1e200), (0.25, 1.5), (0.5, 1.0)]


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("how", ["try", "with", "with, no_grad", "finally", "loop", "operations"])
@pytest.mark.parametrize("passes", [True, False], ids=["after backward", "after operations"])
def test_a_number_that_raises_in_a_block(name, how, passes):
    fn = FAILING[name]

    def compute(log, v, w):
        if how == "try":
            try:
                return fn(v, w)
            except (ValueError, ArithmeticError) as error:
                log.append(repr(error))
                return -1.0
        if how == "with":
            with Block(log):
                return fn(v, w)
            return -2.0
        if how == "with, no_grad":
            with torch.no_grad():
                log.append(torch.is_grad_enabled())
                return fn(v, w)
        if how == "finally":
            try:
                log.append("try")
                return fn(v, w)
            finally:
                log.append("finally")
        if how == "operations":
            x = torch.arange(3.0)
            try:
                log.append("before")
                x.add_(1)
                y = x * 2
                number = fn(v, w)
                log.append((number, y.clone()))
                return (y * number).sum().item()
            except (ValueError, ArithmeticError) as error:
                log.append((repr(error), x))
                return 0.5
        total = 0.0
        for i in range(3):
            try:
                total += fn(v + i, w)
            except (ValueError, ArithmeticError) as error:
                log.append((i, repr(error)))
        return total

    def make():
        p = torch.nn.Parameter(torch.ones(3))
        log: list[Any] = []

        def step(state):
            p.grad = None
            log.append("start")
            if passes:
                (p * 2).sum().backward()
            y = p.detach() * 2
            state["n"] = state["n"] + 1
            scale = compute(log, state["v"], state["w"])
            log.append(state["n"])
            state["n"] = 7
            with torch.no_grad():
                p.sub_(y * 0.5 if p.grad is None else p.grad)
            log.append(("end", scale, torch.is_grad_enabled()))
            return scale

        return p, log, step

    (p, log, plain), (q, found, step) = make(), make()
    optimized = godynamo.optimize(step)
    for v, w in NUMBERS:
        outcomes = []
        for call in (plain, optimized):
            try:
                state = {"v": v, "w": w, "n": 1}
                outcomes.append(repr(call(state)))
            except (ValueError, ArithmeticError, TypeError) as error:
                outcomes.append(repr(error))
            outcomes[-1] += repr(state)
            assert torch.is_grad_enabled()
        assert outcomes[0] == outcomes[1], (v, w)
        assert torch.equal(p, q)
    assert repr(log) == repr(found)
    if how != "loop" and name in ("cos", "division", "remainder", "exp", "log"):
        assert len(godynamo.cache_entries(optimized)) < len(NUMBERS) / 2, "the numbers were constants"
