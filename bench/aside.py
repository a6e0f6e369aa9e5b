"""`make aside`: how long calls take while inductor compiles in another process (config.compile_aside).

    bench/aside.py [--layers N] [--runs N]

The model is a TransformerEncoder of N layers in evaluation mode, under no_grad. Each line is a process of its own, with
one thread and an empty folder of inductor's. "first call" is the time of the first call; "longest" and "median" are of
the calls after it, until the compiled graph is in place; "then" is the median after that. Best of the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAYS = {
    "eager": "eager mode",
    "inline": "godynamo, inline",
    "call": "godynamo, inductor in the call",
    "aside": "godynamo, inductor aside",
    "torch": "torch.compile",
}


def measured(way: str, layers: int) -> dict[str, Any]:
    """Measure one way in this process: seconds, and the number of calls while the compiler worked."""
    import torch

    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model: Any = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()
    x = torch.randn(8, 32, 256)
    with torch.no_grad():
        model(x)
        if way == "torch":
            optimized = torch.compile(model)
        elif way == "eager":
            optimized = model
        else:
            import godynamo

            godynamo.config.compile_aside = way == "aside"
            optimized = godynamo.optimize(model, backend="eager" if way == "inline" else "inductor")
        first = called(optimized, x)
        times: list[float] = []
        if way == "aside":
            while not godynamo.wait_for_compilation(0):
                times.append(called(optimized, x))
            if godynamo.utils.counters["stats"]["graphs_compiled_aside"] != 1:
                sys.exit("the graph was not compiled aside")
            called(optimized, x)
        then = [called(optimized, x) for _ in range(20)]
    return {
        "first call": first,
        "calls": len(times),
        "longest": max(times, default=None),
        "median": statistics.median(times) if times else None,
        "then": statistics.median(then),
    }


def called(fn: Any, x: Any) -> float:
    begin = time.perf_counter()
    fn(x)
    return time.perf_counter() - begin


def in_process(way: str, layers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "PYTHONPATH": str(ROOT / "python")}
        command = [sys.executable, "-W", "ignore", __file__, "--layers", str(layers), "--way", way]
        return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout)  # type: ignore[no-any-return]


def main() -> None:
    """Print one line for each way."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.way:
        print(json.dumps(measured(given.way, given.layers)))
        return
    print(f"{given.layers} layers; milliseconds, best of {given.runs} processes\n")
    print(f"{'':32} first call  longest   median     then")
    for way, words in WAYS.items():
        runs = [in_process(way, given.layers) for _ in range(given.runs)]
        best = {k: min((r[k] for r in runs if r[k] is not None), default=None) for k in runs[0]}
        cells = [best[k] for k in ("first call", "longest", "median", "then")]
        print(
            f"{words:32}" + "".join(f"{'' if c is None else format(c * 1000, '9.1f'):>10}" for c in cells), flush=True
        )


if __name__ == "__main__":
    main()
