"""Counts the machine instructions of an eager call and of a cache hit, by C function. Needs valgrind.

    bench/instructions.py [--calls N] [--workload relu|identity] [--rows N]

Valgrind cannot run Go's runtime. So this script makes the cache entry itself with _C.make_entry, from the guards and
the code that a translation of the workload would have. A hit then runs the same instructions. Eager calls and hits run
one after the other in one process under callgrind. The output lists the C functions whose counts differ, with the
difference per call.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WARM_UP = 400  # until CPython has specialized the eager and the optimized call, and the guards' memo is filled


def relu(a: Any, b: Any) -> Any:
    return (a + b).relu() * 2


def identity(a: Any, b: Any) -> Any:
    return a


WORKLOADS = {"relu": relu, "identity": identity}


def optimized(function: Any, example: Any) -> Any:
    """Optimize the function, with an entry that guards the exact types of two tensors, and torch's state."""
    import types

    import godynamo
    from godynamo import _C

    # A separate code object, as a translation has: CPython specializes it independently of the eager side.
    transformed = types.FunctionType(function.__code__.replace(), function.__globals__)
    tensor_type, state = 1, 2

    def translate(request: dict[str, Any]) -> Any:
        return _C.make_entry(
            {
                "function": transformed, "orig_code": function.__code__, "nslots": 2, "nregs": 4,
                "nodes": [("VALID", 0, 0, 0, 0, 0, 0), ("TENSORS", state, 0, 0, 1, 0, 2)],
                "parts": ("___guarded_code.valid", "___check_tensors(a, b)"),
                "tensors": [(0, tensor_type, 0, 0, example), (1, tensor_type, 0, 0, example)],
            }
        )  # fmt: skip

    _C.set_translate_callback(translate)
    return godynamo.optimize(function)


def child(name: str, calls: int) -> None:
    """Write three dumps under callgrind: before any call, after the eager calls, and after the optimized calls."""
    import torch

    torch.set_num_threads(1)
    a, b = torch.randn(4), torch.randn(4)
    function = WORKLOADS[name]
    fast = optimized(types_copy(function), a)

    def control(*arguments: str) -> None:
        subprocess.run(["callgrind_control", *arguments, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)

    def eager_loop(f: Any, n: int) -> None:
        for _ in range(n):
            f(a, b)

    # The call itself is also specialized, so each side has a separate loop.
    fast_loop = types_copy(eager_loop)
    sides = ((eager_loop, function), (fast_loop, fast))
    for loop, f in sides:
        loop(f, WARM_UP)
    # The first dump contains no calls, only the cost of switching the counting on and off. Every dump has this cost.
    for loop, f, n in ((eager_loop, function, 0), *((loop, f, calls) for loop, f in sides)):
        control("--instr=on")
        loop(f, n)
        control("--instr=off")
        control("--dump")
        control("--zero")


def types_copy(function: Any) -> Any:
    """Return a copy of the function with a separate code object."""
    import types

    return types.FunctionType(
        function.__code__.replace(), function.__globals__, function.__name__, None, function.__closure__
    )


def counts(dump: Path) -> Counter[str]:
    """Return the number of instructions of each function, as callgrind_annotate prints it."""
    text = subprocess.run(
        ["callgrind_annotate", "--auto=no", "--threshold=100", "--show-percs=no", str(dump)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    result: Counter[str] = Counter()
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+)\s+(?:\S*:)?(\S.*?)(?:'\d+)?(?: \[.*\])?$", line)
        if match and "PROGRAM TOTALS" not in line and "events annotated" not in line:
            result[match[2]] += int(match[1].replace(",", ""))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="relu")
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.workload, options.calls)
        return 0
    if shutil.which("valgrind") is None:
        print("valgrind is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", sys.executable,
                __file__,
                "--child", f"--workload={options.workload}", f"--calls={options.calls}",
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        dumps = sorted(Path(folder).glob("out.*"), key=lambda p: int(p.suffix[1:]))
        switching, eager, fast = (counts(d) for d in dumps[:3])
    for side in (eager, fast):
        side.subtract(switching)
    n = options.calls
    print(f"{'eager':>9} {'godynamo':>9} {'more':>8}   instructions a call of {options.workload}, by function")
    print(f"{eager.total() / n:9.0f} {fast.total() / n:9.0f} {(fast.total() - eager.total()) / n:+8.0f}   all")
    names = sorted({*eager, *fast}, key=lambda name: -abs(fast[name] - eager[name]))
    for name in names[: options.rows]:
        if abs(fast[name] - eager[name]) >= n / 2:
            print(f"{eager[name] / n:9.0f} {fast[name] / n:9.0f} {(fast[name] - eager[name]) / n:+8.0f}   {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
