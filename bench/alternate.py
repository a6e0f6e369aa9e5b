"""Compares two built checkouts in alternating processes: `bench/alternate.py OLD NEW [--rounds N]`.

Each process prints one line: for four functions the time of an eager call in µs, and how much longer an optimized call
takes. Both are the best of 60 rounds of 400 calls. The functions are (a + b).relu() * 2 without a break, one with one
break, one with a branch on a tensor, and one with five breaks. Alternating is necessary because two runs of
`make bench` differ by more than most changes do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import sys, timeit, torch, godynamo
torch.set_num_threads(1)
def plain(a, b): return (a + b).relu() * 2
def breaks(a, b):
    godynamo.graph_break()
    return a
def branches(a, b):
    if a.sum() > 0: return a
    return a + 1
def five(a, b):
    a = a + 1
    for i in range(5): godynamo.graph_break()
    return a
x, y = torch.randn(10).abs(), torch.randn(10)
cells = []
for f in (plain, breaks, branches, five):
    g, best = godynamo.optimize(f), [1.0, 1.0]
    for _ in range(20): g(x, y)
    for _ in range(60):
        for i, call in enumerate((f, g)):
            best[i] = min(best[i], timeit.timeit(lambda: call(x, y), number=400) / 400)
    cells.append(f"{f.__name__} {best[0] * 1e6:.3f} {(best[1] - best[0]) * 1e6:+.3f}")
print(f"{sys.argv[1]:30}", "  ".join(cells))
"""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, type=Path, help="checkouts that make build has run in")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for _ in range(options.rounds):
        for tree in options.trees:
            environment = {**os.environ, "PYTHONPATH": str(tree / "python")}
            subprocess.run([sys.executable, "-c", CHILD, str(tree)], env=environment, check=True)


if __name__ == "__main__":
    main()
