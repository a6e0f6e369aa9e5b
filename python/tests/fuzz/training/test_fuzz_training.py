"""A short `make fuzz-training`, and the differences that its comparison must detect."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pytest
import torch

import harness.fuzz_children as children
import harness.fuzz_compare as comparing
from fuzz_training_run import TRAINING
from training_judge import judge


def test_random_steps_are_eagers():
    found = [(seed, str(m)) for seed, m in children.mismatches(TRAINING, list(range(30))) if m is not None]
    assert not found, "\n".join(f"fuzz_training_run.py --count 1 --seed {seed}: {text}" for seed, text in found)


def test_the_programs_have_every_optimizer():
    text = "\n".join(TRAINING.text(seed).split("\ndef make(", 1)[1] for seed in range(400))
    for name in vars(torch.optim):
        if isinstance(getattr(torch.optim, name), type) and name != "Optimizer":
            assert f"torch.optim.{name}(" in text, name
    for (
        word
    ) in "foreach=True fused=True maximize=True amsgrad=True scheduler= scaler=True closure load_state_dict".split():
        assert word in text, word


def changed(effect):
    """Return a wrong form of a step, with one additional effect."""

    def wrap(fn):
        def call(s, x, y):
            value = fn(s, x, y)
            effect(s)
            return value

        return call

    return wrap


STEP = "def fn(s, x, y):\n    loss = s.loss(s.model(x), y)\n    loss.backward()\n    s.opt.step()\n    return loss\n"
ADAM = "\ndef make():\n    return State(Mlp(), lambda m: torch.optim.Adam(m.parameters()))\n\n"


def nudge(t):
    t.view(-1)[0] = torch.nextafter(t.view(-1)[0], torch.tensor(9.0))


@pytest.mark.parametrize(
    "effect",
    [
        lambda s: nudge(s.model.first.weight.data),
        lambda s: nudge(s.model.first.weight.grad),
        lambda s: nudge(s.opt.state[s.model.first.weight]["exp_avg"]),
        lambda s: s.opt.state[s.model.first.weight]["step"].add_(1),
        lambda s: s.opt.param_groups[0].update(lr=0.5),
        lambda s: s.opt.zero_grad(),
        lambda s: s.total.add_(1),
    ],
)
def test_a_wrong_step_is_seen(monkeypatch, effect):
    prelude = TRAINING.text(0).split("\ndef make(", 1)[0]
    text = prelude + ADAM + "def between(s, step): pass\n\n" + STEP
    assert judge(text) is None
    monkeypatch.setattr(comparing.godynamo, "optimize", lambda backend: changed(effect))
    assert judge(text).kind == "effects"
