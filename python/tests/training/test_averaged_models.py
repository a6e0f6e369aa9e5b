"""AveragedModel.update_parameters: in one graph with the training step, with eager's bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.optim import swa_utils

import godynamo
from harness.capture import counted
from harness.optimizers import same

pytestmark = pytest.mark.usefixtures("fresh")

ema = swa_utils.get_ema_multi_avg_fn(0.9)


def in_turns(ours: list[torch.Tensor], theirs: list[torch.Tensor], count: torch.Tensor | int) -> None:
    for mean, value in zip(ours, theirs, strict=True):
        mean.copy_(mean + (value - mean) / (count + 1))


AVERAGES: dict[str, dict[str, Any]] = {
    "equal weights": {},
    "equal weights, buffers": {"use_buffers": True},
    "lists, equal weights": {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
    "exponential": {"multi_avg_fn": ema},
    "exponential, buffers": {"multi_avg_fn": ema, "use_buffers": True},
    "exponential, one by one": {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
    "equal weights, one by one": {"avg_fn": swa_utils.get_swa_avg_fn(), "use_buffers": True},
    "the program's": {"avg_fn": lambda mean, value, count: mean + (value - mean) / (count + 1)},
    "the program's, of lists": {"multi_avg_fn": in_turns},
}


class Training:
    def __init__(self, **how: Any) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.average = swa_utils.AveragedModel(self.model, **how)
        self.x, self.y = torch.randn(6, 4), torch.randn(6, 2)

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        self.average.update_parameters(self.model)
        return loss

    def seen(self) -> Any:
        return self.model.state_dict(), self.optimizer.state_dict(), self.average.state_dict()


@pytest.mark.parametrize("name", AVERAGES)
def test_a_step_is_one_graph_with_eagers_bits(name):
    a, b = Training(**AVERAGES[name]), Training(**AVERAGES[name])
    step = godynamo.optimize(b.step)
    for i in range(12):
        before = counted("translations")
        assert same(step(), a.step())
        assert same(b.seen(), a.seen())
        assert i < 4 or counted("translations") == before
    explained = godynamo.explain(b.step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_the_average_starts_again():
    a, b = Training(multi_avg_fn=ema), Training(multi_avg_fn=ema)
    step = godynamo.optimize(b.step)
    for i in range(16):
        if i % 5 == 0:
            for run in (a, b):
                run.average.n_averaged.zero_()
        assert same(step(), a.step())
        assert same(b.seen(), a.seen())


def test_a_function_of_the_program_sees_torchs_groups():
    seen: list[list[Any]] = [[], []]

    def make(log: list[Any]) -> Training:
        def average(ours, theirs, count):
            log.append([len(ours), str(ours[0].dtype)])
            in_turns(ours, theirs, count)

        return Training(multi_avg_fn=average, use_buffers=True)

    a, b = make(seen[0]), make(seen[1])
    step = godynamo.optimize(b.step)
    for _ in range(5):
        assert same(step(), a.step())
        assert same(b.seen(), a.seen())
    assert seen[0] == seen[1]


def test_models_of_other_shapes_raise_as_in_eager_mode():
    outcomes = []
    for wrap in (lambda f: f, godynamo.optimize):
        run = Training()
        update = wrap(lambda run, model: run.average.update_parameters(model))
        update(run, run.model)
        update(run, run.model)
        with pytest.raises(RuntimeError) as caught:
            update(run, torch.nn.Linear(4, 3))
        outcomes.append((str(caught.value), run.seen()))
    assert same(outcomes[0], outcomes[1])


def test_a_model_that_holds_fewer_buffers_raises_as_in_eager_mode():
    outcomes = []
    for wrap in (lambda f: f, godynamo.optimize):
        run = Training()
        update = wrap(lambda run, model: run.average.update_parameters(model))
        update(run, run.model)
        with pytest.raises(ValueError, match="shorter") as caught:
            update(run, run.model[0])
        outcomes.append((str(caught.value), run.seen()))
    assert same(outcomes[0], outcomes[1])


def test_the_learning_rate_of_swa():
    def make() -> tuple[Training, Any]:
        run = Training()
        return run, swa_utils.SWALR(run.optimizer, swa_lr=0.01, anneal_epochs=30)

    (a, of_a), (b, of_b) = make(), make()

    def whole():
        loss = b.step()
        of_b.step()
        return loss

    step = godynamo.optimize(whole)
    for i in range(20):
        before = counted("translations")
        loss = a.step()
        of_a.step()
        assert same(step(), loss)
        assert same(b.seen(), a.seen())
        assert i < 8 or counted("translations") == before
