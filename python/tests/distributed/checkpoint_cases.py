"""One rank: checkpoint_cases.py BACKEND [CASE...] runs checkpointed functions that communicate or use tensor parallel
modules, forward and backward, and compares them with eager mode as rank_cases.py does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

from rank_support import compare, leave, raised

dist.init_process_group("gloo")
torch.set_num_threads(1)
MESH = init_device_mesh("cpu", (2,))
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_()


class Block(torch.nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.dropout = torch.nn.Dropout(dropout)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(numbers(*p.shape, seed=i) / 4)
        parallelize_module(self, MESH, {"up": ColwiseParallel(), "down": RowwiseParallel()})

    def forward(self, x, scale=1):
        *outer, last = x.shape
        y = self.down(torch.relu(self.up(x.reshape(-1, last)))) * scale
        return x + self.dropout(y).view(*outer, last)


class Model(torch.nn.Module):
    """Blocks whose forward runs again in backward. Each reads the shape of the block before it."""

    def __init__(self, dropout=0.0, reentrant=False):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(dropout) for _ in range(2))
        self.reentrant = reentrant

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
            x = x * 2 if x.shape[0] > 2 else x + 1
        return x.sum()


@case
def parallel_blocks():
    return Model(), [(numbers(2, 4, 8),), (numbers(3, 4, 8),)]


@case
def reentrant():
    return Model(reentrant=True), [(numbers(2, 4, 8),)]


@case
def with_dropout():
    model = Model(dropout=0.5)

    def f(x):
        torch.manual_seed(3)
        return model(x)

    return f, [(numbers(2, 4, 8),)]


@case
def several_results():
    block = Block()

    def part(x, pair, scale, flag=False):
        y = block(x + pair[0], scale)
        return (y, y.sum(-1) if flag else y) if scale > 1 else (y,)

    def f(x, y):
        a, b = checkpoint(part, x, (y, 2), 2, use_reentrant=False, flag=True)
        (c,) = checkpoint(part, a, (y, 2), 1, use_reentrant=False)
        return (a * c).sum() + b.sum() * b.shape[0]

    return f, [(numbers(2, 8), numbers(2, 8, seed=1))]


@case
def collectives():
    group = dist.new_group([0, 1])

    def part(x):
        return x * fc.all_reduce(x.detach().sin(), "sum", group) * 2

    def gathered(x):
        return fc.all_gather_single_autograd(x.sin(), 0, group)

    def f(x):
        return (checkpoint(part, x, use_reentrant=False) + 1).sum() + checkpoint(gathered, x, use_reentrant=False).sum()

    return f, [(numbers(2, 3),)]


@case
def collectives_in_place():
    def part(x):
        y = x.detach() * 2
        dist.all_reduce(y)
        return x * y

    def f(x):
        return (checkpoint(part, x, use_reentrant=False) + 1).sum()

    return f, [(numbers(2, 3),)]


@case
def dtensors():
    def part(x):
        whole = DTensor.from_local(x, MESH, [Shard(0)])
        return whole.redistribute(placements=[Replicate()]) * 2

    def f(x):
        y = checkpoint(part, x, use_reentrant=False)
        return (y.to_local() * y.shape[0]).sum()

    return f, [(numbers(2, 3),)]


INDEXES = torch.tensor([0, 1]), torch.tensor([0, 9])


@case
def handlers_outside():
    block = Block()

    def part(x, index):
        return torch.index_select(block(x), 0, index)

    def inner(x, index, log):
        try:
            return checkpoint(part, x, index, use_reentrant=False) + 1
        finally:
            log.append("inner")

    def f(x, index, log):
        y = x * 2
        try:
            y = inner(y, index, log)
        except IndexError as error:
            log.append(raised(error, __file__)[2])
        return y.sum()

    return f, [(numbers(2, 8), index, []) for index in (*INDEXES, INDEXES[0])]


@case
def handlers_inside():
    block = Block()

    def part(x, index):
        try:
            return torch.index_select(block(x), 0, index)
        except IndexError:
            return x

    def f(x, index):
        return checkpoint(part, x * 2, index, use_reentrant=False).sum()

    return f, [(numbers(2, 8), index) for index in INDEXES]


@case
def checkpoints_in_checkpoints():
    block = Block()

    def outer(x):
        return checkpoint(block, x * 2, use_reentrant=False) + block(x)

    def f(x):
        return checkpoint(outer, x, use_reentrant=False).sum()

    return f, [(numbers(2, 8),)]


@case
def without_gradients():
    model = Model()

    def f(x):
        with torch.no_grad():
            return model(x)

    return f, [(numbers(2, 4, 8),)]


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        compare(name, CASES[name], sys.argv[1], __file__)
    leave()
