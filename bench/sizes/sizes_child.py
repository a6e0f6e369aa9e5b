"""Runs one case of `make sizes` under one engine in a separate process and prints one JSON object.

    sizes_child.py CASE ENGINE ROUNDS

Eager mode runs all calls first; its results are the expected ones. Then the engine runs the calls of a second, equal
case. Times are those of the calling thread: translating, compiling and running, and the imports that these need. The
import of the engine itself (godynamo, torch._dynamo) is not counted.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import logging
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))

from godynamo._tools.bench import same, timing  # noqa: E402
from sizes_cases import CASES, Case, Steps  # noqa: E402

SEED = 3
#: number of first calls that are timed; the fastest counts
CAPTURES = 5
#: modules whose import costs about a second; a backend that runs graphs unchanged should not import them
HEAVY = ("sympy", "torch._dynamo")


class Counting:
    """A backend that counts graphs and runs them unchanged."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, gm: torch.fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
        self.graphs += 1
        return gm.forward


class Engine:
    """An engine, with its counters of what it has captured since the process began."""

    def __init__(self, name: str, inductor: bool) -> None:
        self._counting: Counting | None = None
        self._graphs = self._breaks = 0
        self._limited = _Limited()
        self._torch = name.startswith("torch")
        dynamic = True if name.endswith("-dynamic") else None
        if self._torch:
            importlib.import_module("torch._dynamo")
            logging.getLogger("torch._dynamo.convert_frame").addHandler(self._limited)
        backend: Any = "inductor" if inductor else "eager"
        if not inductor and name != "inline":
            backend = self._counting = Counting()
        self._options = {"backend": backend, "dynamic": dynamic}

    def start(self) -> None:
        """Count from here on."""
        self._graphs = self._breaks = 0
        self._graphs, self._breaks = self.graphs(), self.breaks()

    def optimize(self, target: Any, static: bool = False) -> Any:
        """Return the target optimized by this engine, with constant sizes if static is set."""
        options = self._options | {"dynamic": False} if static else self._options
        if self._torch:
            return torch.compile(target, **options)
        import godynamo

        return godynamo.optimize(target, **options)

    def graphs(self) -> int:
        """Return the number of graphs that the backend received, or that were written as bytecode."""
        if self._counting is not None:
            return self._counting.graphs - self._graphs
        return int(self._counters()["stats"]["unique_graphs"]) - self._graphs

    def breaks(self) -> int:
        """Return the number of graph breaks."""
        return int(sum(self._counters()["graph_break"].values())) - self._breaks

    def limited(self) -> bool:
        """Return whether a function has reached its limit of entries."""
        return self._limited.reached if self._torch else bool(_core_counters()["limit_reached"])

    def internal_errors(self) -> int:
        """Return the number of godynamo's internal errors; after one, CPython runs the call."""
        return 0 if self._torch else int(_core_counters()["internal_errors"])

    def _counters(self) -> Any:
        return importlib.import_module("torch._dynamo.utils" if self._torch else "godynamo.utils").counters


def _core_counters() -> dict[str, int]:
    from godynamo._core import core

    counters: dict[str, int] = core.counters()
    return counters


class _Limited(logging.Handler):
    """Notices torch's warning that a function has reached its limit of entries."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.reached = self.reached or "recompile_limit" in text or "cache_size_limit" in text


def mode(case: Case) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext() if case.grad else torch.no_grad()


def timed(steps: Iterator[Any]) -> Iterator[tuple[Any, float, float]]:
    """Yield each call's result, its seconds of this thread's processor time, and its seconds."""
    end = object()
    while True:
        wall, cpu = time.perf_counter(), time.thread_time()
        result = next(steps, end)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        if result is end:
            return
        yield result, cpu, wall


def bits_equal(got: Any, want: Any) -> bool:
    """Return whether two results are equal bit by bit, including NaNs and the signs of zeros."""
    if isinstance(want, torch.Tensor):
        if not isinstance(got, torch.Tensor) or (got.shape, got.dtype, got.stride()) != (
            want.shape,
            want.dtype,
            want.stride(),
        ):
            return False
        if got.requires_grad != want.requires_grad:
            return False
        a, b = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (got, want))
        return torch.equal(a, b)
    if isinstance(want, (list, tuple)):
        return type(got) is type(want) and len(got) == len(want) and all(map(bits_equal, got, want))
    if isinstance(want, dict):
        return isinstance(got, dict) and list(got) == list(want) and all(bits_equal(got[k], want[k]) for k in want)
    return type(got) is type(want) and bool(got == want)


def wrong(got: Any, want: Any, limit: float) -> str:
    """Return "" if a result is right, or else what differs. limit is the allowed difference; 0 means none."""
    if limit == 0.0:
        return "" if bits_equal(got, want) else f"not eager's bits, by {same.difference(got, want):.2g}"
    by = same.difference(got, want)
    return "" if by <= limit else f"differs by {by:.2g}"


def warm_inductor(optimize: Callable[[Any], Any]) -> None:
    """Compile another function first: this builds the compiler's headers and imports everything."""
    with torch.no_grad():
        optimize(lambda x: x.sin() + x.cos())(torch.randn(37))


