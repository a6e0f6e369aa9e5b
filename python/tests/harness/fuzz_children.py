"""Runs random programs in children, shrinks those that differ and prints them: the command of every fuzzer.

Programs run in batches in children forked from a process that has imported everything and translated nothing, so that
a crash or a hang costs one program and is reported with its seed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import torch

from harness import fuzz_compare
from harness.device import lost
from harness.fuzz_compare import Mismatch
from harness.fuzz_shrink import Body, shrink

BATCH = 200
MANY = 50  #: mismatches after which a run ends
TIMEOUT = 60.0  #: seconds for one program
SAID = 2500  #: bytes shown of a crashed program's standard error
PROGRESS = 10.0  #: seconds between two lines of progress
Job = tuple[Any, str, bool]  #: a name, a program's text, whether its backend receives whole graphs


@dataclass
class Programs:
    """A kind of random programs."""

    what: str  #: the reference of the comparison, for messages
    program: Callable[[int], Body]  #: the body of a seed's program
    source: Callable[[int, Body], str]  #: the whole text, also of a shrunk body
    judge: Callable[[str, bool], Mismatch | None]
    whole: Callable[[int], bool]  #: whether the backend of the seed's program receives whole graphs
    tries: int = 600  #: maximum number of programs judged to shrink one
    runs: int = 1  #: number of runs that one program counts as in ``--count``
    #: returns the part of a program's text to show
    shown: Callable[[str], str] = lambda text: "def fn(" + text.split("\ndef fn(", 1)[1]

    def text(self, seed: int) -> str:
        """Return the seed's whole program."""
        return self.source(seed, self.program(seed))


def in_child(kind: Programs, jobs: list[Job], timeout: float = TIMEOUT) -> Iterator[tuple[Any, Mismatch | None]]:
    """Judge (name, text, whole) jobs one after the other in a forked child.

    A job that crashes or hangs the child ends the run. A program that crashes without godynamo, when it is judged
    alone, has no result to compare with. It passes.
    """
    read, write = os.pipe()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 closed below: a generator may never leave its own with statement
    child = os.fork()
    if child == 0:
        _child(kind, read, write, jobs, errors)
    os.close(write)
    buffer, at, why, plain = b"", 0, "", False
    try:
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
                if isinstance(row, bool):
                    plain = row
                    continue
                yield jobs[at][0], Mismatch(**row) if row else None
                at += 1
                deadline = time.monotonic() + timeout
    finally:  # also if the caller closes the generator early
        os.close(read)
        if why != "crash" and at < len(jobs):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if at < len(jobs) and why == "crash" and plain:
        if at == 0:
            yield jobs[at][0], None
        else:  # an earlier program of this child may be the cause: judge this one alone
            yield from in_child(kind, jobs[at : at + 1], timeout)
    elif at < len(jobs):
        got = "" if why == "hang" else f"wait status {status}"
        errors.seek(0)
        yield jobs[at][0], Mismatch(why, 0, None, f"{got}\n{errors.read(SAID).decode(errors='replace')}".strip())
    errors.close()


def _child(kind: Programs, read: int, write: int, jobs: list[Job], errors: IO[bytes]) -> None:
    try:
        os.close(read)
        os.dup2(errors.fileno(), 2)
        faulthandler.enable(2, all_threads=False)
        fuzz_compare.on_plain_run = lambda begins: os.write(write, json.dumps(begins).encode() + b"\n")
        logging.getLogger("godynamo").setLevel(logging.CRITICAL)  # no warnings of the cache limit with tracebacks
        for _, text, whole in jobs:
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
            try:
                found = kind.judge(text, whole)
            except Exception as error:
                if lost(error):  # only another child can use the device
                    traceback.print_exc(limit=-4)
                    os._exit(3)
                found = Mismatch("harness", 0, None, traceback.format_exc(limit=-4))
            row = {k: v if isinstance(v, (int, str)) else repr(v) for k, v in vars(found).items()} if found else None
            os.write(write, json.dumps(row).encode() + b"\n")
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 3)


def mismatches(kind: Programs, seeds: list[int], timeout: float = TIMEOUT) -> Iterator[tuple[int, Mismatch | None]]:
    """Judge the programs of the seeds, in as many children as necessary."""
    while seeds:
        done = 0
        for seed, found in in_child(kind, [(s, kind.text(s), kind.whole(s)) for s in seeds[:BATCH]], timeout):
            yield seed, found
            done += 1
        seeds = seeds[done:]


def minimal(kind: Programs, seed: int, found: Mismatch, timeout: float = TIMEOUT) -> tuple[str, Mismatch]:
    """Shrink the seed's program as far as it still shows a mismatch of this kind."""
    last = found

    def holds(candidate: Body) -> bool:
        nonlocal last
        text = kind.source(seed, candidate)
        try:
            compile(text, "<program>", "exec")
        except SyntaxError:
            return False
        ((_, now),) = in_child(kind, [(0, text, kind.whole(seed))], timeout)
        if now is None or now.kind != found.kind:
            return False
        last = now
        return True

    if found.kind == "hang":
        timeout = 10.0
    small = shrink(kind.program(seed), holds, 60 if found.kind == "hang" else kind.tries)
    return kind.shown(kind.source(seed, small)), last


def report(kind: Programs, seed: int, found: Mismatch, out: Any = sys.stdout) -> str:
    """Shrink and print one mismatch; return the minimal program."""
    text, last = minimal(kind, seed, found)
    backend = "whole graphs" if kind.whole(seed) else "inline"
    print(f"== seed {seed} ({backend}): {last}\n{text}", file=out, flush=True)
    return text


def main(kind: Programs, count: int, text: str, options: argparse.ArgumentParser | None = None) -> int:
    """Run the command of a kind of programs, ``count`` by default. ``options``: a parser with the kind's options."""
    parser = options or argparse.ArgumentParser(description=text)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--most", type=int, default=10, help="mismatches to shrink")
    parser.add_argument("--show", action="store_true", help="print the seed's program and its verdict, unshrunk")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.show:
        print(kind.text(args.seed))
        print(next(iter(mismatches(kind, [args.seed])))[1])
        return 0
    started, found, ran = time.monotonic(), [], 0
    told = started
    seeds = range(args.seed, args.seed + -(-args.count // kind.runs))
    for seed, mismatch in mismatches(kind, list(seeds)):
        ran += kind.runs
        if mismatch is not None:
            found.append((seed, mismatch))
            print(f"seed {seed}: {mismatch.kind}", file=sys.stderr, flush=True)
            if len(found) >= MANY:
                break
        if ran % 1000 == 0 or time.monotonic() - told > PROGRESS:
            told = time.monotonic()
            print(f"{ran} of {args.count}, {ran / (told - started):.0f} a second", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    kinds = Counter(mismatch.kind for _, mismatch in found)
    first = {mismatch.kind: seed for seed, mismatch in reversed(found)}  # the first seed of each kind is shrunk first
    found.sort(key=lambda one: first[one[1].kind] != one[0])
    for seed, mismatch in found[: args.most]:
        report(kind, seed, mismatch)
    for seed, mismatch in found[args.most :]:
        print(f"== seed {seed}, not shrunk: {mismatch}")
    for name, number in kinds.most_common() if len(kinds) > 1 else ():
        print(f"{number:6} {name}")
    what = "programs" if kind.runs == 1 else f"runs of {ran // kind.runs} programs"
    print(f"{ran} {what} from seed {args.seed}: {len(found)} differ from {kind.what}; {ran / seconds:.0f} a second")
    return int(bool(found))
