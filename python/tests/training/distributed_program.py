"""One rank: distributed_program.py ddp|collectives eager|inline|whole; prints results, the same in all modes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist

import godynamo

WHAT, HOW = sys.argv[1:3]


def whole(gm, example_inputs):
    return gm.forward


def optimized(fn):
    """Return the function or module in the requested form."""
    return {"eager": lambda f: f, "inline": godynamo.optimize, "whole": godynamo.optimize(backend=whole)}[HOW](fn)


def ddp():
    """Train with the inner module optimized, then with the outer one."""
    from torch.nn.parallel import DistributedDataParallel

    for place in ("inner", "outer"):
        torch.manual_seed(0)
        m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
        model = DistributedDataParallel(optimized(m)) if place == "inner" else optimized(DistributedDataParallel(m))
        opt = torch.optim.AdamW(model.parameters(), 1e-2)
        for i in range(5):
            x = torch.randn(4, 4, generator=torch.Generator().manual_seed(i * 2 + dist.get_rank()))
            opt.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            opt.step()
            print(place, i, loss.item())
        print([p.tolist() for p in model.parameters()])


def collectives():
    """Run collectives between operations, in one function."""

    def fn(x):
        y = x * 2
        dist.all_reduce(y)
        parts = [torch.zeros_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y + dist.get_rank())
        z = torch.cat(parts).sin()
        work = dist.all_reduce(z, op=dist.ReduceOp.MAX, async_op=True)
        work.wait()
        dist.broadcast(z, src=1)
        objects = [None, None]
        dist.all_gather_object(objects, {"rank": dist.get_rank(), "n": int(z.shape[0])})
        dist.barrier()
        return z + 1, objects

    call = optimized(fn)
    for i in range(3):
        z, objects = call(torch.arange(3.0) + dist.get_rank() + i)
        print(z.tolist(), objects)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    {"ddp": ddp, "collectives": collectives}[WHAT]()
    dist.destroy_process_group()
