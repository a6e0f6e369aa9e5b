"""A custom backend: it receives each graph once, may change it, and returns the callable that runs in its place.

python examples/own_backend.py
"""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from torch import fx, nn  # noqa: E402

import godynamo  # noqa: E402

seen: Counter[str] = Counter()


def without_dropout(gm: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Remove dropout from the graph, so that a model in training mode returns the same result twice."""
    for node in list(gm.graph.nodes):
        seen[node.op] += 1
        if getattr(node.target, "__name__", "") == "dropout":
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
            seen["dropouts taken out"] += 1
    gm.graph.lint()
    gm.recompile()
    return gm.forward


def main() -> None:
    """Check that the optimized model in training mode returns what the model returns in evaluation mode."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.5), nn.ReLU(), nn.Linear(32, 2))
    x = torch.randn(4, 8)
    fixed = godynamo.optimize(without_dropout)(model)
    first, second = fixed(x), fixed(x)
    assert torch.equal(first, second)
    assert torch.equal(first, model.eval()(x))
    print(dict(seen))


if __name__ == "__main__":
    main()