def measure(name: str, engine_name: str, rounds: int) -> dict[str, Any]:
    """Run the case under the engine; return all figures."""
    case = CASES[name]
    inductor = case.flag == "inductor"
    torch.set_num_threads(1)

    def made() -> Any:
        torch.manual_seed(SEED)
        return case.make()

    result: dict[str, Any] = {"case": name, "engine": engine_name}
    target, steps = made()
    with mode(case):
        expected = list(timed(steps(target)))
    result["eager_ms"] = sum(cpu for _, cpu, _ in expected) * 1e3
    engine = Engine(engine_name, inductor)
    other, other_steps = made()
    with tempfile.TemporaryDirectory() as cache:
        if inductor:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
            warm_inductor(engine.optimize)
        compiled = engine.optimize(other)
        engine.start()
        before = {module for module in HEAVY if module in sys.modules}
        result |= calls(engine, other_steps(compiled), expected, case, same.limit_of("inductor") if inductor else 0.0)
        result["imports"] = [module for module in HEAVY if module in sys.modules and module not in before]
        if rounds and "error" not in result and case.warm:
            static = engine.optimize(other, static=True)
            sides = {"eager": (target, steps), "engine": (compiled, other_steps)}
            sides |= {"symbolic": (compiled, first(other_steps)), "static": (static, first(other_steps))}
            result |= warm(case, sides, rounds, len(expected))
        if rounds and "error" not in result and case.capture and engine_name == "inline":
            result["over_static_capture"] = over_static_capture(case, engine, other, first(other_steps))
    return result


def calls(engine: Engine, steps: Iterator[Any], expected: list[Any], case: Case, limit: float) -> dict[str, Any]:
    """Make all calls. Compare each result with eager mode's before the next call."""
    result: dict[str, Any] = {"graphs": 0, "by_call": [], "right": True}
    cpu_ms: list[float] = []
    wall_s = 0.0
    try:
        with mode(case):
            for (want, _, _), (got, cpu, wall) in zip(expected, timed(steps), strict=True):
                cpu_ms.append(cpu * 1e3)
                wall_s += wall
                result["by_call"].append(engine.graphs())
                if result["right"] and (text := wrong(got, want, limit)):
                    result["right"] = False
                    result["wrong"] = f"call {len(cpu_ms)}: {text}"
    except Exception as error:
        traceback.print_exc()
        text = str(error).strip() or "no text"
        result["error"] = f"raises in call {len(cpu_ms) + 1}: {type(error).__name__}: {text.splitlines()[0]}"[:300]
        result["right"] = False
    result |= {"graphs": engine.graphs(), "cpu_ms": sum(cpu_ms), "first_ms": cpu_ms[0] if cpu_ms else None}
    if engine.internal_errors():
        result["error"] = f"{engine.internal_errors()} internal errors"
    return result | {"wall_s": wall_s, "breaks": engine.breaks(), "limit": engine.limited()}


def first(steps: Steps) -> Steps:
    """Return steps that make only the first call."""
    return lambda target: itertools.islice(steps(target), 1)


def warm(case: Case, sides: dict[str, tuple[Any, Steps]], rounds: int, number: int) -> dict[str, Any]:
    """Time all calls once more, the sides in turn; return figures per call.

    The sides "eager" and "engine" make ``number`` calls. The sides "symbolic" and "static" make only the first call:
    with the entry that serves several sizes, and with an entry for constant sizes.
    """

    def run(target: Any, steps: Steps) -> Callable[[int], float]:
        def repeat(times: int) -> float:
            began = time.perf_counter()
            for _ in range(times):
                for _ in steps(target):
                    pass
            return time.perf_counter() - began

        return repeat

    with mode(case):
        for target, steps in sides.values():
            for _ in range(2):
                list(steps(target))
        samples = timing.rounds_in_turn({side: run(*pair) for side, pair in sides.items()}, rounds)
    best = {side: timing.figure(taken).best * 1e6 for side, taken in samples.items()}
    eager, engine = best["eager"] / number, best["engine"] / number
    figures = {"eager_us": eager, "warm_us": engine, "over_us": engine - eager, "ratio": engine / eager}
    return figures | {"over_static_us": best["symbolic"] - best["static"]}


def over_static_capture(case: Case, engine: Engine, target: Any, steps: Steps) -> float:
    """Return the processor time of a first call as a share of that of a first call with constant sizes."""
    best = {False: math.inf, True: math.inf}
    with mode(case):
        for _ in range(CAPTURES):
            for static in best:
                ((_, cpu, _),) = timed(steps(engine.optimize(target, static)))
                best[static] = min(best[static], cpu)
    return best[False] / best[True]


def main() -> None:
    """Run the command."""
    logging.getLogger("godynamo").setLevel(logging.ERROR)
    name, engine, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        result = measure(name, engine, rounds)
    except Exception as error:
        traceback.print_exc()
        result = {"case": name, "engine": engine, "error": f"{type(error).__name__}: {error}"[:300]}
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
