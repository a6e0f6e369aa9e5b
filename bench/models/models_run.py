"""`make models`: the zoo, a process a model. Right? In one graph? How fast, beside eager and torch.compile?

    bench/models/models_run.py [--only PATTERN] [--rounds N] [--no-torch-compile] [--json FILE] [--timeout SECONDS]
        [--backend NAME]

Exits with 1 where a model is wrong, fails, or is in more graphs than with torch.compile. With a backend (aot_eager, inductor,
callable) only whether outputs, gradients, buffers and random numbers are eager's; what is as far off as with torch.compile is no
failure.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))


def one(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs a child; what it says, or why it said nothing."""
    command = [sys.executable, str(HERE / "child.py"), name, str(options.rounds)]
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


def line(r: dict[str, Any]) -> str:
    """One row of the table."""
    if "error" in r:
        return f"{r['name']:34} {r['error'].splitlines()[-1][:100]}"
    us = r["us"]
    eager = us["eager"]
    theirs, guards = us.get("torch.compile"), r.get("guards_us")
    return (
        f"{r['name']:34} {verdict(r):6} {r['graphs']:3}"
        f" {r.get('torch_graphs', '-'):>3} {r['ops']:5} {r['cold']:7.2f}"
        f" {r['torch_cold'] / r['cold'] if 'torch_cold' in r else math.nan:6.1f}"
        f" {eager:9.0f} {us['godynamo'] / eager:6.2f} {theirs / eager if theirs else math.nan:6.2f}"
        f" {guards if guards is not None else math.nan:6.1f}"
    )


def verdict(r: dict[str, Any]) -> str:
    """Right, close, or what is wrong."""
    return "close" if r["wrong"] == "close" else "WRONG " + r["wrong"] if r["wrong"] else "right"


def backend_line(r: dict[str, Any]) -> str:
    """One row of the table of a backend."""
    if "error" in r:
        return f"{r['name']:34} {r['error'].splitlines()[-1][:160]}"
    return f"{r['name']:34} {backend_verdict(r):6} {r['seconds']:7.1f}"


def backend_verdict(r: dict[str, Any]) -> str:
    """Right, close, torch.compile's own, or what is wrong."""
    if "torch" in r:
        return (
            f"torch's: {r['wrong']}"
            if r["torch"] == r["wrong"]
            else f"WRONG {r['wrong']} (torch.compile: {r['torch']})"
        )
    return verdict(r)


def mean(values: list[float]) -> float:
    """The geometric mean; NaN of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def more_graphs(r: dict[str, Any]) -> bool:
    """Whether torch.compile has one graph where we have more."""
    return bool(r.get("torch_graphs") == 1 and r.get("graphs", 0) > 1)


def slower(results: list[dict[str, Any]], than: str) -> str:
    """Names of the models that take as long or longer than with another engine."""
    names = [r["name"] for r in results if than in r["us"] and r["us"]["godynamo"] >= r["us"][than]]
    return ", ".join(names) or "none"


def summary(results: list[dict[str, Any]], done: list[dict[str, Any]]) -> str:
    """The lines below the table."""
    compared = [r for r in done if "torch_cold" in r and "torch.compile" in r["us"]]
    verdicts = [verdict(r) for r in done]
    guards = [r["guards_us"] for r in done if r.get("guards_us") is not None]
    ours = mean([r["us"]["godynamo"] / r["us"]["eager"] for r in done])
    theirs = mean([r["us"]["torch.compile"] / r["us"]["eager"] for r in compared])
    first = mean([r["torch_cold"] / r["cold"] for r in compared])
    one, torch_one = (sum(r.get(key) == 1 for r in done) for key in ("graphs", "torch_graphs"))
    return (
        f"{len(results)} models: {verdicts.count('right')} right, {verdicts.count('close')} close,"
        f" {len(results) - len(done)} failed; {one} in one graph (torch.compile {torch_one}),"
        f" {sum(map(more_graphs, done))} in more than torch.compile's one\n"
        f"warm, ratio to eager: {ours:.2f}, torch.compile {theirs:.2f}; first call {first:.1f} times faster (geometric means)\n"
        f"slower than eager: {slower(done, 'eager')}; than torch.compile: {slower(compared, 'torch.compile')};"
        f" guards at most {max(guards, default=math.nan):.1f} us"
    )


def with_backend(names: list[str], options: argparse.Namespace) -> int:
    """The table of a backend."""
    results = []
    for name in names:
        results.append(one(name, options))
        print(backend_line(results[-1]), flush=True)
    verdicts = ["failed" if "error" in r else backend_verdict(r).split()[0] for r in results]
    print(f"{len(results)} models: " + ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts))))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int("failed" in verdicts or "WRONG" in verdicts)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names of models, with wildcards")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--no-torch-compile", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--backend", help="aot_eager, inductor, callable: whether every model is right with it")
    options = parser.parse_args()
    import zoo

    names = [n for n in zoo.MODELS if fnmatch.fnmatch(n, options.only)]
    if not names:
        print(f"models: no model is called {options.only}; there are {', '.join(zoo.MODELS)}", file=sys.stderr)
        return 2
    if options.backend:
        return with_backend(names, options)
    print(
        f"{'model':34} {'':6} {'graphs, torch':>7} {'ops':>5} {'cold s':>7} {'x':>6}"
        f" {'eager us':>9} {'ours':>6} {'torch':>6} {'guards':>6}"
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
