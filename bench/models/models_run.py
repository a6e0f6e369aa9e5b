"""`make models`: runs each model of the zoo in a separate process; reports correctness, graphs and times.

    bench/models/models_run.py [--only PATTERN] [--rounds N] [--no-torch-compile] [--json FILE] [--timeout SECONDS]
        [--backend NAME] [--sizes] [--train] [--jobs N]

Eager mode, godynamo and torch.compile take turns, and warm times are compared round by round: the table has the median
of the rounds' ratios and its interval (godynamo/_tools/bench/timing.py). A model counts as slower only if the whole
interval is above 1. The column "calls" is the number of additional torch operator calls compared with eager mode; the
column "bytes" is the peak memory relative to eager mode. These two do not depend on the machine's load.

"cold" is the CPU time of a first call in seconds, the best of three, "x" torch.compile's relative to it. Both contain
the model's own run; "alone" is the ratio without it: each first call minus eager's call (models_child.py).

Exits with 1 if a model is wrong, fails, or has more than one graph where torch.compile has one. With a backend
(aot_eager, inductor, callable) only correctness is checked: outputs, gradients, buffers and random numbers must equal
those of eager mode. It is no failure if eager mode does not repeat its own results, or if torch.compile differs in
the same way. On devices other than the CPU, torch's deterministic algorithms are used. With --sizes the captures at
several sizes are counted instead (sizes_of_models.py); more than under torch.compile are a failure. With --train whole
training steps are compared instead (training_of_models.py).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import sizes_of_models  # noqa: E402
import training_of_models  # noqa: E402
from godynamo._tools.bench import zoo  # noqa: E402


def one(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a child; return its result, or the reason why there is none."""
    child = ["models_child.py", name, str(options.rounds)]
    if options.sizes or options.train:
        child = ["sizes_of_models.py" if options.sizes else "training_of_models.py", name]
    command = [sys.executable, str(HERE / child[0]), *child[1:]]
    if options.no_torch_compile:
        command.append("--no-torch-compile")
    if options.backend:
        command += ["--backend", options.backend]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=options.timeout, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"longer than {options.timeout} s"}
    lines = run.stdout.strip().splitlines()
    if run.returncode != 0 or not lines:
        return {"name": name, "error": f"exit {run.returncode}: {run.stderr[-300:]}"}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def each(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the results in order, ``options.jobs`` children at a time."""
    with ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(lambda name: one(name, options), names)


def line(r: dict[str, Any]) -> str:
    """Return a row of the table."""
    if "error" in r:
        return f"{r['name']:34} {r['error'].splitlines()[-1][:100]}"
    guards, work = r.get("guards_us"), r["work"]
    return (
        f"{r['name']:34} {verdict(r):6} {r['graphs']:3}"
        f" {r.get('torch_graphs', '-'):>3} {r['ops']:5} {r['cold']:7.2f}"
        f" {r['torch_cold'] / r['cold'] if 'torch_cold' in r else math.nan:6.1f}"
        f" {alone(r) if 'torch_cold' in r else math.nan:6.1f}"
        f" {r['us']['eager']:9.0f} {interval(r, 'godynamo/eager')} {interval(r, 'torch.compile/eager')}"
        f" {interval(r, 'godynamo/torch.compile')} {guards if guards is not None else math.nan:6.1f}"
        f" {work['godynamo']['calls'] - work['eager']['calls']:+6}"
        f" {work['godynamo']['bytes'] / work['eager']['bytes'] if work['eager']['bytes'] else 1:5.2f}"
    )


def alone(r: dict[str, Any]) -> float:
    """Return how many times longer torch.compile's first call is, without the model's own run in both."""
    eager = r["eager_first"]
    return float((r["torch_cold"] - eager) / max(r["cold"] - eager, 1e-6))


def interval(r: dict[str, Any], what: str) -> str:
    """Return the ratio of two sides with its interval."""
    if what not in r["ratios"]:
        return f"{'':14}"
    median, low, high = r["ratios"][what]
    return f"{median:4.2f} {low:4.2f}-{high:4.2f}"


def verdict(r: dict[str, Any]) -> str:
    """Return "right", "close", or what is wrong."""
    return "close" if r["wrong"] == "close" else "WRONG " + r["wrong"] if r["wrong"] else "right"


def backend_line(r: dict[str, Any]) -> str:
    """Return a row of a backend's table."""
    if "error" in r:
        return f"{r['name']:34} {r['error'].splitlines()[-1][:160]}"
    aside = "".join(f"  {n} {what.removeprefix('graphs_')}" for what, n in r["aside"].items())
    return f"{r['name']:34} {backend_verdict(r):6} {r['seconds']:7.1f}{aside}"


def backend_verdict(r: dict[str, Any]) -> str:
    """Return "right", "close", "eager's: ..." if eager mode does not repeat its own results, "torch's: ..." if
    torch.compile is equally wrong, or a text that says what is wrong."""
    if r.get("eager", "close") not in ("", "close"):
        return f"eager's: {r['eager']} (godynamo: {r['wrong']})"
    if "torch" in r:
        return (
            f"torch's: {r['wrong']}"
            if r["torch"] == r["wrong"]
            else f"WRONG {r['wrong']} (torch.compile: {r['torch']})"
        )
    return verdict(r)


def mean(values: list[float]) -> float:
    """Return the geometric mean; NaN if there are no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def more_graphs(r: dict[str, Any]) -> bool:
    """Return whether torch.compile captures one graph and godynamo captures more."""
    return bool(r.get("torch_graphs") == 1 and r.get("graphs", 0) > 1)


def told(results: list[dict[str, Any]], what: str) -> str:
    """Return a line: how many models are faster, and which are slower or have an interval that contains 1."""
    pairs = [(r["name"], r["ratios"][what]) for r in results if what in r["ratios"]]
    slower = [name for name, (_, low, _) in pairs if low > 1]
    level = [name for name, (_, low, high) in pairs if low <= 1 <= high]
    faster = len(pairs) - len(slower) - len(level)
    return f"faster {faster}, slower {len(slower)}{names(slower)}, not told apart {len(level)}{names(level)}"


def names(models: list[str]) -> str:
    """Return the names of models in brackets, "" for an empty list."""
    return f" ({', '.join(models)})" if models else ""


def summary(results: list[dict[str, Any]], done: list[dict[str, Any]]) -> str:
    """Return the lines below the table."""
    verdicts = [verdict(r) for r in done]
    guards = [r["guards_us"] for r in done if r.get("guards_us") is not None]
    compared = [r for r in done if "torch.compile/eager" in r["ratios"]]
    ours = mean([r["ratios"]["godynamo/eager"][0] for r in done])
    theirs = mean([r["ratios"]["torch.compile/eager"][0] for r in compared])
    first, capture = [r["torch_cold"] / r["cold"] for r in compared], mean([alone(r) for r in compared])
    one, torch_one = (sum(r.get(key) == 1 for r in done) for key in ("graphs", "torch_graphs"))
    work = {r["name"]: (r["work"]["eager"], r["work"]["godynamo"]) for r in done}
    calls = [name for name, (eager, own) in work.items() if own["calls"] > eager["calls"]]
    memory = [name for name, (eager, own) in work.items() if own["bytes"] > eager["bytes"]]
    return (
        f"{len(results)} models: {verdicts.count('right')} right, {verdicts.count('close')} close,"
        f" {len(results) - len(done)} failed; {one} in one graph (torch.compile {torch_one}),"
        f" {sum(map(more_graphs, done))} in more than torch.compile's one\n"
        f"warm, ratio to eager: {ours:.2f}, torch.compile {theirs:.2f};"
        f" first call {mean(first):.1f} times faster (geometric means), at least {min(first, default=math.nan):.1f};"
        f" without the model's own run {capture:.1f} times\n"
        f"than eager: {told(done, 'godynamo/eager')}\n"
        f"than torch.compile: {told(done, 'godynamo/torch.compile')}\n"
        f"more calls of operators than eager: {len(calls)}{names(calls)}; more memory: {len(memory)}{names(memory)};"
        f" guards at most {max(guards, default=math.nan):.1f} us"
    )


def with_backend(names: list[str], options: argparse.Namespace) -> int:
    """Check the models with a backend and print a table; return the exit code."""
    results = []
    for r in each(names, options):
        results.append(r)
        print(backend_line(r), flush=True)
    verdicts = ["failed" if "error" in r else backend_verdict(r).split()[0] for r in results]
    print(f"{len(results)} models: " + ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts))))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int("failed" in verdicts or "WRONG" in verdicts)


def table(of: types.ModuleType, names: list[str], options: argparse.Namespace) -> int:
    """Run the models and print the table of sizes_of_models or training_of_models; return the exit code."""
    print(of.HEAD)
    results = []
    for r in each(names, options):
        results.append(r)
        print(of.line(r), flush=True)
        for note in of.notes(r):
            print(f"    {note}")
    print(of.summary(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(any(map(of.failed, results)))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names of models, with wildcards")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--no-torch-compile", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for a model, also on a slow machine")
    parser.add_argument(
        "--backend",
        help="aot_eager, inductor, callable, aside (inductor in another process): whether every model is right with it",
    )
    parser.add_argument("--sizes", action="store_true", help="captures when batch and length change")
    parser.add_argument("--train", action="store_true", help="whole training steps")
    parser.add_argument("--jobs", type=int, default=1, help="models side by side, with --backend, --sizes and --train")
    options = parser.parse_args()
    known = sizes_of_models.names() if options.sizes else list(zoo.MODELS)
    names = [n for n in known if fnmatch.fnmatch(n, options.only)]
    if not names:
        print(f"models: no model is called {options.only}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    if options.sizes:
        return table(sizes_of_models, names, options)
    if options.train:
        return table(training_of_models, names, options)
    if options.backend:
        return with_backend(names, options)
    print(
        f"{'model':34} {'':6} {'graphs, torch':>7} {'ops':>5} {'cold s':>7} {'x':>6} {'alone':>6} {'eager us':>9}"
        f" {'ours/eager':14} {'torch/eager':14} {'ours/torch':14} {'guards':>6} {'calls':>6} {'bytes':>5}"
    )
    results = []
    for name in names:
        results.append(one(name, options))
        print(line(results[-1]), flush=True)
        for reason in results[-1].get("breaks", ()) if results[-1].get("graphs", 1) > 1 else ():
            print(f"    {reason}")
    done = [r for r in results if "error" not in r]
    print(summary(results, done))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(len(done) < len(results) or any(verdict(r)[0] == "W" or more_graphs(r) for r in done))


if __name__ == "__main__":
    sys.exit(main())
