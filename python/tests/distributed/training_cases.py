"""One rank: training_cases.py BACKEND [CASE...] trains models of FSDP2 and DDP as eager mode does and optimized, and
prints a line of JSON for each: what differs, and how much was captured. Both ranks run the same cases in the same
order."""

from __future__ import annotations

import dataclasses
import sys
import traceback
import warnings
from collections import OrderedDict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import godynamo
from godynamo import utils
from rank_support import leave, report, shown, translations

dist.init_process_group("gloo")
torch.set_num_threads(1)
RANK = dist.get_rank()
MESH = init_device_mesh("cpu", (2,))
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def batch(step, *shape, shared=False):
    return torch.randn(*(shape or (4, 8)), generator=torch.Generator().manual_seed(step * 2 + (0 if shared else RANK)))


class Block(nn.Module):
    looks = True

    def __init__(self, width=8):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width, bias=False)

    def forward(self, x, scale=1):
        assert not self.looks or (x.ndim == 2 and self.first.weight.shape == (16, 8))
        n, m = x.shape
        y = self.second(torch.nn.functional.gelu(self.first(self.norm(x)))).view(n, m)
        return x + y * scale


def blocks(n=2):
    return nn.Sequential(*(Block() for _ in range(n)))


def sharded(model, each=None, **options):
    for block in each if each is not None else model:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def simply(model, steps=3, shape=()):
    """A case that calls the model with a batch."""
    return model, [lambda m, i=i: m(batch(i, *shape)) for i in range(steps)]


# ---- FSDP2 ----


@case
def fsdp():
    return simply(sharded(blocks()))


@case
def fsdp_root_only():
    return simply(sharded(blocks(), each=()))


@case
def fsdp_blocks_only():
    """The blocks are roots of their own."""
    model = blocks()
    for block in model:
        fully_shard(block)
    return simply(model)


@case
def fsdp_keeps_parameters():
    return simply(sharded(blocks(), reshard_after_forward=False))


@case
def fsdp_half():
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return simply(sharded(blocks(), mp_policy=policy))


@case
def fsdp_output_dtype():
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float64)
    return simply(sharded(blocks(), mp_policy=policy))


@case
def fsdp_arguments_keep_their_dtype():
    policy = MixedPrecisionPolicy(param_dtype=torch.float64, cast_forward_inputs=False)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return self.linear(x.to(self.linear.weight.dtype)).float() + x

    return simply(fully_shard(nn.Sequential(fully_shard(Model(), mp_policy=policy))))


@case
def fsdp_frozen():
    model = blocks()
    model[0].first.requires_grad_(False)
    model[1].requires_grad_(False)
    return simply(sharded(model))


@case
def fsdp_thaws():
    """requires_grad changes between calls."""
    model = blocks()
    model[0].requires_grad_(False)

    def thaw(m):
        m[0].requires_grad_(True)
        return m(batch(1))

    return sharded(model), [lambda m: m(batch(0)), thaw, lambda m: m(batch(2))]


@case
def fsdp_without_gradients():
    def plain(m):
        with torch.no_grad():
            return m(batch(0)) * 2

    def inference(m):
        with torch.inference_mode():
            return m(batch(0)) * 2

    return sharded(blocks()), [plain, lambda m: m(batch(1)), inference, plain]


