"""One rank: profiler blocks around collectives. Prints what the profiler sees of each call, eager and optimized."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist
from torch.autograd.profiler import profile, record_function

import godynamo
from godynamo._called import torch_state

dist.init_process_group("gloo")
torch.set_num_threads(1)
GOOD, BAD = torch.tensor([2, 0]), torch.tensor([0, 9])


def pick(x, index):
    with record_function("pick"):
        y = x * 2
        dist.all_reduce(y)
        return torch.index_select(y, 0, index)


def middle(x, index):
    with record_function("middle"):
        try:
            return pick(x, index) + 1
        except IndexError:
            return x[:2]


def caught(x, index):
    with record_function("outer"):
        y = middle(x, index) * 2
    return y + middle(x, GOOD)


def passes(x, index):
    try:
        with record_function("outer", "with arguments"):
            y = pick(x, index)
    except IndexError:
        y = x[:2]
    with record_function("after"):
        return y + 1


def breaks(x, index):
    with record_function("outer") as block:
        y = middle(x, index)
        print(block.name)  # a graph break
        y = y + middle(x, index)
    return y


def stays_open(x, index):
    block = record_function("outer")
    block.__enter__()
    return middle(x, index), block


def seen(fn, index):
    """Return what a call returns, and the profiler's blocks in order, each with the number of blocks around it."""
    with profile(use_kineto=False) as found:
        got = fn(torch.arange(3.0), index)
        if isinstance(got, tuple):
            got[1].__exit__(None, None, None)
            got = got[0]
        with record_function("end"):
            pass
    blocks = [e for e in found.function_events if e.name in ("pick", "middle", "outer", "after", "end")]
    inside = [sum(o.time_range.start <= e.time_range.start < o.time_range.end for o in blocks) for e in blocks]
    return [got.tolist(), sorted(zip([e.name for e in blocks], inside, strict=True))]


for fn in (caught, passes, breaks, stays_open):
    optimized = godynamo.optimize(fn)
    for index in (GOOD, BAD, GOOD, BAD):
        expected, got = seen(fn, index), seen(optimized, index)
        if dist.get_rank() == 0:
            print(json.dumps([fn.__name__, expected == got, expected, got, torch_state.entered()]), flush=True)
    godynamo.reset()
    told = godynamo.explain(fn)(torch.arange(3.0), GOOD)
    if dist.get_rank() == 0:
        print(json.dumps([fn.__name__, told.graph_count, told.graph_break_count]), flush=True)
dist.barrier()  # see rank_support.leave
dist.destroy_process_group()
