"""`make demo`: runs toy_example, from seed document S002, under godynamo with a backend that prints its graphs.

Prints each captured graph as a table, the guard text of every entry, and the numbers of hits and misses. Compares 100
calls with eager mode, bit by bit. Exits with 1 if a result or the number of graphs is wrong.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

# torch warns at its import if NumPy is not installed. Nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402

import godynamo  # noqa: E402

CALLS = 100
EXPECTED_GRAPHS = 3  # one for the code before the branch on data, and one for each arm of the branch

graphs: list[torch.fx.GraphModule] = []


def my_compiler(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
    """Print the graph and return it unchanged. This backend compiles nothing."""
    graphs.append(gm)
    print(f"\nmy_compiler() called with FX graph {len(graphs)}, {len(example_inputs)} inputs:")
    if importlib.util.find_spec("tabulate") is None:  # torch's tables need it, and do not come with torch
        print(gm.graph)
    else:
        gm.graph.print_tabular()
    return gm.forward


def eager_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Run the seed document's toy_example in CPython."""
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


@godynamo.optimize(my_compiler)
def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Run the seed document's toy_example, unchanged except for the decorator and the types."""
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def main() -> int:
    """Run the example; return 0 if everything is as expected, else 1."""
    torch.manual_seed(0)
    equal = 0
    for _ in range(CALLS):
        a, b = torch.randn(10), torch.randn(10)
        want = eager_example(a.clone(), b.clone())
        equal += torch.equal(toy_example(a, b), want)

    print("\nguards of each translation:")
    for translation in godynamo.guards(toy_example):
        print(f"  {translation.text}")
    stats = godynamo.cache_stats(toy_example)
    print(f"\n{equal} of {CALLS} calls equal to eager bit by bit; {len(graphs)} graphs")
    print(", ".join(f"{name}: {count}" for name, count in stats.items()))
    return int(equal != CALLS or len(graphs) != EXPECTED_GRAPHS)


if __name__ == "__main__":
    sys.exit(main())
