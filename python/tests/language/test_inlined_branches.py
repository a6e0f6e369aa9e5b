"""Branches on data in inlined functions. The graph predicts them, and each call checks the prediction."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import pytest
import torch

import godynamo
from godynamo import exc, utils
from harness.capture import counted
from harness.optimizers import same

POSITIVE, NEGATIVE = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


def compared(f: Any, *calls: Any, wrap: Any = godynamo.optimize) -> list[int]:
    """Compare calls with eager mode's, and return how many translations each of them made."""
    optimized, made = wrap(f), []
    for args in calls:
        args = args if isinstance(args, tuple) else (args,)
        outcomes = []
        for g in (f, optimized):
            before = counted("translations")
            try:
                outcomes.append(g(*(a.clone() for a in args)))
            except Exception as error:
                frames = [(t.name, t.lineno) for t in traceback.extract_tb(error.__traceback__)[1:]]
                outcomes.append((type(error), str(error), frames))
        made.append(counted("translations") - before)
        assert same(outcomes[1], outcomes[0]) or repr(outcomes[1]) == repr(outcomes[0])
    return made


def halved(x: torch.Tensor, log: list[str]) -> torch.Tensor:
    log.append("halved")
    if x.sum() > 0:
        log.append("positive")
        return x / 2
    return x - 1


def test_the_graph_goes_the_way_that_was_seen():
    def f(x):
        log = []
        return halved(halved(x * 2, log), log).sin() + len(log), log

    made = compared(f, NEGATIVE, NEGATIVE, POSITIVE, POSITIVE, POSITIVE)
    assert (made[0], made[1], made[3], made[4]) == (1, 0, 1, 0)  # the branches of call 3 are wrong
    assert not utils.counters["graph_break"]
    explained = godynamo.explain(f)(POSITIVE)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, masked: bool) -> torch.Tensor:
        if masked:
            x = x * 0.5
        if x.abs().max() > 1e-6:
            x = x / x.abs().max()
        x = self.linear(x)
        return x if not masked else x + 1


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        masked = (x > 0).any().item()
        for layer in self.layers:
            x = layer(x, masked)
        return x


def test_what_one_layer_shows_is_the_first_answer_for_the_others():
    torch.manual_seed(0)
    model, x = Model(), torch.randn(3, 4)
    optimized = godynamo.optimize(model)
    for _ in range(3):  # two wrong answers: to `masked` and to the maximum, each in the first layer
        assert same(optimized(x), model(x))
    before = counted("translations")
    assert same(optimized(x * 2), model(x * 2))
    assert counted("translations") == before
    explained = godynamo.explain(model)(x)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
    # one check of the flag, and one of each layer's maximum
    assert str(explained).count("call_function[target=godynamo.as_predicted]") == 7


def test_a_training_step_is_one_graph():
    torch.manual_seed(0)
    models = [Model(), Model()]
    models[1].load_state_dict(models[0].state_dict())
    steps = []
    for model in models:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        steps.append(step)
    optimized = godynamo.optimize(steps[1])
    for i in range(12):
        x = torch.randn(3, 4) * (i + 1)
        assert same(optimized(x), steps[0](x))
    assert same(list(models[1].parameters()), list(models[0].parameters()))
    explained = godynamo.explain(steps[1])(torch.randn(3, 4))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


def test_answers_that_change_all_the_time_are_given_up():
    def f(x):
        return halved(x + 0.5, []) * 2

    made = compared(f, *[POSITIVE, NEGATIVE] * 6)
    assert not any(made[-4:])
    assert any("branch" in reason for reason in utils.counters["graph_break"])


def test_all_branches_of_a_function_are_given_up_together():
    def clipped(x):
        return x.clamp(max=1) if x.max() > 1 else x

    def f(x):
        for part in x:
            x = x + clipped(part)
        return x

    parts = [torch.tensor([[float(i >> k & 1) * 2] for k in range(6)]) for i in range(24)]
    optimized = godynamo.optimize(f)
    compared(f, *parts, wrap=lambda _: optimized)
    entries = [e for e in godynamo.cache_entries(optimized) if e.orig_code is f.__code__]
    assert 1 < len(entries) < godynamo.config.cache_size_limit


