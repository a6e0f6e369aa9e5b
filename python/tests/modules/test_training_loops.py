"""Training loops around optimized modules, bit by bit: row S003-47."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules_support import check

pytestmark = pytest.mark.row("S003-47")

STEPS = 20
OPTIMIZERS = {
    "SGD": lambda ps: torch.optim.SGD(ps, lr=0.1),
    "SGD with momentum": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda ps: torch.optim.Adam(ps, lr=0.01),
    "Adam with amsgrad": lambda ps: torch.optim.Adam(ps, lr=0.01, amsgrad=True, weight_decay=0.01),
    "AdamW": lambda ps: torch.optim.AdamW(ps, lr=0.01),
    "RMSprop": lambda ps: torch.optim.RMSprop(ps, lr=0.01),
}


class Net(nn.Module):
    """Batch norm, dropout, attention and an embedding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.norm, self.head = nn.BatchNorm1d(8), nn.Linear(8, 12)

    def forward(self, ids):
        return self.head(self.norm(self.block(self.embed(ids)).mean(1)))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps(name):
    def program(optimize):
        m = Net()
        o, optimizer, losses = optimize(m), OPTIMIZERS[name](m.parameters()), []
        for step in range(STEPS):
            ids = torch.randint(0, 12, (4, 5))
            loss = F.cross_entropy(o(ids), ids[:, 0])
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            loss.backward()
            nn.utils.clip_grad_norm_(o.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        m.eval()
        return losses, m, o(torch.arange(5)[None])

    recorder = check(program)
    assert recorder.breaks == {}
    assert recorder.graphs == 2  # training and evaluation


def test_the_whole_step_is_optimized():
    def program(optimize):
        m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(m.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(m(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        fast = optimize(step)
        return [fast(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(STEPS)], m

    check(program)


def test_gradients_accumulate_and_parameters_freeze():
    def program(optimize):
        m = Net()
        o = optimize(m)
        optimizer = torch.optim.AdamW(m.parameters(), lr=0.01)
        losses = []
        for step in range(6):
            if step == 3:
                for p in m.embed.parameters():
                    p.requires_grad_(False)
            for _ in range(2):
                ids = torch.randint(0, 12, (4, 5))
                loss = F.cross_entropy(o(ids), ids[:, 0]) / 2
                loss.backward()
                losses.append(loss.detach())
            optimizer.step()
            optimizer.zero_grad()
        return losses, m

    check(program)


def test_checkpoints_and_schedules():
    def program(optimize):
        m = Net()
        o, optimizer = optimize(m), torch.optim.SGD(m.parameters(), lr=0.5)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        averaged = torch.optim.swa_utils.AveragedModel(m)
        losses, saved = [], None
        for step in range(10):
            ids = torch.randint(0, 12, (4, 5))
            loss = F.cross_entropy(o(ids), ids[:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            averaged.update_parameters(m)
            losses.append(loss.detach())
            if step == 4:
                saved = {k: v.clone() for k, v in o.state_dict().items()}
            if step == 7:
                o.load_state_dict(saved)
        return losses, m, optimize(averaged.eval())(torch.arange(5)[None])

    check(program)
