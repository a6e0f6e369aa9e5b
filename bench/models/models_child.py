"""Runs one model of the zoo in a separate process and prints one JSON object.

    models_child.py NAME ROUNDS [--no-torch-compile] [--backend NAME]

A model is right if its outputs, gradients, buffers and the next random numbers equal those of eager mode bit by bit, in
evaluation and in training, on the first and on later calls. If eager's backward raises, ours must raise the same
exception. A model is close if the differences are at most 1e-6: some models compute differently under
torch.compiler.is_compiling() (transformers.mamba).

A first call is the call of a fresh copy that has not been captured, in CPU time of the process, the best of
FIRST_CALLS. It includes the model's own run. It excludes imports and first-time costs of torch's kernels, since both
engines have already captured another copy. Eager's call of a fresh copy is measured in the same way.

With --backend only correctness is reported. The backend "callable" is a function that runs its GraphModule, and its
results must also be equal bit by bit. torch's own backends compute in another order: a model is then close if the
differences are within same.LIMITS, as a share of the largest element. A larger difference counts as "torch's" if
torch.compile with the same backend shows the same difference.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
import logging
import math
import os
import sys
import time
import timeit
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402

from godynamo._tools.bench import costs, same, timing, zoo  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "tests"))

from harness.device import DEVICE, deterministic, moved, random_state  # noqa: E402

Run = Callable[[], Any]


def run_as_captured(gm: torch.fx.GraphModule, _example_inputs: Any) -> Callable[..., Any]:
    """Return a function that runs the graph unchanged; this is the backend "callable"."""
    gm.graph.lint()
    return lambda *inputs: gm(*inputs)


def model(name: str) -> tuple[Any, Any, Any]:
    """Return a model of the zoo, its arguments and keywords, on GODYNAMO_DEVICE."""
    module, args, kwargs = moved(zoo.MODELS[name]())
    return module, args, kwargs


def tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors of an output, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return tensors(vars(value)) if type(value).__module__.startswith(("transformers", "timm")) else []


def differ(a: list[torch.Tensor | None], b: list[torch.Tensor | None]) -> float:
    """Return the largest difference as a share of the largest element: 0 if bitwise equal, inf if shapes differ."""
    if len(a) != len(b):
        return math.inf
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if x is None or y is None:
            worst = worst if x is y else math.inf
        else:
            worst = max(worst, same.tensor_difference(y, x))
    return worst


def step(module: torch.nn.Module, call: Run) -> tuple[Any, ...]:
    """Run forward and backward; return outputs, gradients, buffers, the next random number and backward's exception."""
    torch.manual_seed(3)
    module.zero_grad()
    outputs = tensors(call())
    loss = sum((t.float().square().mean() for t in outputs if t.requires_grad), torch.zeros(()))
    raised = ""
    if loss.requires_grad:
        try:
            loss.backward()  # type: ignore[no-untyped-call]
        except RuntimeError as error:  # the model changes a tensor in place that its gradient needs
            raised = str(error)
    return (
        [t.detach().clone() for t in outputs],
        [p.grad for p in module.parameters()],
        [b.clone() for b in module.buffers()],
        random_state(),
        raised,
    )


def right(
    eager: torch.nn.Module,
    ours: torch.nn.Module,
    wrap: Callable[[Any], Any],
    args: Any,
    kwargs: Any,
    limit: float = 1e-6,
) -> str:
    """Return "" if right, "close", or what differs."""
    verdict = ""
    for training in (False, True):
        eager.train(training)
        ours.train(training)
        compiled = wrap(ours)
        for turn in ("first", "second", "third"):
            want = step(eager, lambda: eager(*args, **kwargs))
            got = step(ours, lambda compiled=compiled: compiled(*args, **kwargs))  # type: ignore[misc]
            for i, what in enumerate(("outputs", "gradients", "buffers")):
                if (by := differ(want[i], got[i])) > limit:
                    return f"{what} in {'training' if training else 'evaluation'}, {turn} call, by {by:.2g}"
                verdict = "close" if by else verdict
            if want[3:] != got[3:]:
                return f"random numbers or exception after the {turn} call"
    return verdict


def ours(name: str, result: dict[str, Any]) -> Callable[[Any], Any]:
    """Check a model and count its graphs under godynamo; return godynamo.optimize."""
    import godynamo

    torch.manual_seed(0)
    module, args, kwargs = model(name)
    result["wrong"] = right(module, copy.deepcopy(module), godynamo.optimize, args, kwargs)
    module.eval()
    godynamo.reset()
    explanation = godynamo.explain(module)(*args, **kwargs)
    result["graphs"], result["ops"] = explanation.graph_count, explanation.op_count
    reasons = Counter(str(reason).split("\n")[0] for reason in explanation.break_reasons)
    result["breaks"] = [f"{count} x {reason}"[:200] for reason, count in reasons.most_common(5)]
    return godynamo.optimize


