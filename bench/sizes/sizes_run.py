"""`make sizes`: functions and models whose inputs change their sizes, under torch.compile and godynamo.

    bench/sizes/sizes_run.py [--only PATTERN ...] [--engines E,E] [--heavy] [--inductor] [--rounds N] [--json FILE]

Each case runs under each engine in a separate process. The engines torch and godynamo have the default ``dynamic``;
torch-dynamic and godynamo-dynamic have dynamic=True. These four use a backend that counts graphs and runs them
unchanged. The engine inline is godynamo's backend "eager". The tables show the graphs and graph breaks, the processor
time of the calling thread for all calls, whether every result has eager mode's bits, and the bounds of sizes_report.py.

Exits with 1 if an engine of godynamo crashes, raises or returns a result that differs from eager mode's. A bound that
is not met is shown but is no failure.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import sizes_report as report
from godynamo._tools.bench import machine
from sizes_cases import CASES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def one(case: str, engine: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a child; return its result, or the reason why there is none."""
    base = {"case": case, "engine": engine}
    needs = CASES[case].needs
    if needs and importlib.util.find_spec(needs) is None:
        return {**base, "missing": needs, "error": f"needs {needs}", "right": True}
    command = [sys.executable, str(HERE / "sizes_child.py"), case, engine, str(options.rounds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONHASHSEED"] = "0"
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=options.timeout, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return {**base, "error": f"longer than {options.timeout:g} s"}
    lines = run.stdout.strip().splitlines()
    if run.returncode != 0 or not lines:
        return {**base, "error": f"exit {run.returncode}: {run.stderr[-300:]}"}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def chosen(options: argparse.Namespace) -> list[str]:
    """Return the names of the cases to run. A case named exactly needs no flag."""
    return [
        name
        for name, case in CASES.items()
        if name in options.only
        or (any(fnmatch.fnmatch(name, p) for p in options.only) and (not case.flag or getattr(options, case.flag)))
    ]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="names of cases, with wildcards")
    parser.add_argument("--engines", default=",".join(report.ENGINES), help="comma-separated: %(default)s")
    parser.add_argument("--heavy", action="store_true", help="with Faster R-CNN")
    parser.add_argument("--inductor", action="store_true", help="with the case that compiles with inductor")
    parser.add_argument("--rounds", type=int, default=30, help="warm rounds; 0: none")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "sizes.json", help="and .html beside it")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one case under one engine")
    parser.add_argument("--show", action="store_true", help="run nothing: print the tables of the last result")
    options = parser.parse_args()
    if options.show:
        print(report.text({(r["case"], r["engine"]): r for r in json.loads(options.json.read_text())["results"]}))
        return 0
    engines, cases = options.engines.split(","), chosen(options)
    if unknown := [engine for engine in engines if engine not in report.ENGINES]:
        print(f"sizes: no engine is called {unknown[0]}; there are {', '.join(report.ENGINES)}", file=sys.stderr)
        return 2
    if not cases:
        print(f"sizes: no case is called {' '.join(options.only)}; there are {', '.join(CASES)}", file=sys.stderr)
        return 2
    results: dict[tuple[str, str], dict[str, Any]] = {}
    for i, case in enumerate(cases, 1):
        for engine in engines:
            if case == "inductor" and engine == "inline":
                continue  # inline has no other backend
            began = time.monotonic()
            print(f"sizes: {i}/{len(cases)} {case}, {engine}", end=" ", file=sys.stderr, flush=True)
            results[case, engine] = result = one(case, engine, options)
            print(f"{report.cell(result)} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    machine_now = machine.machine()
    subtitle = f"{machine_now['date']}, {machine_now['cpu']}, torch {machine_now['torch']}"
    goals = [
        {"case": g.case, "engine": g.engine, "figure": g.figure, "bound": bound, "measured": measured, "met": met}
        for g, bound, measured, met in report.judged(results)
    ]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps({"machine": machine_now, "results": list(results.values()), "goals": goals}, indent=1) + "\n"
    )
    options.json.with_suffix(".html").write_text(report.page(results, subtitle))
    print(report.text(results))
    print(f"sizes: wrote {options.json} and {options.json.with_suffix('.html').name}", file=sys.stderr)
    return int(any(report.failed(result) for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
