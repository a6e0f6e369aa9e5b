"""`make models MODELS_ARGS="--train"`: trains each model for some steps and prints the table.

Child: training_of_models.py NAME [--no-torch-compile]    prints one JSON object

A step is one function: zero_grad, forward, loss, backward and the step of AdamW. Losses, parameters, gradients,
buffers and the next random number after STEPS steps must equal eager mode's bit by bit. "forward" is the number of
graphs of the model alone in training mode, "step" of a step once the optimizer's state exists, with torch.compile's
numbers beside them. The ratio is a step's time relative to eager mode's, taken in turn. A model fails if it is wrong,
if its forward has more graphs than torch.compile's, or its step has more than MOST_STEP_GRAPHS and more than its
forward.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import os
import sys
import timeit
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402

from godynamo._tools.bench import timing  # noqa: E402
from models_child import differ, model, report, tensors  # noqa: E402  (makes harness importable)

from harness.device import random_state  # noqa: E402  # isort: skip

STEPS = 5
ROUNDS = 5
MOST_STEP_GRAPHS = 2
#: largest difference of a model that computes differently under torch.compiler.is_compiling()
CLOSE = 1e-6


class Training:
    """A model in training with its optimizer and its input."""

    def __init__(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        self.module, self.args, self.kwargs = module.train(), args, kwargs
        self.optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)

    def step(self) -> torch.Tensor:
        """Make one step and return the loss, a scalar."""
        self.optimizer.zero_grad()
        outputs = tensors(self.module(*self.args, **self.kwargs))
        loss = sum((t.float().square().mean() for t in outputs if t.requires_grad), torch.zeros(()))
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss

    def after(self, step: Callable[[], torch.Tensor]) -> tuple[list[torch.Tensor | None], Any]:
        """Make STEPS steps; return losses, parameters, gradients and buffers, and the next random number."""
        torch.manual_seed(3)
        losses = [step().detach() for _ in range(STEPS)]
        parameters = list(self.module.parameters())
        return [
            *losses,
            *(p.detach() for p in parameters),
            *(p.grad for p in parameters),
            *self.module.buffers(),
        ], random_state()


def judged(want: tuple[Any, Any], got: tuple[Any, Any]) -> str:
    """Return "right", "close", or what is wrong."""
    worst = differ(want[0], got[0])
    if worst > CLOSE or want[1] != got[1]:
        return f"WRONG by {worst:.2g}" if worst else "WRONG random numbers"
    return "close" if worst else "right"


def ours(run: Training, result: dict[str, Any], want: tuple[Any, Any]) -> Callable[[], torch.Tensor]:
    """Train with godynamo; note verdict, graphs and breaks; return the optimized step."""
    import godynamo
    from godynamo import _C

    step: Callable[[], torch.Tensor] = godynamo.optimize(run.step)
    result["verdict"] = judged(want, run.after(step))
    if _C.counters()["internal_errors"]:
        result["verdict"] = "WRONG internal error"
    explanations = {
        "step": godynamo.explain(run.step)(),
        "forward": godynamo.explain(run.module)(*run.args, **run.kwargs),
    }
    for what, explanation in explanations.items():
        result[what] = explanation.graph_count
        reasons = Counter(str(reason).split("\n")[0] for reason in explanation.break_reasons)
        result[f"{what}_breaks"] = [f"{count} x {reason}"[:200] for reason, count in reasons.most_common(5)]
    return step


def theirs(run: Training, result: dict[str, Any]) -> Callable[[], torch.Tensor]:
    """Count the graphs of torch.compile; return the compiled step."""
    from torch import _dynamo
    from torch._dynamo.testing import CompileCounter

    forward = CompileCounter()
    torch.compile(run.module, backend=forward)(*run.args, **run.kwargs)
    result["torch_forward"] = forward.frame_count
    _dynamo.reset()
    counter = CompileCounter()
    step = torch.compile(run.step, backend=counter)
    for _ in range(3):
        step()
    result["torch_step"] = counter.frame_count
    return step


def measure(name: str, with_torch: bool) -> dict[str, Any]:
    """Return the figures of one model."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, args, kwargs = model(name)
    result: dict[str, Any] = {"name": name}
    runs = {side: Training(copy.deepcopy(module), args, kwargs) for side in (timing.EAGER, "godynamo")}
    want = runs[timing.EAGER].after(runs[timing.EAGER].step)
    steps = {timing.EAGER: runs[timing.EAGER].step, "godynamo": ours(runs["godynamo"], result, want)}
    if with_torch:
        try:
            steps["torch.compile"] = theirs(Training(copy.deepcopy(module), args, kwargs), result)
        except Exception as error:
            result["torch_error"] = f"{type(error).__name__}: {error}"[:200]
    timers = {side: lambda n, step=step: timeit.Timer(step).timeit(n) for side, step in steps.items()}
    samples = timing.rounds_in_turn(timers, ROUNDS, seconds=0.02)
    result["us"] = {side: timing.figure(taken).best * 1e6 for side, taken in samples.items()}
    result["ratios"] = {
        side: dataclasses.astuple(timing.ratio(samples[side], samples[timing.EAGER]))
        for side in samples
        if side != timing.EAGER
    }
    return result


