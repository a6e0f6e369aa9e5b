"""Lazy modules: the first call creates parameters in CPython, the second is one graph: rows S003-01, 02, 11."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import godynamo
from godynamo import utils
from modules_support import Counted, check


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.rest = nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.LazyBatchNorm1d(), nn.LazyLinear(2))

    def forward(self, x):
        return self.rest(self.stem(x))


@pytest.mark.row("S003-01", "S003-11")
@pytest.mark.parametrize("make", [Model, lambda: nn.LazyLinear(3), lambda: nn.Sequential(nn.LazyConv1d(2, 1))])
def test_the_second_call_is_one_graph(make):
    def program(optimize):
        m = make()
        o = optimize(m)
        x = torch.randn(3, 4, 4 if isinstance(m, nn.Sequential) else 4)
        x = x if isinstance(m, nn.Sequential) else x[0]
        out = []
        for _ in range(3):
            y = o(x)
            y.sum().backward()
            out.append(y)
        return out, m, [type(child).__name__ for child in m.modules()], [p.grad for p in m.parameters()]

    check(program, graphs=1)
    assert utils.counters["frames"]["later"] == 1
    assert utils.counters["frames"]["total"] == 1


@pytest.mark.row("S003-01")
def test_in_the_middle_of_a_function_and_loaded_before_the_first_call():
    def program(optimize):
        lazy, full = nn.LazyLinear(3), nn.Linear(4, 3)

        def f(x):
            return lazy(x.relu()) * 2

        fast = optimize(f)
        out = [fast(torch.ones(2, 4)), fast(torch.ones(2, 4))]
        loaded = nn.LazyLinear(3)
        loaded.load_state_dict(full.state_dict())
        o = optimize(loaded)
        return out, o(torch.ones(2, 4)), o(torch.ones(2, 4)), loaded

    assert check(program).breaks == {}


@pytest.mark.row("S003-01")
def test_what_is_never_made_stays_eagers_error():
    def program(optimize):
        lazy = nn.LazyLinear(3)
        fast = optimize(lambda x: x + lazy.weight)
        out = []
        for _ in range(20):
            try:
                fast(torch.ones(2))
            except Exception as error:
                out.append((type(error).__name__, str(error)))
        return out

    check(program)


@pytest.mark.row("S003-01")
def test_with_nopython():
    recorder = Counted()
    o = godynamo.optimize(nn.LazyLinear(3), backend=recorder, nopython=True)
    for _ in range(3):
        o(torch.ones(2, 4))
    assert recorder.graphs == 1