def backend_alone(name: str, backend: str) -> dict[str, Any]:
    """Check a model with a backend; if it is wrong, also check torch.compile with that backend."""
    import godynamo

    torch.set_num_threads(1)
    with_backend: Any = {"callable": run_as_captured, "aside": "inductor"}.get(backend, backend)
    godynamo.config.compile_aside = backend == "aside"
    if with_backend == "inductor":
        from torch._inductor import config

        config.fallback_random = True  # otherwise inductor draws other random numbers than eager mode

    def judged(optimize: Callable[..., Any]) -> str:
        torch.manual_seed(0)
        module, args, kwargs = model(name)
        return right(
            module,
            copy.deepcopy(module),
            lambda m: waiting(optimize(m, backend=with_backend)),
            args,
            kwargs,
            # A GPU adds in another order where a program does something else under is_compiling().
            max(same.limit_of(with_backend), 1e-6 if DEVICE == "cpu" else 1e-5),
        )

    def waiting(compiled: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = compiled(*args, **kwargs)
            godynamo.wait_for_compilation()
            return result

        return call if backend == "aside" else compiled

    began = time.perf_counter()
    result: dict[str, Any] = {"name": name, "backend": backend, "wrong": judged(godynamo.optimize)}
    result["seconds"] = time.perf_counter() - began
    result["aside"] = {k: n for k, n in godynamo.utils.counters["stats"].items() if k.endswith("_aside")}
    if result["wrong"] not in ("", "close"):
        result["eager"] = judged(lambda m, backend: m)
        try:
            result["torch"] = judged(torch.compile)
        except Exception as error:
            result["torch"] = f"{type(error).__name__}: {error}"[:200]
    return result


def theirs(result: dict[str, Any], module: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    """Count the graphs of torch.compile; return a function that compiles a module with torch.compile."""
    from torch import _dynamo

    explanation = _dynamo.explain(module)(*args, **kwargs)
    result["torch_graphs"] = explanation.graph_count
    _dynamo.reset()
    return lambda m: torch.compile(m, backend="eager")


FIRST_CALLS = 3  # the number of first calls of each side; the figure is the least


def first_call(
    module: Any, wrap: Callable[[Any], Any], args: Any, kwargs: Any, forget: Run = lambda: None
) -> tuple[Any, Any, float]:
    """Measure first calls of fresh copies; return the last copy, what ``wrap`` made of it, and the seconds.

    ``forget`` drops what an engine knows about the program, so that each call captures.
    """
    taken = []
    for _ in range(FIRST_CALLS):
        forget()
        copied = copy.deepcopy(module)
        call = wrap(copied)
        gc.collect()
        began = time.process_time()
        call(*args, **kwargs)
        taken.append(time.process_time() - began)
    return copied, call, min(taken)


def measure(name: str, rounds: int, with_torch: bool) -> dict[str, Any]:
    """Measure all figures of one model."""
    import godynamo

    result: dict[str, Any] = {"name": name}
    torch.set_num_threads(1)
    optimize = ours(name, result)
    torch.manual_seed(0)
    module, args, kwargs = model(name)
    module.eval()
    sides: dict[str, Any] = {timing.EAGER: module}
    with torch.no_grad():
        _, _, result["eager_first"] = first_call(module, lambda m: m, args, kwargs)
        ours_module, compiled, result["cold"] = first_call(module, optimize, args, kwargs, godynamo.reset)
        sides["godynamo"] = compiled
        if with_torch:
            try:
                wrap = theirs(result, copy.deepcopy(module), args, kwargs)
                _, sides["torch.compile"], result["torch_cold"] = first_call(
                    module, wrap, args, kwargs, torch._dynamo.reset
                )
            except Exception as error:
                sides.pop("torch.compile", None)
                result["torch_error"] = f"{type(error).__name__}: {error}"[:200]
        for call in sides.values():
            for _ in range(3):
                call(*args, **kwargs)
        runs = {
            side: lambda n, call=call: timeit.Timer(lambda: call(*args, **kwargs)).timeit(n)
            for side, call in sides.items()
        }
        samples = timing.rounds_in_turn(runs, rounds, seconds=0.02)
        ns = costs.guards("godynamo", compiled, ours_module, args, kwargs).get("guards_ns")
        result["guards_us"] = ns / 1000 if ns is not None else None
        result["us"] = {side: timing.figure(taken).best * 1e6 for side, taken in samples.items()}
        result["ratios"] = {
            f"{side}/{base}": dataclasses.astuple(timing.ratio(samples[side], samples[base]))
            for side, base in (("godynamo", "eager"), ("torch.compile", "eager"), ("godynamo", "torch.compile"))
            if side in samples and base in samples
        }
        for side in ("eager", "godynamo"):
            torch.manual_seed(5)
            result.setdefault("work", {})[side] = costs.work(lambda call=sides[side]: call(*args, **kwargs))  # type: ignore[misc]
    return result


def report(name: str, run: Callable[[], dict[str, Any]]) -> None:
    """Print what ``run`` returns for a model as the last line, or the exception that it raises."""
    try:
        result = run()
    except Exception as error:
        traceback.print_exc()
        result = {"name": name, "error": f"{type(error).__name__}: {error}"[:300]}
    print("\n" + json.dumps(result))


def main() -> None:
    """Run the command."""
    logging.disable(logging.WARNING)
    name, rounds = sys.argv[1], int(sys.argv[2])

    def run() -> dict[str, Any]:
        if "--backend" not in sys.argv:
            return measure(name, rounds, "--no-torch-compile" not in sys.argv)
        with deterministic():  # otherwise a GPU adds in the order of its threads
            return backend_alone(name, sys.argv[sys.argv.index("--backend") + 1])

    report(name, run)


if __name__ == "__main__":
    main()
