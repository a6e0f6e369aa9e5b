"""A first speed-up: a small network at batch size 1 spends most of its time outside arithmetic.

python examples/mlp.py
"""

import timeit
import warnings

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import godynamo  # noqa: E402


class Policy(nn.Module):
    """A policy network for reinforcement learning, which is called with one state at a time."""

    def __init__(self, state: int = 16, hidden: int = 64, actions: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(state, hidden), nn.LayerNorm(hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.head = nn.Linear(hidden, actions)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """Map (batch, state) to (batch, actions), the actions' probabilities."""
        x = self.body(state)
        return self.head(x).softmax(-1)


def best_us(call: object, rounds: int = 30, calls: int = 200) -> float:
    """Return the microseconds of a call, the best of many rounds."""
    return min(timeit.Timer("call()", globals={"call": call}).repeat(rounds, calls)) / calls * 1e6


def main() -> None:
    """Compare results, then times."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy, state = Policy().eval(), torch.randn(1, 16)
    fast = godynamo.optimize(policy)
    with torch.no_grad():
        assert torch.equal(fast(state), policy(state))  # bit by bit: the same operations in the same order
        eager, ours = best_us(lambda: policy(state)), best_us(lambda: fast(state))
    print(f"eager {eager:.1f} us, godynamo {ours:.1f} us: {ours / eager:.2f} of the time")


if __name__ == "__main__":
    main()
