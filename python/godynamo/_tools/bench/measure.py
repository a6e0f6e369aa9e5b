"""One workload under several engines: correctness, what was captured, speed."""

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

#: calls made before timing, each compared with eager's: the first translates, a few more let both sides settle
#: (automatic dynamic shapes, hooks)
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
    """Return each engine's results for a workload, by label.

    {"correct": True, or "close" if it is within the backend's limit of eager; "backend", "graphs", "breaks", "ops",
    "cold" (engines.Account); "seconds": seconds per call, round by round, the engines in turn within each round; with
    details "guards", "guards_ns" (costs.guards), "calls", "bytes" (costs.work)}. An engine that fails or returns
    another result than eager has {"error": text} and no figures. Raises eager's exceptions. Rounds 0: nothing is
    timed. tell is called with the current activity; before is called with an engine before its first use.
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
                    with contextlib.suppress(Exception):  # missing figures are shown as missing
                        results[engine.label].update(_costs(engine, ready[engine.label]))
    return results


def _settle(workload: Workload, engine: Engine, wanted: list[Any]) -> tuple[Prepared, dict[str, Any]]:
    """Make the first calls and compare them. Raises AssertionError for another result than eager's."""
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
    """Stop inductor's workers: they import torch for seconds in the background, on a core that the rounds need."""
    workers = sys.modules.get("torch._inductor.async_compile")
    with contextlib.suppress(Exception):  # private to torch: a version may name it differently
        if workers is not None:
            workers.shutdown_compile_workers()


def _kept(result: Any) -> Any:
    """Return a copy of a result that a later call cannot change: a model may return its own buffer."""
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
    """Return one line of an exception, with its type."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:400]
