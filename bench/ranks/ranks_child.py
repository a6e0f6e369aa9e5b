"""One rank of `make ranks`: ranks_child.py CASE ENGINE STEPS trains a case; rank 0 prints a line of JSON."""

from __future__ import annotations

import copy
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

Loss = Callable[[int], torch.Tensor]
Made = tuple[Any, Callable[[Any], Loss], list[torch.Tensor], tuple[Any, ...]]
Case = Callable[[], Made]


class Block(torch.nn.Module):
    """Two linear layers with a norm and a residual connection."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.first, self.second = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.second(torch.nn.functional.gelu(self.first(self.norm(x))))
        return x + y


def batch(step: int, shared: bool = False) -> torch.Tensor:
    seed = step * 64 + (0 if shared else dist.get_rank())
    return torch.randn(16, 64, generator=torch.Generator().manual_seed(seed))


def blocks() -> torch.nn.Sequential:
    return torch.nn.Sequential(*(Block() for _ in range(4)))


def module(model: Any, shared: bool = False) -> Made:
    def losses(call: Any) -> Loss:
        return lambda step: call(batch(step, shared)).pow(2).mean()

    return model, losses, list(model.parameters()), (batch(0, shared),)


def ddp() -> Made:
    return module(DistributedDataParallel(blocks()))


def fsdp2() -> Made:
    model = blocks()
    for block in model:
        fully_shard(block)
    return module(fully_shard(model))


def tensor_parallel() -> Made:
    model, mesh = blocks(), init_device_mesh("cpu", (dist.get_world_size(),))
    for i in range(4):
        parallelize_module(model, mesh, {f"{i}.first": ColwiseParallel(), f"{i}.second": RowwiseParallel()})
    return module(model, shared=True)


def fsdp2_and_tensor_parallel() -> Made:
    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "model"))
    model = blocks()
    for i, block in enumerate(model):
        plan = {f"{i}.first": ColwiseParallel(), f"{i}.second": RowwiseParallel()}
        parallelize_module(model, mesh["model"], plan)
        fully_shard(block, mesh=mesh["data"])
    return module(fully_shard(model, mesh=mesh["data"]), shared=True)


def dtensor() -> Made:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    weight = distribute_tensor(torch.randn(64, 64) / 8, mesh, [Shard(1)]).requires_grad_()

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b).relu() + 1

    def losses(call: Any) -> Loss:
        return lambda step: call(DTensor.from_local(batch(step), mesh, [Shard(0)]), weight).pow(2).mean().full_tensor()

    return function, losses, [weight], (DTensor.from_local(batch(0), mesh, [Shard(0)]), weight)


def functional() -> Made:
    weight = (torch.randn(64, 64) / 8).requires_grad_()
    group: Any = dist.group.WORLD

    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = fc.all_gather_single_autograd((x @ w).tanh(), 0, group)
        return fc.reduce_scatter_single_autograd(y * y, "sum", 0, group).mean()

    return function, lambda call: lambda step: call(batch(step), weight), [weight], (batch(0), weight)


def plain() -> Made:
    weight = (torch.randn(64, 64) / 8).requires_grad_()

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        mean = x.mean(0)
        dist.all_reduce(mean)
        work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
        y = mean / dist.get_world_size() + 1
        work.wait()
        return ((x - y) @ w).tanh().mean()

    return function, lambda call: lambda step: call(batch(step), weight), [weight], (batch(0), weight)


def pipeline() -> Made:
    """Pass activations from rank to rank and gradients back, in the function that each rank calls."""
    rank, size = dist.get_rank(), dist.get_world_size()
    model: Any = Block()

    def forward(x: torch.Tensor) -> Any:
        if dist.get_rank() > 0:
            x = x.detach()
            dist.recv(x, dist.get_rank() - 1)
        y = model(x)
        if dist.get_rank() + 1 < dist.get_world_size():
            dist.send(y.detach(), dist.get_rank() + 1)
        return y

    def losses(call: Any) -> Loss:
        def loss(step: int) -> Any:
            y = call(batch(step, shared=True))
            if rank + 1 == size:
                total = y.pow(2).mean()
                dist.broadcast(total.detach().clone(), size - 1)
                return total
            seen = torch.zeros(())
            dist.broadcast(seen, size - 1)
            return y.mean() * 0.01 + (seen - y.mean() * 0.01).detach()  # the loss of the last stage, local gradients

        return loss

    return forward, losses, list(model.parameters()), (batch(0, shared=True),)


def llama(shared: bool, wrap: Callable[[Any], Any]) -> Made:
    """A small Llama of transformers, whose forward runs inside `try`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4}
    model = wrap(LlamaForCausalLM(LlamaConfig(num_hidden_layers=4, vocab_size=100, use_cache=False, **sizes)))

    def words(step: int) -> torch.Tensor:
        seed = step * 64 + (0 if shared else dist.get_rank())
        return torch.randint(100, (4, 16), generator=torch.Generator().manual_seed(seed))

    def losses(call: Any) -> Loss:
        def loss(step: int) -> torch.Tensor:
            ids = words(step)
            value: torch.Tensor = call(input_ids=ids, labels=ids).loss
            return value

        return loss

    return model, losses, list(model.parameters()), (words(0),)


