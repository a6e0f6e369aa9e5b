"""Trains a small transformer: the loss curve equals that of eager mode bit by bit.

python examples/train.py --steps 20 --compare
godynamo run examples/train.py --steps 20 --plain
"""

import argparse
import time
import warnings

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import godynamo  # noqa: E402


class Block(nn.Module):
    """Attention and a feed-forward network, each after a layer norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, tokens, width) to the same shape."""
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed(self.norm2(x))


class Model(nn.Module):
    """Maps token ids to logits of the next token."""

    def __init__(self, vocabulary: int = 32, width: int = 32, layers: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map (batch, tokens) to (batch, tokens, vocabulary)."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batches(steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return batches of sequences that count upwards from random starts."""
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randint(32, (8, 1), generator=generator) + torch.arange(13) for _ in range(steps)]
    return [(row[:, :-1] % 32, row[:, 1:] % 32) for row in rows]


def train(steps: int, *, optimized: bool) -> list[float]:
    """Train from the same initial weights; return the loss of each step."""
    torch.manual_seed(0)
    model = Model()
    run = godynamo.optimize(model) if optimized else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for tokens, wanted in batches(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(run(tokens).flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--plain", action="store_true", help="do not optimize here: godynamo run does")
    parser.add_argument("--compare", action="store_true", help="train a second time in eager")
    options = parser.parse_args()
    torch.set_num_threads(1)
    train(1, optimized=False)  # so that neither time includes torch's imports and allocations at its first step
    began = time.perf_counter()
    losses = train(options.steps, optimized=not options.plain)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {time.perf_counter() - began:.1f} s")
    if options.compare:
        began = time.perf_counter()
        same = train(options.steps, optimized=False) == losses
        print(f"eager: {time.perf_counter() - began:.1f} s, the same losses: {same}")
        assert same


if __name__ == "__main__":
    main()
