"""Training steps of torch's own modules that read values or metadata of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import godynamo
from godynamo import _C
from harness.training import STEPS, Run, assert_one_graph

Made = tuple[nn.Module, Callable[[int], torch.Tensor]]


def transformer() -> Made:
    """torch asks whether the mask is causal, in each call."""
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.1, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    x, y = torch.randn(2, 5, 16), torch.randn(2, 4, 16)
    return model, lambda i: model(x + i, y, tgt_mask=mask).square().mean()


class Words(nn.Module):
    """A language model whose loss depends on metadata of what the LSTM computes."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8), nn.Linear(16, 20)
        self.lstm = nn.LSTM(8, 16, 2, dropout=0.2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        out, _ = self.lstm(F.dropout(self.words(words), 0.1))
        scores = F.log_softmax(self.head(out).view(-1, 20), dim=1)
        return F.nll_loss(scores, words.flatten()) if scores.is_floating_point() and scores.requires_grad else scores


def words() -> Made:
    model = Words()
    return model, lambda i: model((torch.arange(10).reshape(5, 2) + i) % 20)


def chosen_kernel() -> Made:
    """The optimizer asks for dtypes of parameters after the choice of a kernel."""
    model = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
    x = torch.randn(2, 5, 8)

    def loss_of(i: int) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return model(x + i, x, x, need_weights=False)[0].square().mean()

    return model, loss_of


PROGRAMS = [transformer, words, chosen_kernel]


def step_of(make: Callable[[], Made]) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[int], torch.Tensor]]:
    torch.manual_seed(0)
    model, loss_of = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(i: int) -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(i)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, optimizer, step


@pytest.mark.parametrize("make", PROGRAMS)
def test_bits_are_eagers(make: Callable[[], Made]) -> None:
    def run(optimize: Callable[[Any], Any]) -> Run:
        model, optimizer, step = step_of(make)
        step = optimize(step)
        return Run([step(i).item() for i in range(STEPS)], model, optimizer)

    run(godynamo.optimize).same(run(lambda fn: fn))
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("make", PROGRAMS)
def test_a_step_is_one_graph(make: Callable[[], Made]) -> None:
    assert_one_graph(lambda _: step_of(make)[2])
