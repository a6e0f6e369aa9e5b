"""dying_rank.py eager|optimized: rank 1 ends in the middle, and rank 0 prints the exception that it gets."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist

import godynamo


def step(x):
    if dist.get_rank() == 1 and x.shape[0] == 3:
        os._exit(3)
    y = x + 1
    dist.all_reduce(y)
    return y * 2


dist.init_process_group("gloo")
call = step if sys.argv[1] == "eager" else godynamo.optimize(step)
call(torch.ones(2))
try:
    call(torch.ones(3))
except RuntimeError as error:
    [frame] = [f for f in traceback.extract_tb(error.__traceback__) if f.name == "step"]
    print(type(error).__name__, "at line", frame.lineno, flush=True)
os._exit(0)
