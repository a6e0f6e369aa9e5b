"""A short `make fuzz-torch`, and the differences that its comparison detects and fuzz-language's does not."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "language"))

import pytest
import torch

import harness.fuzz_children as children
import harness.fuzz_compare as comparing
import torch_judge as judging
from fuzz_torch_run import SIZED, TORCH
from harness import device
from torch_program import HEADER, TORCH_PRELUDE, cases, program, source


def assert_eagers(kind, first, option=""):
    found = [(seed, str(m)) for seed, m in children.mismatches(kind, list(range(first, first + 20))) if m is not None]
    assert not found, "\n".join(f"fuzz_torch_run.py --count 1 --seed {seed}{option}: {text}" for seed, text in found)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_are_eagers(first):
    assert_eagers(TORCH, first)


def test_random_programs_at_other_sizes_are_eagers():
    assert_eagers(SIZED, 0, " --sizes")


def test_a_seed_is_one_program_that_compiles():
    for seed in range(300):
        compile(TORCH.text(seed), "p", "exec")
    assert TORCH.text(7) == TORCH.text(7) != TORCH.text(8)


def test_the_programs_have_every_part_of_torch():
    text = "\n".join(TORCH.text(seed).split("\ndef fn(", 1)[1] for seed in range(400))
    words = (
        "backward( autograd.grad( no_grad() enable_grad() inference_mode( autocast( dropout( randn( bernoulli( "
        "checkpoint( Scale.apply "
        "func.grad( vmap( register_hook( register_forward_hook( .step() clip_grad_norm_( manual_seed( "
        "set_default_dtype( m.train() m.eval() "
        "requires_grad_() detach_() copy_( .view( .t() expand_as( chunk( .data _base _version data_ptr() "
        "m.parameters() state_dict() "
        "use_deterministic_algorithms( saved_tensors_hooks( m.zero_grad() out= .grad= for while try: with yield print("
    )
    for word in words.split():
        assert word in text, word


def changed(**how):
    """Return a wrong form of a function, with one additional effect."""

    def wrap(fn):
        def call(x, y, n, l, d, o, m, w):
            value = fn(x, y, n, l, d, o, m, w)
            for effect in how.values():
                value = effect(value, x, y, m, w) or value
            return value

        return call

    return wrap


@pytest.mark.parametrize(
    ("effect", "kind"),
    [
        (lambda value, x, y, m, w: (value[0].clone(), *value[1:]), "value"),  # no longer an alias of the argument
        (lambda value, x, y, m, w: (value[0], value[1].detach()), "value"),
        (lambda value, x, y, m, w: (x.data.add_(1), None)[1], "effects"),
        (lambda value, x, y, m, w: (m.mean.add_(1), None)[1], "effects"),
        (lambda value, x, y, m, w: setattr(w, "grad", torch.ones(4, 4)), "effects"),
        (lambda value, x, y, m, w: torch.rand(1) is None or None, "random state"),
        (lambda value, x, y, m, w: torch.set_default_dtype(torch.float64), "modes"),
        (lambda value, x, y, m, w: torch.set_grad_enabled(False) and None, "modes"),
        (lambda value, x, y, m, w: (value[0], value[1] + w.detach()[0, 1]), "value"),  # another grad_fn
        (lambda value, x, y, m, w: value[1].register_hook(lambda g: g * 2) and None, "backward"),
    ],
)
def test_a_wrong_result_is_seen(monkeypatch, effect, kind):
    text = "\n".join([TORCH_PRELUDE, *cases(1), "", HEADER, "    return y.view(-1), y.sum() * w.sum()"]) + "\n"
    assert judging.judge(text) is None
    monkeypatch.setattr(comparing.godynamo, "optimize", lambda backend: changed(effect=effect))
    assert judging.judge(text).kind == kind


def test_programs_for_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each factory of torch gets the device, whatever its arguments are, and the program still compiles."""
    monkeypatch.setattr(device, "DEVICE", "cuda")
    text = (
        "a = torch.zeros(4) + torch.tensor([f(1), (2)]).sum()\nwith torch.autocast('cpu',enabled=True): torch.rand({})"
    )
    assert device.placed(text) == (
        "a = torch.zeros(4, device='cuda') + torch.tensor([f(1), (2)], device='cuda').sum()\n"
        "with torch.autocast('cuda',enabled=True): torch.rand({}, device='cuda')"
    )
    for seed in range(40):
        made = source(seed, program(seed))
        compile(made, "program", "exec")
        assert "device='cuda'" in made
