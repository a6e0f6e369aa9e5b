"""Runs `make ranks`: trains each case on several processes over gloo, in eager mode, with torch.compile and with
godynamo, and prints graphs, breaks, times, and whether the losses are eager's bit for bit."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from ranks_child import CASES

HERE = Path(__file__).resolve().parent


def train(case: str, engine: str, ranks: int, steps: int) -> dict[str, Any]:
    """Return rank 0's record, or {"error": the last line of a rank's error}."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    path = os.pathsep.join([str(HERE.parents[1] / "python"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    env.update(OMP_NUM_THREADS="1", PYTHONPATH=path)
    children = [
        subprocess.Popen(
            [sys.executable, str(HERE / "ranks_child.py"), case, engine, str(steps)],
            env={**env, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        out = [child.communicate(timeout=300) for child in children]
    except subprocess.TimeoutExpired:
        for child in children:
            child.kill()
        return {"error": "does not end in 300 s"}
    for child, (_, stderr) in zip(children, out, strict=True):
        if child.returncode:
            lines = [line for line in stderr.splitlines() if line and not line.startswith((" ", "["))]
            return {"error": lines[-1][:100] if lines else f"exit status {child.returncode}"}
    lines = [line for line in out[0][0].splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def row(case: str, ranks: int, engine: str, record: dict[str, Any], eager: dict[str, Any]) -> str:
    if "error" in record:
        return f"| {case} | {ranks} | {engine} | {record['error']} | | | | |"
    same = "equal" if record["losses"] == eager.get("losses") else "differ"
    counts = [str(record.get(name, "")) for name in ("graphs", "operations", "breaks")]
    times = [f"{record['step']:.1f}", f"{record['first']:.0f}"]
    return "| " + " | ".join([case, str(ranks), engine, *counts, *times, same]) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="cases with this text in their names", default="")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--engines", nargs="+", default=["torch.compile", "godynamo"])
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    print("| case | ranks | engine | graphs | operations | breaks | step, ms | first step, ms | losses |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for case in CASES:
        for ranks in options.ranks:
            if options.only not in case:
                continue
            eager = train(case, "eager", ranks, options.steps)
            print(row(case, ranks, "eager", eager, eager), flush=True)
            failed |= "error" in eager
            for engine in options.engines:
                record = train(case, engine, ranks, options.steps)
                print(row(case, ranks, engine, record, eager), flush=True)
                wrong = "error" in record or record.get("losses") != eager.get("losses")
                failed |= engine == "godynamo" and wrong
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
