"""Three graph breaks, and the same function without them.

godynamo explain examples/breaks.py:step
"""

import os
import sys
import warnings

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402


def step(x: torch.Tensor, history: list[float]) -> torch.Tensor:
    """Scale a batch and record its mean: a typical first version."""
    scale = len(os.listdir(os.curdir)) ** 0  # a call into the operating system
    y = torch.tanh(x) * scale
    history.append(y.mean().tolist())  # a Python number from a tensor's data
    if y.abs().max() > 0.9:  # a branch on a tensor's data
        y = y * 0.5
    return y.softmax(-1)


def better(x: torch.Tensor, history: list[torch.Tensor], scale: int) -> torch.Tensor:
    """Do the same in one graph: Python values are arguments, and tensor values stay tensors until the end."""
    y = torch.tanh(x) * scale
    history.append(y.mean())
    y = torch.where(y.abs().max() > 0.9, y * 0.5, y)
    return y.softmax(-1)


def main() -> int:
    """Check that both return the same."""
    x = torch.linspace(-1, 3, 12).reshape(3, 4)
    numbers: list[float] = []
    tensors: list[torch.Tensor] = []
    for batch in (x, x / 4):
        scale = len(os.listdir(os.curdir)) ** 0
        assert torch.equal(step(batch, numbers), better(batch, tensors, scale))
    print("means:", [round(n, 4) for n in numbers], [round(t.item(), 4) for t in tensors])
    return 0


if __name__ == "__main__":
    sys.exit(main())
