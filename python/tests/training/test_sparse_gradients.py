"""Sparse gradients: steps of SparseAdam and other optimizers, and metadata of sparse tensors that a graph reads."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import godynamo
from harness.capture import counted
from harness.optimizers import same

pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.filterwarnings("ignore:Sparse invariant")]

BATCHES = [[1, 2, 2, 5], [0, 0], [3, 4, 5, 6, 7, 8], [1, 1, 1], [9], [2, 9, 4], [0, 1, 2], [8, 8, 3, 3]]

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SparseAdam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    "SparseAdam, maximize": lambda p: torch.optim.SparseAdam(p, lr=0.1, betas=(0.5, 0.9), maximize=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


class Tables:
    """A model with sparse gradients in training."""

    def __init__(self, make: Callable[[Any], torch.optim.Optimizer]) -> None:
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(10, 3, sparse=True)
        self.bag = torch.nn.EmbeddingBag(10, 3, sparse=True, mode="sum")
        self.optimizer = make([*self.table.parameters(), *self.bag.parameters()])

    def loss(self, words: torch.Tensor) -> torch.Tensor:
        return ((self.table(words) + self.bag(words[None])) ** 2).sum()

    def backward(self, words: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.loss(words)
        loss.backward()
        return loss

    def step(self, words: torch.Tensor) -> torch.Tensor:
        loss = self.backward(words)
        self.optimizer.step()
        return loss

    def seen(self) -> Any:
        modules = self.table, self.bag
        state = [m.state_dict() for m in modules], [m.weight.grad for m in modules], self.optimizer.state_dict()
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: (t.layout, t.to_dense()), state)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whole_steps_have_eagers_bits(name):
    a, b = Tables(OPTIMIZERS[name]), Tables(OPTIMIZERS[name])
    step = godynamo.optimize(b.step)
    for batch in BATCHES:
        words = torch.tensor(batch)
        assert same(step(words), a.step(words))
        assert same(b.seen(), a.seen())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_alone_have_eagers_bits(name):
    a, b = Tables(OPTIMIZERS[name]), Tables(OPTIMIZERS[name])
    step = godynamo.optimize(b.optimizer.step)
    for batch in BATCHES:
        words = torch.tensor(batch)
        a.step(words)
        b.backward(words)
        step()
        assert same(b.seen(), a.seen())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_step_is_one_graph_for_all_numbers_of_rows(name):
    run = Tables(OPTIMIZERS[name])
    step = godynamo.optimize(run.step)
    for batch in BATCHES[:4]:
        step(torch.tensor(batch))
    before = counted("translations")
    for batch in BATCHES[4:]:
        step(torch.tensor(batch))
    assert counted("translations") == before
    explained = godynamo.explain(run.step)(torch.tensor(BATCHES[0]))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


def test_a_gradient_without_rows_is_skipped():
    runs = [Tables(OPTIMIZERS["SparseAdam"]) for _ in range(2)]
    for run in runs:
        run.loss = lambda words, table=run.table: (table(words) ** 2).sum()  # type: ignore[method-assign]
    steps = runs[0].step, godynamo.optimize(runs[1].step)
    for batch in [[1], [2, 3], [], [4], [], [5, 5], []]:
        results = [step(torch.tensor(batch, dtype=torch.int64)) for step in steps]
        assert same(*results)
        assert same(runs[0].seen(), runs[1].seen())


def test_a_gradient_that_is_dense_after_all():
    """The sum of a sparse and a dense gradient is dense, and SparseAdam raises."""

    def make(wrap: Any) -> Any:
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(4, 2))
        optimizer = torch.optim.SparseAdam([weight], lr=0.1)

        def step(words: torch.Tensor, tied: bool) -> torch.Tensor:
            optimizer.zero_grad()
            loss = F.embedding(words, weight, sparse=True).sum()
            if tied:
                loss = loss + (weight**2).sum()
            loss.backward()
            optimizer.step()
            return loss

        return wrap(step), weight

    outcomes = []
    for wrap in (lambda f: f, godynamo.optimize):
        step, weight = make(wrap)
        log: list[Any] = []
        for tied in (False, False, True, False, True, False):
            try:
                log.append(step(torch.tensor([1, 3, 1]), tied))
            except RuntimeError as error:
                log.append(str(error))
        outcomes.append([log, weight.detach()])
    assert same(*outcomes)


def test_translating_warns_of_nothing():
    run = Tables(OPTIMIZERS["SGD"])
    step = godynamo.optimize(run.step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in BATCHES[:3]:
            step(torch.tensor(batch))


# ---- metadata that only a run knows ------------------------------------------------------------------------------


def coo(rows: list[int], dense: int, merged: bool = False) -> torch.Tensor:
    places = torch.tensor([rows, rows][: 2 - dense])
    made = torch.sparse_coo_tensor(places, torch.ones(len(rows), *[4] * dense), (4, 4))
    return made.coalesce() if merged else made


SPARSE = [coo([0, 2, 2], 1), coo([0, 2, 2], 0), coo([], 1), coo([1], 0, True), coo([1, 3], 1, True)]


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.sparse_dim(),
        lambda t: t.dense_dim(),
        lambda t: t.is_coalesced(),
        lambda t: t._nnz(),
        lambda t: (t + t).is_coalesced(),
        lambda t: t._values().dim(),
        lambda t: t._values().numel(),
        lambda t: t.coalesce()._values().numel() * 2 + 1,
        lambda t: t.coalesce()._indices().ndimension(),
        lambda t: [t.clone()._nnz(), t.is_coalesced()],
    ],
)
def test_numbers_of_sparse_tensors_are_read_at_run_time(read):
    optimized = godynamo.optimize(read)
    for t in SPARSE * 2:
        assert same(optimized(t), read(t))
    explained = godynamo.explain(read)(SPARSE[0])
    assert explained.graph_break_count == 0


def test_a_branch_on_such_a_number():
    def f(t: torch.Tensor) -> torch.Tensor:
        if t._values().numel() == 0:
            return t.to_dense() - 1
        return t.to_dense() * t._nnz()

    optimized = godynamo.optimize(f)
    for t in SPARSE * 2:
        assert same(optimized(t), f(t))


def test_a_number_beside_a_sparse_tensor_becomes_no_constant():
    def f(n: int, t: torch.Tensor) -> torch.Tensor:
        return t.to_dense() * n

    optimized = godynamo.optimize(f)
    for n in range(2, 9):
        assert same(optimized(n, SPARSE[0]), f(n, SPARSE[0]))
    assert counted("translations") == 2


def test_a_counter_in_a_dict_becomes_no_constant():
    def f(state: dict[str, int], x: torch.Tensor) -> torch.Tensor:
        state["step"] += 1
        return x * (1 - 0.9 ** state["step"])

    optimized = godynamo.optimize(f)
    ours, theirs = {"step": 0}, {"step": 0}
    for _ in range(8):
        assert same(optimized(ours, torch.ones(3)), f(theirs, torch.ones(3)))
        assert ours == theirs
    assert counted("translations") == 2
