"""torch.amp.GradScaler in whole training steps: a step with infinite gradients goes on in CPython."""

from __future__ import annotations

import traceback

import pytest
import torch

import godynamo
from harness.capture import counted
from training.test_whole_steps import network


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()


class Steps:
    def __init__(self, kind: str, enabled: bool = True) -> None:
        self.model, self.critic = network(), network()
        self.optimizers = [
            torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9),
            torch.optim.AdamW(self.critic.parameters(), lr=0.01, fused=kind == "fused"),
        ]
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3, enabled=enabled)
        self.step = getattr(self, kind)

    def plain(self, x):
        self.optimizers[0].zero_grad()
        loss = self.model(x).sum()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizers[0])
        self.scaler.update()
        return loss

    def clipped(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.model(x).square().mean()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizers[0])
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        result = self.scaler.step(self.optimizers[0])
        self.scaler.update()
        self.optimizers[0].zero_grad()
        return loss, norm, result

    def two_optimizers(self, x):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        a, b = self.model(x).sum(), self.critic(x).square().sum()
        self.scaler.scale(a).backward()
        self.scaler.step(self.optimizers[0])
        self.scaler.scale(b).backward()
        self.scaler.step(self.optimizers[1])
        self.scaler.update()
        return a, b

    def fused(self, x):
        self.optimizers[1].zero_grad()
        loss = self.critic(x).square().sum()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizers[1])
        self.scaler.update()
        return loss

    def seen(self):
        return [
            *self.model.parameters(),
            *self.critic.parameters(),
            self.scaler.state_dict(),
            [o.state_dict() for o in self.optimizers],
        ]


def exact(values):
    """Return a text that tells all bits; nan is equal to nan."""
    tensors = torch.utils._pytree.tree_leaves(values)
    return [t.tolist() if not torch.isnan(t).any() else str(t) for t in tensors if isinstance(t, torch.Tensor)] + [
        repr(t) for t in tensors if not isinstance(t, torch.Tensor)
    ]


def inputs():
    for i in range(9):
        yield torch.full((2, 4), float("inf") if i in (4, 7) else float(i + 1))


KINDS = ["plain", "clipped", "two_optimizers", "fused"]


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_eagers(kind, enabled):
    a, b = Steps(kind, enabled), Steps(kind, enabled)
    compiled = godynamo.optimize(b.step)
    torch.manual_seed(0)
    results = []
    for x in inputs():
        results.append((a.step(x), a.scaler.get_scale()))
    torch.manual_seed(0)
    for x, (result, scale) in zip(inputs(), results, strict=True):
        assert (repr(compiled(x)), b.scaler.get_scale()) == (repr(result), scale)
    assert exact(a.seen()) == exact(b.seen())


@pytest.mark.parametrize("kind", KINDS)
def test_one_graph(kind):
    steps = Steps(kind)
    compiled = godynamo.optimize(steps.step)
    for _ in range(3):
        compiled(torch.ones(2, 4))
    before = counted("translations")
    for i in range(3):
        compiled(torch.full((2, 4), float(i)))
    assert counted("translations") == before
    explained = godynamo.explain(steps.step)(torch.ones(2, 4))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_errors_have_torchs_text_and_the_users_traceback():
    steps = Steps("plain")

    def step(x, twice):
        steps.optimizers[0].zero_grad()
        steps.scaler.scale(steps.model(x).sum()).backward()
        steps.scaler.step(steps.optimizers[0])
        if twice:
            steps.scaler.step(steps.optimizers[0])
        steps.scaler.update()

    def error(f):
        with pytest.raises(RuntimeError) as caught:
            f(torch.ones(2, 4), True)
        steps.scaler.update()
        found = traceback.extract_tb(caught.value.__traceback__)[1:]
        return str(caught.value), [(frame.name, frame.line) for frame in found if frame.filename == __file__]

    compiled = godynamo.optimize(step)
    for _ in range(3):
        compiled(torch.ones(2, 4), False)
    assert error(compiled) == error(step)
    compiled(torch.ones(2, 4), False)
