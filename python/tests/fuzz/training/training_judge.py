"""Runs a random training under CPython and under godynamo, and returns the first difference.

After each step, everything that fuzz-torch compares is compared of the model, its gradients, the optimizer's state and
groups, the scheduler and the scaler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "torch"))

from harness.device import DEVICE
from harness.fuzz_compare import Mismatch, Observed, compare
from torch_judge import TorchPlain, outcome

STEPS = 8


class TrainingPlain(TorchPlain):
    """Optimizers by their state in the order of the parameters, and objects by their attributes."""

    def _content(self, value: Any) -> Any:
        if isinstance(value, torch.optim.Optimizer):
            groups = [{k: v for k, v in g.items()} for g in value.param_groups]
            return (type(value).__name__, self(groups), self(value.defaults), self(dict(value.state)))
        if isinstance(value, torch.optim.lr_scheduler.LRScheduler):
            return (type(value).__name__, self({k: v for k, v in value.state_dict().items() if not callable(v)}))
        if isinstance(value, torch.amp.GradScaler):
            return (type(value).__name__, self(value.state_dict()))
        return super()._content(value)


def observe(ns: dict[str, Any], fn: Callable[..., Any], s: Any, step: int) -> dict[str, Any]:
    """Describe one step."""
    x = torch.linspace(-2.0, 2.0 + step % 3, 16, device=DEVICE).reshape(4, 4)
    y = (x.flip(0) * 0.5).sin()
    plain = TrainingPlain()

    def call() -> Any:
        ns["between"](s, step)
        return fn(s, x, y)

    result, _ = outcome(call, plain)
    result["effects"] = [plain(x), plain(vars(s)), plain(ns["LOG"])]
    del ns["LOG"][:]
    return result


def run(codes: list[Any], wrap: Callable[[Any], Any]) -> Observed:
    """Make all steps of a program."""
    ns: dict[str, Any] = {"__name__": "program"}
    for code in codes:
        exec(code, ns)
    torch.manual_seed(0)
    try:
        s = ns["make"]()
    except (RuntimeError, ValueError) as error:  # options that the optimizer refuses
        return [{"make": str(error)}]
    fn = wrap(ns["fn"])
    return [observe(ns, fn, s, step) for step in range(STEPS)]


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """Return the first difference between a program's two runs."""
    return compare(text, run, whole)
