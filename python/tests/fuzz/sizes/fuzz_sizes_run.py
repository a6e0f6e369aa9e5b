"""make fuzz-sizes: compares random programs that compute with sizes, at sizes that change, with eager mode.

    fuzz_sizes_run.py [--count N] [--seed FIRST] [--most N] [--show] [--captures | --conditions]

Each program is judged twice: inline, and with a backend that receives whole graphs. --captures compares nothing and
prints how many translations the programs need for their sizes. --conditions translates shorter programs, drops each
condition of their entries once (sizes_conditions.py) and lists the conditions without which no result was wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "language"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "torch"))

import torch

from harness.fuzz_children import Programs, main, mismatches
from sizes_conditions import judge_program
from sizes_judge import captures, judge
from sizes_program import program, short_program, source

SIZES = Programs("eager", program, source, judge, lambda seed: seed % 2 == 1)
CAPTURES = dataclasses.replace(SIZES, judge=captures)
CONDITIONS = dataclasses.replace(SIZES, judge=judge_program, program=short_program)


def summary(counted: list[tuple[int, int, int]]) -> str:
    """Return the average and the worst of (translations, distinct cases, seed)."""
    translations, distinct = (statistics.mean(row[i] for row in counted) for i in (0, 1))
    shares = [f"{sum(row[0] <= most for row in counted) / len(counted):.0%} at most {most}" for most in (1, 2, 4, 8)]
    worst, of, seed = max(counted)
    return (
        f"{len(counted)} programs, {translations:.2f} translations for {distinct:.2f} sets of sizes on average;"
        f" {', '.join(shares)}; worst {worst} for {of} (seed {seed})"
    )


def print_captures(first: int, count: int) -> int:
    """Print the average and the worst number of translations, for each kind of backend."""
    torch.set_num_threads(1)
    failed = 0
    seeds = list(range(first, first + count))
    rows = [(seed, found) for seed, found in mismatches(CAPTURES, seeds) if found is not None]
    for name, whole in (("inline", False), ("whole graphs", True)):
        of_kind = [(seed, f) for seed, f in rows if SIZES.whole(seed) == whole and f.kind == "captures"]
        if counted := [(f.call, int(f.expected), seed) for seed, f in of_kind]:
            print(f"{name}: {summary(counted)}")
    for seed, found in rows:
        if found.kind != "captures":
            failed += 1
            print(f"seed {seed}: {found}")
    return int(failed > 0)


def print_conditions(first: int, count: int) -> int:
    """Print the conditions that no call needed; return 1 if a child failed."""
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    for seed, found in mismatches(CONDITIONS, list(range(first, first + count))):
        if found is None or found.kind != "conditions":
            total["failed programs"] += 1
            print(f"seed {seed}: {found}")
            continue
        total["needed"] += found.call
        for verdict, condition, line in json.loads(found.expected):
            total[verdict] += 1
            print(f"seed {seed}: {verdict}: {condition}    {line}", flush=True)
    print(f"{count} programs from seed {first}, conditions: {', '.join(f'{n} {what}' for what, n in total.items())}")
    return int(bool(total["failed programs"]))


if __name__ == "__main__":
    text = __doc__.splitlines()[0]
    options = argparse.ArgumentParser(description=text)
    options.add_argument("--captures", action="store_true", help="print how many translations the programs need")
    options.add_argument("--conditions", action="store_true", help="drop each condition of an entry once")
    known = options.parse_known_args()[0]
    if not known.captures and not known.conditions:
        sys.exit(main(SIZES, 2000, text, options))
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    known = options.parse_args()
    sys.exit((print_captures if known.captures else print_conditions)(known.seed, known.count))
