"""make fuzz-language: random programs under godynamo and under CPython, compared; what differs is shrunk and printed.

    fuzz_run.py [--count N] [--seed FIRST] [--most N] [--show]

Programs run in batches in children forked from a process that has imported everything and translated nothing, so that a crash
or a hang costs one program and is reported with its seed. Every tenth program has a backend that is given whole graphs.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from fuzz_judge import Mismatch, judge
from fuzz_program import program, source
from fuzz_shrink import Body, shrink

BATCH = 200
TIMEOUT = 60.0  #: seconds for one program


def whole_graph(seed: int) -> bool:
    """Whether the seed's program runs with a backend that is given whole graphs."""
    return seed % 10 == 9


def in_child(jobs: list[tuple[Any, str, bool]], timeout: float = TIMEOUT) -> Iterator[tuple[Any, Mismatch | None]]:
    """Judges (name, text, whole) one after the other in a fork; one that dies or hangs is the last that comes back."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _child(read, write, jobs)
    os.close(write)
    buffer, at, why = b"", 0, ""
    deadline = time.monotonic() + timeout
    while at < len(jobs):
        ready, _, _ = select.select([read], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(read, 1 << 16) if ready else b""
        if not data:
            why = "crash" if ready else "hang"
            break
        *lines, buffer = (buffer + data).split(b"\n")
        for text in lines:
            row = json.loads(text)
            yield jobs[at][0], Mismatch(**row) if row else None
            at += 1
            deadline = time.monotonic() + timeout
    os.close(read)
    if why == "hang":
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if at < len(jobs):
        got = "" if why == "hang" else f"wait status {status}"
        yield jobs[at][0], Mismatch(why, 0, None, got)


def _child(read: int, write: int, jobs: list[tuple[Any, str, bool]]) -> None:
    try:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        logging.getLogger("godynamo").setLevel(logging.CRITICAL)  # warnings of the cache limit, each with its traceback
        for _, text, whole in jobs:
            found = judge(text, whole)
            row = {k: v if isinstance(v, (int, str)) else repr(v) for k, v in vars(found).items()} if found else None
            os.write(write, json.dumps(row).encode() + b"\n")
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 3)


def mismatches(seeds: list[int], timeout: float = TIMEOUT) -> Iterator[tuple[int, Mismatch | None]]:
    """Judges the programs of the seeds, in as many children as it takes."""
    while seeds:
        done = 0
        for seed, found in in_child([(s, source(program(s)), whole_graph(s)) for s in seeds[:BATCH]], timeout):
            yield seed, found
            done += 1
        seeds = seeds[done:]


def minimal(body: Body, found: Mismatch, whole: bool, timeout: float = TIMEOUT) -> tuple[str, Mismatch]:
    """The program shrunk to what still shows a mismatch of this kind."""
    last = found

    def holds(candidate: Body) -> bool:
        nonlocal last
        text = source(candidate)
        try:
            compile(text, "<program>", "exec")
        except SyntaxError:
            return False
        (_, now) = next(iter(in_child([(0, text, whole)], timeout)))
        if now is None or now.kind != found.kind:
            return False
        last = now
        return True

    if found.kind == "hang":
        timeout = 10.0
    small = shrink(body, holds, 60 if found.kind == "hang" else 600)
    return source(small).split("\ndef fn(", 1)[1], last


def report(seed: int, found: Mismatch, out: Any = sys.stdout) -> str:
    """Shrinks and prints one mismatch; returns the minimal program."""
    text, last = minimal(program(seed), found, whole_graph(seed))
    backend = "whole graphs" if whole_graph(seed) else "inline"
    print(f"== seed {seed} ({backend}): {last}\ndef fn({text}", file=out, flush=True)
    return text


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--most", type=int, default=10, help="mismatches to shrink and print; the others are counted")
    parser.add_argument("--show", action="store_true", help="print the seed's program and its verdict, unshrunk")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.show:
        print(source(program(args.seed)))
        print(next(iter(mismatches([args.seed])))[1])
        return 0
    started, found = time.monotonic(), []
    for i, (seed, mismatch) in enumerate(mismatches(list(range(args.seed, args.seed + args.count)))):
        if mismatch is not None:
            found.append((seed, mismatch))
            print(f"seed {seed}: {mismatch.kind}", file=sys.stderr, flush=True)
        if i % 1000 == 999:
            print(
                f"{i + 1} of {args.count}, {(i + 1) / (time.monotonic() - started):.0f} a second",
                file=sys.stderr,
                flush=True,
            )
    seconds = time.monotonic() - started
    for seed, mismatch in found[: args.most]:
        report(seed, mismatch)
    print(
        f"{args.count} programs from seed {args.seed}: {len(found)} differ from CPython; {args.count / seconds:.0f} a second"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
