"""Runs the built command line tool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness import forked

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "build" / "bin" / "godynamo"


#: makes the tool start a new Python: where the test looks at the process itself (signals, its path)
NEW_PYTHON = {"GODYNAMO_PYTHON": sys.executable}


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment with the checkout's package and this Python."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GODYNAMO_") or k == "GODYNAMO_GOLIB"}
    path = os.pathsep.join(filter(None, [str(ROOT / "python"), kept.get("PYTHONPATH", "")]))
    ours = {"PYTHONPATH": path, "GODYNAMO_PYTHON": forked.python(), "GODYNAMO_CACHE_DIR": "0", "OMP_NUM_THREADS": "1"}
    return {**kept, **ours, **more}


def tool(
    *arguments: object, cwd: Path | None = None, timeout: float = 240, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run ``godynamo ARGUMENTS`` and return its output as text; ``more`` are environment variables."""
    return subprocess.run(
        [str(TOOL), *map(str, arguments)],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
