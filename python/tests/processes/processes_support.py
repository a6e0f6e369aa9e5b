"""Runs programs in separate processes with a hard time limit: code that may hang or leak does not run inside pytest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_program(name: str, *arguments: str, timeout: float, env: dict[str, str] | None = None) -> str:
    """Run ``name`` from this folder in a new session; check that it ends with status 0, and return its output.

    Nothing outlives the call: all processes of the session are killed at the end, even if the program fails.
    """
    # Settings of the shell or the CI must not influence the test.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GODYNAMO_")} | {"GODYNAMO_CACHE_DIR": "0"}
    process = subprocess.Popen(
        [sys.executable, str(HERE / name), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**environment, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1]), **(env or {})},
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        tree = children(process.pid)
        kill_session(process.pid)
        output, _ = process.communicate()
        raise AssertionError(f"{name} {' '.join(arguments)}: no end after {timeout:.0f} s\n{tree}\n{output}") from None
    finally:
        kill_session(process.pid)
    assert process.returncode == 0, f"{name} {' '.join(arguments)}: status {process.returncode}\n{output}"
    return output


def kill_session(leader: int) -> None:
    """Kill every process of the session. A child stuck in Go reacts only to SIGKILL."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def children(session: int) -> str:
    """Return what the processes of a session are doing, for the failure message."""
    command = ["ps", "-o", "pid,ppid,stat,wchan:24,cmd", "-s", str(session)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
