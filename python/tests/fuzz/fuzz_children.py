"""Runs random programs in children, shrinks what differs and prints it: what the commands of both kinds of programs do.

Programs run in batches in children forked from a process that has imported everything and translated nothing, so that a crash
or a hang costs one program and is reported with its seed.
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
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from fuzz_compare import Mismatch
from fuzz_shrink import Body, shrink

BATCH = 200
MANY = 50  #: mismatches after which a run ends
TIMEOUT = 60.0  #: seconds for one program
Job = tuple[Any, str, bool]  #: a name, a program's text, whether its backend is given whole graphs


@dataclass
class Programs:
    """A kind of random programs."""

    what: str  #: what they are compared with
    program: Callable[[int], Body]  #: the body of a seed's program
    source: Callable[[int, Body], str]  #: the whole text, of a shrunk body too
    judge: Callable[[str, bool], Mismatch | None]
    whole: Callable[[int], bool]  #: whether the seed's program has a backend that is given whole graphs

    def text(self, seed: int) -> str:
        """The seed's whole program."""
        return self.source(seed, self.program(seed))


def in_child(kind: Programs, jobs: list[Job], timeout: float = TIMEOUT) -> Iterator[tuple[Any, Mismatch | None]]:
    """Judges (name, text, whole) one after the other in a fork; one that dies or hangs is the last that comes back."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _child(kind, read, write, jobs)
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


def _child(kind: Programs, read: int, write: int, jobs: list[Job]) -> None:
    try:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        logging.getLogger("godynamo").setLevel(logging.CRITICAL)  # warnings of the cache limit, each with its traceback
        for _, text, whole in jobs:
            try:
                found = kind.judge(text, whole)
            except Exception:
                found = Mismatch("harness", 0, None, traceback.format_exc(limit=-4))
            row = {k: v if isinstance(v, (int, str)) else repr(v) for k, v in vars(found).items()} if found else None
            os.write(write, json.dumps(row).encode() + b"\n")
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 3)


def mismatches(kind: Programs, seeds: list[int], timeout: float = TIMEOUT) -> Iterator[tuple[int, Mismatch | None]]:
    """Judges the programs of the seeds, in as many children as it takes."""
    while seeds:
        done = 0
        for seed, found in in_child(kind, [(s, kind.text(s), kind.whole(s)) for s in seeds[:BATCH]], timeout):
            yield seed, found
            done += 1
        seeds = seeds[done:]


def minimal(kind: Programs, seed: int, found: Mismatch, timeout: float = TIMEOUT) -> tuple[str, Mismatch]:
    """The seed's program shrunk to what still shows a mismatch of this kind."""
    last = found

    def holds(candidate: Body) -> bool:
        nonlocal last
        text = kind.source(seed, candidate)
        try:
            compile(text, "<program>", "exec")
        except SyntaxError:
            return False
        (_, now) = next(iter(in_child(kind, [(0, text, kind.whole(seed))], timeout)))
        if now is None or now.kind != found.kind:
            return False
        last = now
        return True

    if found.kind == "hang":
        timeout = 10.0
    small = shrink(kind.program(seed), holds, 60 if found.kind == "hang" else 600)
    return kind.source(seed, small).split("\ndef fn(", 1)[1], last


def report(kind: Programs, seed: int, found: Mismatch, out: Any = sys.stdout) -> str:
    """Shrinks and prints one mismatch; returns the minimal program."""
    text, last = minimal(kind, seed, found)
    backend = "whole graphs" if kind.whole(seed) else "inline"
    print(f"== seed {seed} ({backend}): {last}\ndef fn({text}", file=out, flush=True)
    return text


def main(kind: Programs, count: int, text: str) -> int:
    """The command of a kind of programs; ``count`` of them by default."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--most", type=int, default=10, help="mismatches to shrink and print; the others are counted")
    parser.add_argument("--show", action="store_true", help="print the seed's program and its verdict, unshrunk")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.show:
        print(kind.text(args.seed))
        print(next(iter(mismatches(kind, [args.seed])))[1])
        return 0
    started, found, i = time.monotonic(), [], -1
    for i, (seed, mismatch) in enumerate(mismatches(kind, list(range(args.seed, args.seed + args.count)))):
        if mismatch is not None:
            found.append((seed, mismatch))
            print(f"seed {seed}: {mismatch.kind}", file=sys.stderr, flush=True)
            if len(found) >= MANY:
                break
        if i % 1000 == 999:
            print(
                f"{i + 1} of {args.count}, {(i + 1) / (time.monotonic() - started):.0f} a second",
                file=sys.stderr,
                flush=True,
            )
    seconds, ran = time.monotonic() - started, i + 1
    for seed, mismatch in found[: args.most]:
        report(kind, seed, mismatch)
    print(f"{ran} programs from seed {args.seed}: {len(found)} differ from {kind.what}; {ran / seconds:.0f} a second")
    return int(bool(found))
