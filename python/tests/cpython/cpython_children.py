"""Runs each test file in a watched child process: a crash or a hang costs one test, and a new child runs the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
#: maximum number of children that may die on one file before its remaining tests are given up
MOST_DEATHS = 12
#: seconds until the first test starts on a busy machine, which imports torch, the file and the file's imports, and
#: translates all of them
START_UP = 120


@dataclass
class FileRun:
    """The results of a file's tests in one mode."""

    tests: dict[str, tuple[str, str]] = field(default_factory=dict)  #: id → (outcome, text)
    internal: list[str] = field(default_factory=list)  #: internal errors, each with the test it happened in
    translated: int = 0  #: frames that were transformed
    served: int = 0  #: frames for which the hook ran transformed code
    seconds: float = 0.0
    died: str = ""  #: why the file was given up; "" if it ran to the end

    @property
    def cannot_load(self) -> str:
        """The last line of an exception before the first test; "" if there was none."""
        if len(self.tests) != 1 or self.died != "died with exit status 1":
            return ""
        ((_, text),) = self.tests.values()
        return text.rstrip().rpartition("\n")[2]


def run_file(name: str, *, godynamo: bool, timeout: float, only: str = "") -> FileRun:
    """Run a file in as many children as needed; ``timeout`` is per test."""
    run = FileRun()
    started = time.monotonic()
    for _ in range(MOST_DEATHS):
        with tempfile.TemporaryDirectory() as folder:
            how = _one_child(run, Path(folder), name, godynamo, timeout, only)
        if not how:
            break
    else:
        run.died = f"{MOST_DEATHS} children died"
    run.seconds = time.monotonic() - started
    return run


def _one_child(run: FileRun, folder: Path, name: str, godynamo: bool, timeout: float, only: str) -> str:
    """Run the remaining tests in one child; return how it died, or "" if it finished."""
    results, skip, log = folder / "results.jsonl", folder / "skip.json", folder / "log.txt"
    skip.write_text(json.dumps(list(run.tests)))
    command = [sys.executable, "-X", "faulthandler", str(HERE / "cpython_child.py"), name, str(results)]
    command += ["--skip", str(skip)]
    command += ["--godynamo"] if godynamo else []
    command += ["--only", only] if only else []
    extra = [p for p in [os.environ.get("PYTHONPATH")] if p]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), *extra])}
    with log.open("w") as out:
        child = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, start_new_session=True, cwd=folder
        )
        hung = _wait(child, results, timeout)
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    current, done = _take(run, rows)
    if done is not None and child.returncode == 0:
        counters = done.get("counters", {})
        run.translated += counters.get("translated", 0)
        run.served += counters.get("hook_served", 0)
        return ""
    how = "hung" if hung else f"died with {_status(child.returncode)}"
    text = f"{how}\n{log.read_text(errors='replace')[-6000:]}"
    # Between two tests, the next test's name is unknown, so it cannot be skipped. The rest of the file is given up.
    run.tests[current or f"{name} outside its tests"] = ("hung" if hung else "crashed", text)
    if not current:
        run.died = how
        return ""
    return how


def _crowding() -> float:
    """Return how much longer a process takes because of others: the load of each core, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _wait(child: subprocess.Popen[Any], results: Path, timeout: float) -> bool:
    """Wait for the end; return True if the child was killed because it wrote nothing for ``timeout`` seconds.

    The seconds are those of an idle machine: at a load of 8 on two cores, test_list's test_repr_large takes 130.
    """
    size, since = -1, time.monotonic()
    while True:
        try:
            child.wait(0.1)
            return False
        except subprocess.TimeoutExpired:
            pass
        now = results.stat().st_size if results.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > (timeout if now > 0 else max(timeout, START_UP)) * _crowding():
            os.kill(child.pid, signal.SIGABRT)  # faulthandler shows where it hung
            time.sleep(1)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return True


def _take(run: FileRun, rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any] | None]:
    """Record a child's rows; return the test that was running at the end, and the last row's content if
    there is one."""
    current, done = "", None
    for row in rows:
        if "start" in row:
            current = row["start"]
        elif "test" in row:
            run.tests[row["test"]] = (row["outcome"], row["text"])
            current = ""
        elif "internal" in row:
            run.internal.append(f"{current}: {row['internal']}")
        else:
            done = row["done"]
    return current, done


def _status(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"
