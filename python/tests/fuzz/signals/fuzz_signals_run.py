"""make fuzz-signals: sends signals and other threads' exceptions at random points of programs; compares with CPython.

    fuzz_signals_run.py [--count N] [--seed FIRST] [--most N] [--show] [--nomemory] [--malloc-debug]

N counts arrivals; each program has twelve. ``--nomemory`` lets allocations fail instead. ``--malloc-debug`` runs under
PYTHONMALLOC=debug. GODYNAMO_ASAN_PRELOAD in the environment becomes LD_PRELOAD, for libraries built with
AddressSanitizer.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def environment() -> None:
    """Restart the process if its memory is to be checked: allocators are chosen at the start."""
    wanted = {}
    if "--malloc-debug" in sys.argv:
        wanted["PYTHONMALLOC"] = "debug"
    if preload := os.environ.get("GODYNAMO_ASAN_PRELOAD"):
        wanted |= {"LD_PRELOAD": preload, "PYTHONMALLOC": wanted.get("PYTHONMALLOC", "malloc")}
        wanted["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "detect_leaks=0:handle_segv=0")
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


if __name__ == "__main__":
    environment()

from harness.fuzz_children import Programs, main  # noqa: E402 a process that restarts has imported nothing
from signals_judge import judge, judge_memory  # noqa: E402
from signals_program import ARRIVALS, case, program, source  # noqa: E402


def programs(judge: object) -> Programs:
    """Return the programs, judged by one of the two judges."""
    return Programs(
        "CPython", program, source, judge, lambda seed: case(seed)["backend"] != "eager", tries=150, runs=ARRIVALS
    )


SIGNALS = programs(judge)

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nomemory", action="store_true", help="let allocations fail")
    options.add_argument("--malloc-debug", action="store_true", help="PYTHONMALLOC=debug")
    memory = "--nomemory" in sys.argv
    sys.exit(main(programs(judge_memory) if memory else SIGNALS, 20000, __doc__, options))
