"""`make first-calls`: where the time of a model's first call goes.

    bench/first_calls.py MODEL... [--runs N]

All times are CPU time of the calling thread, the best of N calls of fresh copies of the model in one process, after one
that imports what capturing needs. The phases of a translation are the shares that its clock measures (the trace's
`times`), applied to the capture: the first call minus eager's call. The lines below "of this" overlap with the phases:
they come from profiles of the same calls in a library that is built with the tag `profile` (pyhook/profile.go).
MODEL is a name of `make models`, with wildcards.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import fnmatch
import gc
import logging
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]

import pgo  # noqa: E402

PHASES = {
    "translate": "translating: the program, executed symbolically",
    "decode": "decoding code objects",
    "guards": "building the guards",
    "backend": "the backend: the graph's instructions or GraphModule",
    "lower": "the code object of the transformed function",
    "install": "the entry: constants, guards in C, tracebacks",
}
STATISTICS = ("calls from Go into C and CPython", "allocated bytes", "objects", "collections", "collector")


class Calls:
    """Counts the calls of a Python function and their CPU time."""

    def __init__(self) -> None:
        self.count: int = 0
        self.seconds: float = 0.0

    def around(self, owner: Any, function: str) -> Any:
        """Replace owner's function by one that is measured; return the function."""
        original = getattr(owner, function)

        def measured(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return original(*args, **kwargs)
            finally:
                self.count += 1
                self.seconds += time.thread_time() - began

        setattr(owner, function, measured)
        return original


def best(make: Callable[[], Any], args: Any, kwargs: Any, runs: int, after: Callable[[], None]) -> tuple[float, float]:
    """Return the smallest CPU time of a call of what ``make`` returns, and the smallest time that such a call waits."""
    taken, waited = [], []
    for _ in range(runs):
        call = make()
        wall, cpu = time.perf_counter(), time.thread_time()
        call(*args, **kwargs)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        taken.append(cpu)
        waited.append(wall - cpu)
        del call
        after()
        gc.collect()
    return min(taken), max(0.0, min(waited))


def phases(make: Callable[[], Any], args: Any, kwargs: Any, runs: int, after: Callable[[], None]) -> Counter[str]:
    """Return the time of each phase, in the call that took least."""
    from godynamo._called import runtime
    from godynamo._observe import trace

    runs_of: list[Counter[str]] = []
    watched, begin, finished = runtime.watched, trace.begin, trace.finished
    trace_bit = 4  # pyhook/settings.go

    def told(_number: int, _told: Any, more: dict[str, Any]) -> None:
        for phase, microseconds in more["times"]:
            runs_of[-1][phase] += microseconds
        runs_of[-1]["attempts"] += more["attempts"]
        runs_of[-1]["translations"] += 1

    runtime.watched = lambda: watched() | trace_bit
    trace.begin, trace.finished = lambda *_: 1, told
    try:
        for _ in range(runs):
            runs_of.append(Counter())
            make()(*args, **kwargs)
            after()
    finally:
        runtime.watched, trace.begin, trace.finished = watched, begin, finished
    return min(runs_of, key=lambda run: sum(run[phase] for phase in PHASES))


def profiled(go: Any, make: Callable[[], Any], args: Any, kwargs: Any, runs: int, after: Callable[[], None]) -> Any:
    """Return what Go counts per call, and the shares of a translation's samples in C, in the allocator."""

    def counts() -> list[int]:
        numbers = (ctypes.c_int64 * len(STATISTICS))()
        go.gdStatistics(numbers)
        return list(numbers)

    path = str(ROOT / "build" / "pgo" / "first_calls.pprof")
    made = [make() for _ in range(runs)]
    before = counts()
    go.gdProfileStart(path.encode())
    for call in made:
        call(*args, **kwargs)
    go.gdProfileStop()
    per_call = [(b - a) / runs for a, b in zip(before, counts(), strict=True)]
    after()
    flat, within = samples(path)
    whole = within["github.com/godynamo/godynamo/pyhook.gdTranslate"] or 1
    return per_call, flat["runtime.cgocall"] / whole, within["runtime.mallocgc"] / whole


def samples(path: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return a profile's milliseconds in each Go function alone, and with its callees, while translating."""
    table = subprocess.run(
        ["go", "tool", "pprof", "-top", "-unit=ms", "-nodefraction=0", "-nodecount=100000",
         "-focus=pyhook.gdTranslate", path],
        capture_output=True, text=True, check=False, cwd=ROOT,
    ).stdout  # fmt: skip
    flat: defaultdict[str, float] = defaultdict(float)
    within: defaultdict[str, float] = defaultdict(float)
    for alone, total, function in re.findall(r"^ *([0-9.]+)(?:ms)? .* ([0-9.]+)(?:ms)? +[0-9.]+% +(\S+)", table, re.M):
        flat[function] += float(alone)
        within[function] += float(total)
    return flat, within


def show(name: str, runs: int, go: Any) -> None:
    """Measure a model and print a page about its first call."""
    import torch

    import godynamo
    from godynamo._tools.bench import zoo
    from godynamo._translator import foreseen

    torch.manual_seed(0)
    module, args, kwargs = zoo.MODELS[name]()
    module.eval()
    make: Callable[[], Any] = lambda: godynamo.optimize(copy.deepcopy(module))  # noqa: E731
    with torch.no_grad():
        make()(*args, **kwargs)
        eager, _ = best(lambda: copy.deepcopy(module), args, kwargs, runs, lambda: None)
        first, waited = best(make, args, kwargs, runs, godynamo.reset)
        parts = phases(make, args, kwargs, runs, godynamo.reset)
        per_call, in_c, allocating = profiled(go, make, args, kwargs, 3 * runs, godynamo.reset)
        calls = Calls()
        original = calls.around(foreseen, "foresee")
        make()(*args, **kwargs)
        foreseen.foresee = original
        godynamo.reset()
    capture, timed = first - eager, sum(parts[p] for p in PHASES)

    def row(what: str, seconds: float, more: str = "") -> None:
        print(f"  {what:56} {seconds * 1e3:8.2f} ms {100 * seconds / first:5.1f} %  {more}")

    print(f"{name}: {parts['translations']} translations, {parts['attempts']} attempts")
    row("first call", first)
    row("the model's own run, as an eager call", eager)
    row("capture: first call minus eager call", capture)
    for phase, what in PHASES.items():
        row("  " + what, capture * parts[phase] / timed if timed else 0)
    print("of this")
    row(STATISTICS[0], capture * in_c, f"{per_call[0]:,.0f} calls")
    row("Go's allocator, with page faults", capture * allocating,
        f"{per_call[1] / 1e6:.1f} MB in {per_call[2]:,.0f} objects")  # fmt: skip
    row("torch's results, predicted", calls.seconds, f"{calls.count} calls")
    print("beside it")
    row("Go's collector, in other threads", per_call[4] / 1e9, f"{per_call[3]:.2f} collections")
    row("waiting (other processes, locks)", waited)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    if os.environ.get("GODYNAMO_GOLIB") != str(pgo.LIBRARY):
        pgo.build()
        environment = {
            **os.environ, "GODYNAMO_GOLIB": str(pgo.LIBRARY), "PYTHONPATH": str(ROOT / "python"),
            "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error",
        }  # fmt: skip
        os.execve(sys.executable, [sys.executable, "-W", "ignore", *sys.argv], environment)
    import torch

    from godynamo._tools.bench import zoo

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    go = ctypes.CDLL(str(pgo.LIBRARY))
    names = [n for n in zoo.MODELS if any(fnmatch.fnmatch(n, m) for m in options.models)]
    if not names:
        sys.exit(f"first_calls: no model is called {' or '.join(options.models)}")
    for name in names:
        show(name, options.runs, go)


if __name__ == "__main__":
    main()
