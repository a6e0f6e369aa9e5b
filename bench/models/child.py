"""One model of the zoo in a process of its own, which prints one JSON object.

    child.py NAME ROUNDS [--no-torch-compile] [--backend NAME]

Right means: outputs, gradients, buffers and the random numbers drawn afterwards are eager's bit by bit, in evaluation and in
training, on the first call and on later ones; where backward raises, the same exception. Close: equal to 1e-6, for models that
compute in another way where torch.compiler.is_compiling() (transformers.mamba).

With --backend only right and wrong are told. "callable" is a function that runs the GraphModule it gets, bit by bit as well.
torch's own backends compute in another order: close is then within LIMITS of the largest element, and what is further off is
"torch's" where torch.compile with the same backend is as far off.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import math
import os
import sys
import time
import timeit
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import zoo  # noqa: E402

import timing  # noqa: E402

Run = Callable[[], Any]

#: of the largest element of a tensor, what a result may be off, by backend
LIMITS = {"eager": 1e-6, "callable": 1e-6, "aot_eager": 1e-4, "inductor": 1e-3}


def run_as_captured(gm: torch.fx.GraphModule, _example_inputs: Any) -> Callable[..., Any]:
    """The backend "callable"."""
    gm.graph.lint()
    return lambda *inputs: gm(*inputs)


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors of an output, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return tensors(vars(value)) if type(value).__module__.startswith(("transformers", "timm")) else []


def differ(a: list[torch.Tensor | None], b: list[torch.Tensor | None]) -> float:
    """The greatest difference as part of the largest element: 0 bit by bit, infinite for other shapes or no gradient."""
    if len(a) != len(b):
        return math.inf
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if x is None or y is None or (x.shape, x.dtype) != (y.shape, y.dtype):
            worst = worst if x is y else math.inf
        elif not torch.equal(x.nan_to_num(), y.nan_to_num()):
            off = float((x.double() - y.double()).abs().nan_to_num(math.inf).max())
            worst = max(worst, off / max(1.0, float(x.double().abs().nan_to_num(0, 0, 0).max())))
    return worst


def step(module: torch.nn.Module, call: Run) -> tuple[Any, ...]:
    """One training step without the optimizer: outputs, gradients, buffers, the next random number, what backward raised."""
    torch.manual_seed(3)
    module.zero_grad()
    outputs = tensors(call())
    loss = sum((t.float().square().mean() for t in outputs if t.requires_grad), torch.zeros(()))
    raised = ""
    if loss.requires_grad:
        try:
            loss.backward()  # type: ignore[no-untyped-call]
        except RuntimeError as error:  # a model that changes in place what its gradient needs
            raised = str(error)
    return (
        [t.detach().clone() for t in outputs],
        [p.grad for p in module.parameters()],
        [b.clone() for b in module.buffers()],
        torch.rand(1),
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
    """Empty, "close", or what differs."""
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
            if not torch.equal(want[3], got[3]) or want[4] != got[4]:
                return f"random numbers or exception after the {turn} call"
    return verdict


def ours(name: str, result: dict[str, Any]) -> Callable[[Any], Any]:
    """Checks and counts with godynamo; returns what optimizes."""
    import godynamo

    torch.manual_seed(0)
    module, args, kwargs = zoo.MODELS[name]()
    result["wrong"] = right(module, copy.deepcopy(module), godynamo.optimize, args, kwargs)
    module.eval()
    godynamo.reset()
    explanation = godynamo.explain(module)(*args, **kwargs)
    result["graphs"], result["ops"] = explanation.graph_count, explanation.op_count
    reasons = Counter(str(reason).split("\n")[0] for reason in explanation.break_reasons)
    result["breaks"] = [f"{count} x {reason}"[:200] for reason, count in reasons.most_common(5)]
    return godynamo.optimize


def backend_alone(name: str, backend: str) -> dict[str, Any]:
    """Whether a model is right with a backend; where it is not, whether torch.compile's is, or is as far off."""
    import godynamo

    torch.set_num_threads(1)
    with_backend: Any = run_as_captured if backend == "callable" else backend
    if backend == "inductor":
        from torch._inductor import config

        config.fallback_random = True  # else it draws random numbers of its own

    def judged(optimize: Callable[..., Any]) -> str:
        torch.manual_seed(0)
        module, args, kwargs = zoo.MODELS[name]()
        return right(
            module,
            copy.deepcopy(module),
            lambda m: optimize(m, backend=with_backend),
            args,
            kwargs,
            LIMITS.get(backend, 1e-3),
        )

    began = time.perf_counter()
    result: dict[str, Any] = {"name": name, "backend": backend, "wrong": judged(godynamo.optimize)}
    result["seconds"] = time.perf_counter() - began
    if result["wrong"] not in ("", "close"):
        try:
            result["torch"] = judged(torch.compile)
        except Exception as error:
            result["torch"] = f"{type(error).__name__}: {error}"[:200]
    return result


