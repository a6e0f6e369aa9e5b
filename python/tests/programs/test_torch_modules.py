"""torch.nn modules and small models: outputs, buffers, gradients as in eager, bit by bit, in train() and eval()."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import godynamo
from godynamo import _C


class Attention(nn.Module):
    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = [lin(x).view(b, t, self.heads, d // self.heads).transpose(1, 2) for lin in (self.q, self.k, self.v)]
        a = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        if mask is not None:
            a = a.masked_fill(mask == 0, float("-inf"))
        a = self.drop(F.softmax(a, dim=-1))
        y = (a @ v).transpose(1, 2).contiguous().view(b, t, d)
        return self.norm(x + self.o(y))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.c2, self.b2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.down = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.b1(self.c1(x)))
        y = F.relu(self.b2(self.c2(y)) + self.down(x))
        return self.fc(torch.flatten(self.pool(y), 1))


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


# the module, its arguments, whether its forward is captured in one graph
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]], bool]] = {
    "attention": (Attention, lambda: (r(2, 5, 16),), True),
    "attention, masked": (Attention, lambda: (r(2, 5, 16), torch.tril(torch.ones(5, 5))), True),
    "residual": (Residual, lambda: (r(2, 3, 8, 8),), True),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), lambda: (r(2, 5, 16),), False),
    "multihead": (lambda: nn.MultiheadAttention(16, 4, batch_first=True), lambda: (r(2, 5, 16),) * 3, False),
    "lstm": (lambda: nn.LSTM(4, 8, 2), lambda: (r(5, 2, 4),), False),
    "gru cell": (lambda: nn.GRUCell(4, 8), lambda: (r(2, 4),), True),
    "embedding": (lambda: nn.Embedding(10, 4), lambda: (torch.randint(0, 10, (3,)),), True),
    "embedding bag": (lambda: nn.EmbeddingBag(10, 3), lambda: (torch.tensor([1, 2, 4]), torch.tensor([0, 2])), True),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.MaxPool1d(2), nn.GELU(), nn.Flatten(), nn.Linear(12, 3)),
        lambda: (r(2, 2, 9),),
        True,
    ),
    "cross entropy": (nn.CrossEntropyLoss, lambda: (r(3, 5), torch.tensor([1, 2, 3])), True),
    "mse": (nn.MSELoss, lambda: (r(3), r(3)), True),
    "upsample": (lambda: nn.Upsample(scale_factor=2), lambda: (r(1, 1, 3, 3),), True),
    "prelu": (nn.PReLU, lambda: (r(4),), True),
    "group norm": (lambda: nn.GroupNorm(2, 4), lambda: (r(2, 4, 3),), True),
    "batch norm": (lambda: nn.BatchNorm1d(3), lambda: (r(4, 3),), True),
    "bilinear": (lambda: nn.Bilinear(2, 3, 4), lambda: (r(5, 2), r(5, 3)), True),
    "transformer": (
        lambda: nn.Transformer(16, 4, 1, 1, 32, batch_first=True),
        lambda: (r(2, 5, 16), r(2, 4, 16)),
        False,
    ),
}


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, (tuple, list)) else []


@pytest.mark.parametrize("backend", ["eager", "fx"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", CASES)
def test_module_is_eagers(name: str, training: bool, backend: str) -> None:
    make, inputs, one_graph = CASES[name]
    graphs: list[torch.fx.GraphModule] = []

    def recording(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
        gm.graph.lint()
        graphs.append(gm)
        return gm.forward

    torch.manual_seed(0)
    eager = make().train(training)
    optimized_module, args = copy.deepcopy(eager), inputs()
    optimized = godynamo.optimize(optimized_module, backend="eager" if backend == "eager" else recording)
    errors = _C.counters()["internal_errors"]
    for seed in range(3):
        torch.manual_seed(seed)
        expected = tensors(eager(*args))
        torch.manual_seed(seed)
        got = tensors(optimized(*args))
        assert len(got) == len(expected)
        assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
        for a, b in zip(eager.state_dict().values(), optimized_module.state_dict().values(), strict=True):
            assert torch.equal(a, b)
        if expected[0].requires_grad:
            sum(t.float().sum() for t in expected).backward()
            sum(t.float().sum() for t in got).backward()
            for p, q in zip(eager.parameters(), optimized_module.parameters(), strict=True):
                assert (p.grad is None and q.grad is None) or torch.equal(p.grad, q.grad)
    assert _C.counters()["internal_errors"] == errors
    if one_graph and backend == "fx":
        assert len(graphs) == 1
