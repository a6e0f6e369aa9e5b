"""Runs one workload under several engines; measures correctness, captured graphs and speed."""

from __future__ import annotations

import contextlib
import sys
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from . import costs, same, timing
from .engines import EAGER, Engine
from .workload import Prepared, Workload

#: Number of calls before timing. Each result is compared with eager mode's result. The first call translates; a few
#: more calls are needed until later calls no longer differ (automatic dynamic shapes, hooks).
SETTLE = 5

Tell = Callable[[str], None]


def _nobody(text: str) -> None:
    pass


def _nothing(engine: Engine) -> None:
    pass


def measure(
    workload: Workload,
    engines: Sequence[Engine],
    rounds: int,
    *,
    details: bool = True,
    tell: Tell = _nobody,
    before: Callable[[Engine], None] = _nothing,
) -> dict[str, dict[str, Any]]:
    """Run a workload under engines; return {engine's label: results}.

    The results are "correct" (True, or "close" if the difference to eager mode is within the backend's limit),
    "backend", "graphs", "breaks", "ops" and "cold" (see engines.Account), and "seconds": seconds per call, one number
    per round; the engines take turns within a round. With details they also are "guards" and "guards_ns" (see
    costs.guards), "calls" and "bytes" (see costs.work). If an engine fails, or its result differs from eager mode's
    result, its results are {"error": text}. Exceptions of eager mode propagate. If rounds is 0, nothing is timed.
    ``tell`` is called with the current activity, ``before`` with each engine before its first use.
    """
    results: dict[str, dict[str, Any]] = {}
    ready: dict[str, Prepared] = {}
    with workload.context():
        tell(EAGER)
        eager = workload.prepare(lambda target: target)
        wanted = [_kept(_seeded(eager.check)) for _ in range(SETTLE)]
        for engine in engines:
            tell(engine.label)
            before(engine)
            try:
                ready[engine.label], results[engine.label] = _settle(workload, engine, wanted)
            except Exception as error:
                results[engine.label] = {"error": text_of(error)}
        tell("rounds")
        _end_compile_workers()
        for label, samples in _rounds(ready, rounds, workload.seconds).items():
            results[label]["seconds"] = samples
        if details:
            for engine in engines:
                if engine.label in ready:
                    tell(f"{engine.label}, costs")
                    with contextlib.suppress(Exception):  # the output shows figures as missing if this fails
                        results[engine.label].update(_costs(engine, ready[engine.label]))
    return results


def _settle(workload: Workload, engine: Engine, wanted: list[Any]) -> tuple[Prepared, dict[str, Any]]:
    """Make the first calls and compare their results with eager mode's. Raises AssertionError if they differ."""
    backend = engine.backend_for(workload.backend)
    engine.forget()
    prepared = workload.prepare(engine.transform(workload.backend))
    account = engine.account()
    got = _seeded(prepared.check)
    result: dict[str, Any] = {"backend": backend if engine.kind != EAGER else "", **account.close()}
    limit = workload.limit_for(backend) if engine.kind != EAGER else 0.0
    worst = same.difference(got, wanted[0])
    for turn, want in enumerate(wanted[1:], start=2):
        if worst > limit:
            raise AssertionError(f"another result than eager's in call {turn - 1}, by {worst:.2g}")
        worst = max(worst, same.difference(_seeded(prepared.check), want))
    if worst > limit:
        raise AssertionError(f"another result than eager's in call {len(wanted)}, by {worst:.2g}")
    result["correct"] = True if worst == 0 else "close"
    return prepared, result


def _seeded(check: Callable[[], Any]) -> Any:
    torch.manual_seed(3)
    return check()


def _end_compile_workers() -> None:
    """Stop inductor's worker processes: they import torch for seconds, on a processor core that the rounds need."""
    workers = sys.modules.get("torch._inductor.async_compile")
    with contextlib.suppress(Exception):  # this is a private function of torch, whose name may change
        if workers is not None:
            workers.shutdown_compile_workers()


def _kept(result: Any) -> Any:
    """Return a copy of a result. A model may return its own buffer, which a later call would change."""
    return tree_map_only(torch.Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), result)


def _rounds(ready: dict[str, Prepared], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return seconds per call of each engine, round by round."""
    runs: dict[str, Callable[[int], float]] = {}
    for label, prepared in ready.items():
        timer = timeit.Timer(prepared.statement, globals=prepared.names)
        per_call = 1 / prepared.calls
        runs[label] = lambda n, timer=timer, per_call=per_call: timer.timeit(n) * per_call  # type: ignore[misc]
    return timing.rounds_in_turn(runs, rounds, seconds) if rounds and runs else {}


def _costs(engine: Engine, prepared: Prepared) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if prepared.target is not None:
        with contextlib.suppress(Exception):
            found = costs.guards(engine.kind, prepared.compiled, prepared.target, prepared.args, prepared.kwargs)
    torch.manual_seed(5)
    return {**found, **costs.work(prepared.check)}


def text_of(error: BaseException) -> str:
    """Return an exception's type and text in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:400]
