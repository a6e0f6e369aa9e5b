"""`make warm`: runs each model of the zoo, and a Llama of 24 layers, in one process, then in a second one that loads
the first one's translations. A process before them, without a folder, shows what storing costs.

    bench/models/warm.py [--only PATTERN] [--torch] [--timeout SECONDS] [--jobs N] [--repeat N] [--json FILE]

Both processes compare outputs with eager mode bit by bit. The table has, for each process, the number of translations
and the CPU time of the first call in ms, of the process, beyond eager's call before it. The first call loads godynamo's
library, which takes most of the second process's time. With --torch the same for torch.compile, whose caches on disk
are in a folder of their own: minutes for a large model.

Exits with 1 if a result is wrong, a process fails, or a second process translates.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "python"))

HEAD = f"{'model':34} {'result':8} {'plain ms':>8} {'1st: made':>9} {'ms':>7} {'2nd: made':>9} {'loaded':>6} {'ms':>7}"


def child(name: str, engine: str) -> dict[str, Any]:
    """Run a model once in eager mode and once under an engine; return what that took. Runs in a process of its own."""
    import warnings

    warnings.filterwarnings("ignore")
    import torch

    from godynamo._tools.bench import zoo

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, args, kwargs = {**zoo.MODELS, **zoo.DEEP}[name]()
    module.eval()

    def call(run: Any) -> tuple[Any, float]:
        torch.manual_seed(3)
        begun = time.process_time()
        result = run(*args, **kwargs)
        return result, (time.process_time() - begun) * 1e3

    call(module)
    want, eager = call(module)
    if engine == "torch":
        got, first = call(torch.compile(module))
        return {"right": True, "ms": first - eager}
    import godynamo
    from godynamo import _C, utils

    got, first = call(godynamo.optimize(module))
    from models_child import differ, tensors

    by = differ([*tensors(want)], [*tensors(got)])
    loaded = utils.counters["stats"]["translations_loaded"]
    return {
        "right": by <= 1e-6,
        "close": by > 0,
        "ms": first - eager,
        "made": utils.counters["frames"]["total"] - loaded,
        "loaded": loaded,
        "internal": _C.counters()["internal_errors"],
        "process": time.process_time() * 1e3,
    }


def run(name: str, engine: str, folder: str, timeout: float) -> dict[str, Any]:
    """Run child() in a process; return its result, or the reason why there is none."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "OMP_NUM_THREADS": "1",
        "GODYNAMO_CACHE_DIR": folder,
        "TORCHINDUCTOR_CACHE_DIR": folder + "-torch",
    }
    command = [sys.executable, __file__, "--child", name, engine]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"longer than {timeout} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": f"exit {done.returncode}: {done.stderr.strip()[-200:]}"}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def one(name: str, options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Run a model in its processes, one after the other."""
    from godynamo._stored.keys import build_print

    def new(number: int) -> str:
        """Return a new folder that knows the fingerprint of godynamo's files, as all but the first program find it."""
        own = os.path.join(folder, f"{name}-{number}")
        build_print(ROOT / "python" / "godynamo", Path(own))
        return own

    result: dict[str, Any] = {"name": name}
    plain = [run(name, "ours", "", options.timeout)]
    own = new(0)
    for engine in ("ours", "torch") if options.torch else ("ours",):
        result[engine] = [run(name, engine, own, options.timeout) for _ in range(2)]
    first = [result["ours"][0]]
    for number in range(1, options.repeat):
        plain.append(run(name, "ours", "", options.timeout))
        first.append(run(name, "ours", new(number), options.timeout))
    result["plain"] = plain[0]
    if all("process" in part for part in plain + first):
        result["ratio"] = min(part["process"] for part in first) / min(part["process"] for part in plain)
    return result


def verdict(r: dict[str, Any]) -> str:
    """Return "right", "close" or what is wrong."""
    first, second = r["ours"]
    for part in (first, second, r["plain"]):
        if "error" in part:
            return str(part["error"]).splitlines()[-1][:60]
        if part["internal"]:
            return "internal error"
        if not part["right"]:
            return "WRONG"
    if second["made"]:
        return "again"
    return "close" if first["close"] or second["close"] else "right"


def line(r: dict[str, Any]) -> str:
    """Return a row of the table."""
    first, second = r["ours"]
    text = f"{r['name']:34} {verdict(r):8}"
    if any("error" in part for part in (first, second, r["plain"])):
        return text
    text += f" {r['plain']['ms']:8.1f} {first['made']:9} {first['ms']:7.1f}"
    text += f" {second['made']:9} {second['loaded']:6} {second['ms']:7.1f}"
    for part in r.get("torch", ()):
        text += f" {part['ms']:9.0f}" if "ms" in part else f" {'failed':>9}"
    return text


def main() -> int:
    """Run the command; see the module's docstring."""
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(*sys.argv[2:])))
        return 0
    from godynamo._tools.bench import zoo

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1, help="of the first process and the one before, in turn")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = [n for n in (*zoo.DEEP, *zoo.MODELS) if any(fnmatch.fnmatch(n, p) for p in options.only.split())]
    print(HEAD + (f" {'torch ms':>9} {'2nd':>9}" if options.torch else ""), flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        results = []
        for r in pool.map(lambda name: one(name, options, folder), names):
            results.append(r)
            print(line(r), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    ratios = [r["ratio"] for r in results if "ratio" in r]
    if ratios:
        what = f"of a process that stores nothing (median; each the best of {options.repeat})"
        print(f"CPU time of the first process: {statistics.median(ratios):.3f} {what}")
    good = sum(verdict(r) in ("right", "close") for r in results)
    print(f"{good} of {len(results)} models: right, and the second process translates nothing")
    return int(good < len(results))


if __name__ == "__main__":
    sys.exit(main())
