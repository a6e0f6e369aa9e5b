"""The groups of the benchmark. Each runs in a separate process (run.py) and returns a dictionary for the result."""

from __future__ import annotations

import gc
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import timing
from .engines import KINDS, Engine

SIDES = KINDS

# The directory from which this module's children import the package.
_PACKAGES = Path(__file__).resolve().parents[3]


def progress(text: str) -> None:
    """Print one line to stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _transform(side: str, backend: str) -> Callable[[Any], Any]:
    return Engine(side, side).transform(backend)


def calls(rounds: int, only: str | None = None) -> dict[str, Any]:
    """Measure the time of a call of each workload on each side, and its ratio to eager mode.

    A side that fails, or whose result differs from eager mode's result, gets an "error" and no figure.
    """
    import torch

    import godynamo_workloads as workloads

    from . import measure

    torch.set_num_threads(1)
    engines = [Engine(side, side) for side in SIDES]
    results: dict[str, Any] = {}
    for workload in workloads.WORKLOADS:
        if only is not None and workload.name != only:
            continue
        progress(workload.name)
        entry: dict[str, Any] = {"about": workload.about, "backend": workload.backend}
        taken = measure.measure(workload, engines, rounds, details=False)
        for side, found in taken.items():
            if "error" in found:
                entry[side] = {"error": found["error"]}
                progress(f"{workload.name}: {side}: {found['error']}")
        entry.update(
            timing.compare(
                {side: timing.figure(found["seconds"]) for side, found in taken.items() if "seconds" in found}
            )
        )
        results[workload.name] = entry
    return results


def guards(rounds: int) -> dict[str, Any]:
    """Measure the time of one guard evaluation in C, without the rest of the call, in nanoseconds."""
    import torch

    import godynamo
    import godynamo_workloads as workloads
    from godynamo import _C

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    pair = (torch.randn(10, generator=generator), torch.randn(10, generator=generator))
    thirty = tuple(torch.full((10,), float(i)) for i in range(30))
    cases: list[tuple[str, Any, tuple[torch.Tensor, ...], str]] = [
        ("two tensors", _two_tensors, pair, "used"),
        ("two tensors", _two_tensors, pair, "full"),
        ("thirty tensors", workloads._thirty, thirty, "full"),
    ]
    entries: list[tuple[str, Any, tuple[torch.Tensor, ...]]] = []
    for name, function, slots, mode in cases:
        with godynamo.config.patch(tensor_guards=mode):
            f = godynamo.optimize(function, backend="eager")
            f(*slots)
        (entry,) = godynamo.cache_entries(f)
        entries.append((f"{name}, {mode}", entry, slots))
    tables = (torch.randn(10, 8, generator=generator), torch.randn(10, 8, generator=generator))
    entries.append(("two tensors, any sizes", _with_conditions(tables[0], 0), tables))
    entries.append(("two tensors, ten conditions on sizes", _with_conditions(tables[0], 10), tables))
    results: dict[str, Any] = {}
    for name, entry, slots in entries:
        taken = [_C.guard_time(entry, slots, None, 50_000) for _ in range(max(3, min(rounds // 2, 30)))]
        if any(failures for _, failures in taken):
            raise AssertionError(f"guards fail on the arguments they were made for: {entry.text}")
        results[name] = {"ns": min(ns for ns, _ in taken), "text": entry.text}
    return results


def _with_conditions(example: Any, count: int) -> Any:
    """Make an entry that checks two tensors of two dimensions, and up to ten conditions on their sizes."""
    from godynamo import _C

    def size(tensor: int, dim: int) -> tuple[str, int, int, int]:
        return "SIZE", dim, tensor, example.shape[dim]

    def number(n: int) -> tuple[str, int, int, int]:
        return "CONST", 0, 0, n

    def op(name: str) -> tuple[str, int, int, int]:
        return name, 0, 0, 0

    conditions: list[tuple[str, list[tuple[str, int, int, int]]]] = [
        (f"{'ab'[t]}.size()[{d}] >= {n}", [size(t, d), number(n), op("GE")])
        for t in (0, 1) for d in (0, 1) for n in (1, 2)
    ]  # fmt: skip
    conditions += [
        ("a.size()[0] == b.size()[0]", [size(0, 0), size(1, 0), op("EQ")]),
        ("a.size()[1] % 8 == 0", [size(0, 1), number(8), op("MOD"), number(0), op("EQ")]),
    ]
    state, type_to_dimensions = 2, 63
    steps: list[tuple[str, int, int, int]] = []
    nodes = [("VALID", 0, 0, 0, 0, 0, 0), ("TENSORS", state, 0, 0, 1, 0, 2)]
    parts = ["___guarded_code.valid", "___check_tensors(a, b)"]
    for text, of in conditions[:count]:
        nodes.append(("SHAPE_ENV", 0, 0, 0, len(parts), len(steps), len(of)))
        parts.append(text)
        steps += of
    return _C.make_entry(
        {
            "function": _two_tensors, "orig_code": _two_tensors.__code__, "nslots": 2, "nregs": 4, "nodes": nodes,
            "parts": parts, "sizes": steps, "tensors": [(i, type_to_dimensions, 0, 0, example) for i in (0, 1)],
        }
    )  # fmt: skip


def _two_tensors(a: Any, b: Any) -> Any:
    return (a + b).relu() * 2


def capture(rounds: int, ops: int = 600) -> dict[str, Any]:
    """Measure the first call of a function of `ops` operations, in milliseconds, with a new function in each round."""
    import torch

    import godynamo_workloads as workloads

    torch.set_num_threads(1)
    x, y = torch.randn(10), torch.randn(10)
    salt = 0

    def first_call(side: str, count: int) -> float:
        """Return the seconds of a first call, with a function made for it."""
        nonlocal salt
        salt += 1
        namespace: dict[str, Any] = {}
        exec(compile(workloads.many_ops_source(count, salt), f"<many {salt}>", "exec"), namespace)
        function = namespace[f"many_{salt}"]
        want = function(x, y)
        compiled = _transform(side, "eager")(function)
        taken = timing.once(lambda: compiled(x, y))
        if not torch.equal(compiled(x, y), want):
            raise AssertionError(f"{side}: another result than eager's")
        return taken

    results: dict[str, Any] = {"ops": ops}
    samples: dict[str, list[float]] = {}
    for side in SIDES:
        try:
            first_call(side, 5)  # so that importing the side's modules is not measured
            samples[side] = []
        except Exception as error:
            results[side] = {"error": f"{type(error).__name__}: {error}"[:400]}
    for i in range(max(3, min(rounds // 4, 10))):
        progress(f"capture of {ops} ops, round {i + 1}")
        for side, taken in samples.items():
            taken.append(first_call(side, ops))
    for side, taken in samples.items():
        results[side] = {"ms": timing.figure(taken).best * 1e3, "rounds": len(taken)}
    if "godynamo" in samples and "torch.compile" in samples:
        results["speedup"] = results["torch.compile"]["ms"] / results["godynamo"]["ms"]
    return results


def layers(rounds: int, count: int = 24) -> dict[str, Any]:
    """Measure the first call of a transformer of `count` equal layers, in milliseconds, with a new model each time.

    "alone" is godynamo with config.reuse_layers off, so that it translates the code of every layer.
    """
    import torch

    import godynamo
    import godynamo_workloads as workloads

    torch.set_num_threads(1)
    x = torch.randn(2, 5, 16)

    def first_call(side: str) -> float:
        torch._dynamo.reset()
        model = workloads.Transformer(count).eval()
        with torch.no_grad(), godynamo.config.patch(reuse_layers=side != "alone"):
            want = model(x)
            compiled = _transform("godynamo" if side == "alone" else side, "eager")(model)
            gc.collect()
            gc.freeze()  # so that garbage of another side is not collected while this side is measured
            taken = timing.once(lambda: compiled(x))
            if not torch.equal(compiled(x), want):
                raise AssertionError(f"{side}: another result than eager's")
        return taken

    sides = ("torch.compile", "godynamo", "alone")
    samples: dict[str, list[float]] = {side: [] for side in sides}
    for i in range(-1, max(3, min(rounds // 4, 10))):  # round -1 imports the sides' modules and does not count
        progress(f"first call of {count} layers, round {i + 1}")
        for side, taken in samples.items():
            taken.append(first_call(side))
    results: dict[str, Any] = {"layers": count}
    for side, taken in samples.items():
        results[side] = {"ms": timing.figure(taken[1:]).best * 1e3, "rounds": len(taken) - 1}
    results["speedup"] = results["torch.compile"]["ms"] / results["godynamo"]["ms"]
    results["over_alone"] = results["godynamo"]["ms"] / results["alone"]["ms"]
    return results


_IMPORT = """
import json, resource, sys, time
import torch
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
before, start = rss(), time.perf_counter()
import {module}
taken = time.perf_counter() - start
print(json.dumps({{"seconds": taken, "bytes": rss() - before}}))
"""

_UNRELATED = """
import json, sys, time
import torch
if sys.argv[1] == "godynamo":
    import godynamo
    godynamo.optimize(lambda a: a + 1)(torch.ones(3))
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
class Counter:
    def __init__(self):
        self.n = 0
    def step(self, k):
        self.n += k
        return self.n
