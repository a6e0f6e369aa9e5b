"""One rank: rank_cases.py BACKEND [CASE...] runs cases as eager mode does and optimized, and prints a line of JSON for
each: what differs, and how much was captured. Both ranks run the same cases in the same order."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.utils.checkpoint import checkpoint

from rank_support import compare, leave

dist.init_process_group("gloo")
torch.set_num_threads(1)
RANK = dist.get_rank()
MESH = init_device_mesh("cpu", (2,))
FIRST = dist.new_group([0])  # rank 1 is no member
BOTH = dist.new_group([0, 1])
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + RANK))


def same(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---- collectives ----


@case
def plain():
    def f(x):
        y = x * 2
        dist.all_reduce(y)
        parts = [torch.zeros_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y + dist.get_rank())
        z = torch.cat(parts).sin()
        dist.all_reduce(z, op=dist.ReduceOp.MAX, group=BOTH)
        dist.broadcast(z, src=1)
        dist.reduce(z, 0)
        dist.barrier()
        return z + 1, y.shape[0]

    return f, [(numbers(3, seed=i),) for i in range(3)]


@case
def functional():
    def f(x):
        y = fc.all_reduce(x * 2, "sum", dist.group.WORLD)
        z = fc.all_gather_single(y + 1, 0, BOTH)
        w = fc.reduce_scatter_single(z, "sum", 0, BOTH)
        v = fc.all_to_all_single(fc.wait_tensor(w), None, None, BOTH)
        return fc.broadcast(v, 1, BOTH) * 2, y

    return f, [(numbers(4, seed=i),) for i in range(2)]


@case
def functional_gradients():
    def f(x, w):
        y = fc.all_gather_single_autograd(x * w, 0, BOTH)
        z = fc.reduce_scatter_single_autograd(y.sin(), "sum", 0, BOTH)
        return fc.all_to_all_single_autograd(z, [2, 2], [2, 2], BOTH).sum()

    return f, [(numbers(4, seed=i), numbers(4, seed=9).requires_grad_()) for i in range(2)]


@case
def work():
    def f(x):
        y = x + 1
        w = dist.all_reduce(y, async_op=True)
        z = x * 3
        w.wait()
        flag = dist.barrier(async_op=True)
        flag.wait()
        return y + z

    return f, [(numbers(4),)]


@case
def work_is_returned():
    def f(x, go):
        y = x + 1
        w = dist.all_reduce(y, async_op=True)
        if not go:
            w.wait()
            return y * 2
        if w is not None:
            w.wait()
        return y * w.is_completed()

    return f, [(numbers(4), False), (numbers(4), True)]


@case
def point_to_point():
    def f(x):
        y = x * 2
        if dist.get_rank() == 0:
            dist.send(y, 1)
            dist.irecv(y, 1).wait()
        else:
            z = torch.empty_like(y)
            source = dist.recv(z, 0)
            dist.isend(z + 1, 0).wait()
            y = z + source
        return y + 1

    return f, [(numbers(4),)]


@case
def single_tensors():
    def f(x):
        out, part, other = torch.empty(2 * x.shape[0]), torch.empty(x.shape[0] // 2), torch.empty_like(x)
        dist.all_gather_into_tensor(out, x + 1)
        dist.reduce_scatter_tensor(part, x * 2)
        dist.all_to_all_single(other, x)
        pieces = [torch.empty(2), torch.empty(2)]
        dist.all_to_all(pieces, list(x[:4].chunk(2)))
        return out.sin(), part, other, pieces

    return f, [(numbers(4),), (numbers(6),)]


@case
def sizes_of_results():
    def f(x):
        y = fc.all_gather_single(x + 1, 0, BOTH)
        n, m = y.shape
        z = fc.all_reduce(y.view(n // 2, 2 * m), "sum", BOTH)
        zeros = torch.zeros(y.size(0), m, dtype=y.dtype, device=y.device)
        return z.reshape(z.size(-1), -1) * n, zeros + z.shape[0] + m, torch.ones(n).shape[0]

    return f, [(numbers(2, 3),), (numbers(4, 3),), (numbers(2, 5),)]


@case
def wrong_number_of_sizes():
    def f(x):
        y = fc.all_reduce(x + 1, "sum", BOTH)
        n, m = y.shape
        return y * n * m

    return f, [(numbers(2, 3),), (numbers(4),), (numbers(2, 3, 4),)]


@case
def numbers_that_change():
    def f(x):
        n = torch.tensor(x.shape[0])
        k = torch.tensor(3)
        dist.all_reduce(n)
        dist.all_reduce(k.view(1))
        zeros, ones = torch.zeros(n.item()), torch.ones(int(k))
        return zeros, zeros.shape, ones, ones.shape[0], ones.stride(), x * n

    return f, [(numbers(2),), (numbers(3),)]


@case
def lists_of_the_caller():
    def f(x, parts):
        dist.all_gather(parts, x)
        return parts[0] + parts[1] * 2

    return f, [(numbers(3), [torch.zeros(3), torch.zeros(3)])]


@case
def subgroup():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.group = FIRST

        def forward(self, x, group=None):
            y = x + 1
            dist.all_reduce(y, group=self.group)  # warns on rank 1
            if dist.get_rank(self.group) >= 0:
                y = y * dist.get_world_size(self.group)
            dist.all_reduce(y, dist.ReduceOp.SUM, group)
            return y * 2

    x = numbers(3)
    return Model(), [(x,), (x, dist.group.WORLD), (x, BOTH), (x, FIRST)]


@case
def facts_of_groups():
    def f(x, group):
        return x * dist.get_world_size(group) + dist.get_rank(group)

    return f, [(numbers(3), g) for g in (BOTH, FIRST, None, BOTH)]


@case
def changed_memory():
    def f(x):
        y = x.view(-1)
        dist.all_reduce(y)
        z = x + 1
        dist.all_reduce(x[0])
        return z, x.sum(), y.requires_grad, x.shape

    return f, [(numbers(2, 3),)]


@case
def effects_in_order():
    def f(x, log):
        log.append("before")
        print("one")
        dist.all_reduce(x)
        log.append(x.shape[0])
        y = x + 1
        print("two")
        dist.broadcast(y, 0)
        log.append("after")
        return y, log

    return f, [(numbers(3), [])]


@case
def in_blocks():
    def f(x):
        y = x + 1
        try:
            dist.all_reduce(y)
            z = y / 2
        except RuntimeError:
            z = y
        with torch.no_grad():
            dist.all_reduce(z)
            w = z * 2
        return w + 1

    return f, [(numbers(3),)]


@case
def in_a_function_of_an_operation():
    def part(x):
        return fc.all_reduce(x.sin(), "sum", BOTH) * 2

    def f(x):
        return checkpoint(part, x, use_reentrant=False) + 1

    return f, [(numbers(3),)]


@case
def loop():
    def f(x, n):
        with torch.no_grad():
            for _ in range(n):
                dist.all_reduce(x)
                x = x / 2 + 1
        return x

    return f, [(numbers(3), 3), (numbers(3), 5)]


@case
def equal_layers():
    class Block(torch.nn.Module):
        def __init__(self, i):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(same(*p.shape, seed=i))

        def forward(self, x):
            y = self.inner(x)
            return torch.relu(fc.all_reduce(y, "sum", BOTH)) + x

    return torch.nn.Sequential(*(Block(i) for i in range(6))), [(numbers(2, 4),)]


@case
def uneven():
    """Rank 1 sees other sizes, and in other calls, than rank 0."""

    def f(x):
        y = x * 2 + x.shape[0]
        total = y.sum().reshape(1)
        dist.all_reduce(total)
        return y / total

    sizes = ([2, 2, 2, 2, 5], [3, 4, 1, 6, 2])[RANK]
    return f, [(numbers(n, 3),) for n in sizes]


@case
def other_branches():
    def f(x):
        if x.shape[0] > 3:
            x = x[:3].sin()
        dist.all_reduce(x)
        return x + 1

    return f, [(numbers(n),) for n in ((3, 3, 5), (4, 3, 3))[RANK]]


# ---- DTensor ----


def sharded(*shape, seed=0, dim=0):
    return distribute_tensor(same(*shape, seed=seed), MESH, [Shard(dim)])


@case
def arithmetic():
    def f(a, b):
        return (a @ b).relu() + 1

    return f, [(sharded(4, 4), sharded(4, 4, seed=1, dim=1)), (sharded(6, 4), sharded(4, 4, seed=1))]


@case
def dtensor_methods():
    def f(x, w):
        a = DTensor.from_local(x, MESH, [Shard(0)])
        b = distribute_tensor(w, MESH, [Replicate()])
        c = (a @ b).relu() + 1
        d = c.redistribute(MESH, [Replicate()])
        e = DTensor.from_local(x, c.device_mesh, c.placements)
        return d.to_local() * 2, c.full_tensor().sum(), e.redistribute(placements=[Shard(1)]), c.mean(0)

    return f, [(numbers(2, 4), same(4, 4)), (numbers(3, 4), same(4, 4))]


@case
def dtensor_gradients():
    def f(x, w):
        a = DTensor.from_local(x, MESH, [Shard(0)])
        return (a @ w).sin().sum().full_tensor()

    return f, [(numbers(2, 4), sharded(4, 4).requires_grad_())]


@case
def dtensor_metadata():
    def f(a):
        y = a * a.shape[0] + a.ndim
        if a.dtype is torch.float32 and isinstance(a, DTensor) and isinstance(y, torch.Tensor):
            y = y * 2
        if type(y) is DTensor and y.placements[0].is_shard() and y.shape[1] == 4:
            y = y + 1
        return y, y.requires_grad, a.placements, y.device_mesh.ndim

    return f, [(sharded(4, 4),), (sharded(6, 4),)]


@case
def dtensor_in_place():
    def f(a):
        a.mul_(2)
        a += 1
        b = a.clone()
        b.zero_()
        return a, b

    return f, [(sharded(4, 4),)]


@case
def dtensor_to_python():
    def f(a):
        n = a.sum().full_tensor().item()
        m = a.max().full_tensor()
        return a * n if m > 0 else a - n

    return f, [(sharded(4, 4),)]


@case
def dtensor_data():
    def f(a):
        if a.full_tensor()[0, 0] > 0:
            return a + 1
        return a - 1

    return f, [(sharded(4, 4, seed=i),) for i in range(4)]


@case
def dtensor_or_tensor():
    def f(a):
        return a.sin() + a

    return f, [(sharded(4, 4),), (same(4, 4),), (sharded(4, 4),)]


@case
def partial_sums():
    def f(x):
        a = DTensor.from_local(x, MESH, [Partial()])
        return (a + a).redistribute(MESH, [Shard(0)]).to_local() + 1

    return f, [(numbers(4, 2),)]


@case
def dtensor_pieces():
    def f(a):
        x, y = a.chunk(2, dim=1)
        z = torch.cat([x, y], dim=1)
        u, v = torch.max(z, dim=1)
        return z[0], u.mT if u.ndim == 2 else u, v, torch.nn.functional.layer_norm(a, (4,))

    return f, [(sharded(4, 4),)]


# ---- parallelize_module ----


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(same(*p.shape, seed=i) / 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(self.norm(x)))) + x


@case
def tensor_parallel():
    model = torch.nn.Sequential(Mlp(), Mlp())
    for i in "01":
        parallelize_module(model, MESH, {f"{i}.first": ColwiseParallel(), f"{i}.second": RowwiseParallel()})
    return model, [(same(4, 8, seed=i),) for i in range(2)]


class Norm(torch.nn.Module):
    def forward(self, x):
        n, m = x.shape
        return (x / x.pow(2).mean(-1, keepdim=True).sqrt()).view(n, m)


@case
def parallel_norm_and_checkpoint():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mlp = Norm(), Mlp()

        def forward(self, x):
            n, m = x.shape
            y = self.norm(x).full_tensor()
            return checkpoint(self.mlp, y, use_reentrant=False).view(2 * n, m) + 1

    block = Block()
    plan = {"norm": SequenceParallel(sequence_dim=0), "mlp.first": ColwiseParallel(), "mlp.second": RowwiseParallel()}
    return parallelize_module(block, MESH, plan), [(same(4, 8, seed=i),) for i in range(2)]


@case
def sequence_parallel():
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(same(*p.shape, seed=i) / 4)
    plan = {
        "0": SequenceParallel(),
        "1": ColwiseParallel(input_layouts=Shard(1)),
        "3": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }
    model = torch.nn.Sequential(parallelize_module(model, MESH, plan))
    inputs = PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),))
    parallelize_module(model, MESH, {"0": inputs})
    outputs = PrepareModuleOutput(output_layouts=(Shard(1),), desired_output_layouts=(Replicate(),))
    return parallelize_module(model, MESH, {"0": outputs}), [(same(2, 4, 8, seed=i),) for i in range(2)]


@case
def prepared_outputs():
    class Halves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp = Mlp()

        def forward(self, x):
            return self.mlp(x), x

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.halves, self.last = Halves(), Mlp()

        def forward(self, x):
            y, x = self.halves(x)
            z = self.last(y)
            return (z.to_local() if isinstance(z, DTensor) else z) * 2 + x

    plan = {f"{name}.{part}": style() for name in ("halves.mlp", "last") for part, style in
            (("first", ColwiseParallel), ("second", RowwiseParallel))}  # fmt: skip
    halves = PrepareModuleOutput(output_layouts=(Replicate(), None), desired_output_layouts=(Replicate(), Shard(0)))
    last = PrepareModuleOutput(
        output_layouts=Partial(), desired_output_layouts=Replicate(), use_local_output=False
    )  # fmt: skip
    model = parallelize_module(Model(), MESH, {**plan, "halves": halves, "last": last})
    return model, [(same(4, 8, seed=i),) for i in range(2)]


@case
def classes_of_results():
    def f(x):
        whole = DTensor.from_local(x, MESH, [Replicate()], run_check=False)
        seen = [type(whole) is DTensor, type(whole * 2) is DTensor, isinstance(whole.sum(), DTensor)]
        part = whole.to_local()
        return part + 1, [*seen, isinstance(part, DTensor), isinstance(part, torch.Tensor), type(part + 1).__name__]

    return f, [(same(4, 8, seed=i),) for i in range(2)]


@case
def classes_from_functions():
    class Whole(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return DTensor.from_local(x.detach(), MESH, [Replicate()], run_check=False)

    def f(x):
        made = Whole.apply(fc.wait_tensor(x))  # a function of the program may return any class
        return (made + 1).to_local() if isinstance(made + 1, DTensor) else x

    return f, [(same(4, 8, seed=i),) for i in range(2)]


# ---- sizes that rules give ----


@case
def known_sizes():
    kinds = ([Shard(0)], [Shard(1)], [Shard(-1)], [Replicate()], (Partial(),))

    def one(x, made, placed):
        a = DTensor.from_local(x, MESH, made)
        b = (a * 2).redistribute(placements=placed)
        c = b.to_local()
        d = fc.all_reduce(c + 1, "sum", BOTH)
        n = 1 if a.shape[0] > 4 else 2 if c.shape[1] > 4 else 3
        e = d.view(*d.shape[:-1], -1, 1) * n
        return e, a.shape, b.size(), c.size(-1), d.ndim, b.full_tensor().shape, e.dtype, d.device, len(d.shape)

    def f(x):
        return [one(x, made, placed) for made in kinds for placed in kinds[:-1]]

    return f, [(numbers(*n),) for n in ((2, 4), (4, 6), (6, 2), (2, 6), (8, 8))]


@case
def uneven_sizes():
    """What the ranks hold differs, so its sizes are read at run time."""

    def f(x):
        a = DTensor.from_local(x, MESH, [Replicate()])
        b = a.redistribute(placements=[Shard(0)]).to_local()
        return torch.zeros(b.shape[0], 2) + a.shape[0], b

    return f, [(numbers(n, 2),) for n in (3, 4, 5, 1)]


@case
def other_meshes():
    meshes = init_device_mesh("cpu", (1, 2), mesh_dim_names=("one", "two"))

    def f(x, mesh, placements):
        a = DTensor.from_local(x, mesh, placements)
        b = a + 1
        return b, a.shape, b.shape[0] > 3

    x, one = numbers(2, 4), [Shard(0)]
    both = [Shard(0), Shard(0)], [Shard(1), Shard(0)], [Replicate(), Shard(1)]
    return f, [(x, MESH, one), (x, meshes["one"], one), (x, meshes["two"], one), *((x, meshes, p) for p in both)]


@case
def sizes_of_parallel_modules():
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.o = (torch.nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            heads = (*x.shape[:-1], -1, 2)
            q, k = (layer(x).view(heads).transpose(1, 2) for layer in (self.q, self.k))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=q.shape[2] > 1)
            y = self.o(y.transpose(1, 2).reshape(*x.shape[:-1], -1))
            return y * 2 if y.shape == x.shape and y.ndim == 3 and str(type(y * 1)) == str(torch.Tensor) else y

    model = torch.nn.Sequential(Attention(), torch.nn.LayerNorm(8), Attention())
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(same(*p.shape, seed=i))
    for i in (0, 2):
        plan = {"q": ColwiseParallel(), "k": ColwiseParallel(), "o": RowwiseParallel()}
        parallelize_module(model[i], MESH, plan)
    return model, [(same(2, n, 8, seed=n),) for n in (3, 1, 4, 5, 6)]


@case
def layouts_of_parallel_modules():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(6, 4)
            self.up, self.down = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)
            self.norm = torch.nn.LayerNorm(4)

        def forward(self, ids):
            x = self.words(ids)
            y = self.up(x)
            z = self.down(torch.relu(y))
            w = self.norm(z)
            shapes = tuple(t.shape for t in (x, y, z))
            return w.sum(-1) * (z.shape[0] + z.size(1)), shapes, w.shape[1:] if w.ndim == 3 else None

    model = Model()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(same(*p.shape, seed=i))
    plan = {
        "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "up": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
        "down": RowwiseParallel(output_layouts=Shard(1)),
        "norm": SequenceParallel(),
    }
    parallelize_module(model, MESH, plan)
    return model, [(torch.arange(2 * n).reshape(2, n) % 6,) for n in (4, 2, 6, 8)]


@case
def changed_in_place():
    def f(x):
        y = fc.wait_tensor(x + 1)
        before = y.shape
        y.squeeze_()
        return before, y.shape, y.ndim, y * 2

    return f, [(numbers(1, 3),), (numbers(1, 4),)]


# ---- errors ----


@case
def wrong_sizes():
    def f(x):
        y = x + 1
        out = torch.empty(2 * y.shape[0] + 1)
        dist.all_gather_into_tensor(out, y)
        return out

    return f, [(numbers(3),)]


@case
def wrong_group():
    def f(x, group):
        y = x + 1
        dist.all_reduce(y, group=group)
        return y

    return f, [(numbers(3), "both"), (numbers(3), 3)]


@case
def wrong_functional_group():
    def f(x, group):
        return fc.all_reduce(x + 1, "sum", group)

    return f, [(numbers(3), "no such group"), (numbers(3), None)]


@case
def mixed_tensors():
    def f(a, x):
        b = a + 1
        return b + x

    return f, [(sharded(4, 4), same(4, 4))]


@case
def no_such_member():
    def f(x):
        y = fc.all_reduce(x, "sum", BOTH)
        return y.to_local()

    return f, [(numbers(3),)]


@case
def one_rank_raises():
    def f(x, fails):
        dist.all_reduce(x)
        if fails:
            raise ValueError(f"rank {dist.get_rank()}")
        y = x + 1
        return y.sin()

    return f, [(numbers(3), RANK == 1), (numbers(3), False)]


@case
def caught():
    def f(x):
        y = x + 1
        try:
            dist.all_gather_into_tensor(torch.empty(1), y)
        except (RuntimeError, ValueError) as error:
            y = y * len(str(error))
        dist.all_reduce(y)
        return y

    return f, [(numbers(3),)]


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        compare(name, CASES[name], sys.argv[1], __file__)
    leave()
