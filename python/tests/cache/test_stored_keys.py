"""Stored translations of dicts and sets whose keys are modules and other objects."""

from __future__ import annotations

import pytest

from stored_support import Programs

KEYS = """
import torch, godynamo
from torch import nn

class Model(nn.Module):
    def __init__(self, swap):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.scales = {self.a: 2.0, self.b: 3.0} if not swap else {self.b: 3.0, self.a: 2.0}
        self.seen = {self.b} if swap else {self.a}

    def forward(self, x):
        for m, s in self.scales.items():
            x = m(x) * s
        x = x + (self.a in self.seen) + 2 * (self.b in self.seen)
        return x * self.scales[self.b]

def main(swap):
    torch.manual_seed(0)
    model = Model(swap)
    x = torch.ones(3)
    return torch.equal(godynamo.optimize(model)(x), model(x))
"""


@pytest.mark.parametrize("swap", [False, True])
def test_a_second_process_loads_reads_by_object(programs: Programs, swap: bool) -> None:
    programs.write("keys", KEYS)
    first, second, other = programs.run("keys", swap), programs.run("keys", swap), programs.run("keys", not swap)
    assert first.result is second.result is other.result is True
    assert (first.translated, first.loaded, second.translated, second.loaded) == (1, 0, 0, 1)
    assert (other.translated, other.internal_errors) == (1, 0)
