"""Two built checkouts in alternate processes: `bench/alternate.py OLD NEW [--rounds N]`.

Prints µs a call of (a + b).relu() * 2, eager and optimized, and the difference, a line a process. Single runs of `make bench`
differ by more than most changes do.
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
def f(a, b): return (a + b).relu() * 2
g = godynamo.optimize(f)
x, y = torch.randn(10), torch.randn(10)
best = {"f": 1.0, "g": 1.0}
for _ in range(10): f(x, y), g(x, y)
for _ in range(120):
    for name in best:
        best[name] = min(best[name], timeit.timeit(f"{name}(x, y)", globals=globals(), number=800) / 800)
eager, ours = best["f"] * 1e6, best["g"] * 1e6
print(f"{sys.argv[1]:30} eager {eager:.3f}  optimized {ours:.3f}  over eager {ours - eager:+.3f}")
"""


def main() -> None:
    """Command line."""
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