@pytest.mark.parametrize("wanted", [0, 1, 3, 40])
def test_loops(wanted):
    def grown(x, limit):
        turns = 0
        while x.sum() < limit:
            x, turns = x * 2, turns + 1
        return x, turns

    def f(x):
        x, turns = grown(x + 0.0, 2.0 ** (wanted + 1) - 1)
        return x.relu(), turns

    made = compared(f, *[torch.ones(2) / 2 + i for i in range(8)], torch.zeros(2) + 1e-3)
    assert sum(made) < 60


def test_values_of_and_and_or():
    def chosen(x, y):
        return (x.sum() > 0 and y) or -y

    def f(x, y):
        return chosen(x * 2, y) + 1

    compared(f, (POSITIVE[:1], NEGATIVE[:1]), (NEGATIVE[:1], POSITIVE[:1]), (POSITIVE[:1], POSITIVE[:1]))


def test_everything_around_a_wrong_prediction_stays():
    class Guarded:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")

        def __exit__(self, kind, value, trace):
            self.log.append(kind)
            return kind is KeyError

    def checked(x, log):
        seen = {"before": len(log)}
        try:
            with torch.no_grad():
                y = x * 2
                if y.sum() > 0:
                    seen["grad"] = torch.is_grad_enabled()
                    log.append(y.sum().item())
                    if y.max() > 3:
                        raise KeyError("large")
                    return y, seen
            return x, seen
        finally:
            log.append(("left", seen))

    def f(x):
        log, out = [], []
        for i in range(3):
            with Guarded(log):
                y, seen = checked(x + i, log)
                out.append((y.relu(), seen, torch.is_grad_enabled()))
        return out, log

    compared(f, NEGATIVE, POSITIVE, POSITIVE, NEGATIVE * 3, POSITIVE / 4, POSITIVE, NEGATIVE, POSITIVE)


def test_the_exception_is_the_programs():
    def looked_up(x, table):
        if x.sum() > 0:
            return table["positive"]
        return table["negative"]

    def f(x):
        return looked_up(x * 2, {"negative": 1}) + x

    compared(f, NEGATIVE, POSITIVE, POSITIVE, NEGATIVE, POSITIVE)


def test_frames_that_cannot_go_on_break_as_before():
    def turns(x):
        for i in range(2):
            if x.sum() > i:
                yield x * i

    def named(x):
        if x.sum() > 0:
            return sys._getframe().f_code.co_name
        return ""

    def f(x):
        return list(turns(x + 1)), named(x)

    compared(f, POSITIVE, NEGATIVE, POSITIVE, NEGATIVE)


def test_nopython_refuses_the_branch_from_the_start():
    def f(x):
        return halved(x * 2, [])

    with pytest.raises(exc.Unsupported, match="branch on a tensor's value"):
        godynamo.optimize(f, nopython=True)(NEGATIVE)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_other_backends(backend):
    """For ``eager`` the graph breaks as before, since a whole graph cannot be left in its middle."""

    def f(x):
        return halved(halved(x * 2, []), []).sin()

    compared(f, NEGATIVE, POSITIVE, NEGATIVE, POSITIVE, wrap=godynamo.optimize(backend=backend))


def test_branches_in_functions_given_to_operations():
    def f(x, flag):
        flag = (flag > 0).item()

        def scaled(row):
            return row * 2 if flag else row

        y = scaled(x)
        return torch.vmap(scaled)(y) + torch.utils.checkpoint.checkpoint(scaled, y, use_reentrant=False)

    calls = [(POSITIVE, torch.tensor(k)) for k in (0, 1, 1, 0, 1)]
    compared(f, *calls)
