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
