"""One rank: exit_signals.py CALLS makes calls that leave a block through a side exit in every other call, while signals
whose handler raises arrive at random moments. Prints a line of JSON: how many calls a signal ended, how many results
were wrong, how many handlers did not run, and how many objects a thousand calls without signals left behind."""

from __future__ import annotations

import contextlib
import gc
import json
import random
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist

import godynamo

torch.set_num_threads(1)
dist.init_process_group("gloo")
ALONE = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
GOOD, BAD = torch.tensor([2, 0]), torch.tensor([0, 9])
X = torch.arange(3.0)


class Arrived(BaseException):
    pass


def arrive(*_):
    raise Arrived


def inner(x, index, log):
    try:
        log.append(1)
        y = x * 2
        dist.all_reduce(y, group=ALONE)
        return torch.index_select(y, 0, index) + 1
    finally:
        log.append(-1)


def f(x, index, log):
    parts = {"a": x + 1}
    try:
        log.append(1)
        for i in range(2):
            parts["b"] = inner(parts["a"], index if i else GOOD, log) + i
    except IndexError:
        return parts["a"] * 3
    finally:
        log.append(-1)
    return parts["b"] * 2


def objects():
    gc.collect()
    return len(gc.get_objects())


def main(calls):
    want = [f(X, index, []) for index in (GOOD, BAD)]
    optimized = godynamo.optimize(f, nopython=True)
    for index in (GOOD, BAD, GOOD, BAD):
        optimized(X, index, [])
    before = objects()
    for i in range(1000):
        optimized(X, (GOOD, BAD)[i % 2], [])
    found = {"ended": 0, "wrong": 0, "unbalanced": 0, "left": objects() - before}
    signal.signal(signal.SIGALRM, arrive)
    rng = random.Random(dist.get_rank())
    for i in range(calls):
        log = []
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 3e-4))
            got = optimized(X, (GOOD, BAD)[i % 2], log)
            signal.setitimer(signal.ITIMER_REAL, 0)
            found["wrong"] += not torch.equal(got, want[i % 2])
        except Arrived:
            found["ended"] += 1
        finally:
            with contextlib.suppress(Arrived):
                signal.setitimer(signal.ITIMER_REAL, 0)
        found["unbalanced"] += sum(log) != 0
    print(json.dumps(found), flush=True)


main(int(sys.argv[1]))
dist.barrier()  # see rank_support.leave
dist.destroy_process_group()