# ---- the table -------------------------------------------------------------------------------------------------------

HEAD = (
    f"{'model':34} {'':6} {'forward, torch':>14} {'step, torch':>12} {'eager us':>9} {'ours/eager':>10}"
    f" {'torch/eager':>11}"
)


def line(r: dict[str, Any]) -> str:
    """Return a row of the table."""
    if "error" in r:
        return f"{r['name']:34} {r['error'].splitlines()[-1][:100]}"
    ratios = {side: f"{median:.2f}" for side, (median, _, _) in r["ratios"].items()}
    return (
        f"{r['name']:34} {r['verdict']:6} {r['forward']:8} {r.get('torch_forward', '-'):>5} {r['step']:6}"
        f" {r.get('torch_step', '-'):>5} {r['us'][timing.EAGER]:9.0f} {ratios['godynamo']:>10}"
        f" {ratios.get('torch.compile', '-'):>11}"
    )


def failed(r: dict[str, Any]) -> bool:
    """Return whether a model failed, is wrong or has too many graphs."""
    if "error" in r or r["verdict"].startswith("WRONG"):
        return True
    return bool(r["forward"] > r.get("torch_forward", 1) or r["step"] > max(MOST_STEP_GRAPHS, r["forward"]))


def notes(r: dict[str, Any]) -> list[str]:
    """Return the reasons of a model's breaks, those of its forward first."""
    return [
        f"{what}: {reason}"
        for what in ("forward", "step")
        if r.get(what, 1) > 1
        for reason in r.get(f"{what}_breaks", ())
    ]


def in_one(rows: list[dict[str, Any]], key: str) -> str:
    """Return how many rows torch.compile captures in one graph, in brackets; "" if it has not run."""
    return f" (torch.compile {sum(r.get(key) == 1 for r in rows)})" if any(key in r for r in rows) else ""


def summary(found: list[dict[str, Any]]) -> str:
    """Return the lines below the table."""
    done = [r for r in found if "error" not in r]
    verdicts = Counter(r["verdict"].split()[0] for r in done)
    ratios = sorted(r["ratios"]["godynamo"][0] for r in done)
    middle = ratios[len(ratios) // 2] if ratios else float("nan")
    return (
        f"{len(found)} models trained for {STEPS} steps: {verdicts['right']} right, {verdicts['close']} close,"
        f" {verdicts['WRONG']} wrong, {len(found) - len(done)} failed\n"
        f"forward in one graph: {sum(r['forward'] == 1 for r in done)}{in_one(done, 'torch_forward')};"
        f" step in one graph: {sum(r['step'] == 1 for r in done)}{in_one(done, 'torch_step')},"
        f" in two: {sum(r['step'] == 2 for r in done)};"
        f" time of a step relative to eager: median {middle:.2f}"
    )


def main() -> None:
    """Run the command of a child."""
    logging.disable(logging.ERROR)
    name = sys.argv[1]
    report(name, lambda: measure(name, "--no-torch-compile" not in sys.argv))


if __name__ == "__main__":
    main()