def llama_ddp() -> Made:
    return llama(False, DistributedDataParallel)


def llama_fsdp2() -> Made:
    def wrap(model: Any) -> Any:
        for layer in model.model.layers:
            fully_shard(layer)
        return fully_shard(model)

    return llama(False, wrap)


def llama_tensor_parallel() -> Made:
    def wrap(model: Any) -> Any:
        colwise = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
        rowwise = ("self_attn.o_proj", "mlp.down_proj")
        plan: dict[str, Any] = {f"model.layers.*.{name}": ColwiseParallel() for name in colwise}
        plan |= {f"model.layers.*.{name}": RowwiseParallel() for name in rowwise}
        plan["model.embed_tokens"] = RowwiseParallel(input_layouts=Replicate())
        plan["lm_head"] = ColwiseParallel(output_layouts=Replicate())
        return parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), plan)

    return llama(True, wrap)


CASES: dict[str, Case] = {
    "ddp": ddp,
    "fsdp2": fsdp2,
    "tensor parallel": tensor_parallel,
    "fsdp2 x tensor parallel": fsdp2_and_tensor_parallel,
    "dtensor": dtensor,
    "functional collectives": functional,
    "plain collectives": plain,
    "pipeline": pipeline,
    "llama ddp": llama_ddp,
    "llama fsdp2": llama_fsdp2,
    "llama tensor parallel": llama_tensor_parallel,
}


def explained(engine: str, target: Any, sample: tuple[Any, ...]) -> dict[str, Any]:
    """Return how many graphs and breaks the first call has."""
    if engine == "torch.compile":
        import torch._dynamo

        told: Any = torch._dynamo.explain(target)(*sample)
        torch._dynamo.reset()
    else:
        import godynamo

        told = godynamo.explain(target)(*sample)
        godynamo.reset()
    return {"graphs": told.graph_count, "breaks": told.graph_break_count, "operations": told.op_count}


def optimized(engine: str, target: Any) -> Any:
    if engine == "torch.compile":
        return torch.compile(target, backend="eager")
    if engine == "godynamo":
        import godynamo

        return godynamo.optimize(target)
    return target


def main(case: str, engine: str, steps: int) -> None:
    record: dict[str, Any] = {}
    if engine != "eager":
        torch.manual_seed(0)
        target, _, _, sample = CASES[case]()
        record = explained(engine, target, copy.copy(sample))
    torch.manual_seed(0)
    target, losses, parameters, _ = CASES[case]()
    loss = losses(optimized(engine, target))
    optimizer = torch.optim.SGD(parameters, lr=1e-2, foreach=False)
    values, times = [], []
    for step in range(steps):
        dist.barrier()
        start = time.perf_counter()
        total: Any = loss(step)
        total.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - start)
        values.append(total.item().hex())
    record.update(losses=values, first=1e3 * times[0], step=1e3 * statistics.median(times[steps // 2 :]))
    if dist.get_rank() == 0:
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    dist.destroy_process_group()