def methods():
    c = Counter()
    for i in range(20000):
        c.step(i)
best = {}
for _ in range(int(sys.argv[2])):
    for name, action in (("fib", lambda: fib(18)), ("methods", methods)):
        start = time.perf_counter()
        action()
        best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
print(json.dumps(best))
"""


def _child(program: str, *arguments: str) -> dict[str, float]:
    """Return the JSON line printed by a fresh interpreter. Raises RuntimeError with its stderr."""
    environment = {**os.environ, "PYTHONPATH": str(_PACKAGES)}
    environment.pop("GODYNAMO_LOGS", None)
    environment["GODYNAMO_CACHE_DIR"] = "0"  # first calls translate
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in an installed package, imports use bytecode files
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr else f"exit code {run.returncode}")
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result


def imports(rounds: int) -> dict[str, Any]:
    """Measure the milliseconds and MiB of imports in addition to torch's import, in separate processes, in turn."""
    modules = {"torch.compile": "torch._dynamo", "godynamo": "godynamo"}
    samples: dict[str, list[dict[str, float]]] = {side: [] for side in modules}
    for i in range(max(2, min(rounds // 6, 8))):
        progress(f"imports, round {i + 1}")
        for side, module in modules.items():
            samples[side].append(_child(_IMPORT.format(module=module)))
    return {
        side: {
            "ms": min(sample["seconds"] for sample in taken) * 1e3,
            "mib": min(sample["bytes"] for sample in taken) / 2**20,
        }
        for side, taken in samples.items()
    }


def unrelated(rounds: int) -> dict[str, Any]:
    """Measure Python code without tensors in a process that uses godynamo, and its ratio to a process without it."""
    best: dict[str, dict[str, float]] = {}
    for i in range(max(2, min(rounds // 6, 8))):
        progress(f"unrelated code, round {i + 1}")
        for side in ("torch", "godynamo"):
            for name, seconds in _child(_UNRELATED, side, str(min(2 * rounds, 60))).items():
                known = best.setdefault(name, {})
                known[side] = min(known.get(side, seconds), seconds)
    return {
        name: {"torch_ms": taken["torch"] * 1e3, "godynamo_ms": taken["godynamo"] * 1e3,
               "ratio": taken["godynamo"] / taken["torch"]}
        for name, taken in best.items()
    }  # fmt: skip


GROUPS: dict[str, Callable[..., dict[str, Any]]] = {
    "calls": calls,
    "guards": guards,
    "capture": capture,
    "layers": layers,
    "imports": imports,
    "unrelated": unrelated,
}


def main(arguments: list[str]) -> int:
    """Run one group: ``python -m godynamo._tools.bench.groups NAME ROUNDS [WORKLOAD]``; its last line is the result."""
    name, rounds, *rest = arguments
    run = GROUPS[name]
    extra = dict(zip(list(inspect.signature(run).parameters)[1:], rest, strict=False)) if name == "calls" else {}
    print(json.dumps(run(int(rounds), **extra)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
