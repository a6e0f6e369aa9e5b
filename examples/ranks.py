"""Trains a tensor parallel model: each rank holds a part of every layer.

torchrun --nproc-per-node 2 examples/ranks.py
python examples/ranks.py
"""

import os
import warnings

# torch warns at its import if NumPy is not installed; nothing here needs NumPy.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402

import godynamo  # noqa: E402


class Block(nn.Module):
    """Two linear layers with a residual connection."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, width) to the same shape."""
        return x + self.second(torch.relu(self.first(x)))


def model() -> nn.Module:
    """Return four blocks whose layers are distributed over all ranks."""
    torch.manual_seed(0)
    blocks = nn.Sequential(*(Block() for _ in range(4)))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for i in range(4):
        parallelize_module(blocks, mesh, {f"{i}.first": ColwiseParallel(), f"{i}.second": RowwiseParallel()})
    return blocks


def losses(blocks: nn.Module, call: nn.Module) -> list[float]:
    """Train for ten steps; return the mean loss over the ranks after each."""
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01, foreach=False)
    seen = []
    for step in range(10):
        x = torch.randn(8, 32, generator=torch.Generator().manual_seed(step))  # every rank has the same batch
        loss = call(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append(mean(loss.detach()).item())
    return seen


@godynamo.optimize
def mean(loss: torch.Tensor) -> torch.Tensor:
    """Return the mean over the ranks."""
    total = loss.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def main() -> None:
    """Train in eager mode and optimized, and compare the losses."""
    if "RANK" not in os.environ:  # started by python, not by torchrun: one rank
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo")
    eager = losses(plain := model(), plain)
    blocks = model()
    optimized = godynamo.optimize(blocks)
    captured = losses(blocks, optimized)
    told = godynamo.explain(model())(torch.randn(8, 32))
    if dist.get_rank() == 0:
        print(f"loss {captured[0]:.4f} -> {captured[-1]:.4f}, eager's bit for bit: {captured == eager}")
        print(f"graphs {told.graph_count}, operations {told.op_count}, breaks {told.graph_break_count}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
