"""Each option of torch's optimizers, with one or two parameter groups: a step is one graph with eager's bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import optim

import godynamo
from harness.capture import counted
from harness.optimizers import same

pytestmark = pytest.mark.usefixtures("fresh")

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "foreach": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1, "fused": True}),
    ("SGD", {"lr": torch.tensor(0.01), "momentum": 0.9}),
    ("Adam", {"amsgrad": True, "maximize": True, "foreach": True}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True, "fused": True}),
    ("Adam", {"lr": torch.tensor(0.01), "decoupled_weight_decay": True}),
    ("AdamW", {"lr": torch.tensor(0.01), "foreach": False, "amsgrad": True}),
    ("Adamax", {"weight_decay": 0.1, "foreach": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("NAdam", {"lr": torch.tensor(0.01), "foreach": True}),
    ("RAdam", {"weight_decay": 0.1, "foreach": True, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "foreach": True}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True, "foreach": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {"foreach": True, "maximize": True}),
    ("ASGD", {"t0": 4, "weight_decay": 0.1, "foreach": True}),
    ("Adafactor", {"lr": torch.tensor(0.01), "weight_decay": 0.1, "maximize": True}),
    ("Muon", {"weight_decay": 0.2}),
    ("Muon", {"nesterov": False}),
]


class Training:
    def __init__(self, name: str, options: dict[str, Any], groups: bool) -> None:
        torch.manual_seed(0)
        bias = name != "Muon"  # it takes matrices only
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 8, bias=bias), torch.nn.ReLU(), torch.nn.Linear(8, 2, bias=bias)
        )
        parameters: Any = list(self.model.parameters())
        if groups:
            parameters = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.003}]
        own = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        self.optimizer = getattr(optim, name)(parameters, **own)
        self.x, self.y = torch.randn(6, 4), torch.randn(6, 2)

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss

    def seen(self) -> Any:
        return self.model.state_dict(), self.optimizer.state_dict(), [p.grad for p in self.model.parameters()]


@pytest.mark.parametrize("groups", [False, True], ids=["", "two groups"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda v: v if isinstance(v, str) else ", ".join(v))
def test_a_step_is_one_graph_with_eagers_bits(name, options, groups):
    if not hasattr(optim, name):
        pytest.skip(f"this torch has no {name}")
    a, b = Training(name, options, groups), Training(name, options, groups)
    step = godynamo.optimize(b.step)
    for i in range(20):
        before = counted("translations")
        assert same(step(), a.step())
        assert same(b.seen(), a.seen())
        assert i < 9 or counted("translations") == before
    assert max(entry.hits for entry in godynamo.cache_entries(step)) >= 10
    explained = godynamo.explain(b.step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons
