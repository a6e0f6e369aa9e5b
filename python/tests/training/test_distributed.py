"""DistributedDataParallel around an optimized module, and collectives in optimized functions: two real processes over
gloo."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from harness import forked

PROGRAM = Path(__file__).with_name("distributed_program.py")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(what, how):
    """Return the output of both ranks, by rank."""
    env = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    children = [
        subprocess.Popen(
            [forked.python(), str(PROGRAM), what, how],
            env={**env, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    out = [child.communicate(timeout=240) for child in children]
    assert [child.returncode for child in children] == [0, 0], out
    return [stdout for stdout, _ in out]


@pytest.mark.parametrize("what", ["ddp", "collectives"])
def test_two_processes_are_eagers(what):
    eager = run(what, "eager")
    assert eager[0].strip()
    for how in ("inline", "whole"):
        assert run(what, how) == eager
