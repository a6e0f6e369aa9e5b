"""Compares two built checkouts in alternating processes: `bench/alternate.py OLD NEW [--rounds N]`.

Each process prints one line. For functions of different kinds: the time of an eager call in µs, and how much longer an
optimized call takes, each the best of 60 rounds of 400 calls. Then, in ms: the first call of a function of 600
operations and of a model of 24 equal layers, each the best of three, and the import. Alternating is necessary because
two runs of `make bench` differ by more than most changes do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import sys, time, timeit, torch
start = time.perf_counter(); import godynamo; imported = time.perf_counter() - start
torch.set_num_threads(1)
from torch import nn
def identity(a, b): return a
def relu(a, b): return torch.relu(a)
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
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(10, 16), nn.Linear(16, 4)
    def forward(self, a, b): return self.second(torch.relu(self.first(a)))
mlp = MLP().requires_grad_(False)
x, y = torch.randn(10).abs(), torch.randn(10)
cells = []
for name, f in (*((f.__name__, f) for f in (identity, relu, plain, breaks, branches, five)), ("mlp", mlp)):
    g, best = godynamo.optimize(f), [1.0, 1.0]
    for _ in range(20): g(x, y)
    for _ in range(60):
        for i, call in enumerate((f, g)):
            best[i] = min(best[i], timeit.timeit(lambda: call(x, y), number=400) / 400)
    cells.append(f"{name} {best[0] * 1e6:.3f} {(best[1] - best[0]) * 1e6:+.3f}")
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
    def forward(self, a): return a + self.down(torch.relu(self.up(self.norm(a))))
def first(make, a):
    taken = []
    for i in range(4):  # the first one imports what capturing needs
        g = make(i)
        start = time.perf_counter()
        g(a)
        taken.append(time.perf_counter() - start)
    return min(taken[1:]) * 1e3
def many(i):
    space = {}
    lines = "".join(f"    a = a {'+*-'[n % 3]} {n % 7 + 1.5}\\n" for n in range(600))
    exec(f"def f(a):\\n    {i}\\n{lines}    return a", space)
    return godynamo.optimize(space["f"], backend="eager")
with torch.no_grad():
    cells.append(f"600 operations {first(many, x):.2f} ms")
    layers = lambda i: godynamo.optimize(nn.Sequential(*(Layer() for _ in range(24))).eval(), backend="eager")
    cells.append(f"24 layers {first(layers, torch.randn(2, 16)):.2f} ms")
cells.append(f"import {imported * 1e3:.1f} ms")
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
