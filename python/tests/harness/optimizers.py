"""Shared by the tests of optimizers: a small model in training, eagerly or with an optimized step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import optim

import godynamo

STEPS = 20


class Run:
    """A small model in training. ``step`` is the optimizer's, wrapped."""

    def __init__(self, make: Callable[[Any], optim.Optimizer], wrap: Callable[[Any], Any], schedule: bool) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        self.optimizer = make(self.model.parameters())
        self.schedule = optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9) if schedule else None
        self.step = wrap(self.optimizer.step)
        self.inputs = torch.randn(6, 4), torch.randn(6, 2)
        self.losses: list[float] = []

    def train(self, steps: int = STEPS) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.model(self.inputs[0]), self.inputs[1])
            loss.backward()
            self.step()
            if self.schedule:
                self.schedule.step()
            self.losses.append(loss.item())


def same(a: Any, b: Any) -> bool:
    """Compare nested states by type and value, tensors bit by bit."""
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def compare(a: Run, b: Run) -> None:
    assert a.losses == b.losses
    assert same(a.model.state_dict(), b.model.state_dict())
    assert same(a.optimizer.state_dict(), b.optimizer.state_dict())


def pair(make: Callable[[Any], optim.Optimizer], schedule: bool = False) -> tuple[Run, Run]:
    return Run(make, lambda step: step, schedule), Run(make, godynamo.optimize, schedule)
