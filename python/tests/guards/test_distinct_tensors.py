"""With whole-graph backends, a graph that changes tensors in place serves only calls with distinct tensor objects."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import godynamo
from godynamo.testing import CompileCounter


def changes(a, b, c):
    a.add_(1)
    return b * 2 + c, a


@pytest.mark.parametrize("first", list(itertools.product(range(3), repeat=3)), ids=str)
def test_one_object_in_several_places(first):
    """Each combination of tensors has the same result as in eager mode, whichever tensors the first call had."""
    optimized = godynamo.optimize(changes, backend=CompileCounter())
    for places in (first, *itertools.product(range(3), repeat=3)):
        given, wanted = ([torch.arange(2.0) + i for i in range(3)] for _ in range(2))
        got, want = optimized(*[given[i] for i in places]), changes(*[wanted[i] for i in places])
        assert all(map(torch.equal, got, want)), places
        assert all(map(torch.equal, given, wanted)), places


def test_texts_and_reasons():
    optimized = godynamo.optimize(changes, backend=CompileCounter())
    a, b, c = (torch.zeros(2) for _ in range(3))
    optimized(a, b, c)
    (entry,) = godynamo.cache_entries(optimized)
    assert "___check_distinct(a, b, c)" in str(godynamo.guards(optimized)[0])
    served = entry.hits
    optimized(a, b, b)
    optimized(c, b, a)
    assert entry.hits == served + 1
    assert len(godynamo.cache_entries(optimized)) == 2


class Deep(nn.Module):
    def __init__(self, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def test_guards_grow_with_the_tensors_and_not_with_their_pairs():
    """200 layers have 1,401 tensors, so a million pairs; such an entry was once rejected for its number of guards."""
    backend, plain = CompileCounter(), Deep(200)
    optimized = godynamo.optimize(plain, backend=backend)
    for _ in range(3):
        optimized(torch.randn(3, 4))
    assert backend.frame_count == 1
    (entry,) = godynamo.cache_entries(optimized)
    assert entry.hits == 3


def test_a_parameter_that_becomes_another_layers():
    """The buffer is shared after the first call: the guard detects it, and the result is the same as in eager mode."""
    torch.manual_seed(0)
    plain = Deep(3)
    backend = CompileCounter()
    optimized = godynamo.optimize(plain, backend=backend)
    x = torch.randn(3, 4)
    optimized(x)
    plain.layers[2][1].running_mean = plain.layers[0][1].running_mean
    state = {k: v.clone() for k, v in plain.state_dict().items()}
    got, after = optimized(x), {k: v.clone() for k, v in plain.state_dict().items()}
    assert backend.frame_count == 2
    plain.load_state_dict(state)
    assert torch.equal(got, plain(x))
    assert all(torch.equal(after[k], v) for k, v in plain.state_dict().items())
