"""Quantized operators with packed parameters: modules of torch.ao.quantization.quantize_dynamic."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import godynamo
from godynamo import _C, utils
from harness.cases import reasons

pytestmark = [
    pytest.mark.skipif("none" in torch.backends.quantized.engine, reason="torch has no quantized operators here"),
    pytest.mark.filterwarnings("ignore"),
]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return x + self.second(self.first(x).relu())


def quantized(*blocks: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(nn.Sequential(*blocks), {nn.Linear}, dtype=torch.qint8)


@pytest.mark.parametrize("blocks", [1, 3])
def test_dynamic_modules_are_one_graph(blocks):
    torch.manual_seed(0)
    model = quantized(*(Block() for _ in range(blocks)))
    compiled = godynamo.optimize(lambda x: model(x * 2).tanh())
    for seed in range(3):
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(compiled(x), model(x * 2).tanh())
    assert reasons() == [] and _C.counters()["internal_errors"] == 0
    assert utils.counters["frames"]["ok"] == 1


def test_other_weights_and_sizes():
    torch.manual_seed(0)
    models = [quantized(nn.Linear(4, n)) for n in (3, 3, 5)]

    def fn(model, x):
        y = model(x)
        return y.reshape(-1)[: y.shape[1]] * y.dim()

    compiled = godynamo.optimize(fn)
    for n in (2, 3, 2):
        for model in models:
            x = torch.randn(n, 4)
            assert torch.equal(compiled(model, x), fn(model, x))
    with torch.no_grad():
        model = models[0]
        model[0].set_weight_bias(models[1][0].weight(), models[1][0].bias())
    assert torch.equal(compiled(model, x), fn(model, x))


def test_a_wrong_call_raises_torchs_error():
    model = quantized(nn.Linear(4, 3))
    for f in (model, godynamo.optimize(lambda x: model(x))):
        with pytest.raises(RuntimeError):
            f(torch.ones(2, 7))


def test_whole_graphs_break():
    model = quantized(nn.Linear(4, 3))
    compiled = godynamo.optimize(lambda x: model(x) * 2, backend="aot_eager")
    x = torch.ones(2, 4)
    assert torch.equal(compiled(x), model(x) * 2)
