"""Stored translations that use groups, meshes, placements, and tensors that C cannot read.

These tests use torch's fake backend, which sends no messages. tests/distributed runs real ranks.
"""

from __future__ import annotations

import pytest

from stored_support import Programs

RANK = """
import torch, godynamo
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

def start(rank, world):
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
"""

MESH = (
    RANK
    + """
def main(rank, world, placement):
    start(rank, world)
    mesh = init_device_mesh("cpu", (world,))
    placements = [{"rows": Shard(0), "columns": Shard(1), "all": Replicate(), "sum": Partial("sum")}[placement]]

    @godynamo.optimize
    def f(x):
        whole = DTensor.from_local(x, mesh, placements)
        return x * whole.shape[0] + whole.shape[1], mesh.ndim if rank < 0 else dist.get_rank()

    got = f(torch.ones(2, 3))
    return got[0][0, 0].item(), got[1]
"""
)


def test_meshes_and_placements_must_match(programs: Programs) -> None:
    programs.write("mesh", MESH)
    numbers = {(0, 2, "rows"): 7, (1, 2, "rows"): 7, (0, 4, "rows"): 11, (0, 4, "columns"): 14, (0, 4, "all"): 5}
    for again in (False, True):
        for arguments, wanted in numbers.items():
            ran = programs.run("mesh", *arguments)
            assert ran.result == (wanted, arguments[0]) and (ran.translated, ran.loaded) == (1 - again, int(again))


GROUP = (
    RANK
    + """
def main(groups, op):
    start(0, 2)
    made = [dist.new_group([0, 1]) for _ in range(groups)]
    group, kind = made[-1], getattr(dist.ReduceOp, op)

    @godynamo.optimize
    def f(x):
        y = x + dist.get_world_size(group)
        dist.all_reduce(y, op=kind, group=group)
        return y

    return f(torch.ones(2)).tolist(), group.group_name
"""
)


def test_the_group_may_differ_but_not_the_reduction(programs: Programs) -> None:
    programs.write("group", GROUP)
    for groups, op, translated in ((1, "SUM", 1), (2, "SUM", 0), (1, "MAX", 1), (2, "MAX", 0), (1, "SUM", 0)):
        ran = programs.run("group", groups, op)
        assert ran.result[0] == [3.0, 3.0] and (ran.translated, ran.loaded) == (translated, 1 - translated)


READ_BY_PYTHON = (
    RANK
    + """
def main(size, dtype):
    start(0, 2)
    dtype = getattr(torch, dtype)
    mesh = init_device_mesh("cpu", (2,))
    whole = DTensor.from_local(torch.ones(2, size, dtype=dtype), mesh, [Shard(0)])
    deep = torch.ones(*[1] * 7, size, dtype=dtype)

    @godynamo.optimize(dynamic=False)
    def f(whole, deep):
        return whole * whole.shape[1] + 1, deep * deep.shape[-1], whole.dtype, deep.dtype

    got = f(whole, deep)
    return got[0].to_local()[0, 0].item(), str(got[2]), got[1].sum().item()
"""
)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_tensors_that_c_cannot_read(programs: Programs, dtype: str) -> None:
    programs.write("python", READ_BY_PYTHON)
    for size, translated in ((3, 1), (4, 1), (3, 0), (4, 0)):
        ran = programs.run("python", size, dtype)
        assert ran.result == (size + 1, f"torch.{dtype}", size * size)
        assert (ran.translated, ran.loaded) == (translated, 1 - translated)
    other = {"float32": "int64", "int64": "float32"}[dtype]
    assert programs.run("python", 3, other)[:3] == ((4, f"torch.{other}", 9), 1, 0)


VERSION = """
import sys, torch, godynamo

@godynamo.optimize
def f(x):
    return x + 1 if sys.version_info >= (3, 11) and sys.flags.optimize < 3 else x

def main():
    return f(torch.ones(1)).item()
"""


def test_the_interpreters_constants_have_names(programs: Programs) -> None:
    programs.write("version", VERSION)
    assert programs.run("version")[:3] == (2, 1, 0)
    assert programs.run("version")[:3] == (2, 0, 1)
