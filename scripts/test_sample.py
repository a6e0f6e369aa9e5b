"""`make test-sample`: a short test of several Pythons, which .ci/run makes of those that do not get the whole suite.

On each: the build, the demo, the tests of python/tests/core, every test that proves a row of docs/conformance.md, and a
sample of python/tests/language. One table at the end. A Python that is not found, whose environment cannot be made, or
for which there is no time left is named in the table as not tested; this is no failure. Nothing runs without a limit.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pythons
import test_all

ROOT = pythons.ROOT
#: seconds that one more Python needs at least, on two idle cores; with less time left, it is not begun
AT_LEAST = 300
#: seconds for making the environment
ENVIRONMENT = 1200


@dataclass(frozen=True)
class Step:
    """A command and the number of seconds after which it is ended and has failed."""

    name: str
    command: tuple[str, ...]
    limit: int


def steps(python: Path, version: str) -> list[Step]:
    """Return what runs on a Python."""
    pytest = (str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m")
    return [
        Step("build", ("make", "build", f"PYTHON={version}"), 1200),
        Step("demo", (str(python), "scripts/demo.py"), 300),
        Step("core", (*pytest, "not serial", "python/tests/core"), 1200),
        Step("conformance", (*pytest, "row and not serial", "python/tests"), 1800),
        Step("language", (*pytest, "not serial", "python/tests/language", "--sample", "8"), 1200),
    ]


HEAD = ("Python", "result", "demo", "core", "conformance", "language", "minutes")


@dataclass
class Outcome:
    """The row of a Python in the table, and the tests that ran."""

    row: list[str]
    failed: bool = False
    tests: Counter[str] = field(default_factory=Counter)


def run(step: Step, limit: float) -> tuple[int | None, list[str]]:
    """Run a step and show its output. Return its exit code, or None if it was ended, and the lines of its output."""
    with subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=pythons.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that pytest's workers end with it
    ) as process:
        try:
            out, _ = process.communicate(timeout=limit)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            code = None
    lines = out.splitlines()
    if code == 0:
        lines = lines[-1:]
    print("\n".join(lines), flush=True)
    return code, out.splitlines()


def sample(python: pythons.Python, deadline: float) -> Outcome:
    """Test one Python; ``deadline`` is a time of time.monotonic()."""
    begun = time.monotonic()
    outcome = Outcome([python.version])
    try:
        if deadline - begun < AT_LEAST:
            raise pythons.NotTested("no time left")
        own = python.environment(min(ENVIRONMENT, deadline - begun))
    except pythons.NotTested as reason:
        outcome.row.append(f"not tested: {reason}")
        return outcome
    outcome.row.append("passed")
    for step in steps(own, python.version):
        print(f"Python {python.version}: {step.name}", flush=True)
        left = deadline - time.monotonic()
        code, lines = run(step, max(1, min(step.limit, left)))
        counts = test_all.count(lines)["pytest"]
        outcome.tests += counts
        told = test_all.told(counts) if counts else "passed" if code == 0 else "FAILED"
        if step.name != "build":
            outcome.row.append(told)
        if code is None and left < step.limit:
            outcome.row[1] = "not to the end: no time left"
            break
        if code != 0:
            outcome.failed = True
            outcome.row[1] = f"FAILED: {step.name}" if code is not None else f"FAILED: {step.name} took too long"
            if step.name == "build":
                break
    outcome.row += [""] * (len(HEAD) - 1 - len(outcome.row)) + [f"{(time.monotonic() - begun) / 60:.0f}"]
    return outcome


def main(arguments: list[str]) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="such as 3.12 (default: the supported ones)")
    parser.add_argument("--minutes", type=float, default=600, help="begin nothing after this time, and end what runs")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + 60 * options.minutes
    try:
        chosen = pythons.find(options.versions)
    except ValueError as error:
        parser.error(str(error))
    chosen = [p for p in chosen if options.versions or p.supported]
    outcomes = [sample(python, deadline) for python in chosen]
    print(pythons.table(HEAD, [outcome.row for outcome in outcomes]))
    tests: Counter[str] = sum((outcome.tests for outcome in outcomes), Counter())
    if tests:
        print(f"others: {tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped")
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
