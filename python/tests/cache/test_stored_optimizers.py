"""Stored translations of optimizer.step(): another process loads them."""

from __future__ import annotations

import pytest

from stored_support import Programs

TRAINING = """
import torch, godynamo
from torch import optim

def train(name, wrap):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = getattr(optim, name)(model.parameters(), lr=0.1)
    step = wrap(optimizer.step)
    for i in range(5):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().sum().backward()
        step()
    return model.weight.tolist(), model.bias.tolist()

def main(name):
    return train(name, godynamo.optimize) == train(name, lambda step: step)
"""


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_second_process_loads_the_step(programs: Programs, name: str) -> None:
    programs.write("training", TRAINING)
    first, second = programs.run("training", name), programs.run("training", name)
    assert first.result is second.result is True
    assert (first.translated, first.loaded, second.translated, second.loaded) == (1, 0, 0, 1)


WHOLE = """
import torch, godynamo
from torch import optim

def train(wrap, hook):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    step = wrap(step)
    losses = []
    for i in range(6):
        if hook and i == 4:
            model.weight.register_hook(lambda g: g * 2)
        losses.append(step(torch.ones(2, 4)).item())
    return losses, model.weight.tolist(), model.bias.tolist()

def main(hook):
    return train(godynamo.optimize, hook) == train(lambda step: step, hook)
"""


@pytest.mark.parametrize("hook", [False, True], ids=["", "with a hook"])
def test_a_second_process_loads_whole_training_steps(programs: Programs, hook: bool) -> None:
    programs.write("training", WHOLE)
    first, second = programs.run("training", hook), programs.run("training", hook)
    assert first.result is second.result is True
    if not hook:  # the step before the state exists, its rest, and all later steps
        assert first.translated == 3
    assert (second.translated, second.loaded) == (0, first.translated)


TWO = """
import torch, godynamo
from torch import nn, optim

def network():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

def train(wrap):
    torch.manual_seed(0)
    g, d, down = network(), network(), nn.Linear(3, 4)
    og, od = optim.Adam(g.parameters()), optim.Adam(d.parameters())
    log = []

    def step(i):
        x = torch.full((2, 4), float(i))
        fake = down(g(x))
        od.zero_grad()
        (d(fake.detach()).mean() - d(x).mean()).backward()
        od.step()
        og.zero_grad()
        loss = d(fake).mean()
        loss.backward()
        og.step()
        log.append(loss.item())

    step = wrap(step)
    for i in range(8):
        step(i)
    return log

def main():
    ours = train(godynamo.optimize)
    return ours == train(lambda step: step), godynamo._C.counters()["internal_errors"]
"""


def test_a_second_process_keeps_what_stands_for_torchs_decorators(programs: Programs) -> None:
    programs.write("training", TWO)
    for _ in range(2):
        ran = programs.run("training")
        assert ran.result == (True, 0)
    assert ran.loaded > 0