@case
def fsdp_tied():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.block, self.head = nn.Embedding(16, 8), Block(), nn.Linear(8, 16, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            assert self.head.weight is self.embed.weight
            return self.head(self.block(self.embed(ids)))

    model = Model()
    sharded(model, each=[model.block])
    return model, [lambda m, i=i: m(torch.arange(5) + i) for i in range(3)]


@case
def fsdp_called_twice():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            return self.block(self.block(x)) + self.block(x)

    model = Model()
    return simply(sharded(model, each=[model.block]))


@case
def fsdp_arguments():
    """Tensors in tuples and keywords, with and without gradients, and objects."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x, pair, *, scale, names, flag=None, none=None):
            names["seen"] = len(names)
            cos, sin = pair
            return self.linear(x) * cos + sin * scale, pair, flag

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            names = {"a": 1}
            pair = (x.cos(), self.inner.linear.in_features + x)
            first, again, flag = self.inner(x * 2, pair, scale=x.sin(), names=names, flag="yes")
            second, _, _ = self.inner(first, (first, first.detach()), scale=2.0, names=names)
            return first + second, again[0] is pair[0], flag, names

    model = Model()
    return simply(sharded(model, each=[model.inner]))


@case
def fsdp_identity():
    """Which tensors are the same objects after the hooks."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)
            self.kept = None

        def forward(self, x, y):
            out = self.linear(x) + y
            return out, x, y

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            y = self.inner.linear.out_features * x
            w = y.detach().requires_grad_()
            out, a, b = self.inner(w, x)
            return out * 2, a is w, b is x

    model = Model()
    return simply(sharded(model, each=[model.inner]))


@case
def fsdp_results():
    """Results in dicts, lists, dataclasses and ordered dicts."""

    @dataclasses.dataclass
    class Out:
        loss: torch.Tensor
        parts: list

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x, how):
            y = self.linear(x)
            if how == "dict":
                return {"y": y, "more": [y.sin(), 3]}
            if how == "dataclass":
                return Out(y.mean(), [y, {"x": x}])
            if how == "ordered":
                return OrderedDict(y=y, x=x)
            return [y, (y.cos(), None)]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            a, b = self.inner(x, "dict"), self.inner(x, "dataclass")
            c, d = self.inner(x, "ordered"), self.inner(x, "list")
            return a["y"] + b.loss + c["y"] + d[1][0], a["more"], b.parts

    model = Model()
    return simply(sharded(model, each=[model.inner]))


@case
def fsdp_view():
    """torch warns about a module that returns a view."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = fully_shard(nn.Sequential(nn.Linear(8, 8), nn.Flatten(0)))

        def forward(self, x):
            return self.block(x).sin()

    return simply(fully_shard(Model()))


@case
def fsdp_reads_parameters():
    """Parameters are read before, inside and after the module that has the hooks."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.own = Block(), nn.Parameter(torch.ones(8))

        def forward(self, x):
            y = self.block(x * self.own)
            names = [n for n, _ in self.named_parameters()]
            kinds = [type(p).__name__ for p in (self.own, self.block.first.weight)]
            return y * self.own.sum(), names, kinds, self.own.requires_grad, isinstance(self.own, nn.Parameter)

    model = Model()
    return simply(sharded(model, each=[model.block]))


@case
def fsdp_checkpoint_wrapper():
    """torch's wrapper, with the hooks outside of the checkpoint and inside."""
    model = blocks(3)
    for i in range(2):
        model[i] = checkpoint_wrapper(model[i])
    fully_shard(model[0])
    fully_shard(model[1])
    fully_shard(model[2])
    model[2] = checkpoint_wrapper(model[2])
    return simply(fully_shard(model))


class Checkpointed(nn.Module):
    def __init__(self, dtypes=None):
        super().__init__()
        self.blocks, self.dtypes = blocks(), dtypes

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
            if self.dtypes is not None:
                self.dtypes.append(str(x.dtype))
        return x


@case
def fsdp_checkpoint():
    model = Checkpointed()
    return simply(sharded(model, each=model.blocks))


@case
def fsdp_checkpoint_half():
    """The hooks convert what earlier hooks have passed on."""
    dtypes = []
    model = Checkpointed(dtypes)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float64)
    return simply(sharded(model, each=model.blocks, mp_policy=policy))


@case
def fsdp_each_block_optimized():
    model = blocks()
    for block in model:
        block.forward = godynamo.optimize(block.forward)
    return simply(sharded(model))


@case
def fsdp_prefetch_and_accumulation():
    model = sharded(blocks(3))
    model[0].set_modules_to_forward_prefetch([model[1], model[2]])
    model[2].set_modules_to_backward_prefetch([model[1]])

    def accumulated(m):
        m.set_requires_gradient_sync(False)
        first = m(batch(1))
        first.mean().backward()
        m.set_requires_gradient_sync(True)
        return m(batch(2))

    return model, [lambda m: m(batch(0)), accumulated, lambda m: m(batch(3))]


@case
def fsdp_other_hooks():
    model = sharded(blocks())
    calls = []
    model[0].register_forward_hook(lambda m, args, out: calls.append(len(args)) or out * 2)
    model[1].register_forward_pre_hook(lambda m, args: (args[0] + len(calls),))
    return simply(model)


@case
def fsdp_sizes():
    return sharded(blocks()), [lambda m, i=i: m(batch(i, 2 + i % 3, 8)) for i in range(6)]


@case
def fsdp_module_replaced():
    """A submodule that FSDP2 does not manage takes the place of one that it does."""
    model = sharded(blocks(), each=())

    def replace(m):
        m[1].second = nn.Linear(16, 8, bias=False)
        with torch.no_grad():
            m[1].second.weight.fill_(0.01)
        return m(batch(1))

    return model, [lambda m: m(batch(0)), replace, lambda m: m(batch(2))]