def theirs(result: dict[str, Any], module: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    """Counts with torch.compile."""
    from torch import _dynamo

    explanation = _dynamo.explain(module)(*args, **kwargs)
    result["torch_graphs"] = explanation.graph_count
    _dynamo.reset()
    return lambda m: torch.compile(m, backend="eager")


def guards_us(compiled: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> float | None:
    """Microseconds that a hit takes to check the guards; None where a call is served by several entries."""
    import godynamo
    from godynamo import _C

    entries = godynamo.cache_entries(compiled)
    if len(entries) != 1 or entries[0].orig_code is not torch.nn.Module._wrapped_call_impl.__code__:
        return None
    slots = (module, args, kwargs)
    where = torch.nn.Module._wrapped_call_impl.__globals__
    taken = [_C.guard_time(entries[0], slots, where, 200) for _ in range(20)]
    if any(failures for _, failures in taken):
        raise AssertionError(f"the guards of {compiled} do not hold for the call that they serve")
    return min(ns for ns, _ in taken) / 1000


def measure(name: str, rounds: int, with_torch: bool) -> dict[str, Any]:
    """All figures of one model."""
    result: dict[str, Any] = {"name": name}
    torch.set_num_threads(1)
    optimize = ours(name, result)
    torch.manual_seed(0)
    module, args, kwargs = zoo.MODELS[name]()
    module.eval()
    ours_module = copy.deepcopy(module)
    sides: dict[str, Any] = {timing.EAGER: module}
    with torch.no_grad():
        compiled = optimize(ours_module)
        began = time.perf_counter()
        compiled(*args, **kwargs)
        result["cold"] = time.perf_counter() - began
        sides["godynamo"] = compiled
        if with_torch:
            try:
                other = copy.deepcopy(module)
                wrap = theirs(result, copy.deepcopy(module), args, kwargs)
                sides["torch.compile"] = wrap(other)
                began = time.perf_counter()
                sides["torch.compile"](*args, **kwargs)
                result["torch_cold"] = time.perf_counter() - began
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
        result["guards_us"] = guards_us(compiled, ours_module, args, kwargs)
        result["us"] = {side: timing.figure(taken).best * 1e6 for side, taken in samples.items()}
        result["ratios"] = {
            f"{side}/{base}": dataclasses.astuple(timing.ratio(samples[side], samples[base]))
            for side, base in (("godynamo", "eager"), ("torch.compile", "eager"), ("godynamo", "torch.compile"))
            if side in samples and base in samples
        }
        for side in ("eager", "godynamo"):
            torch.manual_seed(5)
            result.setdefault("work", {})[side] = work(lambda call=sides[side]: call(*args, **kwargs))  # type: ignore[misc]
    return result


def work(call: Run) -> dict[str, int]:
    """What a call has torch do, whatever the machine is busy with: calls of operators, those that operators make
    among them, and the most bytes alive at a time that the call has allocated."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        output = call()
    now = most = calls = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
        else:
            calls += 1
    del output
    return {"calls": calls, "bytes": most}


def main() -> None:
    """Command line."""
    logging.disable(logging.WARNING)
    name, rounds = sys.argv[1], int(sys.argv[2])
    try:
        if "--backend" in sys.argv:
            result = backend_alone(name, sys.argv[sys.argv.index("--backend") + 1])
        else:
            result = measure(name, rounds, "--no-torch-compile" not in sys.argv)
    except Exception as error:
        import traceback

        traceback.print_exc()
        result = {"name": name, "error": f"{type(error).__name__}: {error}"[:300]}
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
