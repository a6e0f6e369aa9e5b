"""Optimizers branch on values of their state. The graph predicts each branch, and each step checks the prediction."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import torch
from torch import optim

import godynamo
from godynamo import utils
from harness.capture import counted
from harness.optimizers import Run, compare, pair, same

pytestmark = pytest.mark.usefixtures("fresh")

SETTLED = 9  # steps after which no prediction changes any more

OPTIMIZERS = {
    "RAdam": lambda p: optim.RAdam(p),
    "RAdam, decoupled": lambda p: optim.RAdam(p, weight_decay=0.01, decoupled_weight_decay=True),
    "RAdam, foreach": lambda p: optim.RAdam(p, foreach=True),
    "RAdam, maximize": lambda p: optim.RAdam(p, lr=1e-4, maximize=True),
    "ASGD": lambda p: optim.ASGD(p),
    "ASGD, early": lambda p: optim.ASGD(p, t0=4, weight_decay=0.01),
    "ASGD, foreach": lambda p: optim.ASGD(p, t0=4, foreach=True),
    "Adafactor": lambda p: optim.Adafactor(p),
    "Adafactor, weight decay": lambda p: optim.Adafactor(p, weight_decay=0.01, maximize=True, lr=1e-4),
    "Adafactor, foreach": lambda p: optim.Adafactor(p, foreach=True),
    "Adafactor, tensor": lambda p: optim.Adafactor(p, lr=torch.tensor(0.01)),
    "Adafactor, foreach, tensor": lambda p: optim.Adafactor(p, lr=torch.tensor(0.6), foreach=True, weight_decay=0.01),
    "SGD, tensor": lambda p: optim.SGD(p, lr=torch.tensor(0.01)),
}


def train(run: Run, step: Any, steps: int) -> None:
    """Make whole steps by ``step``."""
    for _ in range(steps):
        run.losses.append(step(*run.inputs).item())


def whole(run: Run) -> Any:
    """Return a function that makes a whole step."""

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        run.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(run.model(x), y)
        loss.backward()
        run.optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_one_graph_with_eagers_bits(name):
    a, b = pair(OPTIMIZERS[name])
    a.train()
    b.train(SETTLED)
    before = counted("translations")
    b.train(20 - SETTLED)
    compare(a, b)
    assert counted("translations") == before
    explained = godynamo.explain(b.optimizer.step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_step_is_one_graph_with_eagers_bits(name):
    a, b = pair(OPTIMIZERS[name])
    train(a, whole(a), 20)
    step = godynamo.optimize(whole(b))
    train(b, step, SETTLED)
    before = counted("translations")
    train(b, step, 20 - SETTLED)
    compare(a, b)
    assert counted("translations") == before
    explained = godynamo.explain(step)(*b.inputs)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


@pytest.mark.parametrize("name", ["RAdam", "RAdam, foreach", "ASGD, early"])
def test_a_second_model_starts_with_the_other_prediction(name):
    a, b = pair(OPTIMIZERS[name])
    c, d = pair(OPTIMIZERS[name])
    step = godynamo.optimize(lambda run: run.optimizer.step())
    for eager, run in ((a, b), (c, d)):
        run.step = lambda run=run: step(run)
        eager.train(12)
        run.train(12)
        compare(eager, run)


def test_models_that_take_turns():
    runs = [pair(OPTIMIZERS["RAdam"]) for _ in range(3)]
    step = godynamo.optimize(lambda run: run.optimizer.step())
    for i, (a, b) in enumerate(runs):
        b.step = lambda b=b: step(b)
        a.train(3 * i)
        b.train(3 * i)
    for _ in range(12):
        for a, b in runs:
            a.train(1)
            b.train(1)
    for a, b in runs:
        compare(a, b)


def test_parameters_of_different_ages():
    """At the same step, the branch goes one way for some parameters and the other way for others."""

    def add(run):
        run.extra = torch.nn.Parameter(torch.ones(3))
        run.extra.grad = torch.ones(3)
        run.optimizer.add_param_group({"params": [run.extra]})

    a, b = pair(OPTIMIZERS["RAdam"])
    for run in (a, b):
        for _ in range(3):
            run.train(3)
            add(run)
        run.train(10)
    compare(a, b)


def test_a_prediction_that_is_wrong_all_the_time_is_given_up():
    a, b = pair(OPTIMIZERS["RAdam"])
    for i in range(24):
        for run in (a, b):
            run.train(1)
            for state in run.optimizer.state.values():
                state["step"].fill_(1.0 if i % 2 else 50.0)
    compare(a, b)
    before = counted("translations")
    b.train(4)
    assert counted("translations") <= before + 2
    assert any("branch" in reason for reason in utils.counters["graph_break"])


def test_effects_around_a_wrong_prediction():
    def make(run, log):
        def step(x, y):
            log.append("start")
            run.optimizer.zero_grad()
            try:
                with torch.enable_grad():
                    loss = torch.nn.functional.mse_loss(run.model(x), y)
                    loss.backward()
                    run.optimizer.step()
                    log.append(f"stepped, {torch.is_grad_enabled()}")
            finally:
                log.append("end")
            return loss

        return step

    (a, b), logs = pair(OPTIMIZERS["RAdam"]), ([], [])
    for run, log, wrap in ((a, logs[0], lambda f: f), (b, logs[1], godynamo.optimize)):
        train(run, wrap(make(run, log)), 12)
        assert torch.is_grad_enabled()
    compare(a, b)
    assert logs[0] == logs[1]


def test_a_minimum_that_changes():
    """At first, the learning rate of Adafactor is the smaller number, and later it is not."""
    outcomes = []
    for wrap in (lambda step: step, godynamo.optimize):
        run = Run(lambda p: optim.Adafactor(p, lr=torch.tensor(0.3)), wrap, False)
        run.train(20)
        outcomes.append(run)
    compare(*outcomes)
    assert counted("translations") < 6


@pytest.mark.parametrize("value", [-3.0, -1.0, float("nan"), float("inf"), 3e38])
@pytest.mark.parametrize("name", ["RAdam", "ASGD, early", "Adafactor", "Adafactor, foreach", "ASGD, foreach"])
def test_steps_that_no_training_reaches(name, value):
    """Powers of negative numbers are complex, and division by zero raises: as in eager mode, and at the same place."""
    outcomes = []
    for run in pair(OPTIMIZERS[name]):
        run.train(3)
        for state in run.optimizer.state.values():
            state["step"].fill_(value)
        outcome = None
        try:
            run.train(2)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            outcome = type(error), str(error), frames[-1].name, frames[-1].lineno
        assert torch.is_grad_enabled()
        outcomes.append((outcome, [t.tolist() for t in run.model.parameters()], run.optimizer.state_dict()))
    assert outcomes[0][0] == outcomes[1][0]
    assert repr(outcomes[0][1]) == repr(outcomes[1][1])
    assert repr(outcomes[0][2]) == repr(outcomes[1][2])


def test_a_step_with_nopython():
    a = Run(OPTIMIZERS["RAdam"], lambda step: step, False)
    b = Run(OPTIMIZERS["RAdam"], lambda step: godynamo.optimize(step, nopython=True), False)
    a.train(1)
    b.optimizer.step, wrapped = b.optimizer.step, b.step
    b.step = b.optimizer.step
    b.train(1)
    b.step = wrapped
    a.train(12)
    b.train(12)
    compare(a, b)


# ---- torch.nn.utils --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_clipping_raises_for_gradients_that_are_not_finite(bad):
    outcomes = []
    for wrap in (lambda step: step, godynamo.optimize):
        run, log = Run(lambda p: optim.SGD(p, lr=0.1), lambda step: step, False), []

        def step(x, y, run=run, log=log):
            run.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(run.model(x), y)
            loss.backward()
            log.append("backward")
            norm = torch.nn.utils.clip_grad_norm_(run.model.parameters(), 0.1, error_if_nonfinite=True)
            run.optimizer.step()
            return loss, norm

        step = wrap(step)
        for i in range(12):
            x = run.inputs[0] * bad if i in (5, 8) else run.inputs[0]
            try:
                log.append(step(x, run.inputs[1]))
            except RuntimeError as error:
                log.append((str(error), [f.name for f in traceback.extract_tb(error.__traceback__)[1:]]))
        outcomes.append((log, run.model.state_dict(), [p.grad for p in run.model.parameters()]))
    assert repr(outcomes[0]) == repr(outcomes[1])
    assert "non-finite" in repr(outcomes[1])
    explained = godynamo.explain(step)(*run.inputs)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


# ---- min and max of numbers computed at run time -------------------------------------------------------------------


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: max(1.5, x.sum().item()),
        lambda x: min(x.sum().item(), x.max().item(), 0.5),
        lambda x: x * (1 / max(1, x.sum().item())),
        lambda x: 2.5 * min(3, x.sum().item()),
        lambda x: max(1, x.sum().item()) > 1.5,
        lambda x: [max(1, x.sum().item())],
        lambda x: max([x.sum().item(), 2.0]),
        lambda x: f"{max(1, x.sum().item())}",
        lambda x: isinstance(max(1, x.sum().item()), int),
        lambda x: x + max(1, x.sum().item()),
        lambda x: -max(1, x.sum().item()),
        lambda x: max(1, x.sum().item()) // 1,
        lambda x: max(1, x.sum().item()) + 1,
        lambda x: max(True, x.sum().item()),
        lambda x: max(10**30, x.sum().item()) * 2.0,
        lambda x: {min(1, x.sum().item()): 1},
    ],
)
def test_extremes(fn):
    optimized = godynamo.optimize(fn)
    for values in ([1.0, 2.0], [-5.0, 1.0], [0.5, 0.5], [float("nan"), 1.0], [3.0, 4.0], [float("inf"), 0.0]):
        x = torch.tensor(values)
        want, got = fn(x), optimized(x)
        assert type(got) is type(want)
        assert same(got, want) or repr(got) == repr(want)


def test_an_extreme_costs_no_break():
    def f(x, y):
        return y * (1 / max(1, x.sum().item() - 2)) + min(0.5, x.max().item())

    x = torch.tensor([3.0, 4.0])
    explained = godynamo.explain(f)(x, x)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