@case
def fsdp_raises():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            y = self.block(x)
            if x.shape[0] == 3:
                raise ValueError("three rows")
            return y

    model = Model()
    return sharded(model, each=[model.block]), [lambda m, n=n: m(batch(n, n, 8)) for n in (2, 3, 4)]


@case
def fsdp_caught():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            try:
                y = self.block(x)
            except RuntimeError:
                y = x
            with torch.autocast("cpu", torch.bfloat16):
                return self.block(y)

    model = Model()
    return simply(sharded(model, each=[model.block]))


@case
def fsdp_group():
    """One state for two modules."""
    model = blocks()
    fully_shard([model[0], model[1]])
    return simply(fully_shard(model))


@case
def fsdp_and_tensor_parallel():
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("data", "model"))
    model = blocks()
    for i, block in enumerate(model):
        block.looks = False  # which reads what the class of a DTensor computes
        plan = {f"{i}.first": ColwiseParallel(), f"{i}.second": RowwiseParallel()}
        parallelize_module(model, mesh["model"], plan)
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    return model, [lambda m, i=i: m(batch(i, shared=True)) for i in range(3)]


@case
def fsdp_root_optimized_late():
    """The function around the model is optimized, and the model is initialized by a plain call."""
    model = sharded(blocks())
    return model, [lambda m: m(batch(0)).sin(), lambda m: m(batch(1)).sin()]


# ---- DDP ----


@case
def ddp():
    return simply(DistributedDataParallel(blocks()))


@case
def ddp_buffers():
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), Block())
    return simply(DistributedDataParallel(model))


@case
def ddp_unused():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Block(), Block()

        def forward(self, x, both):
            y = self.first(x)
            return self.second(y) if both else y

    model = DistributedDataParallel(Model(), find_unused_parameters=True)
    return model, [lambda m, i=i: m(batch(i), i % 2 == 0) for i in range(4)]


@case
def ddp_static():
    return simply(DistributedDataParallel(blocks(), static_graph=True), 4)


@case
def ddp_accumulation():
    def accumulated(m):
        with m.no_sync():
            m(batch(1)).mean().backward()
        return m(batch(2))

    return DistributedDataParallel(blocks()), [lambda m: m(batch(0)), accumulated, lambda m: m(batch(3))]


@case
def ddp_results():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x, scale=None):
            y = self.block(x)
            return {"y": y, "pair": (y.sin(), scale)}

    model = DistributedDataParallel(Model())
    return model, [lambda m, i=i: m(batch(i), scale=i) for i in range(3)]


@case
def ddp_without_gradients():
    def plain(m):
        with torch.no_grad():
            return m(batch(0))

    return DistributedDataParallel(blocks()), [plain, lambda m: m(batch(1)), plain, lambda m: m.eval()(batch(2))]


# ---- running ----


def first_tensor(value):
    return next(t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor))


def trained(name, optimized):
    """Return what each step returns or raises and warns, the gradients, and the parameters afterwards."""
    torch.manual_seed(7)
    model, calls = CASES[name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    call = optimized(model)
    outcomes = []
    for step in calls:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result = step(call)
                loss = first_tensor(result).float().pow(2).mean()
                if loss.requires_grad:
                    loss.backward()
                shows = shown(result)
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                lines = [(f.name, f.lineno) for f in frames if f.filename == __file__ and f.name != "trained"]
                shows = [type(error).__name__, str(error), lines]
        gradients = [shown(p.grad) for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
        said = [str(w.message)[:60] for w in warned]
        outcomes.append([shows, gradients, [shown(p) for p in model.parameters()], said])
    return call, outcomes


def run(name, backend):
    options = {} if backend == "inline" else {"backend": backend}
    _, expected = trained(name, lambda model: model)
    utils.counters.clear()
    optimized, got = trained(name, lambda model: godynamo.optimize(model, **options))
    differs = [(e, g) for e, g in zip(expected, got, strict=True) if e != g]
    entries = [e for e in godynamo.cache_entries(optimized) if e.info["graph"]]
    record = {"case": name, "differs": differs[:1], "entries": len(entries), **translations()}
    torch.manual_seed(7)
    model, calls = CASES[name]()
    report(record, lambda: calls[0](godynamo.explain(model)))


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        run(name, sys.argv[1])
    leave()
